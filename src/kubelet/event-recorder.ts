import type { CoreEvent } from "../base/api/event.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import { type Rate, TokenBucket } from "../base/concurrency/token-bucket.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { PodUID } from "../base/model/pod.ts";
import type { EventRecorder, EventTarget, PodEvent } from "../base/model/pod-event.ts";
import { formatTime } from "../plan/status/compute-pod-status.ts";

interface PodEventRecorderDeps {
  clock: Clock;
  logger: Logger;
  nodeName: string;
  /** Rate of recorded events over all pods (`--event-qps`, `--event-burst`). */
  rate: Rate;
}

const MAX_EVENTS_PER_POD = 50;
/** Events of one reason and container: messages that differ each time (port numbers) must not displace all others. */
const MAX_EVENTS_PER_REASON = 10;
const MAX_PODS = 1000;
/** As long as upstream's API server keeps any event. */
const KEEP_GONE_MS = 60 * 60_000;
/** A repeated event is logged again after this time. */
const REPEAT_LOG_MS = 60_000;
const MAX_MESSAGE_CHARS = 1024;
/** Events dropped within this time are logged as one line. */
const DROP_NOTICE_MS = 1000;

/**
 * Events are stored this much later; where they only repeat, it may be later: a probe that fails every ten seconds would write all of
 * them to the card of a small machine as often.
 */
const STORE_MS = { news: 10_000, repeats: 300_000 };
/** The newest of all pods are stored. */
const MAX_STORED = 1000;

/** As on disk, oldest first: its times in milliseconds since 1970. */
interface StoredEvent {
  ref: EventTarget;
  event: PodEvent;
  name: string;
  count: number;
  firstMs: number;
  lastMs: number;
}

interface KeptEvent {
  stored: StoredEvent;
  /** Order of the last occurrence over all pods. */
  version: number;
  lastLoggedMs: number;
}

interface PodRing {
  ref: EventTarget;
  /** Oldest occurrence first. */
  events: Map<string, KeptEvent>;
  /** Monotonic; finite once its object has gone. */
  endMs: number;
}

/**
 * Keeps the latest events of each pod and workload and logs them: one line when an event is new, one per minute while it repeats, and
 * one more after the pod was removed or a container was killed in between.
 * Callers ensure that messages contain no secrets.
 */
export class PodEventRecorder implements EventRecorder {
  /** After every event that was kept. */
  readonly records = new Listeners();
  readonly #deps: PodEventRecorderDeps;
  /** Ordered by the last event, oldest first. */
  readonly #rings = new Map<PodUID, PodRing>();
  readonly #tokens: TokenBucket;
  /** Grows with every event. */
  revision = 0;
  dropped = 0;
  #droppedWhenLogged = 0;
  #cancelDropNotice: (() => void) | undefined;
  #file: Persisted<readonly StoredEvent[]> | undefined;
  #cancelStore: (() => void) | undefined;
  #storeAtMs = Number.POSITIVE_INFINITY;
  #isDropDue = false;

  constructor(deps: PodEventRecorderDeps) {
    this.#deps = deps;
    this.#tokens = new TokenBucket(deps.rate, deps.clock);
  }

