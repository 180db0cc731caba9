import { withoutSource } from "../base/api/annotations.ts";
import type { ConfigMap, Secret } from "../base/api/config-objects.ts";
import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState, SourceKind } from "../base/model/desired-state.ts";
import type { Finding } from "../base/model/finding.ts";
import { type PodFullName, podFullName } from "../base/model/pod.ts";
import type { PodSnapshot } from "../base/model/pod-snapshot.ts";
import { canonicalJson } from "../base/text/json.ts";
import type { PodRevision } from "../kubelet/edit-rules.ts";
import type { PlainObject } from "../manifest/plain-objects.ts";
import { readManifest } from "../manifest/read-manifest.ts";
import { computeQosClass } from "../plan/pod-resources.ts";
import type { Objects } from "../sources/source-set.ts";

/** Objects that a kubelet has read or was sent. */
type KnownObjects = Omit<Required<Objects>, "locations">;

/** The state with which a manifest is compared. */
export interface RunningState {
  nodeName: string;
  known: KnownObjects;
  /** An object that was submitted, where `known` lacks it. */
  submitted?: (kind: string, metadata: PlainObject["metadata"]) => KnownObjects | undefined;
  /** A pod that does not run is compared as one that is submitted, not as one of a file. */
  isSubmitted?: boolean;
  /** undefined: the pod does not run. */
  findRunning: (pod: Pod) => PodSnapshot | undefined;
  toRevision: (pod: DesiredPod, state: DesiredState) => PodRevision;
  /**
   * An object that was submitted, now and as applying it would leave it: fields that others have set stay.
   * @returns undefined where the local API cannot say, as for an object of a file
   */
  tryApply: (object: PlainObject) => Promise<{ before: PlainObject | undefined; after: PlainObject } | undefined>;
}

/** Changes of a manifest on one object. */
interface ManifestChange {
  /** `pod "default/web"` */
  subject: string;
  /** In the format of diff -U3; empty: another object of the manifest has effects on this one. */
  lines: readonly string[];
  /** `container app restarts` */
  effects: readonly string[];
}

/** Lists the changes and restarts that applying a manifest would cause; the errors of one that cannot be read. */
export async function diffManifest(
  bytes: Uint8Array,
  file: string,
  running: RunningState,
): Promise<{ changes: ManifestChange[] } | { errors: Finding[] }> {
  const { known, submitted, isSubmitted = false, findRunning, toRevision, nodeName } = running;
  const read = (source: SourceKind) => readManifest(bytes, { file, nodeName, source, strictness: "warn" });
  const manifest = read("file");
  if (manifest.results.some(({ ok }) => !ok)) {
    return { errors: manifest.findings.filter(({ severity }) => severity === "error") };
  }
  // The name of a submitted pod does not end with that of the node.
  const apiPods = read("api").pods;
  const pods = manifest.pods.map((pod, at) => {
    const other = apiPods[at];
    return other && (findRunning(other.pod) || (isSubmitted && !findRunning(pod.pod))) ? other : pod;
  });
  const { writeYaml } = await import("../base/text/write-yaml.ts");
  // ConfigMaps and Secrets of other manifests are those the kubelet knew last.
  const state = {
    pods,
    ...indexOf([...known.configMaps, ...manifest.configMaps], [...known.secrets, ...manifest.secrets]),
  };
  const effectsOn = (pod: DesiredPod, on: DesiredState, before: Pod | undefined) =>
    describePodEffects(toRevision(pod, on), findRunning(pod.pod), before);
  const changes: ManifestChange[] = [];
  const add = (kind: string, metadata: PlainObject["metadata"], lines: string[], effects: string[]) => {
    if (lines.length + effects.length > 0)
      changes.push({ subject: `${kind} "${podFullName(metadata)}"`, lines, effects });
  };
  for (const pod of pods) {
    const { metadata } = pod.pod;
    const fullName = podFullName(metadata);
    const before =
      known.pods.find((it) => podFullName(it.pod.metadata) === fullName) ?? submitted?.("Pod", metadata)?.pods[0];
    const lines = diffLines(before ? writeYaml(shownPod(before.pod)) : "", writeYaml(shownPod(pod.pod)));
    const effects = effectsOn(pod, state, before?.pod);
    add("pod", metadata, lines, lines.length > 0 && effects.length === 0 ? ["no container restarts"] : effects);
  }
  for (const written of plainObjects(manifest)) {
    const { kind, metadata } = written;
    const read = submitted?.(kind, metadata);
    const isSame = (it: PlainObject) => it.kind === kind && podFullName(it.metadata) === podFullName(metadata);
    const before = [...plainObjects(known), ...(read ? plainObjects(read) : [])].find(isSame);
    const change = (await running.tryApply(written)) ?? { before, after: written };
    const [was, is] = shownObjects(change.before, change.after);
    const lines = diffLines(was === undefined ? "" : writeYaml(was), writeYaml(is));
    if (lines.length > 0) add(kind, change.after.metadata, lines, describeObjectEffects(change.before, change.after));
  }
  if (manifest.configMaps.length + manifest.secrets.length === 0) return { changes };
  // Pods of other manifests that use an edited ConfigMap or Secret.
  const own = new Set(pods.map(({ pod }) => podFullName(pod.metadata)));
  const stateBefore = { ...state, ...indexOf(known.configMaps, known.secrets) };
  for (const pod of known.pods.filter(({ pod: { metadata } }) => !own.has(podFullName(metadata)))) {
    const effects = effectsOn(pod, state, pod.pod);
    if (effects.join() !== effectsOn(pod, stateBefore, pod.pod).join()) add("pod", pod.pod.metadata, [], effects);
  }
  return { changes };
}

