import { ApiError } from "../../apiserver/api-error.ts";
import type { LocalApi } from "../../apiserver/node/local-api.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { DesiredState } from "../../base/model/desired-state.ts";
import type { Finding } from "../../base/model/finding.ts";
import { podFullName } from "../../base/model/pod.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { toPodRevision } from "../../kubelet/edit-rules.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { describeIgnoredKind } from "../../manifest/ignored-kinds.ts";
import { type PlainObject, readPlainObjects } from "../../manifest/plain-objects.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import type { ActionResult, AppliedObject, ApplyResult, CompareResult } from "../../page/wire.ts";
import type { PageActions } from "../../server/page/page-routes.ts";
import { diffManifest } from "../manifest-diff.ts";
import type { NodeContext } from "./node-context.ts";

/** Characters of changed lines that are sent. */
const MAX_DIFF = 16_384;
/** Name of the manifest in findings, which name its lines alone. */
const PASTED = "-";

/** Changes that a session of the page may make, by the functions that requests of the local API call too. */
export class NodeActions implements PageActions {
  readonly #context: NodeContext;
  readonly #kubelet: Kubelet;
  readonly #api: LocalApi;
  readonly #desired: () => DesiredState;

  /** @param desired objects of all sources */
  constructor(context: NodeContext, kubelet: Kubelet, api: LocalApi, desired: () => DesiredState) {
    this.#context = context;
    this.#kubelet = kubelet;
    this.#api = api;
    this.#desired = desired;
  }

  restart({ metadata }: Pod): ActionResult {
    const refusal = this.#kubelet.restartPod(metadata.uid ?? "");
    if (refusal !== undefined) return { ok: false, message: `pod "${metadata.name}" ${refusal}` };
    return { ok: true, message: `pod/${metadata.name} restarted` };
  }

  /** The pod is shown as Terminating meanwhile; its grace period may be longer than a request. */
  async delete({ metadata: { namespace, name = "", uid } }: Pod): Promise<ActionResult> {
    try {
      await this.#api.commands.delete("pods", namespace, name, uid);
      return { ok: true, message: `pod "${name}" deleted: its containers are being stopped` };
    } catch (error) {
      return { ok: false, message: messageOf(error) };
    }
  }

  /** An object that is refused does not keep the others back. */
  async apply(manifest: string, dryRun: boolean): Promise<ApplyResult> {
    const bytes = Buffer.from(manifest);
    const read = readPlainObjects(bytes);
    if ("problem" in read) return { objects: [], problems: this.#problemsOf(bytes, [read.problem.message]) };
    if (read.objects.length === 0) return { objects: [], problems: ["there is no object in the manifest"] };
    const objects: AppliedObject[] = [];
    const refusals: string[] = [];
    for (const object of read.objects) {
      try {
        objects.push(this.#ignored(object) ?? (await this.#applyOne(object, dryRun)));
      } catch (error) {
        refusals.push(`${object.kind} "${object.metadata.name ?? ""}": ${messageOf(error)}`);
      }
    }
    // The API names fields; the check of manifests names lines too.
    return { objects, problems: refusals.length === 0 ? [] : this.#problemsOf(bytes, refusals) };
  }

  async compare(manifest: string): Promise<CompareResult> {
    const { node, options } = this.#context;
    const desired = this.#desired();
    const diff = await diffManifest(Buffer.from(manifest), PASTED, {
      nodeName: node.name,
      known: {
        pods: desired.pods,
        configMaps: [...desired.configMaps.values()],
        secrets: [...desired.secrets.values()],
        objects: desired.objects ?? [],
      },
      isSubmitted: true,
      findRunning: ({ metadata }) => {
        const fullName = podFullName(metadata);
        const workers = [...this.#kubelet.workers.values()];
        return workers.find(({ ref, isRemoving }) => !isRemoving && podFullName(ref) === fullName)?.snapshot;
      },
      toRevision: (pod, state) => toPodRevision(pod, state, options, node),
      tryApply: async (object) => {
        try {
          const { before, after } = await this.#api.commands.apply(object, { dryRun: true });
          return { before, after };
        } catch (error) {
          if (error instanceof ApiError) return undefined;
          throw error;
        }
      },
    });
    if ("errors" in diff) return { changes: [], leftOut: 0, problems: diff.errors.map(describeFinding) };
    const length = diff.changes.flatMap(({ lines }) => lines).reduce((sum, line) => sum + line.length, 0);
    if (length <= MAX_DIFF) return { changes: diff.changes, leftOut: 0, problems: [] };
    return { changes: diff.changes.map((change) => ({ ...change, lines: [] })), leftOut: length, problems: [] };
  }

  async #applyOne(object: PlainObject, dryRun: boolean): Promise<AppliedObject> {
    const { reference, outcome, warnings } = await this.#api.commands.apply(object, { dryRun });
    return { reference, outcome, warnings };
  }

  /** Kinds without effect on one node are reported, and not refused. */
  #ignored({ apiVersion = "", kind, metadata }: PlainObject): AppliedObject | undefined {
    if (this.#api.registry.findKind(apiVersion, kind)) return undefined;
    const reason = describeIgnoredKind(kind, apiVersion);
    if (reason === undefined) return undefined;
    return { reference: `${kind.toLowerCase()}/${metadata.name ?? ""}`, outcome: "ignored", warnings: [reason] };
  }

  /** The errors in the text with their lines, where the check of manifests finds any. */
  #problemsOf(bytes: Uint8Array, otherwise: string[]): string[] {
    const options = {
      file: PASTED,
      nodeName: this.#context.node.name,
      source: "file",
      strictness: "standard",
    } as const;
    const errors = readManifest(bytes, options).findings.filter(({ severity }) => severity === "error");
    return errors.length > 0 ? errors.map(describeFinding) : otherwise;
  }
}

const describeFinding = ({ line, column, field, message }: Finding): string =>
  `line ${line}, column ${column}: ${field === "" ? "" : `${field}: `}${message}`;
