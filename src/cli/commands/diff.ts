import { apiVersionOf } from "../../apiserver/resource-definition.ts";
import { readTextIfExists } from "../../base/files/whole-file.ts";
import { readNodeInfo } from "../../base/host/node-info.ts";
import { apiSocketOf } from "../../base/host/root-directory.ts";
import { podFullName } from "../../base/model/pod.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { diffManifest, type RunningState } from "../../daemon/manifest-diff.ts";
import { computeRootHash } from "../../docker/labels.ts";
import { toPodRevision } from "../../kubelet/edit-rules.ts";
import type { PlainObject } from "../../manifest/plain-objects.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { MAX_MANIFEST_BYTES } from "../../manifest/yaml/parse-stream.ts";
import { describeFinding } from "../../sources/source-set.ts";
import { ApiClient, ApiStatusError } from "../client/api-client.ts";
import { engineOf } from "../client/engine-reader.ts";
import { localInstances, locateKubelet } from "../client/find-kubelet.ts";
import { readKeptObjects, submittedPath } from "../client/kept-pods.ts";
import { readManifestFiles } from "../client/manifest-inputs.ts";
import { CommandError, type CommandIo, type CommandRequest } from "../sub-command.ts";

/** `kubelet-ts diff -f FILE`: what an edit changes and restarts. Returns 0 without a difference, 1 with one. */
export async function runDiff(request: CommandRequest, io: CommandIo): Promise<number> {
  const inputs = await readManifestFiles(request.values("filename"), request.isOn("recursive"));
  const kubelet = await locateKubelet(request);
  if ("problem" in kubelet && !kubelet.isAbsent) throw new CommandError(kubelet.problem);
  const { instance, rootDir } = kubelet;
  const engine = engineOf(request, instance?.dockerEndpoint);
  const running = await engine.listPods(computeRootHash(rootDir), AbortSignal.timeout(15_000));
  const nodeName = instance?.nodeName ?? running[0]?.owner.nodeName;
  const resolved = await resolveOptions([
    `--root-dir=${rootDir}`,
    ...(nodeName === undefined ? [] : [`--hostname-override=${nodeName}`]),
  ]);
  const node = readNodeInfo(nodeName ?? "", "");
  const socketPath = instance && apiSocketOf(instance.rootDir);
  const state: RunningState = {
    nodeName: nodeName ?? "",
    known: readKeptObjects(rootDir),
    submitted: readSubmitted(rootDir, nodeName ?? ""),
    findRunning: ({ metadata }) =>
      running.find(({ snapshot }) => podFullName(snapshot) === podFullName(metadata))?.snapshot,
    toRevision: (pod, desired) => toPodRevision(pod, desired, resolved.options, node),
    tryApply: (object) => tryApply(object, socketPath),
  };
  let isChanged = false;
  for (const { bytes, file } of inputs) {
    const diff = await diffManifest(bytes, file, state);
    if ("errors" in diff) throw new CommandError(diff.errors[0] ? describeFinding(diff.errors[0]) : file);
    for (const { subject, lines, effects } of diff.changes) {
      isChanged = true;
      io.stdout(`${subject}\n`);
      for (const line of lines) io.stdout(`  ${line}\n`);
      for (const effect of effects) io.stdout(`  => ${effect}\n`);
    }
  }
  return isChanged ? 1 : 0;
}

const readSubmitted =
  (rootDir: string, nodeName: string): NonNullable<RunningState["submitted"]> =>
  (kind, { namespace = "default", name }) => {
    const file = submittedPath(rootDir, kind, { namespace, name });
    const text = readTextIfExists(file, MAX_MANIFEST_BYTES);
    if (text === undefined) return undefined;
    return readManifest(Buffer.from(text), { file, nodeName, source: "api", strictness: "warn" });
  };

async function tryApply({ kind, metadata, ...rest }: PlainObject, socketPath: string | undefined) {
  if (socketPath === undefined || !localInstances.mayUse(socketPath)) return undefined;
  const api = new ApiClient(socketPath);
  const resource = (await api.resources()).find((it) => it.kind === kind);
  if (!resource) return undefined;
  const { name = "", namespace = "default", labels, annotations } = metadata;
  const object = {
    ...rest,
    apiVersion: apiVersionOf(resource),
    kind,
    metadata: { name, namespace, labels, annotations },
  };
  try {
    const path = api.pathOf(resource, namespace, name);
    const before = (await api.find(path)) as PlainObject | undefined;
    const after = await api.applyObject(path, object, new URLSearchParams({ dryRun: "All" }));
    return { before, after: after as unknown as PlainObject };
  } catch (error) {
    if (error instanceof ApiStatusError) return undefined;
    throw error;
  }
}