  /** Takes over the events of the last hour from a file, and keeps them there from now on. */
  keepIn(file: Persisted<readonly StoredEvent[]>): void {
    const { clock } = this.#deps;
    const sinceMs = clock.now().getTime() - KEEP_GONE_MS;
    const isOurs = new Set(this.#rings.keys());
    for (const stored of file.read() ?? []) {
      const { ref, event, lastMs } = stored;
      if (lastMs < sinceMs || isOurs.has(ref.uid)) continue;
      const lastLoggedMs = Number.NEGATIVE_INFINITY;
      this.#ringOf(ref).events.set(keyOf(event), { stored, lastLoggedMs, version: ++this.revision });
      this.objectGone(ref.uid);
    }
    this.#file = file;
  }

  /** Writes what is not stored yet. */
  store(): void {
    this.#cancelStore?.();
    this.#storeAtMs = Number.POSITIVE_INFINITY;
    const newest = inOrder(this.#rings.values()).slice(-MAX_STORED);
    this.#file?.write(newest.map(({ stored }) => stored));
  }

  /** Unless it happens earlier. */
  #storeIn(delayMs: number): void {
    const { clock } = this.#deps;
    const atMs = clock.monotonicMs() + delayMs;
    if (atMs >= this.#storeAtMs) return;
    this.#storeAtMs = atMs;
    this.#cancelStore?.();
    this.#cancelStore = clock.schedule(delayMs, () => this.store());
  }

  record(target: EventTarget, event: PodEvent): void {
    if (!this.#tokens.tryTake()) return this.#drop();
    const ring = this.#ringOf(target);
    const isLong = event.message.length > MAX_MESSAGE_CHARS;
    const message = isLong ? `${event.message.slice(0, MAX_MESSAGE_CHARS - 1)}…` : event.message;
    const key = keyOf({ ...event, message });
    const lastMs = this.#deps.clock.now().getTime();
    const { stored: before, lastLoggedMs = Number.NEGATIVE_INFINITY } = ring.events.get(key) ?? {};
    const { name, firstMs } = before ?? { name: this.#nameOf(target, lastMs), firstMs: lastMs };
    const count = (before?.count ?? 0) + 1;
    const stored = { ref: ring.ref, event: { ...event, message }, name, count, firstMs, lastMs };
    const kept = { stored, lastLoggedMs, version: ++this.revision };
    ring.events.delete(key);
    ring.events.set(key, kept);
    dropSurplus(ring.events, event);
    this.#log(ring, kept);
    if (this.#file) this.#storeIn(count === 1 ? STORE_MS.news : STORE_MS.repeats);
    this.records.emit();
  }

  #drop(): void {
    this.dropped++;
    this.#cancelDropNotice ??= this.#deps.clock.schedule(DROP_NOTICE_MS, () => {
      this.#cancelDropNotice = undefined;
      const { perSecond, burst } = this.#deps.rate;
      const count = this.dropped - this.#droppedWhenLogged;
      this.#droppedWhenLogged = this.dropped;
      this.#deps.logger.warn(
        `${count} event${count === 1 ? " was" : "s were"} dropped: more than --event-qps=${perSecond} with --event-burst=${burst} allow`,
      );
    });
  }

  /** The object was removed: its events are kept for an hour. An object with the same UID takes them over. */
  objectGone(uid: string): void {
    const ring = this.#rings.get(uid);
    if (!ring) return;
    ring.endMs = this.#deps.clock.monotonicMs() + KEEP_GONE_MS;
    forgetLogTimes(ring, () => true);
    if (!this.#isDropDue) this.#dropOldRings();
  }

  /** Events whose last occurrence came after this version, in that order. */
  newerThan(version: number): CoreEvent[] {
    const newer = inOrder(this.#rings.values(), (kept) => kept.version > version);
    return newer.map((kept) => this.#toCoreEvent(kept));
  }

  /** In the order of their last occurrence; of one pod, or of all. */
  list(uid?: PodUID): CoreEvent[] {
    const rings = uid === undefined ? this.#rings.values() : [this.#rings.get(uid)].filter((ring) => !!ring);
    return inOrder(rings).map((kept) => this.#toCoreEvent(kept));
  }

  #ringOf(target: EventTarget): PodRing {
    const ring = this.#rings.get(target.uid) ?? { ref: { ...target }, events: new Map(), endMs: 0 };
    ring.endMs = Number.POSITIVE_INFINITY;
    this.#rings.delete(target.uid);
    this.#rings.set(target.uid, ring);
    const [oldest] = this.#rings.keys();
    if (this.#rings.size > MAX_PODS) this.#rings.delete(oldest!);
    return ring;
  }

  #nameOf({ name }: EventTarget, firstMs: number): string {
    // Upstream's names: the pod and nanoseconds in hex. JavaScript has no nanoseconds; a counter makes names unique.
    const timestamp = BigInt(firstMs) * 1_000_000n + BigInt(this.revision % 1_000_000);
    return `${name}.${timestamp.toString(16)}`;
  }

  #log(ring: PodRing, kept: KeptEvent): void {
    const { ref, event, count } = kept.stored;
    const now = this.#deps.clock.monotonicMs();
    if (event.isLogged || now - kept.lastLoggedMs < REPEAT_LOG_MS) return;
    kept.lastLoggedMs = now;
    const { type, reason, message, fieldPath } = event;
    const container = /\{(.*)\}$/.exec(fieldPath ?? "")?.[1];
    const fields = {
      [logKey(ref)]: ref.kind === "Node" ? ref.name : `${ref.namespace}/${ref.name}`,
      ...(container !== undefined && { container }),
      ...(count > 1 && { count }),
    };
    this.#deps.logger[type === "Warning" ? "warn" : "info"](`${reason}: ${message.trimEnd()}`, fields);
    // After a Killing event the Started event of the successor is logged as well.
    if (reason === "Killing") {
      forgetLogTimes(
        ring,
        (other) => other !== kept && other.stored.event.type === "Normal" && other.stored.event.fieldPath === fieldPath,
      );
    }
  }

  /** A timer repeats it when the next one ends. */
  #dropOldRings(): void {
    const { clock } = this.#deps;
    const now = clock.monotonicMs();
    for (const [uid, { endMs }] of this.#rings) if (endMs <= now) this.#rings.delete(uid);
    const nextMs = Math.min(...[...this.#rings.values()].map(({ endMs }) => endMs));
    this.#isDropDue = Number.isFinite(nextMs);
    if (this.#isDropDue) clock.schedule(nextMs - now, () => this.#dropOldRings());
  }

  #toCoreEvent({ stored, version }: KeptEvent): CoreEvent {
    const { ref, name, count, firstMs, lastMs } = stored;
    const { type, reason, message, fieldPath } = stored.event;
    const { nodeName } = this.#deps;
    const firstTimestamp = formatTime(new Date(firstMs));
    const component = componentOf(ref, reason);
    return {
      apiVersion: "v1",
      kind: "Event",
      metadata: {
        name,
        namespace: ref.namespace,
        uid: `${ref.uid}.${name.slice(name.lastIndexOf(".") + 1)}`,
        resourceVersion: String(version),
        creationTimestamp: firstTimestamp,
      },
      involvedObject: {
        kind: ref.kind ?? "Pod",
        namespace: ref.namespace,
        name: ref.name,
        uid: ref.uid,
        apiVersion: ref.apiVersion ?? "v1",
        ...(fieldPath !== undefined && { fieldPath }),
      },
      reason,
      message,
      source: { component, host: nodeName },
      firstTimestamp,
      lastTimestamp: formatTime(new Date(lastMs)),
      count,
      type,
      eventTime: null,
      reportingComponent: component,
      reportingInstance: nodeName,
    };
  }
}

/** The last occurrence of each decides. */
const inOrder = (rings: Iterable<PodRing>, isWanted: (kept: KeptEvent) => boolean = () => true): KeptEvent[] =>
  [...rings].flatMap(({ events }) => [...events.values()].filter(isWanted)).sort((a, b) => a.version - b.version);

/** `pod`, `replicaSet`. */
const logKey = ({ kind = "Pod" }: EventTarget): string => kind.charAt(0).toLowerCase() + kind.slice(1);

const OF_SCHEDULER = ["Scheduled", "FailedScheduling"];

/** `kubelet`, `default-scheduler`, `replicaset-controller`. Source: the names of kube-controller-manager's controllers. */
function componentOf({ kind }: EventTarget, reason: string): string {
  if (kind !== undefined && kind !== "Node") return `${kind.toLowerCase()}-controller`;
  return OF_SCHEDULER.includes(reason) ? "default-scheduler" : "kubelet";
}

/** The next occurrence of these events is logged, however recently it was logged before. */
function forgetLogTimes(ring: PodRing, matches: (kept: KeptEvent) => boolean): void {
  for (const kept of ring.events.values()) if (matches(kept)) kept.lastLoggedMs = Number.NEGATIVE_INFINITY;
}

/** Error messages of the engine contain random file names: these do not make another event. */
const withoutRandomness = (message: string) => message.replace(/[0-9a-f]{64}|\d{8,}/g, "#");

const keyOf = ({ type, reason, fieldPath = "", message }: PodEvent) =>
  [type, reason, fieldPath, withoutRandomness(message)].join("\0");

/** Makes room after `added`: first among those like it, then among all, oldest first. */
function dropSurplus(events: Map<string, KeptEvent>, added: PodEvent): void {
  const isLike = ({ stored: { event } }: KeptEvent) =>
    event.reason === added.reason && event.fieldPath === added.fieldPath;
  const like = [...events].filter(([, kept]) => isLike(kept));
  for (const [key] of like.slice(0, -MAX_EVENTS_PER_REASON)) events.delete(key);
  for (const key of events.keys()) {
    if (events.size <= MAX_EVENTS_PER_POD) return;
    events.delete(key);
  }
}
