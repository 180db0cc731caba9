import type { Pod } from "../../base/api/pod.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { PodRow } from "../../page/pod-row.ts";
import type {
  Access,
  History,
  HistoryRange,
  NodeState,
  NodeUsage,
  Rejection,
  ServiceRow,
  Snapshot,
  Update,
  UsageHistory,
  UsagePoint,
  WorkloadRow,
} from "../../page/wire.ts";
import type { WebSocketConnection } from "../websocket.ts";
import { roundCores, type UsageRecorder } from "./usage-history.ts";

/** The kubelet as the overview shows it. */
export interface PageSource {
  /** false while a source of pods has not been read. */
  readonly isComplete: boolean;
  /** An unchanged pod is the same object as before. */
  pods(): readonly Pod[];
  /** Calls back after every change of a pod. @returns a function that ends it */
  onPodsChanged(callback: () => void): () => void;
  toRow(pod: Pod): PodRow;
  node(): Promise<NodeState>;
  rejections(): readonly Rejection[];
  workloads(): WorkloadRow[];
  services(): ServiceRow[];
  measure(): Promise<{ summary: Summary; node: NodeUsage }>;
}

export interface PageSubscriber {
  access: Access;
  /** Takes an event of the stream. Updates that a slow reader does not take are lost: it has to ask for a snapshot. */
  send: (event: "snapshot" | "update", data: string) => void;
}

/** The pace of an open page. */
export const OPEN_PERIOD_MS = 10_000;
/** The pace when no page is open: enough for the chart of a day. */
export const IDLE_PERIOD_MS = 120_000;
/** Time of the first sample: what it needs alone is reclaimed with the memory of the start, after a minute. */
export const FIRST_SAMPLE_MS = 45_000;
const COALESCE_MS = 100;

/** State of the overview, as one stream for all pages. With no page open only the usage is sampled, every two minutes. */
export class PageFeed {
  readonly #clock: Clock;
  readonly #logger: Pick<Logger, "debug">;
  readonly #usage: UsageRecorder;
  readonly #source: PageSource;
  readonly #subscribers = new Set<PageSubscriber>();
  readonly #rows = new WeakMap<Pod, PodRow>();
  /** As JSON: a pod may change in what no row shows. */
  readonly #sentParts = new Map<string, string>();
  #node: NodeState | undefined;
  #nodeUsage: NodeUsage | undefined;
  #unsubscribe: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;
  #cancelSample: (() => void) | undefined;
  #stopped = false;

