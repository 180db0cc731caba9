import { resolve } from "node:path";
import type { ConfigMap } from "../../base/api/config-map.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Secret } from "../../base/api/secret.ts";
import { readTextIfExists } from "../../base/files/bounded-read.ts";
import { readNodeInfo } from "../../base/host/node-info.ts";
import type { DesiredPod, DesiredState } from "../../base/model/desired-pod.ts";
import { type PodFullName, podFullName } from "../../base/model/identity.ts";
import type { SourceKind } from "../../base/model/manifest-origin.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../config/option-table.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import { DockerClient } from "../../docker/engine/docker-client.ts";
import { type EnginePod, listEnginePods } from "../../docker/engine-pods.ts";
import { computeRootHash } from "../../docker/labels.ts";
import { type PodRevision, toPodRevision } from "../../kubelet/edit-rules.ts";
import type { ManifestResult } from "../../manifest/manifest-result.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { MAX_MANIFEST_BYTES } from "../../manifest/yaml/source-text.ts";
import { computeQosClass } from "../../plan/qos-class.ts";
import { describeFinding } from "../../sources/source-set.ts";
import { ApiClient, ApiStatusError, apiSocketOf } from "../client/api-client.ts";
import { findKubelet, localInstances } from "../client/find-kubelet.ts";
import { type KeptObjects, readKeptObjects, submittedPath } from "../client/kept-pods.ts";
import { manifestsBelow } from "../client/manifest-objects.ts";
import type { CommandIo } from "../command-io.ts";
import { diffLines } from "../print/diff-lines.ts";
import { describeObjectEffects, type PlainObject, plainObjects, shownObjects } from "../print/diff-objects.ts";
import { CommandError, type CommandRequest, engineEndpoint, findingOptions, UsageError } from "../sub-command.ts";
import { readInputs, type ValidateInput } from "../validate-inputs.ts";

/** `kubelet-ts diff -f FILE`: what an edit changes and restarts. Returns 0 without a difference, 1 with one. */
export async function runDiff(request: CommandRequest, io: CommandIo): Promise<number> {
  const files = request.values("filename");
  if (files.length === 0) throw new UsageError("give -f with a file, a directory, a URL or -");
  const paths = request.isOn("recursive") ? files.flatMap(manifestsBelow) : files;
  const inputs = await readInputs(paths, () => Bun.stdin.stream());
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
  const { writeYaml } = await import("../../base/text/write-yaml.ts");
  const submitted = readSubmitted(rootDir, nodeName ?? "");
  const wanted = inputs.map((input) => readWanted(input, nodeName ?? "", kept, running));
  const node = readNodeInfo(nodeName ?? "", "");
  const effectsOn = (pod: DesiredPod, state: DesiredState, before: Pod | undefined) =>
    describeEffects(toPodRevision(pod, state, resolved.options, node), findRunning(running, pod.pod), before);
  const socketPath = instance && apiSocketOf(instance.rootDir);
  let isChanged = false;
  const report = (what: string, lines: readonly string[], effects: readonly string[]) => {
    if (lines.length === 0 && effects.length === 0) return;
    isChanged = true;
    io.stdout(`${what}\n`);
    for (const line of lines) io.stdout(`  ${line}\n`);
    for (const effect of effects) io.stdout(`  => ${effect}\n`);
  };
  for (const { pods, objects, state } of wanted) {
    for (const pod of pods) {
      const fullName = podFullName(pod.pod.metadata);
      const before =
        kept.pods.find((it) => podFullName(it.pod.metadata) === fullName) ??
        submitted("Pod", pod.pod.metadata)?.pods[0];
      const lines = diffLines(before ? writeYaml(shown(before.pod)) : "", writeYaml(shown(pod.pod)));
      const effects = effectsOn(pod, state, before?.pod);
      report(
        `pod "${fullName}"`,
        lines,
        lines.length > 0 && effects.length === 0 ? ["no container restarts"] : effects,
      );
    }
    for (const written of objects) {
      const known = findBefore(written, kept, submitted);
      const { before, after: object } = (await compareByApi(written, socketPath)) ?? { before: known, after: written };
      const [was, is] = shownObjects(before, object);
      const lines = diffLines(was === undefined ? "" : writeYaml(was), writeYaml(is));
      if (lines.length > 0)
        report(`${object.kind} "${podFullName(object.metadata)}"`, lines, describeObjectEffects(before, object));
    }
    // Pods of other manifests that use an edited ConfigMap or Secret.
    const own = new Set(pods.map(({ pod }) => podFullName(pod.metadata)));
    const stateBefore = { ...state, ...indexOf(kept.configMaps, kept.secrets) };
    for (const pod of kept.pods.filter(({ pod: { metadata } }) => !own.has(podFullName(metadata)))) {
      const effects = effectsOn(pod, state, pod.pod);
      if (effects.join() !== effectsOn(pod, stateBefore, pod.pod).join())
        report(`pod "${podFullName(pod.pod.metadata)}"`, [], effects);
    }
  }
  return isChanged ? 1 : 0;
}

