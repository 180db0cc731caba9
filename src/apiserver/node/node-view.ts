import { randomUUID } from "node:crypto";
import { withoutSource } from "../../base/api/annotations.ts";
import type { Ingress, IngressClass } from "../../base/api/ingress.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Pod, PodStatus } from "../../base/api/pod.ts";
import type { Service } from "../../base/api/service.ts";
import { usesClaim } from "../../base/model/claim-volume.ts";
import type { Clock } from "../../base/model/clock.ts";
import { type DesiredState, objectKey, type WorkloadObject } from "../../base/model/desired-state.ts";
import { isSameList } from "../../base/model/memoized.ts";
import { type Persisted, StoredMap } from "../../base/model/persisted.ts";
import { podFullName } from "../../base/model/pod.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { isRecord } from "../../base/text/json.ts";
import type { WorkloadManager } from "../../controllers/workload-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { NodeSettings, WrittenNode } from "../../kubelet/node-settings.ts";
import { withDefaultClass } from "../../plan/ingress-config.ts";
import type { PodEnd } from "../../plan/pod-plan.ts";
import { isFinished } from "../../plan/service-endpoints.ts";
import { foreignConditions } from "../../plan/status/compute-pod-status.ts";
import type { Servers } from "../../server/servers.ts";
import type { KubeletView } from "../../server/view.ts";
import type { DesiredStateFeed, RunnableKey } from "../../sources/desired-state-feed.ts";
import { conflict, invalidValue } from "../api-error.ts";
import { forbidden } from "../kinds/define-kind.ts";
import { ensureNamespace } from "../kinds/node-kinds.ts";
import { ephemeralContainersOf } from "../kinds/pod-kind.ts";
import type { ApiObject, ObjectStore, ResourceId } from "../object-store.ts";
import { type ObjectRules, type PendingStores, type Removal, refuseInvalid } from "../object-writer.ts";
import {
  apiVersionOf,
  isKept,
  objectsOf,
  type ResourceDefinition,
  type ResourceRegistry,
  resourceId,
} from "../resource-definition.ts";
import { SOURCE_ID, type SubmittedObjects } from "../storage/submitted-objects.ts";
import { NodeEvents } from "./node-events.ts";
import {
  DEFAULT_CLASS,
  LEASE_NAMESPACE,
  LEASES,
  renewNodeLease,
  STORAGE_CLASSES,
  toDefaultClass,
} from "./own-objects.ts";

interface NodeViewParts {
  kubelet: Kubelet;
  workloads: WorkloadManager;
  feed: DesiredStateFeed;
  settings: NodeSettings | undefined;
  view: KubeletView;
  servers: Servers;
  clock: Pick<Clock, "now">;
  /** When objects appeared. */
  firstSeen: Persisted<readonly (readonly [key: string, time: string])[]>;
}

/** The parts of this node that the API shows and acts on. */
export class NodeView {
  readonly kubelet: Kubelet;
  readonly workloads: WorkloadManager;
  readonly feed: DesiredStateFeed;
  readonly view: KubeletView;
  readonly servers: Servers;
  readonly settings: NodeSettings | undefined;
  /** The newest state of all sources. */
  desired: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  #known = { isRead: false, isComplete: false };
  readonly #clock: Pick<Clock, "now">;
  readonly #firstSeen: StoredMap<string, string, readonly (readonly [key: string, time: string])[]>;
  /** Keys whose time is not asked again: an earlier process kept it, or the pod has started. */
  readonly #settled: Set<string>;

  constructor({ kubelet, workloads, feed, settings, view, servers, clock, firstSeen }: NodeViewParts) {
    this.kubelet = kubelet;
    this.workloads = workloads;
    this.feed = feed;
    this.view = view;
    this.servers = servers;
    this.settings = settings;
    this.#clock = clock;
    this.#firstSeen = new StoredMap(firstSeen);
    this.#settled = new Set(this.#firstSeen.keys());
    feed.onChange((state, known) => {
      this.desired = state;
      this.#known = known;
      this.#noteObjects();
    });
  }

