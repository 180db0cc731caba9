import { BackOff } from "../../base/model/back-off.ts";
import type { Clock } from "../../base/model/clock.ts";
import { ApiStatusError, isAway } from "./api-error.ts";
import type { ClusterClient } from "./cluster-client.ts";

/** Metadata that every object of the API has. */
export interface ObjectOfApi {
  metadata: { name: string; namespace?: string; uid?: string; resourceVersion?: string };
}

interface ReflectorDeps<T extends ObjectOfApi> {
  client: Pick<ClusterClient, "request" | "watch" | "reachability">;
  clock: Clock;
  /** e.g. `/api/v1/pods`. */
  path: string;
  /** e.g. a `fieldSelector`. */
  query?: Readonly<Record<string, string>>;
  /** The objects changed. One that did not is the same as before. */
  onChange: (reflector: Reflector<T>) => void;
  /** A list or watch failed, or works again (undefined). */
  onHealth?: (error: Error | undefined) => void;
  /** Longest delay while the API server cannot be reached. Default: as after other failures. Unit: milliseconds. */
  longestUnreachableMs?: number;
  /** In [0, 1). */
  random?: () => number;
}

const RETRY = { first: 800, longest: 30_000 };
/** The API server ends a watch after a time between this and twice this. Source: client-go's reflector. */
const MIN_WATCH_SECONDS = 300;
/** Bookmarks come about every minute, once there are any: a watch that is silent for longer is a connection that is dead. */
const SILENCE_MS = 150_000;
/** A watch that is open for this long shows that the server is well; one that breaks off at once does not. */
const HEALTHY_AFTER_MS = 2_000;
/** Time that a server may take to end a watch after `timeoutSeconds`. */
const END_WITHIN_MS = 30_000;
const LIST_TIMEOUT_MS = 60_000;

interface WatchEvent<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: T & { code?: number; message?: string; reason?: string };
}

/**
 * The objects of one list of the API as they are now: a list, then a watch from its resourceVersion, again and again. A
 * resourceVersion that is too old (410) leads to a new list; failures are followed by growing delays with jitter. While
 * the API server is unreachable the objects stay as they were last. They are kept without their managedFields.
 */
export class Reflector<T extends ObjectOfApi> {
  readonly #deps: ReflectorDeps<T>;
  readonly #objects = new Map<string, T>();
  readonly #stop = new AbortController();
  readonly #backOff: BackOff;
  #resourceVersion: string | undefined;
  /** A list has succeeded since the start. */
  isListed = false;
  #mustBeFresh = false;
  #running: Promise<void> | undefined;
  #isFailing = false;
  /** At the last attempt. */
  #wasAway = false;
  /** The server sends bookmarks in the present watch. */
  #hasBookmarks = false;