const byFullName = <T extends { metadata: { namespace?: string | undefined; name?: string | undefined } }>(
  all: readonly T[],
): Map<PodFullName, T> => new Map(all.map((object) => [podFullName(object.metadata), object]));

const indexOf = (configMaps: readonly ConfigMap[], secrets: readonly Secret[]) => ({
  configMaps: byFullName(configMaps),
  secrets: byFullName(secrets),
});

/** The part of a pod that users write, without the identity the node adds. */
function shownPod({ metadata, spec }: Pod): unknown {
  const annotations = withoutSource(metadata.annotations);
  const { nodeName: _node, ...written } = spec;
  return {
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      ...(metadata.labels && { labels: metadata.labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: written,
  };
}

const KEPT = "keeps running";

/**
 * Effects of a revision on the running pod, by the hashes on the labels of its containers.
 * @param before the revision that runs; undefined: not known
 */
export function describePodEffects(
  { hashes, pod, qosClass }: PodRevision,
  running: PodSnapshot | undefined,
  before: Pod | undefined,
): string[] {
  const sandbox = running?.sandboxes[0];
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
    const current = running.containers.find((container) => container.name === name);
    if (!current) return [`container ${name} starts`];
    return `container ${name} ${current.hash === hashes.containers.get(name) ? KEPT : "restarts"}`;
  });
  const gone = new Set(
    running.containers.map(({ name }) => name).filter((name) => !wanted.includes(name) && !inits.has(name)),
  );
  const all = [...effects, ...[...gone].map((name) => `container ${name} stops`)];
  return all.every((effect) => effect.endsWith(KEPT)) ? [] : all;
}

/** Objects other than pods, each with its kind. */
function plainObjects({ configMaps, secrets, objects }: Omit<KnownObjects, "pods">): PlainObject[] {
  return [
    ...configMaps.map((object) => ({ ...object, kind: "ConfigMap" })),
    ...secrets.map((object) => ({ ...object, kind: "Secret" })),
    ...objects.map(({ kind, object }) => ({ ...object, kind })),
  ] as PlainObject[];
}

/** The fields of both that users write. Values of Secrets are hidden, but differing ones are shown as different. */
export function shownObjects(before: PlainObject | undefined, after: PlainObject): [object | undefined, object] {
  return [
    before && shown(before, before.kind === "Secret" ? maskedData(before, after, "*** (before)") : {}),
    shown(after, after.kind === "Secret" ? maskedData(after, before, "*** (after)") : {}),
  ];
}

