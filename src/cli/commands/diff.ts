import { join, resolve } from "node:path";
import type { Pod } from "../../api/pod.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../config/option-table.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { DockerClient } from "../../docker/docker-client.ts";
import { readTextIfExists } from "../../files/bounded-read.ts";
import { readNodeInfo } from "../../host/node-info.ts";
import { type PodRevision, toPodRevision } from "../../kubelet/edit-rules.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import type { DesiredPod, DesiredState } from "../../model/desired-pod.ts";
import { podFullName } from "../../model/identity.ts";
import type { SourceKind } from "../../model/manifest-origin.ts";
import { computeQosClass } from "../../plan/qos-class.ts";
import { type EnginePod, listEnginePods } from "../../runtime/engine-pods.ts";
import { computeRootHash } from "../../runtime/labels.ts";
import { MAX_MANIFEST_BYTES } from "../../sources/manifest-files.ts";
import { findKubelet } from "../client/find-kubelet.ts";
import { type KeptObjects, readKeptObjects } from "../client/kept-pods.ts";
import type { CommandIo } from "../command-io.ts";
import { diffLines } from "../print/diff-lines.ts";
import { CommandError, type CommandRequest, engineEndpoint, findingOptions, UsageError } from "../sub-command.ts";
import { readInputs, type ValidateInput } from "../validate-inputs.ts";

/** `kubelet-ts diff -f FILE`: what an edit changes and restarts. Returns 0 without a difference, 1 with one. */
export async function runDiff(request: CommandRequest, io: CommandIo): Promise<number> {
  const files = request.values("filename");
  if (files.length === 0) throw new UsageError("give -f with a file, a directory, a URL or -");
  const inputs = await readInputs(files, () => Bun.stdin.stream());
  const options = findingOptions(request);
  const kubelet = await findKubelet(options);
  if ("problem" in kubelet && !kubelet.isAbsent) throw new CommandError(kubelet.problem);
  const instance = kubelet.instance;
  const rootDir = instance?.rootDir ?? resolve(options.rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir);
  const client = new DockerClient(engineEndpoint(request, instance?.dockerEndpoint));
  const running = await listEnginePods(client, computeRootHash(rootDir), AbortSignal.timeout(15_000));
  const kept = readKeptObjects(rootDir);
  const nodeName = instance?.nodeName ?? running[0]?.owner.nodeName;
  const resolved = await resolveOptions([
    `--root-dir=${rootDir}`,
    ...(nodeName === undefined ? [] : [`--hostname-override=${nodeName}`]),
  ]);
  const { writeYaml } = await import("../write-yaml.ts");
  let isChanged = false;
  for (const desired of inputs.flatMap((input) => readPods(input, nodeName ?? "", kept, running))) {
    const before =
      kept.pods.find(({ pod }) => podFullName(pod.metadata) === podFullName(desired.pod.pod.metadata)) ??
      readSubmitted(rootDir, nodeName ?? "", desired.pod.pod);
    const lines = diffLines(before ? writeYaml(shown(before.pod)) : "", writeYaml(shown(desired.pod.pod)));
    const node = readNodeInfo(nodeName ?? "", "");
    const revision = toPodRevision(desired.pod, desired.state, resolved.options, node);
    const effects = describeEffects(revision, findRunning(running, desired.pod.pod), before?.pod);
    if (lines.length === 0 && effects.length === 0) continue;
    isChanged = true;
    io.stdout(`pod "${podFullName(desired.pod.pod.metadata)}"\n`);
    for (const line of lines) io.stdout(`  ${line}\n`);
    for (const effect of effects) io.stdout(`  => ${effect}\n`);
  }
  return isChanged ? 1 : 0;
}

/** The pod of that name as it was submitted last; undefined when there is none. */
function readSubmitted(rootDir: string, nodeName: string, { metadata }: Pod): DesiredPod | undefined {
  const file = join(rootDir, "manifests", metadata.namespace ?? "default", `pod-${metadata.name}.yaml`);
  const text = readTextIfExists(file, MAX_MANIFEST_BYTES);
  if (text === undefined) return undefined;
  return readManifest(Buffer.from(text), { file, nodeName, source: "api", strictness: "warn" }).pods[0];
}

