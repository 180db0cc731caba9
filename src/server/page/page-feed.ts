import type { Pod } from "../../base/api/pod.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import type { Clock } from "../../base/model/clock.ts";
import type {
  Access,
  NodeState,
  NodeUsage,
  PodRow,
  Rejection,
  Snapshot,
  Update,
  UsageHistory,
  UsagePoint,
  WorkloadRow,
} from "../../page/wire.ts";
import { roundCores, type UsageRecorder } from "./usage-recorder.ts";

interface PageFeedDeps {
  clock: Clock;
  pods: () => readonly Pod[];
  /** Calls back after every change of a pod. @returns a function that ends it */
  onPodsChanged: (callback: () => void) => () => void;
  toRow: (pod: Pod) => PodRow;
  node: () => Promise<NodeState>;
  rejections: () => readonly Rejection[];
  workloads: () => WorkloadRow[];
  measure: () => Promise<{ summary: Summary; node: NodeUsage }>;
  usage: UsageRecorder;
  /** false while a source of pods has not been read: no history is dropped then. */
  isComplete: () => boolean;
  /** An update could not be computed. */
  onError: (error: unknown) => void;
}

/** One open page. */
export interface PageSubscriber {
  access: Access;
  /** Takes an event of the stream. @returns false when the reader is slow: it is sent nothing until `resume` */
  send: (event: "snapshot" | "update", data: string) => boolean;
}

/** The pace of an open page. */
export const OPEN_PERIOD_MS = 10_000;
/** The pace when no page is open: enough for the chart of a day. */
export const IDLE_PERIOD_MS = 120_000;
/**
 * Time of the first sample: pods that were started with the process run by then, and what only the first sample needs is
 * reclaimed with the memory of the start, after a minute.
 */
export const FIRST_SAMPLE_MS = 45_000;
const COALESCE_MS = 100;

/**
 * State of the overview, as one stream for all pages. Changes are computed and serialized once. With no page open only
 * the usage is sampled, every two minutes.
 */
export class PageFeed {
  readonly #deps: PageFeedDeps;
  /** Value: whether it takes updates now. */
  readonly #subscribers = new Map<PageSubscriber, boolean>();
  readonly #rows = new WeakMap<Pod, PodRow>();
  /** The pods as they were at the last update, and their rows as JSON: a pod may change in what no row shows. */
  #sent = new Map<string, { pod: Pod; text: string }>();
  #sentComplete = false;
  #sentNode = "";
  #sentRejections = "";
  #sentWorkloads = "";
  #node: NodeState | undefined;
  #nodeUsage: NodeUsage | undefined;
  #unsubscribe: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;
  #cancelSample: (() => void) | undefined;
  #stopped = false;

  constructor(deps: PageFeedDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#scheduleSample(FIRST_SAMPLE_MS);
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe?.();
    this.#cancelFlush?.();
    this.#cancelSample?.();
    this.#subscribers.clear();
  }

  get isOpen(): boolean {
    return this.#subscribers.size > 0;
  }

  /** Sends the snapshot and then every update. @returns a function that ends it */
  async subscribe(subscriber: PageSubscriber): Promise<() => void> {
    this.#subscribers.set(subscriber, false);
    if (!this.#unsubscribe) {
      this.#unsubscribe = this.#deps.onPodsChanged(() => this.#scheduleFlush());
      this.#scheduleSample(0);
    }
    try {
      this.#node ??= await this.#deps.node();
    } catch (error) {
      this.#remove(subscriber);
      throw error;
    }
    this.resume(subscriber);
    return () => this.#remove(subscriber);
  }

