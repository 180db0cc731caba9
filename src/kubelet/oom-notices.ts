import type { Clock } from "../base/model/clock.ts";
import type { PodUID } from "../base/model/pod.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { ContainerId, ContainerSnapshot, PodSnapshot } from "../base/model/pod-snapshot.ts";
import { toCountedOomEvent } from "../stats/oom-kill.ts";

interface OomNoticesDeps {
  clock: Clock;
  recorder: EventRecorder;
  pods: () => Iterable<PodSnapshot>;
  /** Number of processes the kernel killed so far in the cgroup of this process; undefined where it does not count them. */
  readKills: (pid: number) => number | undefined;
}

/** The counter, the end of a container and the engine's report of it arrive in any order, all within this time. */
const SETTLE_MS = 500;

/**
 * Records events of OOM kills where the kernel log cannot be read: the engine reports that a cgroup ran out of memory,
 * the counters of the cgroups how many processes were killed. On cgroup v1 the report of a pod's limit comes once for
 * each of its containers. The name of the killed process is not known.
 */
export class OomNotices {
  readonly #deps: OomNoticesDeps;
  readonly #startedAt: Date;
  readonly #kills = new Map<ContainerId, number>();
  readonly #ended = new Set<ContainerId>();
  /** Pods with a scheduled check, with the containers or sandboxes the engine named. */
  readonly #due = new Map<PodUID, Set<ContainerId>>();

  constructor(deps: OomNoticesDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  /** The engine reports that this container, or sandbox, ran out of memory. */
  note(id: ContainerId): void {
    const isIts = (one: { id: ContainerId }) => one.id === id;
    const pod = [...this.#deps.pods()].find((one) => one.containers.some(isIts) || one.sandboxes.some(isIts));
    if (!pod) return;
    const isPlanned = this.#due.has(pod.uid);
    this.#due.getOrInsertComputed(pod.uid, () => new Set()).add(id);
    if (isPlanned) return;
    this.#deps.clock.schedule(SETTLE_MS, () => this.#reportKills(pod.uid));
  }

  #reportKills(uid: PodUID): void {
    const named = this.#due.get(uid) ?? new Set();
    this.#due.delete(uid);
    const pods = [...this.#deps.pods()];
    const pod = pods.find((one) => one.uid === uid);
    for (const container of pod?.containers ?? []) {
      const isNamed = named.has(container.id) || named.has(container.sandboxId);
      const kills =
        container.state === "running" ? this.#newKills(container, isNamed) : this.#isEnd(container, isNamed);
      if (pod && kills > 0) this.#deps.recorder.record(pod, toCountedOomEvent(container.name, kills));
    }
    this.#forgetAllBut(new Set(pods.flatMap(({ containers }) => containers.map(({ id }) => id))));
  }

  #newKills({ id, pid, startedAt }: ContainerSnapshot, isNamed: boolean): number {
    const kills = this.#deps.readKills(pid);
    if (kills === undefined) return isNamed ? 1 : 0;
    // Kills before the start of this process are not known; the report is about one.
    const isOlder = startedAt !== undefined && startedAt < this.#startedAt;
    const before = this.#kills.get(id) ?? (isOlder ? Math.max(0, kills - 1) : 0);
    this.#kills.set(id, kills);
    return Math.max(0, kills - before);
  }

  #isEnd({ id, oomKilled }: ContainerSnapshot, isNamed: boolean): number {
    if (!isNamed || !oomKilled || this.#ended.has(id)) return 0;
    this.#ended.add(id);
    return 1;
  }

  #forgetAllBut(ids: ReadonlySet<ContainerId>): void {
    for (const id of this.#kills.keys()) if (!ids.has(id)) this.#kills.delete(id);
    for (const id of this.#ended) if (!ids.has(id)) this.#ended.delete(id);
  }
}
