import type { OwnerReference, Pod } from "../../base/api/pod.ts";
import { TokenBucket } from "../../base/concurrency/token-bucket.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { podFullName } from "../../base/model/pod.ts";
import { CONFIG_HASH_ANNOTATION } from "../../manifest/defaults.ts";
import { isConflict, isNotFound } from "../client/api-error.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { WorkQueue } from "../client/work-queue.ts";
import { type ApiPod, isMirrorPod, isTerminating, MIRROR_ANNOTATION } from "./api-pod-source.ts";

/** The kubelet, as its static pods are shown. */
export interface StaticPods {
  /** Static pods, those that terminate included. */
  staticPods(): readonly Pod[];
  isWanted(pod: Pod): boolean;
  /** Every source of static pods was read. */
  readonly isComplete: boolean;
}

interface MirrorManagerDeps {
  client: Pick<ClusterClient, "request" | "reachability">;
  clock: Clock;
  logger: Logger;
  kubelet: StaticPods;
  nodeName: string;
  /** UID of the Node; undefined before it is known. */
  nodeUid: () => string | undefined;
}

/** Changes within this time are handled together. */
const GATHER_MS = 200;
const RETRY = { first: 1_000, longest: 60_000 };
/** Removals of one mirror pod: another kubelet with the name of this node may make its own again and again. */
const REMOVALS = { perSecond: 0.1, burst: 3 };

/** Shows static pods at the API server as mirror pods. */
export class MirrorManager {
  readonly #deps: MirrorManagerDeps;
  readonly #facts: ChangeLogger;
  /** Pods to be created or removed, by name; one that waits delays no other. */
  readonly #todo = new Map<string, { verb: "created" | "removed"; pod: ApiPod }>();
  readonly #queue: WorkQueue;
  readonly #removals = new Map<string, TokenBucket>();
  readonly #stop = new AbortController();
  #apiPods: readonly ApiPod[] | undefined;
  #cancel: (() => void) | undefined;
  #cancelNext: (() => void) | undefined;

  constructor(deps: MirrorManagerDeps) {
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
    const { reachability } = deps.client;
    this.#queue = new WorkQueue({ reachability, retry: RETRY, work: (name) => this.#work(name) });
  }

  setPods(pods: readonly ApiPod[]): void {
    this.#apiPods = pods;
    this.changed();
  }

  /** The set of static pods has changed, or the Node is known now. */
  changed(): void {
    if (this.#stop.signal.aborted || !this.#apiPods) return;
    this.#cancel ??= this.#deps.clock.schedule(GATHER_MS, () => {
      this.#cancel = undefined;
      this.#plan();
    });
  }

  stop(): void {
    this.#stop.abort(new Error("stopped"));
    this.#cancel?.();
    this.#cancelNext?.();
    this.#queue.stop();
  }

  #plan(): void {
    const { kubelet, nodeName, nodeUid } = this.#deps;
    const uid = nodeUid();
    if (uid === undefined || !this.#apiPods) return;
    const { create, remove, taken } = planMirrors({
      staticPods: kubelet.staticPods(),
      isWanted: (pod) => kubelet.isWanted(pod),
      apiPods: this.#apiPods,
      isComplete: kubelet.isComplete,
      node: { name: nodeName, uid },
    });
    for (const pod of taken) {
      const name = podFullName(pod.metadata);
      this.#facts.log(name, "warn", `Static pod "${name}" has no mirror pod: another pod of the API has its name`);
    }
    this.#todo.clear();
    for (const pod of create as ApiPod[]) this.#todo.set(nameOf(pod), { verb: "created", pod });
    for (const pod of remove) this.#todo.set(nameOf(pod), { verb: "removed", pod });
    this.#queue.retain(new Set(this.#todo.keys()));
    for (const name of this.#todo.keys()) this.#queue.add(name);
  }

  async #work(name: string): Promise<void> {
    const todo = this.#todo.get(name);
    if (!todo || (todo.verb === "removed" && !this.#mayRemove(name))) return;
    const { verb, pod } = todo;
    try {
      await (verb === "created" ? this.#create(pod) : this.#remove(pod));
      if (this.#todo.get(name) === todo) this.#todo.delete(name);
      this.#facts.resolve(name, `The mirror pod of "${name}" is ${verb}`);
    } catch (error) {
      // The watch is behind: it shows soon what is there.
      if (isConflict(error) || (verb === "removed" && isNotFound(error)) || this.#stop.signal.aborted) return;
      this.#facts.log(name, "warn", `The mirror pod of "${name}" cannot be ${verb}: ${(error as Error).message}`);
      throw error;
    }
  }

  /** Whether the mirror pod may be removed now; if not, it is checked again later. */
  #mayRemove(name: string): boolean {
    const { clock, kubelet } = this.#deps;
    const names = new Set<string>([...kubelet.staticPods().map(({ metadata }) => podFullName(metadata)), name]);
    for (const known of this.#removals.keys()) if (!names.has(known)) this.#removals.delete(known);
    const bucket = this.#removals.getOrInsertComputed(name, () => new TokenBucket(REMOVALS, clock));
    if (bucket.tryTake()) return true;
    this.#cancelNext ??= clock.schedule(1000 / REMOVALS.perSecond, () => {
      this.#cancelNext = undefined;
      this.changed();
    });
    return false;
  }

  async #create(body: ApiPod): Promise<void> {
    const path = `/api/v1/namespaces/${body.metadata.namespace}/pods`;
    await this.#deps.client.request({ method: "POST", path, body, signal: this.#stop.signal });
  }

  async #remove({ metadata: { namespace, name, uid } }: ApiPod): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    await this.#deps.client.request({ method: "DELETE", path, body, signal: this.#stop.signal });
  }
}