const findRunning = (running: readonly EnginePod[], { metadata }: Pod): EnginePod | undefined =>
  running.find(({ snapshot }) => podFullName(snapshot) === podFullName(metadata));

/** ConfigMaps and Secrets of other manifests are those the kubelet knew last. */
function readPods(
  input: ValidateInput,
  nodeName: string,
  kept: KeptObjects,
  running: readonly EnginePod[],
): { pod: DesiredPod; state: DesiredState }[] {
  if ("problem" in input) throw new CommandError(`${input.file}: ${input.problem}`);
  if (!("bytes" in input)) return [];
  const { bytes, file } = input;
  const read = (source: SourceKind) => readManifest(bytes, { file, nodeName, source, strictness: "warn" });
  const { pods: filePods, configMaps, secrets, results } = read("file");
  const bad = results.find(({ ok }) => !ok)?.findings.find(({ severity }) => severity === "error");
  if (bad) throw new CommandError(`${bad.file}:${bad.line}:${bad.column}: ${bad.field}: ${bad.message}`);
  // A pod that was submitted has no suffix.
  const apiPods = read("api").pods;
  const pods = filePods.map((pod, at) => {
    const other = apiPods[at];
    return other && findRunning(running, other.pod) ? other : pod;
  });
  const index = <T extends { metadata: { namespace?: string | undefined; name?: string | undefined } }>(
    all: readonly T[],
  ) => new Map(all.map((object) => [podFullName(object.metadata), object]));
  const state = {
    pods,
    configMaps: index([...kept.configMaps, ...configMaps]),
    secrets: index([...kept.secrets, ...secrets]),
  };
  return pods.map((pod) => ({ pod, state }));
}

/** The part of a pod that people write, without the identity the node adds. */
function shown({ metadata, spec }: Pod): unknown {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(
    ([key]) => !key.startsWith("kubernetes.io/config."),
  );
  const { nodeName: _node, ...written } = spec;
  return {
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      ...(metadata.labels && { labels: metadata.labels }),
      ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
    },
    spec: written,
  };
}

/**
 * Effects of a revision on the running pod, by the hashes on the labels of its containers.
 * @param before the revision that runs; undefined: not known
 */
export function describeEffects(
  { hashes, pod, qosClass }: PodRevision,
  running: EnginePod | undefined,
  before: Pod | undefined,
): string[] {
  const sandbox = running?.snapshot.sandboxes[0];
  if (!running || !sandbox) return ["the pod starts"];
  const isInitChanged = sandbox.initHash !== undefined && hashes.init !== undefined && sandbox.initHash !== hashes.init;
  const qosBefore = before && computeQosClass(before);
  if (sandbox.hash !== hashes.sandbox && qosBefore !== undefined && qosBefore !== qosClass) {
    return [`QoS class changes from ${qosBefore} to ${qosClass}: every container restarts, the IP address may change`];
  }
  if (sandbox.hash !== hashes.sandbox || isInitChanged)
    return ["the whole pod restarts, with a new sandbox and IP address"];
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const wanted = [...sidecars, ...pod.spec.containers].map(({ name }) => name);
  const inits = new Set((pod.spec.initContainers ?? []).map(({ name }) => name));
  const effects = wanted.flatMap((name) => {
    const current = running.snapshot.containers.find((container) => container.name === name);
    if (!current) return [`container ${name} starts`];
    return current.hash === hashes.containers.get(name) ? [] : [`container ${name} restarts`];
  });
  const gone = new Set(
    running.snapshot.containers.map(({ name }) => name).filter((name) => !wanted.includes(name) && !inits.has(name)),
  );
  return [...effects, ...[...gone].map((name) => `container ${name} stops`)];
}
