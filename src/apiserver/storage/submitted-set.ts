import { REVISION_ANNOTATION } from "../../base/api/annotations.ts";
import type { ConfigMap } from "../../base/api/config-map.ts";
import type { Secret } from "../../base/api/secret.ts";
import type { DesiredObject } from "../../base/model/desired-object.ts";
import type { DesiredPod } from "../../base/model/desired-pod.ts";
import type { SourceSet } from "../../sources/source-set.ts";
import { type ApiObject, keyOf } from "../api-object.ts";
import type { ExplicitClusterDns } from "../kinds/cluster-dns.ts";
import type { ReadSubmitted } from "../kinds/decode-manifest.ts";
import { withoutEphemeralContainers } from "../kinds/ephemeral-containers.ts";
import type { ObjectStore } from "../object-store.ts";
import { type ResourceDefinition, type ResourceRegistry, resourceId } from "../resource-definition.ts";
import type { ManifestDirectory } from "./manifest-directory.ts";

/** Source of submitted pods, in the labels of their containers. */
export const SOURCE_ID = "local-api";

interface SubmittedSetDeps {
  store: ObjectStore;
  registry: ResourceRegistry;
  directory: ManifestDirectory;
  read: ReadSubmitted;
  clusterDns: ExplicitClusterDns;
  /** Whether an object was submitted, rather than found in a manifest of another source. */
  isOwn: (definition: ResourceDefinition, object: ApiObject) => boolean;
  /** A pod of the store that cannot be used here. @param key `namespace/name` */
  onRefused: (key: string) => void;
}

/** Turns submitted objects into the set of a source. An object that has not changed is not decoded again. */
export class SubmittedSet {
  readonly #deps: SubmittedSetDeps;
  /** The last desired state of each pod, by key. */
  readonly #pods = new Map<string, { object: ApiObject; desired: DesiredPod | undefined }>();
  readonly #workloads = new Map<string, { object: ApiObject; desired: readonly DesiredObject[] }>();

  constructor(deps: SubmittedSetDeps) {
    this.#deps = deps;
  }

  /** @param isComplete see {@link SourceSet} */
  assemble(isComplete: boolean): SourceSet {
    const { registry, store, isOwn } = this.#deps;
    const own = (resource: string) => {
      const definition = registry.get(resource);
      return definition ? store.list(resource).filter((object) => isOwn(definition, object)) : [];
    };
    const all = own("pods");
    const keys = new Set<string>(all.map(keyOf));
    for (const key of this.#pods.keys()) if (!keys.has(key)) this.#pods.delete(key);
    const isTerminating = ({ metadata }: ApiObject) => metadata.deletionTimestamp !== undefined;
    const pods = all.filter((object) => !isTerminating(object)).flatMap((object) => this.#toPod(object) ?? []);
    const deletions = new Map(
      all
        .filter(isTerminating)
        .map(({ metadata }) => [metadata.uid ?? "", { graceSeconds: metadata.deletionGracePeriodSeconds ?? 0 }]),
    );
    const workloads = registry.all().filter(isFedWorkload).map(resourceId);
    return {
      pods,
      deletions,
      objects: workloads.flatMap((resource) => own(resource).flatMap((object) => this.#toWorkload(object))),
      configMaps: own("configmaps") as unknown as ConfigMap[],
      secrets: own("secrets") as unknown as Secret[],
      findings: [],
      stale: new Map(),
      isComplete,
    };
  }

  #toWorkload(object: ApiObject): readonly DesiredObject[] {
    // A claim in use stays bound until its pods are gone.
    const isEnding = object.metadata.deletionTimestamp !== undefined;
    if (isEnding && object.kind !== "PersistentVolumeClaim") return [];
    const key = `${object.kind} ${keyOf(object)}`;
    const known = this.#workloads.get(key);
    if (known && isStatusOnly(object, known.object)) return known.desired;
    const { read, directory, clusterDns } = this.#deps;
    const place = { origin: directory.path, sourceId: SOURCE_ID, ...clusterDns.of(object) };
    const desired = read(toManifest(object)).objects.map((it) => ({ ...it, ...place }));
    this.#workloads.set(key, { object, desired });
    return desired;
  }

  #toPod(object: ApiObject): DesiredPod | undefined {
    const key = keyOf(object);
    const known = this.#pods.get(key);
    if (known && isStatusOnly(object, known.object)) return known.desired;
    const { read, directory, registry, clusterDns, onRefused } = this.#deps;
    const [pod] = read(toManifest(object)).pods;
    const path = directory.placeOf(registry.get("pods")!, object.metadata);
    const place = { origin: path, location: { file: path }, sourceId: SOURCE_ID };
    const desired = pod && { ...pod, ...place, ...clusterDns.of(object) };
    this.#pods.set(key, { object, desired });
    if (!desired) onRefused(key);
    return desired;
  }
}

/** An object as a user would write it, without fields of the server. */
function toManifest(object: ApiObject): Uint8Array {
  const { status: _status, metadata, ...rest } = withoutEphemeralContainers(object);
  const { managedFields: _fields, resourceVersion: _version, generation: _generation, annotations, ...own } = metadata;
  const { [REVISION_ANNOTATION]: _revision, ...others } = annotations ?? {};
  const written = { ...own, ...(Object.keys(others).length > 0 && { annotations: others }) };
  return Buffer.from(JSON.stringify({ ...rest, metadata: written }));
}

/** Kinds that controllers turn into pods. */
const isFedWorkload = ({ storage, plural }: ResourceDefinition) =>
  storage === "file" && !["pods", "configmaps", "secrets", "namespaces"].includes(plural);

/** Whether two versions of an object differ in fields without effect on the kubelet only. */
export function isStatusOnly(object: ApiObject, previous: ApiObject | undefined): boolean {
  if (!previous || object === previous) return previous !== undefined;
  const a = object.metadata;
  const b = previous.metadata;
  return (
    object.spec !== undefined &&
    object.spec === previous.spec &&
    a.uid === b.uid &&
    a.labels === b.labels &&
    a.annotations === b.annotations &&
    a.deletionTimestamp === b.deletionTimestamp
  );
}