const nameOf = ({ metadata }: Pick<Pod, "metadata"> | ApiPod) => podFullName(metadata);

interface MirrorInput {
  /** Static pods of this node, those that terminate included. */
  staticPods: readonly Pod[];
  /** Whether a static pod runs or is about to run. */
  isWanted: (pod: Pod) => boolean;
  apiPods: readonly ApiPod[];
  /** Every source of static pods was read: a mirror pod without one may be removed. */
  isComplete: boolean;
  node: { name: string; uid: string };
}

interface MirrorPlan {
  create: object[];
  remove: ApiPod[];
  /** Static pods whose names other pods of the API have. */
  taken: Pod[];
}

/** The revision of the static pod that a mirror pod represents. */
const hashOf = ({ metadata }: Pod): string => metadata.annotations?.[CONFIG_HASH_ANNOTATION] ?? metadata.uid ?? "";

/** Whether it shows this revision, and names the UID of its events, by which kubectl describe and log shippers find them. */
const isMirrorOf = ({ metadata: { annotations } }: ApiPod, pod: Pod): boolean =>
  annotations?.[MIRROR_ANNOTATION] === pod.metadata.uid && annotations?.[CONFIG_HASH_ANNOTATION] === hashOf(pod);

/**
 * Which mirror pods are to be created and removed, so that the API server shows each static pod. One that was deleted,
 * gracefully or not, or that shows an earlier revision is removed and created again. Pure.
 * Source: the kubelet's syncPod and deleteOrphanedMirrorPods.
 */
export function planMirrors({ staticPods, isWanted, apiPods, isComplete, node }: MirrorInput): MirrorPlan {
  const plan: MirrorPlan = { create: [], remove: [], taken: [] };
  const byName = new Map(apiPods.map((pod) => [nameOf(pod), pod]));
  const shown = new Set<string>();
  for (const pod of staticPods) {
    shown.add(nameOf(pod));
    const known = byName.get(nameOf(pod));
    if (!known) {
      if (isWanted(pod)) plan.create.push(toMirrorPod(pod, node));
    } else if (!isMirrorPod(known)) plan.taken.push(pod);
    else if (isTerminating(known) || !isMirrorOf(known, pod)) plan.remove.push(known);
  }
  if (isComplete) {
    for (const pod of apiPods) if (isMirrorPod(pod) && !shown.has(nameOf(pod))) plan.remove.push(pod);
  }
  return plan;
}

function toMirrorPod(pod: Pod, node: { name: string; uid: string }): object {
  const { name, namespace, labels, annotations } = pod.metadata;
  const owner: OwnerReference = { apiVersion: "v1", kind: "Node", name: node.name, uid: node.uid, controller: true };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      annotations: { ...annotations, [CONFIG_HASH_ANNOTATION]: hashOf(pod), [MIRROR_ANNOTATION]: pod.metadata.uid },
      ownerReferences: [owner],
    },
    spec: { ...pod.spec, nodeName: node.name },
  };
}