  /**
   * RFC 3339: when an object of a file or URL was first part of the desired state; undefined: it is not part of it.
   * @param startTime of a pod, which may have started before a process kept this
   */
  firstSeen(kind: string, metadata: ObjectMeta, startTime?: string): string | undefined {
    const key = seenKey(kind, metadata);
    const seen = this.#firstSeen.get(key);
    if (!seen || !startTime || this.#settled.has(key)) return seen;
    this.#settled.add(key);
    if (startTime < seen) this.#firstSeen.set(key, startTime);
    return this.#firstSeen.get(key);
  }

  #noteObjects(): void {
    const { configMaps, secrets, objects = [], pods } = this.desired;
    const keys = new Set<string>();
    // Objects of clients have a time.
    const note = (kind: string, meta: ObjectMeta) => meta.creationTimestamp ?? keys.add(seenKey(kind, meta));
    for (const { pod } of pods) note("Pod", pod.metadata);
    for (const { metadata } of configMaps.values()) note("ConfigMap", metadata);
    for (const { metadata } of secrets.values()) note("Secret", metadata);
    for (const { kind, object } of objects) note(kind, object.metadata);
    const now = toApiTime(this.#clock.now());
    for (const key of keys) if (!this.#firstSeen.has(key)) this.#firstSeen.set(key, now);
    // An object of a source that was not read yet is missing, not gone.
    if (!this.#known.isRead) return;
    for (const key of this.#firstSeen.keys()) {
      if (!keys.has(key) && this.#firstSeen.delete(key)) this.#settled.delete(key);
    }
  }

  /** Whether all containers were inspected and every source was read: pods that use a claim are known. */
  get arePodsKnown(): boolean {
    return this.kubelet.isSynced && this.#known.isRead;
  }

  /**
   * Whether the kubelet has taken up what was read, and removes no pod whose manifest only an earlier process knew: owners and
   * claims of such a pod are not known.
   */
  get isEveryOwnerKnown(): boolean {
    // The API hears of a state before the kubelet does. One that is not complete removes no pods.
    const isTakenUp = this.#known.isComplete ? this.kubelet.isComplete : this.arePodsKnown;
    return isTakenUp && [...this.kubelet.workers.values()].every(({ revision }) => revision !== undefined);
  }

  /** Whether further pods stay Pending, labels and annotations; see `NodeSettings`. */
  write(written: WrittenNode): unknown {
    const assigned = this.kubelet.pods().map(({ metadata }) => metadata.uid ?? "");
    if (this.settings?.set(written, assigned)) this.workloads.refresh();
    return this.settings?.stored();
  }
}

const seenKey = (kind: string, { namespace = "default", name = "" }: ObjectMeta) => `${kind} ${namespace}/${name}`;

interface NodeObjectsDeps {
  store: ObjectStore;
  registry: ResourceRegistry;
  clock: Clock;
  submitted: Pick<SubmittedObjects, "isOwn" | "release" | "flush">;
  storing: PendingStores;
  /** A terminating pod of this API of which nothing is left. */
  onGone: (definition: ResourceDefinition, object: ApiObject) => void;
  /** Objects of this API itself: its Service, Endpoints and EndpointSlice. */
  own: readonly WorkloadObject[];
}

/** Endpoints whose new uids are remembered. */
const MAX_REMADE = 1_000;

/**
 * The objects of this node that were not submitted. They are shown in the store as the kubelet knows them: statuses of pods,
 * objects of manifest files and URLs, events, the node; nothing is done before the first request. And they have rules of
 * their own for writes and deletions.
 */
export class NodeObjects implements ObjectRules {
  /** undefined until the kubelet is built. */
  node: NodeView | undefined;
  readonly #deps: NodeObjectsDeps;
  readonly events: NodeEvents;
  /** Origins of objects of the store: the pod of the kubelet, the object of a file. */
  readonly #origins = new WeakMap<ApiObject, unknown>();
  /** New uids of the endpoints of Services that clients deleted, by those that they had first. */
  readonly #remade = new Map<string, string>();
  /** Objects that have what controllers write, by the inputs of that. */
  readonly #shown = new Map<ResourceId, { inputs: readonly unknown[]; objects: WeakSet<ApiObject> }>();
  #isWanted = false;
  #isPlanned = false;
  /** Not only pods have changed since the last {@link sync}. */
  #isAllDue = false;
  /** Objects of this kind, and slices, are made for who asks for them: each change of a pod makes those of its Services again. */
  #areEndpointsWanted = false;

  constructor(deps: NodeObjectsDeps) {
    this.#deps = deps;
    this.events = new NodeEvents(deps.store, deps.clock);
  }

  /** Brings the objects of one kind up to date. */
  async refresh({ plural }: ResourceDefinition): Promise<void> {
    if (!this.node) return;
    const areEndpoints = plural === "endpoints" || plural === "endpointslices";
    if (!this.#isWanted || (areEndpoints && !this.#areEndpointsWanted)) {
      this.#isWanted = true;
      this.sync(areEndpoints);
    }
    if (plural === "nodes") await this.#syncNode();
    if (plural === "storageclasses") this.#ensureClass(this.node.view.nodeName());
    if (plural === "leases") this.#renewLease(this.node.view.nodeName());
    if (plural === "events") this.events.sync(this.node.view);
  }

  /** The kubelet knows something new. @param isStatus the status of a pod, and nothing else */
  podsChanged(isStatus = false): void {
    if (!this.#isWanted) return;
    this.#isAllDue ||= !isStatus;
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      if (this.#isAllDue) return this.sync();
      // Workloads follow their pods a moment later, and tell.
      for (const definition of this.#deps.registry.all()) if (definition.fate === "pods") this.#syncPods(definition);
    });
  }

  stop(): void {
    this.#isWanted = false;
    this.events.stop();
  }

  /** Takes over pods, and the objects of other sources. @param withEndpoints from now on those of Services, too */
  sync(withEndpoints = false): void {
    const { node } = this;
    if (!node) return;
    this.#isAllDue = false;
    this.#areEndpointsWanted ||= withEndpoints;
    const { registry } = this.#deps;
    const { reader, services } = node.workloads;
    const endpoints = this.#areEndpointsWanted ? services.derivedObjects() : [];
    const derived = Map.groupBy([...this.#deps.own, ...reader.derivedObjects(), ...endpoints], ({ kind }) => kind);
    const { configMaps, secrets, objects = [] } = node.desired;
    const foreign = Map.groupBy<string, { kind: string; object: { metadata: ObjectMeta } }>(
      objects.filter(({ sourceId }) => sourceId !== SOURCE_ID),
      ({ kind }) => kind,
    );
    for (const definition of registry.all()) {
      switch (definition.fate) {
        case "pods":
          this.#syncPods(definition);
          break;
        case "configMaps":
          this.#syncForeign(definition, configMaps.values());
          break;
        case "secrets":
          this.#syncForeign(definition, secrets.values());
          break;
        case "objects": {
          const found = foreign.get(definition.kind)?.map(({ object }) => object) ?? [];
          this.#syncForeign(definition, found, derived.get(definition.kind));
          this.#syncStatuses(definition);
          break;
        }
        case "kept":
        case "observed":
        case "node":
          break;
        default:
          definition.fate satisfies never;
      }
    }
  }

  #syncPods(definition: ResourceDefinition): void {
    const node = this.node!;
    const { store, submitted, clock, onGone } = this.#deps;
    const wanted = new Set<string>();
    for (const pod of node.kubelet.pods()) {
      const { uid = "", namespace = "default", name = "" } = pod.metadata;
      wanted.add(uid);
      const live = store.get("pods", namespace, name);
      if (live && this.#origins.get(live) === pod) continue;
      ensureNamespace(store, namespace, clock.now());
      if (!live || !submitted.isOwn(definition, live)) this.#put("pods", this.#toObject(pod, live), pod);
      else if (live.metadata.uid === uid) this.#origins.set(this.#putObserved(live, pod), pod);
    }
    for (const live of store.list("pods")) {
      const { uid = "", deletionTimestamp } = live.metadata;
      if (wanted.has(uid) || node.kubelet.workers.get(uid)) continue;
      const isOwn = submitted.isOwn(definition, live);
      // A pod that was submitted a moment ago is not known to the kubelet yet.
      if (isOwn && !deletionTimestamp) continue;
      // Before the engine has answered it is not known whether it runs.
      if (isOwn && ((live.metadata.finalizers ?? []).length > 0 || !node.kubelet.isGone(uid))) continue;
      if (isOwn) onGone(definition, live);
      else store.remove("pods", live.metadata.namespace, live.metadata.name);
    }
  }

  #put(resource: ResourceId, object: ApiObject, origin: unknown): ApiObject {
    const kept = this.#deps.store.put(resource, object);
    this.#origins.set(kept, origin);
    return kept;
  }

  /** A pod of this API with the status, node and ephemeral containers that the kubelet has; the same when it has them already. */
  #putObserved(live: ApiObject, { spec, status = live.status as PodStatus }: Pod): ApiObject {
    const ephemeralContainers = spec.ephemeralContainers ?? [];
    const { nodeName: before, ...written } = live.spec as Pod["spec"];
    const isSame = Bun.deepEquals(ephemeralContainersOf(live), ephemeralContainers) && before === spec.nodeName;
    if (isSame && Bun.deepEquals(live.status, status)) return live;
    const observed = {
      ...written,
      ...(spec.nodeName !== undefined && { nodeName: spec.nodeName }),
      ...(ephemeralContainers.length > 0 && { ephemeralContainers }),
    };
    return this.#deps.store.put("pods", { ...live, ...(!isSame && { spec: observed }), status });
  }

  #toObject({ metadata, spec, status }: Pod, live: ApiObject | undefined): ApiObject {
    const { annotations, ...bare } = metadata;
    const own = withoutSource(annotations);
    const hasHash = annotations?.["kubernetes.io/config.hash"] !== undefined;
    const isStatic = hasHash && !this.node!.workloads.hasPod(metadata.uid ?? "");
    // The start is that of the oldest container that is left. A pod that terminates is not seen any more.
    const seen = this.node!.firstSeen("Pod", metadata, status?.startTime) ?? live?.metadata.creationTimestamp;
    const shownOf = ({ metadata: { labels, annotations: its } }: ApiObject) => ({ labels, annotations: its });
    const created = metadata.creationTimestamp ?? seen ?? status?.startTime;
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        ...bare,
        ...(Object.keys(own).length > 0 && { annotations: own }),
        name: metadata.name ?? "",
        namespace: metadata.namespace ?? "default",
        creationTimestamp: created ? toApiTime(new Date(created)) : null,
        ...(metadata.deletionTimestamp && live && shownOf(live)),
        // kubectl drain leaves mirror pods alone, describe finds their events by this UID. Source: the kubelet's mirror pods.
        ...(isStatic && { annotations: { ...annotations, "kubernetes.io/config.mirror": metadata.uid } }),
      } as ApiObject["metadata"],
      spec,
      status: status ?? { phase: "Pending" },
    };
  }

  /**
   * Objects of a kind in manifest files and URLs.
   * @param derived those that controllers made, with their statuses
   */
  #syncForeign(
    definition: ResourceDefinition,
    objects: Iterable<{ metadata: ObjectMeta }>,
    derived: readonly WorkloadObject[] = [],
  ): void {
    const { store, submitted, clock } = this.#deps;
    const resource = resourceId(definition);
    const found = new Set<ApiObject | undefined>();
    const put = (object: { metadata: ObjectMeta }, toNext: (live: ApiObject | undefined) => ApiObject | undefined) => {
      const { namespace = "default", name = "" } = object.metadata;
      const scope = definition.namespaced ? namespace : undefined;
      const live = store.get(resource, scope, name);
      if (live && this.#origins.get(live) === object) return void found.add(live);
      // Objects of controllers come first; as upstream, they take over the Endpoints of a Service that has a selector.
      if (live && found.has(live)) return;
      if (live && submitted.isOwn(definition, live)) {
        if (definition.kind !== "Endpoints" || !derived.includes(object as WorkloadObject)) return;
        submitted.release(definition, live);
      }
      if (scope !== undefined) ensureNamespace(store, scope, clock.now());
      const next = toNext(live);
      found.add(next ? this.#put(resource, next, object) : live);
    };
    for (const object of derived) put(object, (live) => this.#toDerived(object, live));
    for (const object of objects) put(object, (live) => this.#toForeign(definition, object, live));
    for (const live of store.list(resource)) {
      if (found.has(live) || submitted.isOwn(definition, live)) continue;
      store.remove(resource, live.metadata.namespace, live.metadata.name);
    }
  }

  #toForeign(definition: ResourceDefinition, object: { metadata: ObjectMeta }, live: ApiObject | undefined): ApiObject {
    const node = this.node!;
    const { namespace = "default", name = "", ...own } = object.metadata;
    const identity = node.workloads.reader.identityOf(definition.kind, { ...own, namespace, name });
    const metadata = {
      ...own,
      ...(definition.namespaced && { namespace }),
      name,
      uid: identity.uid,
      creationTimestamp:
        identity.creationTimestamp ?? own.creationTimestamp ?? node.firstSeen(definition.kind, object.metadata),
      ...("spec" in object && { generation: (live?.metadata.generation ?? 0) + 1 }),
    } as ApiObject["metadata"];
    const status = live && "status" in live && { status: live.status };
    return { ...object, ...status, apiVersion: apiVersionOf(definition), kind: definition.kind, metadata };
  }

  /** ReplicaSets of Deployments, Jobs of CronJobs and the like. @returns undefined when it is in the store already */
  #toDerived(object: WorkloadObject, live: ApiObject | undefined): ApiObject | undefined {
    const { namespace = "default", uid = "" } = object.metadata;
    const shown = { ...object.metadata, namespace, uid: this.#remade.get(uid) ?? uid };
    const next = JSON.parse(JSON.stringify({ ...object, metadata: shown })) as ApiObject;
    const { resourceVersion: _version, ...metadata } = live?.metadata ?? {};
    if (!live || !Bun.deepEquals({ ...live, metadata }, next)) return next;
    this.#origins.set(live, object);
    return undefined;
  }

  /** Statuses, annotations and fields of the spec that controllers write. */
  #syncStatuses(definition: ResourceDefinition): void {
    const node = this.node!;
    const { store } = this.#deps;
    const { reader } = node.workloads;
    const resource = resourceId(definition);
    const inputs = reader.inputsOf(definition.kind);
    const before = this.#shown.get(resource);
    const shown = before && isSameList(inputs, before.inputs) ? before : { inputs, objects: new WeakSet<ApiObject>() };
    this.#shown.set(resource, shown);
    for (const object of store.list(resource)) {
      if (shown.objects.has(object)) continue;
      shown.objects.add(object);
      const { metadata } = object;
      const status = reader.statusOf(definition.kind, object);
      const annotations = reader.annotationsOf(definition.kind, object);
      const spec = reader.specOf(definition.kind, object);
      const hasStatus = hasAll(object, status && { status });
      if (hasStatus && hasAll(metadata.annotations, annotations) && hasAll(object.spec, spec)) continue;
      const next: ApiObject = {
        ...object,
        ...(annotations && { metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } } }),
        ...(spec && { spec: { ...(object.spec as object | undefined), ...spec } }),
        ...(status && { status }),
      };
      this.#put(resource, next, this.#origins.get(object));
    }
  }

  /** Measured at each request; only what is more than a heartbeat is a new version. */
  async #syncNode(): Promise<void> {
    const node = this.node!;
    const { store } = this.#deps;
    const shown = (await node.servers.node()) as ApiObject;
    const { name } = shown.metadata;
    const live = store.get("nodes", undefined, name);
    const uid = shown.metadata.uid ?? name;
    const next = { ...shown, apiVersion: "v1", kind: "Node", metadata: { ...shown.metadata, uid } };
    if (live && JSON.stringify(withoutHeartbeat(live)) === JSON.stringify(withoutHeartbeat(next))) return;
    store.put("nodes", next);
  }

