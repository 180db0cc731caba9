import type { CoreEvent } from "../../base/api/event.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { ApiStatusError, isConflict, isNotFound } from "../client/api-error.ts";
import { type ClusterClient, STRATEGIC_MERGE_PATCH } from "../client/cluster-client.ts";
import { WorkQueue } from "../client/work-queue.ts";

/** Events of pods as the kubelet keeps them. */
export interface RecordedEvents {
  /** Events that occurred after this version, oldest first; `metadata.resourceVersion` is the version of each. */
  newerThan(version: number): readonly CoreEvent[];
  onRecord(listener: () => void): void;
}

interface EventSinkDeps {
  /** With a rate of its own, so that events never delay statuses. */
  client: Pick<ClusterClient, "request" | "reachability">;
  clock: Clock;
  logger: Logger;
  nodeName: string;
  recorded: RecordedEvents;
}

/** Occurrences within this time are sent together. */
const GATHER_MS = 500;
const RETRY = { first: 1_000, longest: 60_000 };
/** Events of the node that wait for the API server. */
const MAX_NODE_EVENTS = 100;
/** Events whose names are remembered, so that another occurrence counts up rather than appears twice. */
const MAX_KNOWN = 5_000;

interface NodeEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  count: number;
  first: Date;
  last: Date;
  name: string;
  isSent: boolean;
}

/**
 * Sends the events of pods and of the node to the API server. A repeated event increments the count of the existing one.
 * While the API server is unreachable nothing is queued: afterwards the events that the kubelet still keeps are sent.
 */
export class EventSink {
  readonly #deps: EventSinkDeps;
  readonly #queue: WorkQueue;
  readonly #stop = new AbortController();
  /** Names of events that the API server has. */
  readonly #known = new Set<string>();
  readonly #nodeEvents = new Map<string, NodeEvent>();
  #version = 0;
  #count = 0;
  #cancel: (() => void) | undefined;

  constructor(deps: EventSinkDeps) {
    this.#deps = deps;
    const { reachability } = deps.client;
    this.#queue = new WorkQueue({ reachability, retry: RETRY, work: () => this.#sendAll() });
    deps.recorded.onRecord(() => this.#plan());
  }

  stop(): void {
    this.#stop.abort(new Error("stopped"));
    this.#cancel?.();
    this.#queue.stop();
  }

  /** Records an event about the node. */
  recordNode(type: "Normal" | "Warning", reason: string, message: string): void {
    const { clock, nodeName, logger } = this.#deps;
    logger[type === "Warning" ? "warn" : "info"](`${reason}: ${message}`, { node: nodeName });
    const now = clock.now();
    const key = `${type} ${reason} ${message}`;
    const known = this.#nodeEvents.get(key);
    if (known) Object.assign(known, { count: known.count + 1, last: now, isSent: false });
    else {
      const timestampNs = BigInt(now.getTime()) * 1_000_000n + BigInt(this.#count++ % 1_000_000);
      const name = `${nodeName}.${timestampNs.toString(16)}`;
      this.#nodeEvents.set(key, { type, reason, message, count: 1, first: now, last: now, name, isSent: false });
      const [oldest] = this.#nodeEvents.keys();
      if (this.#nodeEvents.size > MAX_NODE_EVENTS && oldest !== undefined) this.#nodeEvents.delete(oldest);
    }
    this.#plan();
  }

  #plan(): void {
    if (this.#stop.signal.aborted) return;
    this.#cancel ??= this.#deps.clock.schedule(GATHER_MS, () => {
      this.#cancel = undefined;
      this.#queue.add("events");
    });
  }

  async #sendAll(): Promise<void> {
    try {
      for (const event of this.#deps.recorded.newerThan(this.#version)) {
        await this.#send(event);
        this.#version = Number(event.metadata.resourceVersion);
      }
      for (const event of this.#nodeEvents.values()) {
        if (event.isSent) continue;
        event.isSent = true;
        await this.#send(toNodeEvent(event, this.#deps.nodeName)).catch((error: unknown) => {
          event.isSent = false;
          throw error;
        });
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#deps.logger.debug(`Events cannot be sent to the API server: ${(error as Error).message}`);
      throw error;
    }
  }

  /** @throws when another attempt makes sense; an event that is refused permanently is dropped */
  async #send(event: object & { metadata: { name: string; namespace: string }; count: number }): Promise<void> {
    const { name, namespace } = event.metadata;
    const path = `/api/v1/namespaces/${namespace}/events`;
    try {
      if (this.#known.has(name) && (await this.#countUp(`${path}/${name}`, event))) return;
      await this.#create(path, event);
    } catch (error) {
      if (!(error instanceof ApiStatusError) || error.code === 429 || error.code >= 500) throw error;
      this.#deps.logger.debug(`An event is refused: ${error.message}`);
    }
  }

  async #create(path: string, event: object & { metadata: { name: string; namespace: string } }): Promise<void> {
    const { name, namespace } = event.metadata;
    const body = { ...event, metadata: { name, namespace } };
    try {
      await this.#deps.client.request({ method: "POST", path, body, signal: this.#stop.signal });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
    this.#known.add(name);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }

  /** @returns false when the event is not there any more */
  async #countUp(path: string, event: object): Promise<boolean> {
    const { count, lastTimestamp, message } = event as CoreEvent;
    const body = { count, lastTimestamp, message };
    try {
      const contentType = STRATEGIC_MERGE_PATCH;
      await this.#deps.client.request({ method: "PATCH", path, body, contentType, signal: this.#stop.signal });
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  }
}

/** Source: the kubelet's nodeRef: the UID of a node in events is its name. */
function toNodeEvent({ type, reason, message, count, first, last, name }: NodeEvent, nodeName: string) {
  const toTime = (time: Date) => `${time.toISOString().slice(0, 19)}Z`;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name, namespace: "default" },
    involvedObject: { kind: "Node", name: nodeName, uid: nodeName },
    type,
    reason,
    message,
    source: { component: "kubelet", host: nodeName },
    firstTimestamp: toTime(first),
    lastTimestamp: toTime(last),
    count,
  };
}
