import type { CoreEvent } from "../../base/api/event.ts";
import type { Listeners } from "../../base/concurrency/listeners.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { EventRecorder } from "../../base/model/pod-event.ts";
import { ApiStatusError, isConflict, isNotFound } from "../client/api-error.ts";
import { type ClusterClient, STRATEGIC_MERGE_PATCH } from "../client/cluster-client.ts";
import { WorkQueue } from "../client/work-queue.ts";

/** Events of pods and of the node as the kubelet keeps them. */
export interface RecordedEvents extends EventRecorder {
  /** Events that occurred after this version, oldest first; `metadata.resourceVersion` is the version of each. */
  newerThan(version: number): readonly CoreEvent[];
  /** After every event that was kept. */
  readonly records: Pick<Listeners, "add">;
}

interface EventSinkDeps {
  /** With a rate of its own, so that events never delay statuses. */
  client: Pick<ClusterClient, "request" | "reachability">;
  clock: Clock;
  logger: Logger;
  recorded: RecordedEvents;
}

/** Occurrences within this time are sent together. */
const GATHER_MS = 500;
const RETRY = { first: 1_000, longest: 60_000 };
/** Events whose names are remembered, so that another occurrence counts up rather than appears twice. */
const MAX_KNOWN = 5_000;

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
  #version = 0;
  #cancel: (() => void) | undefined;

  constructor(deps: EventSinkDeps) {
    this.#deps = deps;
    const { reachability } = deps.client;
    this.#queue = new WorkQueue({ reachability, retry: RETRY, work: () => this.#sendAll() });
    deps.recorded.records.add(() => this.#plan());
  }

  stop(): void {
    this.#stop.abort(new Error("stopped"));
    this.#cancel?.();
    this.#queue.stop();
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
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#deps.logger.debug(`Events cannot be sent to the API server: ${(error as Error).message}`);
      throw error;
    }
  }

  /** @throws when another attempt makes sense; an event that is refused permanently is dropped */
  async #send(event: CoreEvent): Promise<void> {
    const { name, namespace } = event.metadata;
    const path = `/api/v1/namespaces/${namespace}/events`;
    try {
      if (!this.#known.has(name) && (await this.#create(path, event))) return;
      if (!(await this.#countUp(`${path}/${name}`, event))) await this.#create(path, event);
    } catch (error) {
      if (!(error instanceof ApiStatusError) || error.code === 429 || error.code >= 500) throw error;
      this.#deps.logger.debug(`An event is refused: ${error.message}`);
    }
  }

  /** @returns false when the event is there, as after a restart of the kubelet */
  async #create(path: string, event: CoreEvent): Promise<boolean> {
    const { name, namespace } = event.metadata;
    const { kind, name: node, uid } = event.involvedObject;
    // kubectl finds the events of a node, which is in no namespace, only without one.
    const involvedObject = kind === "Node" ? { kind, name: node, uid } : event.involvedObject;
    const body = { ...event, involvedObject, metadata: { name, namespace } };
    const request = this.#deps.client.request({ method: "POST", path, body, signal: this.#stop.signal });
    const isNew = await request.then(
      () => true,
      (error: unknown) => {
        if (isConflict(error)) return false;
        throw error;
      },
    );
    this.#known.add(name);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    return isNew;
  }

  /** @returns false when the event is not there any more */
  async #countUp(path: string, { count, lastTimestamp, message }: CoreEvent): Promise<boolean> {
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
