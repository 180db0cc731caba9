import type { CoreEvent } from "../../base/api/event.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Pod, PodStatus } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import type { WorkloadObject } from "../../base/model/workload-object.ts";
import { type ApiObject, toApiTime } from "../api-object.ts";
import { ephemeralContainersOf } from "../kinds/ephemeral-containers.ts";
import type { ObjectStore } from "../object-store.ts";
import { apiVersionOf, type ResourceDefinition, type ResourceRegistry, resourceId } from "../resource-definition.ts";
import { SOURCE_ID } from "../storage/submitted-set.ts";

/** The API server's view of the kubelet. */
export interface NodeView {
  /** Every wanted or terminating pod with its status; an unchanged pod is the same object as before. */
  pods(): readonly Pod[];
  /** Whether the kubelet still has work to do for a pod. */
  isThere(uid: string): boolean;
  /** Where an object was found, for users: `file:line` where that is known. */
  originOf(kind: string, metadata: ApiObject["metadata"]): string | undefined;
  desired(): DesiredState;
  /**
   * Removes a pod or workload whose source is not configured any more, or that `--runonce` started.
   * @param key `namespace/name` of a pod, `Kind namespace/name` of a workload
   * @returns false when there is none, or a configured source describes it
   */
  forget(key: string): boolean;
  /** Deletes a claim that a StatefulSet made. @returns false for one that a pod uses, and for every other claim */
  deleteClaim(fullName: string): boolean;
  /** The pod that uses a claim of a StatefulSet. */
  userOfClaim(fullName: string): string | undefined;
  /** Whether a pod uses a claim, or a claim is bound to a PersistentVolume. */
  isInUse(kind: string, metadata: ObjectMeta): boolean;
  /** Whether all containers were inspected and every source was read: pods that use a claim are known. */
  arePodsKnown(): boolean;
  /** Whether a workload made this pod. */
  isOfWorkload(uid: string): boolean;
  /** Deletes a pod of a workload. */
  deleteOfWorkload(uid: string, graceSeconds: number): void;
  /** ReplicaSets, Jobs and claims that controllers made, with their statuses. */
  derivedObjects(): readonly WorkloadObject[];
  /** Uid of an object of a manifest, and the time since which a workload is known. */
  identityOf(kind: string, metadata: ObjectMeta): { uid: string; creationTimestamp?: string };
  /** `status` of a workload; undefined where nothing is known of it. */
  workloadStatus(kind: string, object: ApiObject): object | undefined;
  /** Annotations that the controller of a workload writes on it. */
  workloadAnnotations(kind: string, object: ApiObject): Record<string, string> | undefined;
  events(): { revision: number; items: readonly CoreEvent[] };
  /** The node as it is now. */
  node(): Promise<object>;
  /** Whether further pods stay Pending; see `NodeCordon`. */
  setUnschedulable(isUnschedulable: boolean): void;
}

interface MirrorDeps {
  store: ObjectStore;
  registry: ResourceRegistry;
  view: NodeView;
  clock: Clock;
  /** Whether an object was submitted to this API. */
  isOwn: (definition: ResourceDefinition, object: ApiObject) => boolean;
  /** A terminating pod of this API of which nothing is left. */
  onGone: (definition: ResourceDefinition, object: ApiObject) => void;
}

/** Kinds that are not taken over as workloads. */
const MIRRORED_ALONE = new Set(["pods", "configmaps", "secrets", "namespaces"]);

/** Bursts of events are taken over together. */
const EVENTS_DELAY_MS = 100;

/**
 * Shows in the store what the kubelet knows: statuses of pods, objects of manifest files and URLs, events, the node.
 * Nothing is done before the first request.
 */