  #ensureClass(nodeName: string): void {
    const { store, clock } = this.#deps;
    if (store.get(STORAGE_CLASSES, undefined, DEFAULT_CLASS)) return;
    this.#put(STORAGE_CLASSES, toDefaultClass(nodeName, toApiTime(clock.now())), this);
  }

  /** The Lease of the node is renewed at a request: no write is due while none comes. */
  #renewLease(name: string): void {
    const { store, clock } = this.#deps;
    const lease = renewNodeLease(name, store.get(LEASES, LEASE_NAMESPACE, name), clock.now());
    if (!lease) return;
    ensureNamespace(store, LEASE_NAMESPACE, clock.now());
    this.#put(LEASES, lease, this);
  }

  refusalOf(definition: ResourceDefinition, object: ApiObject): string | undefined {
    const { name } = object.metadata;
    const what = `${definition.singular} "${name}"`;
    const made: readonly unknown[] = [this, ...this.#deps.own];
    if (made.includes(this.#origins.get(object)) || this.events.isRecorded(object))
      return `${what} is made by this node`;
    if (!isKept(definition) || this.#deps.submitted.isOwn(definition, object)) return undefined;
    if (definition.plural === "namespaces") {
      return this.#hasForeignObjects(name) ? `manifests of this node have objects in ${what}` : undefined;
    }
    const isClaim = definition.kind === "PersistentVolumeClaim";
    const user = isClaim && this.node?.workloads.claims.userOf(podFullName(object.metadata));
    if (user)
      return `${what} is of a StatefulSet, and pod "${user}" uses it: scale the StatefulSet down, or delete it, first`;
    const origin = this.#originOf(definition.kind, object.metadata);
    const owner = object.metadata.ownerReferences?.find(({ controller }) => controller);
    if (origin === undefined && owner) return `${what} is made by ${owner.kind} "${owner.name}": edit that`;
    if (origin === undefined) return `${what} comes from a manifest of this node: edit that`;
    return `${what} comes from ${origin}: edit that ${/^https?:/.test(origin) ? "manifest" : "file"}`;
  }

  /** Where an object was found, for users: `file:line` where that is known; undefined: a client submitted it. */
  #originOf(kind: string, metadata: ObjectMeta): string | undefined {
    if (!this.node) return undefined;
    const { kubelet, desired } = this.node;
    const pod = kubelet.desiredPods.find((it) => kind === "Pod" && it.pod.metadata.uid === metadata.uid);
    const { file, line } = pod?.location ?? desired.locations?.[objectKey(kind, metadata)] ?? {};
    if (file !== undefined && line !== undefined) return `${file}:${line}`;
    return pod?.source === "api" ? undefined : pod?.origin;
  }

  assign(definition: ResourceDefinition, object: ApiObject): ApiObject {
    const { namespace, name } = object.metadata;
    if (this.node && definition.kind === "Node") {
      const message = "this label of the node comes from --node-labels, or says what the machine is";
      const changed = this.node.settings?.changedLabels(object as WrittenNode) ?? [];
      const causes = changed.map((key) => forbidden(`metadata.labels[${key}]`, message));
      refuseInvalid(definition, name, causes);
    }
    const { store } = this.#deps;
    const isNew = () => store.get(resourceId(definition), namespace, name) === undefined;
    if (definition.kind === "Ingress" && isNew()) {
      const classes = store.list("ingressclasses.networking.k8s.io") as unknown as readonly IngressClass[];
      return withDefaultClass(object as unknown as Ingress, classes) as unknown as ApiObject;
    }
    if (!this.node || definition.kind !== "Service") return object;
    const others = () => {
      const all = store.list(resourceId(definition)) as unknown as readonly Service[];
      return all.filter(({ metadata }) => metadata.name !== name || metadata.namespace !== namespace);
    };
    const { spec, problems } = this.node.workloads.services.assign(object as unknown as Service, others);
    const causes = problems.map((it) => invalidValue(it.field, JSON.stringify(it.value), it.message));
    refuseInvalid(definition, name, causes);
    return { ...object, spec };
  }

  relabelMade(_: ResourceDefinition, live: ApiObject, next: ApiObject): ApiObject | undefined {
    const { labels, annotations, managedFields, ownerReferences: owners = [] } = next.metadata;
    const { uid = "", deletionTimestamp } = live.metadata;
    // A terminating pod keeps its owners until it is gone.
    const isSelected = deletionTimestamp ? true : this.node?.workloads.selectsPod(uid, labels ?? {});
    if (isSelected === undefined) return undefined;
    const controllers = live.metadata.ownerReferences?.filter(({ controller }) => isSelected && controller) ?? [];
    const ownerReferences = [...controllers, ...owners.filter(({ controller }) => !controller)];
    return { ...live, metadata: { ...live.metadata, labels, annotations, managedFields, ownerReferences } };
  }

  writePod(definition: ResourceDefinition, object: ApiObject, subresource: string): ApiObject {
    const { uid = "", name } = object.metadata;
    const { spec, status } = object as unknown as Pod;
    const { kubelet } = this.node!;
    const { submitted, storing } = this.#deps;
    const worker = kubelet.workers.get(uid);
    const isStatus = subresource === "status";
    if (isStatus && !worker?.status) throw conflict(definition, name, "the node has not begun with the pod: try again");
    const written = this.#deps.store.put("pods", object);
    const isMade = this.isMadeByController(definition, object);
    if (isStatus) {
      storing.note(worker?.setForeign(foreignConditions(status?.conditions)));
      if ((isMade || submitted.isOwn(definition, object)) && isFinished({ status } as Pod)) {
        storing.note(worker?.setEnd(status as PodEnd));
        // Jobs count their pods that have ended; every other controller replaces them.
        const isOfJob = object.metadata.ownerReferences?.some(({ controller, kind }) => controller && kind === "Job");
        if (isMade && !isOfJob) storing.note(this.deleteMade(object, spec.terminationGracePeriodSeconds ?? 30));
      }
    } else storing.note(kubelet.setEphemeralContainers(uid, spec.ephemeralContainers ?? []));
    this.#syncPods(definition);
    return written;
  }

  writeNode(object: ApiObject): void {
    this.#deps.storing.note(this.node?.write(object as WrittenNode));
  }

  /** Pods that are assigned to the node or terminating use claims; bound claims use PersistentVolumes. */
  isInUse({ kind }: ResourceDefinition, { metadata }: ApiObject): boolean {
    if (!this.node) return false;
    const { kubelet, workloads } = this.node;
    if (kind === "PersistentVolume") {
      const status = workloads.reader.statusOf(kind, { metadata });
      return status !== undefined && "phase" in status && status.phase === "Bound";
    }
    return (
      kubelet.desiredPods.some((it) => !kubelet.isHeld(it.pod.metadata.uid!) && usesClaim(it, metadata)) ||
      kubelet.workers.values().some(({ revision }) => revision && usesClaim(revision.desired, metadata))
    );
  }

  isMadeKnown(): boolean {
    return this.node?.kubelet.hasDesired === true;
  }

  isMadeByController({ fate }: ResourceDefinition, { metadata }: ApiObject): boolean {
    return fate === "pods" && this.node?.workloads.hasPod(metadata.uid ?? "") === true;
  }

  async deleteMade({ metadata }: ApiObject, graceSeconds: number): Promise<boolean> {
    return (await this.node?.workloads.deletePod(metadata.uid ?? "", { graceSeconds })) ?? true;
  }

  removalOf(definition: ResourceDefinition, object: ApiObject, isOrphaning: boolean): Removal | undefined {
    const { store, submitted } = this.#deps;
    if (!this.node || submitted.isOwn(definition, object)) return undefined;
    if (this.events.isRecorded(object)) return () => this.events.delete(object);
    const { workloads, feed } = this.node;
    const { namespace, name } = object.metadata;
    const fullName = podFullName(object.metadata);
    const origin = this.#origins.get(object);
    const endpoints = [...this.#deps.own, ...workloads.services.derivedObjects()].find((it) => it === origin);
    const remake = () => {
      if (this.#remade.size > MAX_REMADE) this.#remade.clear();
      this.#remade.set(endpoints?.metadata.uid ?? "", randomUUID());
      store.remove(resourceId(definition), namespace, name);
      this.podsChanged();
    };
    const removeJob = definition.kind === "Job" && !isOrphaning ? workloads.removalOfJob(fullName) : undefined;
    const removeMade = () => {
      const removed = removeJob?.();
      submitted.flush();
      return removed;
    };
    const key = definition.fate === "pods" ? fullName : `${definition.kind} ${fullName}`;
    return (
      (endpoints && remake) ??
      (removeJob && removeMade) ??
      (definition.kind === "PersistentVolumeClaim" ? workloads.removalOfClaim(fullName) : undefined) ??
      feed.removalOf(key as RunnableKey)
    );
  }

  /** Objects made by controllers go with their workload. */
  #hasForeignObjects(namespace: string): boolean {
    const { store, registry, submitted } = this.#deps;
    const kinds = registry.all().filter((it) => it.namespaced && isKept(it));
    return objectsOf(store, kinds, namespace).some(
      ({ definition, object }) =>
        !submitted.isOwn(definition, object) && !object.metadata.ownerReferences?.some(({ controller }) => controller),
    );
  }
}

/** Whether an object has these fields with these values. */
const hasAll = (object: unknown, fields: object = {}): boolean =>
  Object.entries(fields).every(([name, value]) => Bun.deepEquals(isRecord(object) ? object[name] : undefined, value));

function withoutHeartbeat({ metadata, ...node }: ApiObject): object {
  const { resourceVersion: _version, ...others } = metadata;
  const { conditions = [], ...status } = (node.status ?? {}) as { conditions?: { lastHeartbeatTime?: string }[] };
  const quiet = conditions.map(({ lastHeartbeatTime: _time, ...condition }) => condition);
  return { ...node, metadata: others, status: { ...status, conditions: quiet } };
}
