import type { ObjectMeta } from "../base/api/meta.ts";
import { objectKey } from "../base/model/desired-object.ts";
import { podFullName } from "../base/model/identity.ts";
import { usesClaim } from "../controllers/claims.ts";
import type { RunnableKey } from "../sources/kept-source.ts";
import type { ApiObject } from "./api-object.ts";
import type { NodeView } from "./node/node-view.ts";
import { type ObjectStore, objectsOf } from "./object-store.ts";
import { isKept, type ResourceDefinition, type ResourceRegistry, resourceId } from "./resource-definition.ts";

/** The node as writers and deleters of objects ask it. */
export interface ObjectRules {
  /** Why an object of the store must not be written, e.g. because it comes from a file; undefined: it may be. */
  refusalOf(definition: ResourceDefinition, object: ApiObject): string | undefined;
  /** Makes a write to the node a setting of it. */
  writeNode(object: ApiObject): void;
  /** Whether an object of a kind with a protection is in use, so that its deletion has to wait. */
  isInUse(definition: ResourceDefinition, object: ApiObject): boolean;
  /** Whether a controller made the object: it may be deleted, although it was not submitted. */
  isMadeByController(definition: ResourceDefinition, object: ApiObject): boolean;
  /** Deletes such an object; what takes its place is the controller's decision. */
  deleteMade(object: ApiObject, graceSeconds: number): void;
  /**
   * Removes an object that no configured source describes any more and that was not submitted.
   * @returns false for every other object
   */
  removeUnclaimed(definition: ResourceDefinition, object: ApiObject): boolean;
}

/** Which objects were submitted to this API, rather than found in a manifest of another source. */
export class OwnObjects {
  readonly #keys = new Set<string>();

  has(definition: ResourceDefinition, object: ApiObject): boolean {
    return this.#keys.has(ownKey(definition, object));
  }

  add(definition: ResourceDefinition, object: ApiObject): void {
    this.#keys.add(ownKey(definition, object));
  }

  delete(definition: ResourceDefinition, object: ApiObject): void {
    this.#keys.delete(ownKey(definition, object));
  }
}

const ownKey = (definition: ResourceDefinition, { metadata }: ApiObject) =>
  `${resourceId(definition)} ${metadata.namespace ?? ""}/${metadata.name}`;

interface NodeObjectRulesDeps {
  store: ObjectStore;
  registry: ResourceRegistry;
  own: OwnObjects;
}

/** The rules of this node: manifests of its other sources and controllers have objects here too. */
export class NodeObjectRules implements ObjectRules {
  /** undefined until the kubelet is built. */
  node: NodeView | undefined;
  readonly #deps: NodeObjectRulesDeps;

  constructor(deps: NodeObjectRulesDeps) {
    this.#deps = deps;
  }

  refusalOf(definition: ResourceDefinition, object: ApiObject): string | undefined {
    if (!isKept(definition) || this.#deps.own.has(definition, object)) return undefined;
    const { name } = object.metadata;
    const what = `${definition.singular} "${name}"`;
    if (definition.plural === "namespaces") {
      return this.#hasForeignObjects(name) ? `manifests of this node have objects in ${what}` : undefined;
    }
    const isClaim = definition.kind === "PersistentVolumeClaim";
    const user = isClaim && this.node?.workloads.userOfClaim(podFullName(object.metadata));
    if (user)
      return `${what} is of a StatefulSet, and pod "${user}" uses it: scale the StatefulSet down, or delete it, first`;
    const origin = this.#originOf(definition.kind, object.metadata);
    if (origin === undefined) return `${what} comes from a manifest of this node: edit that`;
    return `${what} comes from ${origin}: edit that ${/^https?:/.test(origin) ? "manifest" : "file"}`;
  }

  /** Where an object was found, for users: `file:line` where that is known. */
  #originOf(kind: string, metadata: ObjectMeta): string | undefined {
    if (!this.node) return undefined;
    const { kubelet, desired } = this.node;
    const pod = kubelet.desiredPods.find((it) => kind === "Pod" && it.pod.metadata.uid === metadata.uid);
    const { file, line } = pod?.location ?? desired.locations?.[objectKey(kind, metadata)] ?? {};
    return file !== undefined && line !== undefined ? `${file}:${line}` : pod?.origin;
  }

  writeNode(object: ApiObject): void {
    this.node?.setUnschedulable((object.spec as { unschedulable?: boolean }).unschedulable === true);
  }

  /** Pods that are wanted or terminating use claims; bound claims use PersistentVolumes. */
  isInUse({ kind }: ResourceDefinition, { metadata }: ApiObject): boolean {
    if (!this.node) return false;
    const { kubelet, workloads } = this.node;
    if (kind === "PersistentVolume") {
      const status = workloads.reader.statusOf(kind, { metadata });
      return status !== undefined && "phase" in status && status.phase === "Bound";
    }
    return (
      kubelet.desiredPods.some(({ pod, claims }) => usesClaim(pod, claims, metadata)) ||
      [...kubelet.workers()].some(({ revision }) => revision && usesClaim(revision.pod, revision.claims, metadata))
    );
  }

  isMadeByController({ fate }: ResourceDefinition, { metadata }: ApiObject): boolean {
    return fate === "pods" && this.node?.workloads.hasPod(metadata.uid ?? "") === true;
  }

  deleteMade({ metadata }: ApiObject, graceSeconds: number): void {
    this.node?.workloads.deletePod(metadata.uid ?? "", { graceSeconds });
  }

  removeUnclaimed(definition: ResourceDefinition, object: ApiObject): boolean {
    if (!this.node || this.#deps.own.has(definition, object)) return false;
    const fullName = podFullName(object.metadata);
    if (definition.kind === "PersistentVolumeClaim" && this.node.workloads.deleteClaim(fullName)) return true;
    const key = definition.fate === "pods" ? fullName : `${definition.kind} ${fullName}`;
    return this.node.feed.forget(key as RunnableKey);
  }

  /** Objects made by controllers go with their workload. */
  #hasForeignObjects(namespace: string): boolean {
    const { store, registry, own } = this.#deps;
    const kinds = registry.all().filter((it) => it.namespaced && isKept(it));
    return objectsOf(store, kinds, namespace).some(
      ({ definition, object }) =>
        !own.has(definition, object) && !object.metadata.ownerReferences?.some(({ controller }) => controller),
    );
  }
}