  constructor(clock: Clock, logger: Pick<Logger, "debug">, usage: UsageRecorder, source: PageSource) {
    this.#clock = clock;
    this.#logger = logger;
    this.#usage = usage;
    this.#source = source;
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
    this.#subscribers.add(subscriber);
    if (!this.#unsubscribe) {
      this.#unsubscribe = this.#source.onPodsChanged(() => this.#scheduleFlush());
      this.#scheduleSample(0);
    }
    try {
      this.#node ??= await this.#source.node();
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
    const usage = this.#usage.recent(this.#nodeUsage, this.#clock.now().getTime());
    subscriber.send("snapshot", JSON.stringify(this.#snapshot(subscriber.access, this.#node, usage)));
  }

  /** The state for the document itself, with the newest usage only. Nothing is sampled for it. */
  async firstState(access: Access): Promise<Snapshot> {
    const node = this.#node ?? (await this.#source.node());
    return this.#snapshot(access, node, this.#usage.newest(this.#nodeUsage));
  }

  #snapshot(access: Access, node: NodeState, usage: UsageHistory): Snapshot {
    return {
      access,
      node,
      ...this.#parts(),
      usage,
      now: this.#clock.now().getTime(),
    };
  }

  /** Parts of the state that are sent as a whole when they change. */
  #parts(): Pick<Snapshot, "pods" | "isComplete" | "rejections" | "workloads" | "services"> {
    const source = this.#source;
    return {
      pods: source.pods().map((pod) => this.row(pod)),
      isComplete: source.isComplete,
      rejections: [...source.rejections()],
      workloads: source.workloads(),
      services: source.services(),
    };
  }

  history(uid: string, range: HistoryRange): History {
    return this.#usage.history(uid, range, this.#clock.now().getTime());
  }

  /** Computed once for each version of a ready pod. One that is not ready is explained by events, too. */
  row(pod: Pod): PodRow {
    const known = this.#rows.get(pod);
    if (known?.isReady) return known;
    const row = this.#source.toRow(pod);
    this.#rows.set(pod, row);
    return row;
  }

  #scheduleFlush(): void {
    this.#cancelFlush ??= this.#clock.schedule(COALESCE_MS, () => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  #flush(usage?: UsagePoint): void {
    const update: Update = {};
    const parts = { ...this.#parts(), ...(this.#node && { node: this.#node }) };
    for (const [name, part] of Object.entries(parts)) {
      const text = JSON.stringify(part);
      if (text !== this.#sentParts.get(name)) Object.assign(update, { [name]: part });
      this.#sentParts.set(name, text);
    }
    if (usage) update.usage = usage;
    if (Object.keys(update).length === 0) return;
    const data = JSON.stringify(update);
    for (const subscriber of this.#subscribers) subscriber.send("update", data);
  }

  #scheduleSample(ms: number): void {
    this.#cancelSample?.();
    if (this.#stopped) return;
    this.#cancelSample = this.#clock.schedule(ms, () => {
      this.#cancelSample = undefined;
      void this.#sample()
        .catch((error: unknown) =>
          this.#logger.debug("The usage of pods could not be sampled", { error: String(error) }),
        )
        .finally(() => {
          if (!this.#cancelSample) this.#scheduleSample(this.isOpen ? OPEN_PERIOD_MS : IDLE_PERIOD_MS);
        });
    });
  }

  async #sample(): Promise<void> {
    const { summary, node } = await this.#source.measure();
    const time = this.#clock.now().getTime();
    this.#usage.add(summary, time);
    this.#nodeUsage = node;
    if (!this.isOpen) return;
    this.#node = await this.#source.node();
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

/** Below the silence after which a page reconnects. */
const PING_MS = 10_000;

/** Updates of one open page over its WebSocket. A reader that does not keep up gets the whole state again when it has. */
export class PageStream implements PageSubscriber {
  readonly access: Access;
  readonly #clock: Clock;
  readonly #feed: PageFeed;
  readonly #isAllowed: () => boolean;
  readonly #build: string;
  #next: string | undefined;
  #wake: (() => void) | undefined;
  /** It has missed an update, or has no snapshot yet. */
  #isBehind = true;

  /**
   * @param isAllowed asked before each message; false ends the stream: the session has expired
   * @param build name of the page's script: an open page learns from it that it is another version's
   */
  constructor(clock: Clock, feed: PageFeed, access: Access, isAllowed: () => boolean, build: string) {
    this.#clock = clock;
    this.#feed = feed;
    this.access = access;
    this.#isAllowed = isAllowed;
    this.#build = build;
  }

  send(event: "snapshot" | "update", data: string): void {
    this.#isBehind = event === "update" && (this.#isBehind || this.#next !== undefined);
    if (this.#isBehind) return;
    this.#next = `${event} ${data}`;
    this.#wake?.();
  }

  /** Sends `event data` messages until the client is gone or the session has expired. */
  async run(socket: Pick<WebSocketConnection, "send" | "close" | "gone">): Promise<void> {
    const send = (message: string) => socket.send(Buffer.from(message), "text");
    socket.gone.addEventListener("abort", () => this.#wake?.(), { once: true });
    let unsubscribe = () => {};
    try {
      // At once: until then a page does not know whether the server answers.
      await send(`build ${this.#build}`);
      unsubscribe = await this.#feed.subscribe(this);
      while (!socket.gone.aborted && this.#isAllowed()) {
        const message = this.#next;
        this.#next = undefined;
        if (message !== undefined) await send(message);
        else if (this.#isBehind) {
          this.#isBehind = false;
          this.#feed.resume(this);
        } else if (!(await this.#woken())) await send("ping ");
      }
      if (!socket.gone.aborted) await send("expired ");
    } finally {
      unsubscribe();
      socket.close();
    }
  }

  /** Resolves with false when nothing happened for the time of a ping. */
  #woken(): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(PING_MS, () => resolve(false));
      this.#wake = () => {
        this.#wake = undefined;
        cancel();
        resolve(true);
      };
    });
  }
}
