import type { Pod } from "../../api/pod.ts";
import { ChangeLogger } from "../../logging/change-logger.ts";
import type { Clock } from "../../model/clock.ts";
import { podFullName } from "../../model/identity.ts";
import type { Logger } from "../../model/logger.ts";
import { isConflict, isNotFound } from "../client/api-error.ts";
import { BackOff } from "../client/back-off.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import type { ApiPod } from "./api-pod.ts";
import { planMirrors } from "./mirror-plan.ts";

/** The kubelet, as its static pods are shown. */
export interface StaticPods {
  /** Static pods, those that terminate included. */
  staticPods(): readonly Pod[];
  isWanted(pod: Pod): boolean;
  /** Every source of static pods was read. */
  readonly isComplete: boolean;
}

export interface MirrorManagerDeps {
  client: Pick<ClusterClient, "request" | "reachability">;
  clock: Clock;
  logger: Logger;
  kubelet: StaticPods;
  nodeName: string;
  /** UID of the Node; undefined before it is known. */
  nodeUid: () => string | undefined;
}

/** Changes within this time are looked at together. */
const GATHER_MS = 200;
const RETRY = { first: 1_000, longest: 60_000 };

/** Shows static pods at the API server as mirror pods. */
export class MirrorManager {
  readonly #deps: MirrorManagerDeps;
  readonly #facts: ChangeLogger;
  readonly #backOff = new BackOff(RETRY);
  readonly #stop = new AbortController();
  #apiPods: readonly ApiPod[] | undefined;
  #cancel: (() => void) | undefined;
  #isBusy = false;
  #isDue = false;

  constructor(deps: MirrorManagerDeps) {
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
  }

  setPods(pods: readonly ApiPod[]): void {
    this.#apiPods = pods;
    this.changed();
  }

  /** Static pods have changed, or the Node is known now. */
  changed(): void {
    this.#plan(GATHER_MS);
  }

  stop(): void {
    this.#stop.abort(new Error("stopped"));
    this.#cancel?.();
  }

  #plan(delayMs: number): void {
    if (this.#stop.signal.aborted || !this.#apiPods) return;
    this.#isDue = true;
    if (this.#isBusy) return;
    this.#cancel ??= this.#deps.client.reachability.schedule(delayMs, () => {
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
    const outcomes = await Promise.all([
      ...create.map((pod) => this.#create(pod as ApiPod)),
      ...remove.map((pod) => this.#remove(pod)),
    ]);
    this.#isBusy = false;
    if (outcomes.includes(false)) this.#plan(this.#backOff.next());
    else {
      this.#backOff.reset();
      if (this.#isDue) this.#plan(GATHER_MS);
    }
  }

  /** @returns false when it has to be tried again */
  async #create(pod: ApiPod): Promise<boolean> {
    const { namespace = "default", name } = pod.metadata;
    const path = `/api/v1/namespaces/${namespace}/pods`;
    return this.#attempt(`${namespace}/${name}`, "created", async () => {
      await this.#deps.client
        .request({ method: "POST", path, body: pod, signal: this.#stop.signal })
        .catch((error: unknown) => {
          // The watch is behind: it shows the pod soon.
          if (!isConflict(error)) throw error;
        });
    });
  }

  async #remove({ metadata: { namespace = "default", name, uid } }: ApiPod): Promise<boolean> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    return this.#attempt(`${namespace}/${name}`, "removed", async () => {
      await this.#deps.client
        .request({ method: "DELETE", path, body, signal: this.#stop.signal })
        .catch((error: unknown) => {
          if (!isConflict(error) && !isNotFound(error)) throw error;
        });
    });
  }

  async #attempt(name: string, verb: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      this.#facts.resolve(name, `The mirror pod of "${name}" is ${verb}`);
      return true;
    } catch (error) {
      if (this.#stop.signal.aborted) return true;
      this.#facts.log(name, "warn", `The mirror pod of "${name}" cannot be ${verb}: ${(error as Error).message}`);
      return false;
    }
  }
}