/** Reads an object as it was submitted last. */
type ReadSubmitted = (
  kind: string,
  metadata: { namespace?: string | undefined; name?: string | undefined },
) => ManifestResult | undefined;

function readSubmitted(rootDir: string, nodeName: string): ReadSubmitted {
  return (kind, { namespace = "default", name }) => {
    const file = submittedPath(rootDir, kind, { namespace, name });
    const text = readTextIfExists(file, MAX_MANIFEST_BYTES);
    if (text === undefined) return undefined;
    return readManifest(Buffer.from(text), { file, nodeName, source: "api", strictness: "warn" });
  };
}

/** The object of that kind and name that the kubelet knew last. */
function findBefore(object: PlainObject, kept: KeptObjects, submitted: ReadSubmitted): PlainObject | undefined {
  const isSame = (it: PlainObject) =>
    it.kind === object.kind && podFullName(it.metadata) === podFullName(object.metadata);
  const read = submitted(object.kind, object.metadata);
  return [...plainObjects(kept), ...(read ? plainObjects(read) : [])].find(isSame);
}

/**
 * An object that was submitted, now and as applying it would leave it: fields that others have set stay.
 * @returns undefined where the local API cannot say, as for an object of a file
 */
async function compareByApi(
  { kind, metadata, ...rest }: PlainObject,
  socketPath: string | undefined,
): Promise<{ before: PlainObject | undefined; after: PlainObject } | undefined> {
  if (socketPath === undefined || !localInstances.mayUse(socketPath)) return undefined;
  const api = new ApiClient(socketPath);
  const resource = (await api.resources()).find((it) => it.kind === kind);
  if (!resource) return undefined;
  const apiVersion = resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
  const { name = "", namespace = "default", labels, annotations } = metadata;
  const object = { ...rest, apiVersion, kind, metadata: { name, namespace, labels, annotations } };
  try {
    const path = api.pathOf(resource, namespace, name);
    const before = await api.json<PlainObject>("GET", path).catch((error: unknown) => {
      if (error instanceof ApiStatusError && error.code === 404) return undefined;
      throw error;
    });
    const after = await api.applyObject(path, object, new URLSearchParams({ dryRun: "All" }));
    return { before, after: after as unknown as PlainObject };
  } catch (error) {
    if (error instanceof ApiStatusError) return undefined;
    throw error;
  }
}

const findRunning = (running: readonly EnginePod[], { metadata }: Pod): EnginePod | undefined =>
  running.find(({ snapshot }) => podFullName(snapshot) === podFullName(metadata));

interface WantedObjects {
  pods: DesiredPod[];
  /** All but the pods. */
  objects: PlainObject[];
  state: DesiredState;
}

/** ConfigMaps and Secrets of other manifests are those the kubelet knew last. @throws CommandError */
function readWanted(
  input: ValidateInput,
  nodeName: string,
  kept: KeptObjects,
  running: readonly EnginePod[],
): WantedObjects {
  if ("problem" in input) throw new CommandError(`${input.file}: ${input.problem}`);
  if (!("bytes" in input)) return { pods: [], objects: [], state: { pods: [], ...indexOf([], []) } };
  const { bytes, file } = input;
  const read = (source: SourceKind) => readManifest(bytes, { file, nodeName, source, strictness: "warn" });
  const manifest = read("file");
  const bad = manifest.results.find(({ ok }) => !ok)?.findings.find(({ severity }) => severity === "error");
  if (bad) throw new CommandError(describeFinding(bad));
  // A pod that was submitted has no suffix.
  const apiPods = read("api").pods;
  const pods = manifest.pods.map((pod, at) => {
    const other = apiPods[at];
    return other && findRunning(running, other.pod) ? other : pod;
  });
  const { configMaps, secrets } = manifest;
  const state = { pods, ...indexOf([...kept.configMaps, ...configMaps], [...kept.secrets, ...secrets]) };
  return { pods, objects: plainObjects(manifest), state };
}

const byFullName = <T extends { metadata: { namespace?: string | undefined; name?: string | undefined } }>(
  all: readonly T[],
): Map<PodFullName, T> => new Map(all.map((object) => [podFullName(object.metadata), object]));

const indexOf = (configMaps: readonly ConfigMap[], secrets: readonly Secret[]) => ({
  configMaps: byFullName(configMaps),
  secrets: byFullName(secrets),
});

/** The part of a pod that users write, without the identity the node adds. */
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

const KEPT = "keeps running";

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
    return `container ${name} ${current.hash === hashes.containers.get(name) ? KEPT : "restarts"}`;
  });
  const gone = new Set(
    running.snapshot.containers.map(({ name }) => name).filter((name) => !wanted.includes(name) && !inits.has(name)),
  );
  const all = [...effects, ...[...gone].map((name) => `container ${name} stops`)];
  return all.every((effect) => effect.endsWith(KEPT)) ? [] : all;
}