  #remove(subscriber: PageSubscriber): void {
    this.#subscribers.delete(subscriber);
    if (this.isOpen) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#node = undefined;
    this.#scheduleSample(IDLE_PERIOD_MS);
  }

  /** Sends the whole state to a reader that is new or that has caught up. */
  resume(subscriber: PageSubscriber): void {
    if (!this.#subscribers.has(subscriber) || !this.#node) return;
    // The others must not miss the changes that this snapshot contains.
    this.#flush();
    const usage = this.#deps.usage.recent(this.#nodeUsage, this.#deps.clock.now().getTime());
    const snapshot = this.#snapshot(subscriber.access, this.#node, usage);
    this.#subscribers.set(subscriber, subscriber.send("snapshot", JSON.stringify(snapshot)));
  }

  /** The state for the document itself, with the newest usage only. Nothing is sampled for it. */
  async firstState(access: Access): Promise<Snapshot> {
    const node = this.#node ?? (await this.#deps.node());
    return this.#snapshot(access, node, this.#deps.usage.newest(this.#nodeUsage));
  }

  #snapshot(access: Access, node: NodeState, usage: UsageHistory): Snapshot {
    return {
      access,
      node,
      pods: this.#deps.pods().map((pod) => this.row(pod)),
      isComplete: this.#deps.isComplete(),
      rejections: [...this.#deps.rejections()],
      workloads: this.#deps.workloads(),
      usage,
      now: this.#deps.clock.now().getTime(),
    };
  }

  /** Computed once for each version of a pod. */
  row(pod: Pod): PodRow {
    const known = this.#rows.get(pod);
    if (known) return known;
    const row = this.#deps.toRow(pod);
    this.#rows.set(pod, row);
    return row;
  }

  #scheduleFlush(): void {
    this.#cancelFlush ??= this.#deps.clock.schedule(COALESCE_MS, () => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  #flush(usage?: UsagePoint): void {
    const update: Update = {};
    const { changed, removed } = this.#takeChanges();
    if (changed.length > 0) update.changedPods = changed;
    if (removed.length > 0) update.removedPods = removed;
    const isComplete = this.#deps.isComplete();
    if (isComplete !== this.#sentComplete) update.isComplete = isComplete;
    this.#sentComplete = isComplete;
    const rejections = this.#deps.rejections();
    const rejectionsText = JSON.stringify(rejections);
    if (rejectionsText !== this.#sentRejections) update.rejections = [...rejections];
    this.#sentRejections = rejectionsText;
    const workloads = this.#deps.workloads();
    const workloadsText = JSON.stringify(workloads);
    if (workloadsText !== this.#sentWorkloads) update.workloads = workloads;
    this.#sentWorkloads = workloadsText;
    const nodeText = JSON.stringify(this.#node);
    if (this.#node && nodeText !== this.#sentNode) update.node = this.#node;
    this.#sentNode = nodeText;
    if (usage) update.usage = usage;
    if (Object.keys(update).length > 0) this.#broadcast(JSON.stringify(update));
  }

  /** Rows that differ from those of the last update, and the UIDs of pods that are gone since. */
  #takeChanges(): { changed: PodRow[]; removed: string[] } {
    const changed: PodRow[] = [];
    const pods = this.#deps.pods().map((pod) => {
      const uid = pod.metadata.uid ?? "";
      const before = this.#sent.get(uid);
      if (before?.pod === pod) return [uid, before] as const;
      const row = this.row(pod);
      const text = JSON.stringify(row);
      if (before?.text !== text) changed.push(row);
      return [uid, { pod, text }] as const;
    });
    const now = new Map(pods);
    const removed = [...this.#sent.keys()].filter((uid) => !now.has(uid));
    this.#sent = now;
    return { changed, removed };
  }

  #broadcast(data: string): void {
    for (const [subscriber, isLive] of this.#subscribers) {
      if (isLive) this.#subscribers.set(subscriber, subscriber.send("update", data));
    }
  }

  #scheduleSample(ms: number): void {
    this.#cancelSample?.();
    if (this.#stopped) return;
    this.#cancelSample = this.#deps.clock.schedule(ms, () => {
      this.#cancelSample = undefined;
      void this.#sample()
        .catch(this.#deps.onError)
        .finally(() => {
          if (!this.#cancelSample) this.#scheduleSample(this.isOpen ? OPEN_PERIOD_MS : IDLE_PERIOD_MS);
        });
    });
  }

  async #sample(): Promise<void> {
    const { summary, node } = await this.#deps.measure();
    const time = this.#deps.clock.now().getTime();
    this.#deps.usage.add(summary, time);
    if (this.#deps.isComplete()) this.#deps.usage.retain(this.#deps.pods().map(({ metadata }) => metadata.uid ?? ""));
    this.#nodeUsage = node;
    if (!this.isOpen) return;
    this.#node = await this.#deps.node();
    this.#flush({ time, node, pods: toPodUsage(summary) });
  }
}

const toPodUsage = ({ pods }: Summary): UsagePoint["pods"] =>
  Object.fromEntries(
    pods.map(({ podRef, cpu, memory }) => [
      podRef.uid,
      { cpuCores: roundCores((cpu?.usageNanoCores ?? 0) / 1e9), memoryBytes: memory?.workingSetBytes ?? 0 },
    ]),
  );