  constructor(deps: ReflectorDeps<T>) {
    this.#deps = deps;
    this.#backOff = new BackOff(RETRY, deps.random);
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#objects.get(keyOf({ metadata: { name, ...(namespace !== undefined && { namespace }) } }));
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("stopped"));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { client, onHealth, longestUnreachableMs = RETRY.longest } = this.#deps;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (this.#resourceVersion === undefined) await this.#listAll();
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        this.#noteError(error);
        this.#isFailing = true;
        // A restarted server first refuses requests, such as with 410 for revisions outside its cache: those are not for the
        // time that it was away.
        if (this.#wasAway && !isAway(error)) this.#backOff.reset();
        this.#wasAway = isAway(error);
        onHealth?.(error as Error);
        const backOffMs = this.#backOff.next(isAway(error) ? longestUnreachableMs : RETRY.longest);
        const delayMs = Math.max(backOffMs, askedDelayMs(error));
        const isBack = await client.reachability.pause(delayMs, signal).catch(() => false);
        if (isBack) this.#backOff.reset();
      }
    }
  }

  /** Decides whether the next attempt begins with a list. */
  #noteError(error: unknown): void {
    if (!(error instanceof ApiStatusError)) return;
    const isExpired = error.code === 410 || error.reason === "Expired" || error.reason === "Gone";
    this.#mustBeFresh ||= isExpired;
    if (isExpired || (error.code !== 429 && !isAway(error))) this.#resourceVersion = undefined;
  }

  async #listAll(): Promise<void> {
    const { client, path, query, onChange } = this.#deps;
    const { signal } = this.#stop;
    // "0" is answered from the cache of the API server; after a 410 it may be as old as what was refused.
    const version = this.#mustBeFresh || this.isListed ? {} : { resourceVersion: "0" };
    const page = await client.request<{ metadata: { resourceVersion?: string }; items: T[] | null }>({
      path,
      query: { ...query, ...version },
      timeoutMs: LIST_TIMEOUT_MS,
      signal,
    });
    this.#objects.clear();
    for (const object of page.items ?? []) this.#objects.set(keyOf(object), dropManagedFields(object));
    this.#resourceVersion = page.metadata.resourceVersion;
    this.isListed = true;
    this.#mustBeFresh = false;
    // A list alone does not end the back-off: lists may work where watches fail.
    onChange(this);
  }

  async #watch(): Promise<void> {
    const { client, path, query, random = Math.random, clock } = this.#deps;
    const { signal } = this.#stop;
    const seconds = Math.round(MIN_WATCH_SECONDS * (1 + random()));
    const startedAtMs = clock.monotonicMs();
    this.#hasBookmarks = false;
    const silenceMs = () => (this.#hasBookmarks ? SILENCE_MS : seconds * 1000 + END_WITHIN_MS);
    let cancelHealthy: (() => void) | undefined;
    const onOpen = () => {
      cancelHealthy = clock.schedule(HEALTHY_AFTER_MS, () => this.#noteHealthy());
    };
    const isReset = await client
      .watch(
        path,
        {
          ...query,
          watch: "true",
          allowWatchBookmarks: "true",
          resourceVersion: this.#resourceVersion ?? "",
          timeoutSeconds: String(seconds),
        },
        (event) => this.#apply(event as WatchEvent<T>),
        { signal, silenceMs, onOpen },
      )
      .finally(() => cancelHealthy?.());
    // A server that ends every watch at once, also after an event, must not be asked without a pause.
    if (!isReset && clock.monotonicMs() - startedAtMs < 1000) throw new Error(`the watch of ${path} ended at once`);
  }

  #apply({ type, object }: WatchEvent<T>): void {
    if (type === "ERROR") {
      const { code = 500, reason = "", message = "" } = object;
      throw new ApiStatusError(code, reason, `watch of ${this.#deps.path}: ${message}`);
    }
    this.#noteHealthy();
    this.#resourceVersion = object.metadata.resourceVersion ?? this.#resourceVersion;
    this.#hasBookmarks ||= type === "BOOKMARK";
    if (type === "BOOKMARK") return;
    if (type === "DELETED") this.#objects.delete(keyOf(object));
    else this.#objects.set(keyOf(object), dropManagedFields(object));
    this.#deps.onChange(this);
  }

  #noteHealthy(): void {
    this.#backOff.reset();
    if (this.#isFailing) this.#deps.onHealth?.(undefined);
    this.#isFailing = false;
  }
}

/** Longest time a server can ask a client to wait. */
const MAX_ASKED_MS = 60_000;

const askedDelayMs = (error: unknown) =>
  error instanceof ApiStatusError ? Math.min(error.retryAfterMs ?? 0, MAX_ASKED_MS) : 0;

/** managedFields are a third of a pod and of no use to a node. */
function dropManagedFields<T extends ObjectOfApi>(object: T): T {
  const { managedFields: _fields, ...metadata } = object.metadata as T["metadata"] & { managedFields?: unknown };
  object.metadata = metadata as T["metadata"];
  return object;
}

const keyOf = ({ metadata: { namespace = "", name } }: ObjectOfApi) => `${namespace}/${name}`;
