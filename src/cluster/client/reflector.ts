import * as v from "valibot";
import { BackOff } from "../../base/model/back-off.ts";
import type { Clock } from "../../base/model/clock.ts";
import { ApiStatusError, isAway } from "./api-error.ts";
import type { ClusterClient } from "./cluster-client.ts";

/** Names are parts of paths, of directories and of requests. Source: `IsDNS1123Subdomain`; UIDs are opaque. */
const dnsName = v.pipe(v.string(), v.regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/));
const text = v.exactOptional(v.string());
export const texts = v.exactOptional(v.record(v.string(), v.string()));
const dropped = v.pipe(
  v.unknown(),
  v.transform(() => undefined),
);

/** Metadata that every object of the API has. managedFields, a third of a pod, are of no use to a node. */
export const MetadataSchema = v.looseObject({
  name: dnsName,
  namespace: v.exactOptional(dnsName),
  uid: v.exactOptional(v.pipe(v.string(), v.regex(/^\w[\w.-]{0,252}$/))),
  resourceVersion: text,
  labels: texts,
  annotations: texts,
  deletionTimestamp: text,
  deletionGracePeriodSeconds: v.exactOptional(v.number()),
  managedFields: v.exactOptional(dropped),
});
export type ObjectOfApi = { metadata: v.InferOutput<typeof MetadataSchema> };

const part = v.looseObject({});
/** A pod or node, whose parts are read where they are used. */
export const ObjectSchema = v.looseObject({ metadata: MetadataSchema, spec: part, status: v.exactOptional(part) });

export type ListClient = Pick<ClusterClient, "list" | "read" | "watch" | "resetWatches" | "reachability">;

interface ReflectorDeps<T extends ObjectOfApi> {
  client: ListClient;
  /** Checks each object: one that it refuses is left out, with a warning. */
  schema: v.GenericSchema<unknown, T>;
  /** Tells objects of which only so many are kept from each other. Default: all are kept. @param isKnown it was kept before */
  kindOf?: (object: T, isKnown: boolean) => keyof typeof MOST;
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

/** Objects that are kept, where they have kinds: a controller may assign pods to a node without end. */
const MOST = { new: 110, begun: 2_000, ended: 500 };
/** While new objects wait, there is a list after a watch of this time. */
const WAITING_WATCH_SECONDS = 20;
/** Objects of one list or watch that cannot be read: with more it is none. */
const MAX_UNREADABLE = 100;

const word = v.optional(v.string(), "");
const eventOf = <T>(schema: v.GenericSchema<unknown, T>) =>
  v.variant("type", [
    v.object({ type: v.picklist(["ADDED", "MODIFIED", "DELETED"]), object: schema }),
    v.object({ type: v.literal("BOOKMARK"), object: v.object({ metadata: v.object({ resourceVersion: text }) }) }),
    v.object({
      type: v.literal("ERROR"),
      object: v.object({ code: v.optional(v.number(), 500), reason: word, message: word }),
    }),
  ]);

/**
 * The objects of one list of the API as they are now: a list, then a watch from its resourceVersion, again and again. A
 * resourceVersion that is too old (410) leads to a new list; failures are followed by growing delays with jitter. While
 * the API server is unreachable the objects stay as they were last. They are kept without their managedFields.
 */
export class Reflector<T extends ObjectOfApi> {
  readonly #deps: ReflectorDeps<T>;
  readonly #event;
  #objects = new Map<string, T>();
  /** New objects beyond those that are kept. They come with a later list. */
  waiting = 0;
  #unreadable = 0;
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
    this.#event = eventOf(deps.schema);
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
    const { client, path, query, schema, kindOf, onChange } = this.#deps;
    const { signal } = this.#stop;
    // "0" is answered from the cache of the API server; after a 410 it may be as old as what was refused.
    const version = this.#mustBeFresh || this.isListed ? {} : { resourceVersion: "0" };
    const objects = new Map<string, T>();
    const counts = { new: 0, begun: 0, ended: 0 };
    this.#unreadable = 0;
    const request = { path, query: { ...query, ...version }, timeoutMs: LIST_TIMEOUT_MS, signal };
    this.#resourceVersion = await client.list(request, (item) => {
      const object = this.#read(schema, item);
      const known = object && this.#objects.get(keyOf(object));
      const kind = object && kindOf?.(object, known !== undefined && known.metadata.uid === object.metadata.uid);
      if (object && (kind === undefined || ++counts[kind] <= MOST[kind])) objects.set(keyOf(object), object);
    });
    this.waiting = Math.max(0, counts.new - MOST.new);
    this.#objects = objects;
    this.isListed = true;
    this.#mustBeFresh = false;
    // A list alone does not end the back-off: lists may work where watches fail.
    onChange(this);
  }

  async #watch(): Promise<void> {
    const { client, path, query, random = Math.random, clock } = this.#deps;
    const { signal } = this.#stop;
    this.#unreadable = 0;
    const seconds = this.waiting > 0 ? WAITING_WATCH_SECONDS : Math.round(MIN_WATCH_SECONDS * (1 + random()));
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
        (event) => this.#apply(this.#read(this.#event, event)),
        { signal, silenceMs, onOpen },
      )
      .finally(() => cancelHealthy?.());
    if (this.waiting > 0) this.#resourceVersion = undefined;
    if (isReset && this.waiting > 0) await clock.sleep(RETRY.first, signal);
    // A server that ends every watch at once, also after an event, must not be asked without a pause.
    if (!isReset && clock.monotonicMs() - startedAtMs < 1000) throw new Error(`the watch of ${path} ended at once`);
  }

  /** @throws Error after too many that cannot be read */
  #read<V>(schema: v.GenericSchema<unknown, V>, value: unknown): V | undefined {
    const { client, path } = this.#deps;
    const found = client.read(schema, value, path);
    if (found === undefined && ++this.#unreadable > MAX_UNREADABLE)
      throw new Error(`more than ${MAX_UNREADABLE} objects cannot be read`);
    return found;
  }

  #apply(event: v.InferOutput<ReturnType<typeof eventOf<T>>> | undefined): void {
    if (!event) return;
    if (event.type === "ERROR") {
      const { code, reason, message } = event.object;
      throw new ApiStatusError(code, reason, `watch of ${this.#deps.path}: ${message}`);
    }
    this.#noteHealthy();
    this.#resourceVersion = event.object.metadata.resourceVersion ?? this.#resourceVersion;
    this.#hasBookmarks ||= event.type === "BOOKMARK";
    if (event.type === "BOOKMARK") return;
    const { object } = event;
    const key = keyOf(object);
    if (event.type === "DELETED") this.#objects.delete(key);
    else if (this.#objects.has(key) || this.#hasRoomFor(object)) this.#objects.set(key, object);
    else if (this.waiting++ === 0) return this.#deps.client.resetWatches();
    this.#deps.onChange(this);
  }

  #hasRoomFor(object: T): boolean {
    const isNew = (one: T) => this.#deps.kindOf?.(one, false) === "new";
    return !isNew(object) || this.list().filter(isNew).length < MOST.new;
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

const keyOf = ({ metadata: { namespace = "", name } }: ObjectOfApi) => `${namespace}/${name}`;
