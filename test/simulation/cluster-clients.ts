import type { ApiServerModel, ClusterObject } from "./api-server-model.ts";
import { hasValues, isLasting, podsOf, toObjects, type WantedPod } from "./desired.ts";
import type { EngineRequest } from "./engine-model.ts";
import { checkPod, ForgottenPods, findWrongStatus, type Shown } from "./watchers.ts";
import type { World } from "./world.ts";

/** Controllers try again after this time. */
const RETRY_MS = 5_000;
/** A controller notices a change by then. */
const NOTICE_MS = 500;
/** The node follows its pods again this much after the API server is back. Unit: milliseconds. */
const RETURN_MS = 30_000;
/** The Lease was renewed no longer than this ago: a quarter of its duration, and more. */
const LEASE_MS = 700_000;
/** Requests of a node in two quiet hours, for each of its pods, and for each static pod of which a mirror pod is refused. */
const REST = { requests: 200, perPod: 40, perRefused: 5 };
/** A status that others overwrote is reported again by then. */
const CORRECTED_MS = 60_000;
const MIRROR = "kubernetes.io/config.mirror";
const LABEL_UID = "io.kubernetes.pod.uid";

interface ClusterClientsDeps {
  world: World;
  server: ApiServerModel;
  wanted: Map<string, WantedPod>;
  /** Something was wrong within the last hour. */
  isDisturbed(): boolean;
  fail(rule: string, message: string): void;
}

/**
 * People and controllers of the cluster whose node this machine is, and what they see of it: one pod for each app, which is deleted
 * and made again when its template changes.
 */
export class ClusterClients {
  readonly #deps: ClusterClientsDeps;
  /** Templates from which pods were made, by uid. */
  readonly #templates = new Map<string, string>();
  /** Processes that reported the status of a pod last, by uid. */
  readonly #reporters = new Map<string, number>();
  readonly #forgotten: ForgottenPods;
  /** Pods whose status others have overwritten. */
  readonly #overwritten = new Set<string>();
  #leaseMs = 0;
  #requestsBefore = 0;
  /** When a controller last changed something. */
  changedMs = 0;

  constructor(deps: ClusterClientsDeps) {
    this.#deps = deps;
    const { server, world } = deps;
    this.#forgotten = new ForgottenPods(world);
    server.onRequest = (request, text) => this.#checkRequest(request, text);
    server.onChange = (key, before, now) => this.#note(key, before, now);
  }

  /** Pods of an app: none or one, but while another one takes its place. */
  podsOf(app: string): ClusterObject[] {
    return this.#deps.server.all("pods").filter((pod) => !isMirror(pod) && pod.metadata.labels?.app === app);
  }

  /** Whether the cluster wants a pod to run. */
  isWanted(uid: string): boolean {
    const pod = this.#deps.server.all("pods").find(({ metadata }) => metadata.uid === uid);
    return pod !== undefined && pod.metadata.deletionTimestamp === undefined;
  }

