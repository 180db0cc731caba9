import { existsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import { namesIfReadable } from "../../base/files/whole-file.ts";
import type { DesiredPod, ManifestLocation } from "../../base/model/desired-state.ts";
import { type DesiredObject, objectKey, WORKLOAD_KINDS } from "../../base/model/desired-state.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import { readCheckpoint } from "../../sources/checkpoint-store.ts";
import { joinLocations, type Objects } from "../../sources/source-set.ts";

/** Desired objects of the last run of a kubelet. */
export interface KeptObjects extends Required<Objects> {
  /** Each with the `sourceId` of its checkpoint. */
  pods: readonly DesiredPod[];
  /** The root directory: submitted objects are files below it. */
  rootDir: string;
}

/**
 * Reads the checkpoints of a root directory. What cannot be read is left out, since a checkpoint is a hint. The newest
 * checkpoint comes first: a pod may still be in that of a source that is no longer configured.
 */
export function readKeptObjects(rootDir: string): KeptObjects {
  const all = checkpointsOf(join(rootDir, "checkpoints")).flatMap(textsOf);
  return {
    rootDir,
    pods: all.flatMap(({ pods }) => pods),
    objects: all.flatMap(({ objects = [] }) => objects),
    configMaps: all.flatMap(({ configMaps }) => configMaps),
    secrets: all.flatMap(({ secrets }) => secrets),
    locations: joinLocations(all),
  };
}

export const readKeptPods = (rootDir: string): readonly DesiredPod[] => readKeptObjects(rootDir).pods;

/** `file:line` of a manifest, or its origin where the line is not known. */
export const locationOf = ({ origin, location }: { origin: string; location?: ManifestLocation }): string =>
  location?.line === undefined ? origin : `${location.file}:${location.line}`;

/** Location of the manifest of a pod, if it is known: its own, or that of the workload it belongs to. */
export function locationOfPod({ metadata }: Pod, kept: KeptObjects): string | undefined {
  const manifest =
    kept.pods.find(({ pod }) => pod.metadata.uid === metadata.uid) ?? manifestOfOwner(metadata, kept.objects);
  return manifest ? locationOf(manifest) : locationOfObject("Pod", metadata, kept);
}

/** Metadata that names the origin of an object. */
type Located = Pick<ObjectMeta, "name" | "namespace" | "labels" | "ownerReferences">;

/** Location of an object: its own, or that of the workload it belongs to. */
export function locationOfObject(kind: string, metadata: Located, kept: KeptObjects): string | undefined {
  const { objects, locations, rootDir } = kept;
  const own = objects.find((it) => it.kind === kind && isSame(it.object.metadata, metadata));
  if (own?.location) return locationOf(own);
  const location = locations[objectKey(kind, metadata)];
  if (location) return locationOf({ origin: location.file, location });
  const manifest = own ?? manifestOfOwner(metadata, objects);
  if (manifest) return locationOf(manifest);
  const { namespace, name } = metadata;
  return [{ kind, name }, ...ownersOf(metadata)]
    .map((it) => submittedPath(rootDir, it.kind, { namespace, name: it.name }))
    .find(existsSync);
}

/** The file of an object that was submitted to the local API. */
export const submittedPath = (rootDir: string, kind: string, { namespace, name }: Name) =>
  join(rootDir, "manifests", namespace ?? "default", `${kind.toLowerCase()}-${name}.yaml`);

/** Files of workloads that were submitted to the local API. @param namespace absent: of all */
export function submittedWorkloads(rootDir: string, namespace: string | undefined): string[] {
  const glob = new Bun.Glob(`manifests/*/{${WORKLOAD_KINDS.join(",").toLowerCase()}}-*.yaml`);
  const files = unlessFailed(() => [...glob.scanSync({ cwd: rootDir, absolute: true })]) ?? [];
  return files.filter((file) => [undefined, basename(dirname(file))].includes(namespace));
}

/** The objects that an object may belong to: a ReplicaSet, or a Job of a CronJob, has no manifest of its own. */
function ownersOf({ labels, ownerReferences = [] }: Located): { kind: string; name: string }[] {
  const [owner] = ownerReferences;
  if (!owner) return [];
  const hash = labels?.["pod-template-hash"];
  if (owner.kind === "ReplicaSet" && hash !== undefined)
    return [owner, { kind: "Deployment", name: owner.name.slice(0, -hash.length - 1) }];
  return owner.kind === "Job" ? [owner, { kind: "CronJob", name: owner.name.replace(/-\d+$/, "") }] : [owner];
}

const manifestOfOwner = (metadata: Located, objects: readonly DesiredObject[]): DesiredObject | undefined =>
  objects.find(({ kind, object }) =>
    ownersOf(metadata).some(
      (owner) => owner.kind === kind && isSame({ ...metadata, name: owner.name }, object.metadata),
    ),
  );

type Name = Pick<ObjectMeta, "name" | "namespace">;

const isSame = (a: Name, b: Name): boolean =>
  a.name === b.name && (a.namespace ?? "default") === (b.namespace ?? "default");

const modifiedMs = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** The newest first. */
const checkpointsOf = (directory: string): string[] =>
  namesIfReadable(directory)
    .filter((name) => name.startsWith("source-") && name.endsWith(".json"))
    .map((name) => join(directory, name))
    .sort((a, b) => modifiedMs(b) - modifiedMs(a));

function textsOf(path: string): Objects[] {
  const { source = "", texts = {} } = unlessFailed(() => readCheckpoint(path)) ?? {};
  return Object.values(texts).map((objects) => ({
    ...objects,
    pods: objects.pods.map((pod) => ({ ...pod, sourceId: source })),
  }));
}
