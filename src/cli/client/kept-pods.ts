import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ConfigMap } from "../../base/api/config-map.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Secret } from "../../base/api/secret.ts";
import { readBoundedText } from "../../base/files/bounded-read.ts";
import { type DesiredObject, objectKey } from "../../base/model/desired-object.ts";
import type { DesiredPod } from "../../base/model/desired-pod.ts";
import type { ManifestLocation } from "../../base/model/manifest-origin.ts";

const MAX_CHECKPOINT_BYTES = 256 * 2 ** 20;

/** Desired objects of the last run of a kubelet. */
export interface KeptObjects {
  /** Each with the `sourceId` of its checkpoint. */
  pods: DesiredPod[];
  /** Workloads and the like. */
  objects: DesiredObject[];
  configMaps: ConfigMap[];
  secrets: Secret[];
  /** The root directory: submitted objects are files below it. */
  rootDir: string;
  /** Places of objects that carry none, by {@link objectKey}. */
  locations: Readonly<Record<string, ManifestLocation>>;
}

/**
 * Reads the checkpoints of a root directory. What cannot be read is left out, since a checkpoint is a hint. The newest
 * checkpoint comes first: a pod may still be in that of a source that is no longer configured.
 */
export function readKeptObjects(rootDir: string): KeptObjects {
  const all = checkpointsOf(join(rootDir, "checkpoints")).flatMap(textsOf);
  return {
    rootDir,
    pods: all.flatMap(({ pods = [] }) => pods),
    objects: all.flatMap(({ objects = [] }) => objects),
    configMaps: all.flatMap(({ configMaps = [] }) => configMaps),
    secrets: all.flatMap(({ secrets = [] }) => secrets),
    locations: Object.assign({}, ...all.map(({ locations }) => locations).reverse()) as KeptObjects["locations"],
  };
}

export const readKeptPods = (rootDir: string): DesiredPod[] => readKeptObjects(rootDir).pods;

/** `file:line` of a manifest, or its origin where the line is not known. */
export const placeOf = ({ origin, location }: { origin: string; location?: ManifestLocation }): string =>
  location?.line === undefined ? origin : `${location.file}:${location.line}`;

/** Manifest of a pod: its own, or that of the workload it belongs to. */
function manifestOf({ metadata }: Pod, { pods, objects }: KeptObjects): DesiredPod | DesiredObject | undefined {
  return pods.find(({ pod }) => pod.metadata.uid === metadata.uid) ?? manifestOfOwner(metadata, objects);
}

/** Place of the manifest of a pod, if it is known. */
export function placeOfPod(pod: Pod, kept: KeptObjects): string | undefined {
  const manifest = manifestOf(pod, kept);
  return manifest ? placeOf(manifest) : placeOfObject("Pod", pod.metadata, kept);
}

/** Metadata that names the origin of an object. */
type Located = Pick<ObjectMeta, "name" | "namespace" | "labels" | "ownerReferences">;

/** Place of an object: its own, or that of the workload it belongs to. */
export function placeOfObject(kind: string, metadata: Located, kept: KeptObjects): string | undefined {
  const { objects, locations, rootDir } = kept;
  const isSame = (other: Pick<ObjectMeta, "name" | "namespace">) =>
    other.name === metadata.name && (other.namespace ?? "default") === (metadata.namespace ?? "default");
  const own = objects.find((it) => it.kind === kind && isSame(it.object.metadata));
  if (own?.location) return placeOf(own);
  const location = locations[objectKey(kind, metadata)];
  if (location) return location.line === undefined ? location.file : `${location.file}:${location.line}`;
  const manifest = own ?? manifestOfOwner(metadata, objects);
  if (manifest) return placeOf(manifest);
  const submitted = submittedPath(rootDir, kind, metadata);
  return existsSync(submitted) ? submitted : placeOfSubmittedOwner(metadata, rootDir);
}

/** The file of an object that was submitted to the local API. */
export const submittedPath = (
  rootDir: string,
  kind: string,
  { namespace, name }: Pick<Located, "name" | "namespace">,
) => join(rootDir, "manifests", namespace ?? "default", `${kind.toLowerCase()}-${name}.yaml`);

/** A ReplicaSet, or a Job of a CronJob, has no file; its name contains that of its owner. */
function placeOfSubmittedOwner({ namespace, labels, ownerReferences }: Located, rootDir: string): string | undefined {
  const owner = ownerReferences?.[0];
  if (!owner) return undefined;
  const hash = labels?.["pod-template-hash"];
  const candidates = [
    { kind: owner.kind, name: owner.name },
    ...(owner.kind === "ReplicaSet" && hash !== undefined
      ? [{ kind: "Deployment", name: owner.name.slice(0, -hash.length - 1) }]
      : []),
    ...(owner.kind === "Job" ? [{ kind: "CronJob", name: owner.name.replace(/-\d+$/, "") }] : []),
  ];
  return candidates.map(({ kind, name }) => submittedPath(rootDir, kind, { namespace, name })).find(existsSync);
}

function manifestOfOwner(metadata: Located, objects: readonly DesiredObject[]): DesiredObject | undefined {
  const owner = metadata.ownerReferences?.[0];
  if (!owner) return undefined;
  return objects.find(({ kind, object }) => {
    const { name = "", namespace = "default" } = object.metadata;
    if (namespace !== (metadata.namespace ?? "default")) return false;
    if (kind === owner.kind) return name === owner.name;
    if (kind === "Deployment" && owner.kind === "ReplicaSet") {
      return owner.name === `${name}-${metadata.labels?.["pod-template-hash"]}`;
    }
    return kind === "CronJob" && owner.kind === "Job" && owner.name.replace(/-\d+$/, "") === name;
  });
}

/** The newest first. */
function checkpointsOf(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => name.startsWith("source-") && name.endsWith(".json"))
      .map((name) => join(directory, name))
      .map((path) => ({ path, modifiedAtMs: statSync(path).mtimeMs }))
      .sort((a, b) => b.modifiedAtMs - a.modifiedAtMs)
      .map(({ path }) => path);
  } catch {
    return [];
  }
}

function textsOf(path: string): Partial<KeptObjects>[] {
  try {
    const { body } = JSON.parse(readBoundedText(path, MAX_CHECKPOINT_BYTES)) as {
      body: { source: string; texts: Record<string, Partial<KeptObjects>> };
    };
    return Object.values(body.texts).map(({ pods = [], ...others }) => ({
      ...others,
      pods: pods.map((pod) => ({ ...pod, sourceId: body.source })),
    }));
  } catch {
    return [];
  }
}