  /** People want something else of an app, or something happened to its pod. */
  reconcile(app: string, afterMs = NOTICE_MS): void {
    this.#deps.world.time.after(afterMs, () => {
      if (!this.#reconcile(app)) this.reconcile(app, RETRY_MS);
    });
  }

  /** @returns whether it was possible */
  #reconcile(app: string): boolean {
    const { server, world, wanted } = this.#deps;
    const [node] = server.all("nodes");
    const want = wanted.get(app);
    if (!server.isUp || !node) return false;
    const [pod] = this.podsOf(app);
    if (!want) {
      if (pod) this.remove(pod);
      else for (const resource of ["secrets", "configmaps"]) server.remove(`${resource}/default/${app}`, 0);
      return true;
    }
    const [object, ...others] = toObjects(want);
    for (const other of others) this.#put(`${other.kind.toLowerCase()}s`, other);
    const template = JSON.stringify([object?.spec, hasValues(want) ? want.config : undefined]);
    if (!pod) {
      // Some names come again, as those of a StatefulSet.
      const name = `${app}-${hasLastingName(app) ? 0 : Math.floor(world.time.nowMs).toString(36)}`;
      const spec = { ...(object?.spec as object), nodeName: node.metadata.name };
      const metadata = { ...object?.metadata, namespace: "default", name };
      this.#touch(want, `the cluster makes pod ${name}`);
      server.create("pods", { apiVersion: "v1", kind: "Pod", metadata, spec, status: { phase: "Pending" } });
      const [made] = this.podsOf(app);
      if (made) this.#templates.set(made.metadata.uid, template);
    } else if (this.#templates.get(pod.metadata.uid) !== template) this.remove(pod);
    else if (pod.metadata.annotations?.note !== String(want.note)) {
      world.note(`a client annotates pod ${pod.metadata.name}`);
      server.update(keyOf(pod), { metadata: { annotations: { note: String(want.note) } } });
    }
    return true;
  }

  #put(resource: string, object: { metadata: object }): void {
    const { server, world } = this.#deps;
    const { name } = object.metadata as { name: string };
    const key = `${resource}/default/${name}`;
    const { stringData, ...rest } = object as { metadata: object; stringData?: Record<string, string> };
    const data = Object.entries(stringData ?? {}).map(([id, text]) => [id, Buffer.from(text).toString("base64")]);
    const stored = stringData ? { ...rest, data: Object.fromEntries(data) } : rest;
    const known = server.get(key);
    if (known && JSON.stringify(known.data) === JSON.stringify((stored as { data?: object }).data)) return;
    world.note(`a client writes ${key}`);
    if (known) server.update(key, stored);
    else server.create(resource, { ...stored, metadata: { ...object.metadata, namespace: "default" } });
  }

  /** A pod is deleted. @param graceSeconds undefined: its own; 0: by force, it is gone at once */
  remove(pod: ClusterObject, graceSeconds?: number): void {
    const { server, world, wanted } = this.#deps;
    const { name, labels, deletionTimestamp } = pod.metadata;
    const grace = graceSeconds ?? (pod.spec?.terminationGracePeriodSeconds as number);
    if (deletionTimestamp !== undefined && graceSeconds === undefined) return;
    const want = wanted.get(labels?.app);
    if (want) this.#touch(want, `the cluster deletes pod ${name}`);
    else world.note(`the cluster deletes pod ${name}`);
    server.remove(keyOf(pod), grace);
  }

  /** Another client writes a status that the node has not reported. */
  overwriteStatus(pod: ClusterObject): void {
    const { world, server, isDisturbed, fail } = this.#deps;
    const { uid, name } = pod.metadata;
    if (pod.status?.phase !== "Running") return;
    this.#overwritten.add(uid);
    world.note(`a client overwrites the status of pod ${name}`);
    server.update(keyOf(pod), { status: { phase: "Pending" } });
    if (isDisturbed()) return;
    world.time.after(CORRECTED_MS, () => {
      if (this.#overwritten.has(uid) && this.isWanted(uid) && !isDisturbed())
        fail("status", `the node has not corrected the status of pod ${name}, which another client wrote`);
    });
  }

  /** The API server is back: the node notices. */
  expectReturn(): void {
    const { world, server, fail } = this.#deps;
    const { processes } = world;
    const { requests } = server;
    if (!world.isRunning) return;
    world.time.after(RETURN_MS, () => {
      const isSame = world.isRunning && world.processes === processes && !world.time.isDead;
      if (isSame && server.isUp && server.requests === requests && !world.clusterWire?.isDisturbed)
        fail("cluster", `the node has asked the API server for nothing within ${RETURN_MS / 1000} s after its return`);
    });
  }

  #touch(pod: WantedPod, text: string): void {
    const { world, wanted } = this.#deps;
    world.note(text);
    this.changedMs = world.time.nowMs;
    wanted.set(pod.app, { ...pod, changedMs: world.time.nowMs });
  }

  /** Requests that a node may not make. */
  #checkRequest({ method, path, body }: EngineRequest, text: string): void {
    const { server, world, fail } = this.#deps;
    if (typeof body === "string" && world.hasSecret(text)) world.onSecret(`${method} ${path}`);
    if (path.includes("/leases") && method !== "GET") this.#leaseMs = world.time.nowMs;
    const name = /\/pods\/([^/]+)$/.exec(path)?.[1];
    const pod = server.get(`pods/default/${name}`);
    if (method !== "DELETE" || !pod || isMirror(pod)) return;
    const { uid, deletionTimestamp } = pod.metadata;
    // A request of a former pod names another uid.
    if (JSON.parse(text).preconditions?.uid !== uid) return;
    const left = world.ownRunning().find(({ labels }) => labels[LABEL_UID] === uid);
    if (left) fail("deletion", `pod ${name} leaves the API while ${left.name} runs`);
    if (deletionTimestamp === undefined) fail("deletion", `the node deletes pod ${name}, which is wanted`);
  }

  /** A status of a pod follows from the one before. */
  #note(key: string, before: ClusterObject | undefined, now: ClusterObject | undefined): void {
    const { world, fail } = this.#deps;
    const object = now ?? before;
    if (!key.startsWith("pods/") || !object || isMirror(object)) return;
    const { uid, labels, name } = object.metadata;
    if (!now) {
      this.#reporters.delete(uid);
      world.note(`pod ${name} leaves the API`);
      return this.reconcile(labels.app);
    }
    if (!before || before.status === now.status || this.#forgotten.has(uid)) return;
    const isSameProcess = this.#reporters.get(uid) === world.processes;
    this.#reporters.set(uid, world.processes);
    if (this.#overwritten.has(uid)) {
      if (now.status.phase !== "Pending") this.#overwritten.delete(uid);
      return;
    }
    const between = { isEdited: false, isSameProcess };
    const wrong = checkPod(before as unknown as Shown, now as unknown as Shown, between);
    if (wrong !== undefined) fail("status", `the node reports pod ${name} with ${wrong}`);
  }

  /** @returns a container that runs for at least this time, and that its pod does not show */
  findUnreported(forMs: number): string | undefined {
    const { server, world } = this.#deps;
    for (const { id, name, labels, startedMs } of world.ownRunning()) {
      const pod = server.all("pods").find(({ metadata }) => metadata.uid === labels[LABEL_UID]);
      const isDue = labels["io.kubernetes.container.name"] !== "POD" && world.time.wallMs - startedMs >= forMs;
      if (!isDue || !pod || pod.metadata.deletionTimestamp !== undefined) continue;
      if (!JSON.stringify(pod.status.containerStatuses ?? []).includes(id))
        return `${name} runs for ${forMs / 1000} s, and its pod does not show it`;
    }
    return undefined;
  }

  beginRest(): void {
    this.#requestsBefore = this.#deps.server.requests;
  }

  /** Long after the last fault. @returns what is wrong */
  findWrong(): string | undefined {
    const { server, world, wanted } = this.#deps;
    const ready = server.all("nodes")[0]?.status?.conditions?.find(({ type }: { type: string }) => type === "Ready");
    if (ready?.status !== "True") return `the Node of the machine is not Ready: ${ready?.message}`;
    const ageMs = world.time.nowMs - this.#leaseMs;
    if (ageMs > LEASE_MS) return `the Lease of the node was renewed ${ageMs / 1000} s ago`;
    const pods = server.all("pods");
    const asked = server.requests - this.#requestsBefore;
    const refused = [...wanted.values()].filter((pod) => pod.source === "file" && !canBeShown(pod));
    const refusals = refused.reduce((sum, pod) => sum + podsOf(pod), 0);
    const most = REST.requests + REST.perPod * pods.length + REST.perRefused * refusals;
    if (asked > most) return `the API server had ${asked} requests in two quiet hours, at most ${most} are promised`;
    const ending = pods.find(({ metadata }) => metadata.deletionTimestamp !== undefined);
    if (ending) return `pod ${ending.metadata.name} is still being deleted`;
    for (const { app, source, containers } of wanted.values()) {
      if (source !== "cluster") continue;
      const [pod, another] = this.podsOf(app);
      if (!pod || another) return `the cluster has ${pod ? "several pods" : "no pod"} of ${app}`;
      const { phase = "" } = pod.status ?? {};
      const isRight = containers.every(isLasting) ? phase === "Running" : phase !== "Pending";
      if (!isRight) return `the cluster shows pod ${pod.metadata.name} as ${phase}`;
    }
    return this.#findWrongMirror(pods) ?? findWrongStatus(world, pods as never);
  }

  /** Each static pod that runs is shown by one mirror pod, unless it refers to objects. */
  #findWrongMirror(pods: readonly ClusterObject[]): string | undefined {
    const { world, wanted } = this.#deps;
    const mirrors = pods.filter(isMirror);
    const shown = new Set(mirrors.map(({ metadata }) => metadata.annotations[MIRROR]));
    const own = new Set(pods.filter((pod) => !isMirror(pod)).map(({ metadata }) => metadata.uid));
    const running = world.ownRunning().filter(({ labels }) => labels["io.kubernetes.container.name"] === "POD");
    for (const { labels } of running) {
      const uid = labels[LABEL_UID] ?? "";
      const want = wanted.get(labels["io.kubernetes.pod.name"]?.split("-")[0] ?? "");
      if (want && canBeShown(want) && !own.has(uid) && !shown.has(uid))
        return `no mirror pod shows ${labels["io.kubernetes.pod.name"]}`;
    }
    const uids = new Set(running.map(({ labels }) => labels[LABEL_UID]));
    const stray = mirrors.find(
      ({ metadata, status }) =>
        !uids.has(metadata.annotations[MIRROR]) && !/Succeeded|Failed/.test(status?.phase ?? ""),
    );
    return stray && `mirror pod ${stray.metadata.name} shows a pod that does not run`;
  }
}

/** A mirror pod may not refer to objects. */
const canBeShown = ({ config, hasSecret, kind }: WantedPod) =>
  config === undefined && !hasSecret && kind !== "StatefulSet";

/** Whether the pod of an app has the same name each time. */
export const hasLastingName = (app: string): boolean => Number(app.slice(-1)) % 2 === 0;

export const isMirror = ({ metadata }: ClusterObject): boolean => metadata.annotations?.[MIRROR] !== undefined;

const keyOf = ({ metadata }: ClusterObject) => `pods/${metadata.namespace}/${metadata.name}`;