export class NodeMirror {
  readonly #deps: MirrorDeps;
  /** Objects that controllers made, as `resource namespace/name`. */
  readonly #derived = new Set<string>();
  /** Pods as they were taken over last, by uid. */
  readonly #seen = new Map<string, Pod>();
  readonly #seenObjects = new Map<string, object>();
  /** Versions of events as they were taken over last, by namespace and name. */
  readonly #eventVersions = new Map<string, string>();
  #isWanted = false;
  #isPlanned = false;
  #areEventsWanted = false;
  #eventsRevision = -1;
  #cancelEvents: (() => void) | undefined;

  constructor(deps: MirrorDeps) {
    this.#deps = deps;
  }

  /** Brings the objects of one kind up to date. */
  async refresh({ plural, group }: ResourceDefinition): Promise<void> {
    if (!this.#isWanted) {
      this.#isWanted = true;
      this.sync();
    }
    if (group !== "") return;
    if (plural === "nodes") await this.#syncNode();
    if (plural === "events") {
      this.#areEventsWanted = true;
      this.#syncEvents();
    }
  }

  /** The kubelet knows something new. */
  podsChanged(): void {
    if (!this.#isWanted || this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      this.sync();
    });
  }

  /** An event was recorded. */
  eventRecorded(): void {
    if (!this.#areEventsWanted || this.#cancelEvents) return;
    this.#cancelEvents = this.#deps.clock.schedule(EVENTS_DELAY_MS, () => {
      this.#cancelEvents = undefined;
      this.#syncEvents();
    });
  }

  stop(): void {
    this.#isWanted = false;
    this.#areEventsWanted = false;
    this.#cancelEvents?.();
  }

  /** Takes over pods, and ConfigMaps and Secrets of other sources. */
  sync(): void {
    this.#syncDerived();
    this.#syncPods();
    const { configMaps, secrets, objects = [] } = this.#deps.view.desired();
    this.#syncForeign("configmaps", configMaps);
    this.#syncForeign("secrets", secrets);
    const foreign = objects.filter(({ sourceId }) => sourceId !== SOURCE_ID);
    const byKind = Map.groupBy(foreign, ({ kind }) => kind);
    for (const definition of this.#deps.registry.all()) {
      if (definition.storage !== "file" || MIRRORED_ALONE.has(definition.plural)) continue;
      const found = (byKind as Map<string, typeof objects>).get(definition.kind) ?? [];
      const named = found.map(({ object }) => {
        const { namespace = "default", name = "" } = object.metadata;
        return [`${definition.namespaced ? namespace : ""}/${name}`, object as { metadata: object }] as const;
      });
      this.#syncForeign(resourceId(definition), new Map(named));
      this.#syncStatuses(definition);
    }
  }

  #syncPods(): void {
    const { store, view, registry, isOwn, onGone } = this.#deps;
    const definition = registry.get("pods");
    if (!definition) return;
    const wanted = new Set<string>();
    for (const pod of view.pods()) {
      const { uid = "", namespace = "default", name = "" } = pod.metadata;
      wanted.add(uid);
      const live = store.get("pods", namespace, name);
      if (this.#seen.get(uid) === pod && live?.metadata.uid === uid) continue;
      this.#seen.set(uid, pod);
      this.#ensureNamespace(namespace);
      if (live && isOwn(definition, live) && live.metadata.uid === uid) this.#putObserved(live, pod);
      else if (!live || !isOwn(definition, live)) store.put("pods", this.#toObject(pod));
    }
    for (const live of store.list("pods")) {
      const { uid = "", deletionTimestamp } = live.metadata;
      if (wanted.has(uid) || view.isThere(uid)) continue;
      const own = isOwn(definition, live);
      // A pod that was submitted a moment ago is not known to the kubelet yet.
      if (own && !deletionTimestamp) continue;
      this.#seen.delete(uid);
      if (own && (live.metadata.finalizers ?? []).length > 0) continue;
      if (own) onGone(definition, live);
      else store.remove("pods", live.metadata.namespace, live.metadata.name);
    }
  }

  /** Status, node and ephemeral containers of a pod of this API. */
  #putObserved(live: ApiObject, { spec, status = live.status as PodStatus }: Pod): void {
    const { store } = this.#deps;
    const current = store.get("pods", live.metadata.namespace, live.metadata.name) ?? live;
    const ephemeralContainers = spec.ephemeralContainers ?? [];
    const { nodeName: before, ...written } = current.spec as Pod["spec"];
    const isSame = Bun.deepEquals(ephemeralContainersOf(current), ephemeralContainers) && before === spec.nodeName;
    if (isSame && Bun.deepEquals(current.status, status)) return;
    const nodeName = spec.nodeName !== undefined && { nodeName: spec.nodeName };
    const next = isSame
      ? current
      : {
          ...current,
          spec: { ...written, ...nodeName, ...(ephemeralContainers.length > 0 && { ephemeralContainers }) },
        };
    store.put("pods", { ...next, status });
  }

  #toObject({ metadata, spec, status }: Pod): ApiObject {
    const { annotations } = metadata;
    const seen = annotations?.["kubernetes.io/config.seen"];
    const hash = annotations?.["kubernetes.io/config.hash"];
    const isStatic = hash !== undefined && !this.#deps.view.isOfWorkload(metadata.uid ?? "");
    const created = metadata.creationTimestamp ?? status?.startTime ?? seen;
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        ...metadata,
        name: metadata.name ?? "",
        namespace: metadata.namespace ?? "default",
        creationTimestamp: created ? toApiTime(new Date(created)) : null,
        // kubectl drain leaves mirror pods alone. Source: the kubelet's mirror pods.
        ...(isStatic && { annotations: { ...annotations, "kubernetes.io/config.mirror": hash } }),
      } as ApiObject["metadata"],
      spec,
      status: status ?? { phase: "Pending" },
    };
  }

  /** ConfigMaps and Secrets of manifest files and URLs. */
  #syncForeign(resource: string, objects: ReadonlyMap<string, { metadata: object }>): void {
    const { store, registry, isOwn, clock, view } = this.#deps;
    const definition = registry.get(resource);
    if (!definition) return;
    const found = new Set<string>();
    for (const [key, object] of objects) {
      const [namespace = "", name = ""] = key.split("/");
      const live = store.get(resource, definition.namespaced ? namespace : undefined, name);
      if (live && isOwn(definition, live)) continue;
      found.add(key);
      if (live && this.#seenObjects.get(`${resource} ${key}`) === object) continue;
      this.#seenObjects.set(`${resource} ${key}`, object);
      if (definition.namespaced) this.#ensureNamespace(namespace);
      const { namespace: _namespace, ...own } = object.metadata as Omit<ObjectMeta, "managedFields">;
      const identity = view.identityOf(definition.kind, { ...own, namespace, name });
      const known = live?.metadata.uid === identity.uid ? live.metadata.creationTimestamp : undefined;
      const creationTimestamp = identity.creationTimestamp ?? known ?? toApiTime(clock.now());
      const metadata = {
        ...own,
        ...(definition.namespaced && { namespace }),
        name,
        uid: identity.uid,
        creationTimestamp,
      };
      const { kind } = definition;
      const generation = { generation: (live?.metadata.generation ?? 0) + 1 };
      const hasSpec = "spec" in object;
      store.put(resource, {
        ...object,
        ...(live && "status" in live && { status: live.status }),
        apiVersion: apiVersionOf(definition),
        kind,
        metadata: { ...metadata, ...(hasSpec && generation) },
      });
    }
    for (const live of store.list(resource)) {
      const { namespace, name } = live.metadata;
      if (isOwn(definition, live) || found.has(`${namespace ?? ""}/${name}`)) continue;
      if (this.#derived.has(`${resource} ${namespace ?? ""}/${name}`)) continue;
      this.#seenObjects.delete(`${resource} ${namespace ?? ""}/${name}`);
      store.remove(resource, namespace, name);
    }
  }

  /** ReplicaSets of Deployments and Jobs of CronJobs; what is no longer made goes with the other foreign objects. */
  #syncDerived(): void {
    const { store, view, registry, isOwn } = this.#deps;
    this.#derived.clear();
    for (const object of view.derivedObjects()) {
      const definition = registry.findKind(object.apiVersion, object.kind);
      if (!definition) continue;
      const resource = resourceId(definition);
      const { name = "", namespace = "default" } = object.metadata;
      const live = store.get(resource, namespace, name);
      if (live && isOwn(definition, live)) continue;
      this.#derived.add(`${resource} ${namespace}/${name}`);
      const next = JSON.parse(JSON.stringify({ ...object, metadata: { ...object.metadata, namespace, name } }));
      const { resourceVersion: _version, ...metadata } = live?.metadata ?? { name };
      this.#ensureNamespace(namespace);
      if (!live || !Bun.deepEquals({ ...live, metadata }, next)) store.put(resource, next as ApiObject);
    }
  }

  #syncStatuses({ group, plural, kind }: ResourceDefinition): void {
    const { store, view } = this.#deps;
    const resource = resourceId({ group, plural });
    for (const object of store.list(resource)) {
      const { metadata } = object;
      const status = view.workloadStatus(kind, object);
      const written = view.workloadAnnotations(kind, object);
      const annotations = { ...metadata.annotations, ...written };
      if (written && !Bun.deepEquals(annotations, metadata.annotations))
        store.put(resource, { ...object, metadata: { ...metadata, annotations }, ...(status && { status }) });
      else if (status && !Bun.deepEquals(status, object.status)) store.put(resource, { ...object, status });
    }
  }

  /** Namespaces of manifest files are nowhere declared. */
  #ensureNamespace(name: string): void {
    const { store, registry, clock } = this.#deps;
    if (store.get("namespaces", undefined, name)) return;
    const metadata = { name, uid: `namespace-${name}`, creationTimestamp: toApiTime(clock.now()) };
    const object: ApiObject = { apiVersion: "v1", kind: "Namespace", metadata };
    store.put("namespaces", registry.get("namespaces")?.decode?.(object).object ?? object);
  }

  #syncEvents(): void {
    const { store, view } = this.#deps;
    const { revision, items } = view.events();
    if (revision === this.#eventsRevision && items.length === store.count("events")) return;
    this.#eventsRevision = revision;
    const kept = new Set<string>();
    for (const event of items) {
      const { name, namespace, resourceVersion } = event.metadata;
      kept.add(`${namespace}/${name}`);
      const live = store.get("events", namespace, name);
      if (live && this.#eventVersions.get(`${namespace}/${name}`) === resourceVersion) continue;
      this.#eventVersions.set(`${namespace}/${name}`, resourceVersion);
      store.put("events", event as unknown as ApiObject);
    }
    for (const { metadata } of store.list("events")) {
      const key = `${metadata.namespace}/${metadata.name}`;
      if (kept.has(key)) continue;
      this.#eventVersions.delete(key);
      store.remove("events", metadata.namespace, metadata.name);
    }
  }

  /** Measured at each request; only what is more than a heartbeat is a new version. */
  async #syncNode(): Promise<void> {
    const { store, view } = this.#deps;
    const node = (await view.node()) as ApiObject;
    const name = node.metadata.name;
    const live = store.get("nodes", undefined, name);
    const uid = node.metadata.uid ?? name;
    const next = { ...node, apiVersion: "v1", kind: "Node", metadata: { ...node.metadata, uid } };
    if (live && JSON.stringify(withoutHeartbeat(live)) === JSON.stringify(withoutHeartbeat(next))) return;
    store.put("nodes", next);
  }
}

function withoutHeartbeat({ metadata, ...node }: ApiObject): object {
  const { resourceVersion: _version, ...others } = metadata;
  const { conditions = [], ...status } = (node.status ?? {}) as { conditions?: { lastHeartbeatTime?: string }[] };
  const quiet = conditions.map(({ lastHeartbeatTime: _time, ...condition }) => condition);
  return { ...node, metadata: others, status: { ...status, conditions: quiet } };
}
