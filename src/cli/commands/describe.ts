import { resolve } from "node:path";
import type { Pod } from "../../base/api/pod.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../config/option-table.ts";
import { findPod, inScope } from "../client/choose-pod.ts";
import { findingOptions, findKubelet } from "../client/find-kubelet.ts";
import { type KeptObjects, placeOfPod, readKeptObjects } from "../client/kept-pods.ts";
import { KubeletApi } from "../client/kubelet-api.ts";
import { openReader } from "../client/open-reader.ts";
import type { CommandIo } from "../command-io.ts";
import { describeNode } from "../print/describe-node.ts";
import { describePod } from "../print/describe-pod.ts";
import {
  CommandError,
  type CommandRequest,
  findObject,
  needsApi,
  requireNode,
  scopeOf,
  selectorOf,
} from "../sub-command.ts";

/** `kubelet-ts describe pod` and `describe node`. Returns the exit code. */
export async function runDescribe(request: CommandRequest, io: CommandIo): Promise<number> {
  const [written, ...more] = request.positionals;
  const [kind, first] = written?.split("/", 2) ?? [];
  if (needsApi(request)) {
    const { describeObjects } = await import("./describe-objects.ts");
    return await describeObjects(request, io, await readKept(request));
  }
  const object = findObject(request.command, kind);
  const names = first ? [first, ...more] : more;
  const matches = selectorOf(request, names);
  const api = await openReader(request);
  // Events are known to a running kubelet alone.
  const events = await (api instanceof KubeletApi ? api.events() : undefined);
  const all = { pods: (await api.pods())!.value, events: events?.value ?? [] };
  const times = { now: io.now(), offsetMinutes: io.offsetMinutes };
  if (object === "nodes") {
    const node = await api.node();
    requireNode(node, names);
    const own = all.events.filter(({ involvedObject }) => involvedObject.kind === "Node");
    io.stdout(describeNode(node, all.pods, own, times));
    return 0;
  }
  const scope = scopeOf(request);
  const found =
    names.length > 0
      ? names.map((name) => findPod(all.pods, name, scope))
      : inScope(all.pods, scope).filter(({ metadata }) => matches(metadata.labels ?? {}));
  const ofPod = ({ metadata }: Pod) => all.events.filter(({ involvedObject }) => involvedObject.uid === metadata.uid);
  const kept = await readKept(request);
  const texts = found.flatMap((pod) =>
    "problem" in pod ? [] : describePod(pod, ofPod(pod), times, kept && placeOfPod(pod, kept)),
  );
  io.stdout(texts.join("\n\n"));
  const problems = found.flatMap((pod) => ("problem" in pod ? pod.problem : []));
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  if (texts.length === 0) io.stderr("No resources found\n");
  return 0;
}

/** The checkpoints of the kubelet's root directory; undefined where another server is asked. */
async function readKept(request: CommandRequest): Promise<KeptObjects | undefined> {
  const options = findingOptions(request);
  if (options.server !== undefined) return undefined;
  const kubelet = await findKubelet(options);
  const rootDir = kubelet.instance?.rootDir ?? resolve(options.rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir);
  return readKeptObjects(rootDir);
}
