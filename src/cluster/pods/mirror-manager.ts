import type { OwnerReference, Pod } from "../../base/api/pod.ts";
import { TokenBucket } from "../../base/concurrency/token-bucket.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import { podFullName } from "../../base/model/identity.ts";
import type { Logger } from "../../base/model/logger.ts";
import { CONFIG_HASH_ANNOTATION } from "../../manifest/identity.ts";
import { isConflict, isNotFound } from "../client/api-error.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { BackOff } from "../client/reachability.ts";
import type { ObjectChange } from "../client/reflector.ts";
import { type ApiPod, isMirrorPod, isTerminating, MIRROR_ANNOTATION } from "./api-pod.ts";

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
  /** Mirror pods whose last attempt failed; one that waits delays no other. */
  readonly #failed = new Map<string, { backOff: BackOff; cancel: (() => void) | undefined }>();
  readonly #removals = new Map<string, TokenBucket>();
  readonly #stop = new AbortController();
  #cancelNext: (() => void) | undefined;
  #apiPods: readonly ApiPod[] | undefined;
  #cancel: (() => void) | undefined;
  #isBusy = false;
  #isDue = false;

  constructor(deps: MirrorManagerDeps) {
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
  }

  /** @param change all that differs from the call before; absent: anything may */
  setPods(pods: readonly ApiPod[], change?: ObjectChange<ApiPod>): void {
    this.#apiPods = pods;
    if (!change || concernsMirrors(change)) this.changed();
  }

  /** The set of static pods has changed, or the Node is known now. */
  changed(): void {
    this.#plan();
  }

  stop(): void {
    this.#stop.abort(new Error("stopped"));
    this.#cancel?.();
    this.#cancelNext?.();
    for (const { cancel } of this.#failed.values()) cancel?.();
  }

  #plan(): void {
    if (this.#stop.signal.aborted || !this.#apiPods) return;
    this.#isDue = true;
    if (this.#isBusy) return;
    this.#cancel ??= this.#deps.clock.schedule(GATHER_MS, () => {
      this.#cancel = undefined;
      void this.#sync();
    });
  }

  async #sync(): Promise<void> {
    const { kubelet, nodeName, nodeUid } = this.#deps;
    const uid = nodeUid();
    if (uid === undefined || !this.#apiPods) return;
    this.#isBusy = true;
    this.#isDue = false;
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
    const isNotWaiting = (pod: ApiPod) => !this.#failed.get(nameOf(pod))?.cancel;
    this.#forgetOthers(new Set([...(create as ApiPod[]), ...remove].map(nameOf)));
    await Promise.all([
      ...(create as ApiPod[]).filter(isNotWaiting).map((pod) => this.#create(pod)),
      ...remove.filter((pod) => isNotWaiting(pod) && this.#mayRemove(pod)).map((pod) => this.#remove(pod)),
    ]);
    this.#isBusy = false;
    if (this.#isDue) this.#plan();
  }

  /** Whether the mirror pod may be removed now; if not, it is checked again later. */
  #mayRemove(pod: ApiPod): boolean {
    const { clock, kubelet } = this.#deps;
    const names = new Set<string>([...kubelet.staticPods().map(({ metadata }) => podFullName(metadata)), nameOf(pod)]);
    for (const name of this.#removals.keys()) if (!names.has(name)) this.#removals.delete(name);
    const bucket = this.#removals.get(nameOf(pod)) ?? new TokenBucket(REMOVALS, clock);
    this.#removals.set(nameOf(pod), bucket);
    if (bucket.tryTake()) return true;
    this.#cancelNext ??= clock.schedule(1000 / REMOVALS.perSecond, () => {
      this.#cancelNext = undefined;
      this.#plan();
    });
    return false;
  }

  /** Forgets failures of pods that need nothing any more. */
  #forgetOthers(names: ReadonlySet<string>): void {
    for (const [name, { cancel }] of this.#failed) {
      if (names.has(name)) continue;
      cancel?.();
      this.#failed.delete(name);
    }
  }

  #retryLater(name: string): void {
    const entry = this.#failed.get(name) ?? { backOff: new BackOff(RETRY), cancel: undefined };
    this.#failed.set(name, entry);
    entry.cancel = this.#deps.client.reachability.schedule(entry.backOff.next(), () => {
      entry.cancel = undefined;
      this.#plan();
    });
  }

  async #create(pod: ApiPod): Promise<void> {
    const { namespace = "default", name } = pod.metadata;
    const path = `/api/v1/namespaces/${namespace}/pods`;
    await this.#attempt(`${namespace}/${name}`, "created", async () => {
      await this.#deps.client
        .request({ method: "POST", path, body: pod, signal: this.#stop.signal })
        .catch((error: unknown) => {
          // The watch is behind: it shows the pod soon.
          if (!isConflict(error)) throw error;
        });
    });
  }

  async #remove({ metadata: { namespace = "default", name, uid } }: ApiPod): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    await this.#attempt(`${namespace}/${name}`, "removed", async () => {
      await this.#deps.client
        .request({ method: "DELETE", path, body, signal: this.#stop.signal })
        .catch((error: unknown) => {
          if (!isConflict(error) && !isNotFound(error)) throw error;
        });
    });
  }

  async #attempt(name: string, verb: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failed.delete(name);
      this.#facts.resolve(name, `The mirror pod of "${name}" is ${verb}`);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#facts.log(name, "warn", `The mirror pod of "${name}" cannot be ${verb}: ${(error as Error).message}`);
      this.#retryLater(name);
    }
  }
}

/** A status of another pod changes no mirror pod. */
const concernsMirrors = ({ before, after }: ObjectChange<ApiPod>) =>
  !before || !after || before.metadata.uid !== after.metadata.uid || isMirrorPod(before) || isMirrorPod(after);

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
    else if (isTerminating(known) || known.metadata.annotations?.[MIRROR_ANNOTATION] !== hashOf(pod)) {
      plan.remove.push(known);
    }
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
      annotations: { ...annotations, [MIRROR_ANNOTATION]: hashOf(pod) },
      ownerReferences: [owner],
    },
    spec: { ...pod.spec, nodeName: node.name },
  };
}