function shown(
  { kind, metadata, status: _status, apiVersion: _version, ...rest }: PlainObject,
  masked: object,
): object {
  const { name, namespace = "default", labels, annotations } = metadata;
  const own = {
    name,
    namespace,
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations }),
  };
  return { kind, metadata: own, ...sorted({ ...rest, ...masked }) };
}

/** Without an order of fields that depends on who wrote them. */
const sorted = (value: unknown): object => JSON.parse(canonicalJson(value)) as object;

type Data = Readonly<Record<string, unknown>> | undefined;

/** @param changed replaces a value that the other object has not, or has otherwise */
function maskedData(object: PlainObject, other: PlainObject | undefined, changed: string): object {
  const mask = (field: string) => {
    const [own, others] = [object[field] as Data, other?.[field] as Data];
    if (own === undefined) return {};
    const values = Object.entries(own).map(([key, value]) => [
      key,
      JSON.stringify(value) === JSON.stringify(others?.[key]) ? "***" : changed,
    ]);
    return { [field]: Object.fromEntries(values) as Record<string, string> };
  };
  return { ...mask("data"), ...mask("stringData") };
}

/** Effects of an edit of a workload on its pods. */
export function describeObjectEffects(before: PlainObject | undefined, after: PlainObject): string[] {
  const [was, is] = [before?.spec, after.spec] as ({ template?: unknown; replicas?: number } | undefined)[];
  if (is?.template === undefined) return [];
  const count = is.replicas;
  if (was === undefined) return [count === undefined ? "starts its pods" : `starts ${pods(count)}`];
  const effects: string[] = [];
  if (canonicalJson(was.template) !== canonicalJson(is.template)) {
    effects.push(
      after.kind === "Job"
        ? "the pods of a Job are not replaced: delete it and apply it again"
        : "replaces its pods by new ones",
    );
  }
  const more = (count ?? 1) - (was.replicas ?? 1);
  if (more !== 0) effects.push(`${more > 0 ? "starts" : "stops"} ${pods(Math.abs(more))}`);
  return effects;
}

const pods = (count: number): string => `${count} ${count === 1 ? "pod" : "pods"}`;

/** Pairs of lines that are compared one by one; beyond, a change is reported without its lines. */
const MAX_COMPARED = 4_000_000;

/** Lines of a change in the format of diff -U3, without a header; empty when both texts are equal. */
export function diffLines(before: string, after: string): string[] {
  const a = before.trimEnd().split("\n");
  const b = after.trimEnd().split("\n");
  const edits = editScript(a, b);
  if (!edits) return [`… ${a.length} lines become ${b.length} lines`];
  const keep = new Set(
    edits.flatMap(({ sign }, index) =>
      sign === " " ? [] : Array.from({ length: 7 }, (_, offset) => index - 3 + offset),
    ),
  );
  const lines: string[] = [];
  edits.forEach(({ sign, line }, index) => {
    if (!keep.has(index)) return;
    if (lines.length > 0 && !keep.has(index - 1)) lines.push("…");
    lines.push(`${sign} ${line}`);
  });
  return lines;
}

interface Edit {
  sign: " " | "-" | "+";
  line: string;
}

/** Uses the longest common subsequence of what is between equal begins and ends. @returns undefined: there is too much */
function editScript(before: readonly string[], after: readonly string[]): Edit[] | undefined {
  const shortest = Math.min(before.length, after.length);
  let head = 0;
  while (head < shortest && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < shortest - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  if (a.length * b.length > MAX_COMPARED) return undefined;
  const same = (lines: readonly string[]): Edit[] => lines.map((line) => ({ sign: " ", line }));
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const edits = same(before.slice(0, head));
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      edits.push({ sign: " ", line: a[i++] ?? "" });
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      edits.push({ sign: "-", line: a[i++] ?? "" });
    } else edits.push({ sign: "+", line: b[j++] ?? "" });
  }
  return [...edits, ...same(before.slice(before.length - tail))];
}
