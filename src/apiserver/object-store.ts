import type { ObjectMeta } from "../base/api/meta.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { checkDnsSubdomain } from "../manifest/validate/names.ts";
import { badRequest, expired, invalidValue, type StatusCause, tooManyValues } from "./api-error.ts";

/** As for manifests. */
const MAX_DEPTH = 100;

/** A set of fields as nested maps: `f:<name>`, `k:<keys as JSON>`, `v:<value as JSON>`, `.` for the field itself. */
export type FieldsV1 = { [step: string]: FieldsV1 };

/** Source: meta/v1 `ManagedFieldsEntry`. */
export type ManagedFieldsEntry = Omit<NonNullable<ObjectMeta["managedFields"]>[number], "fieldsV1"> & {
  fieldsV1?: FieldsV1 | undefined;
};

/** Metadata as far as the API server itself reads and writes it. Times are RFC 3339 in whole seconds. */
export interface ApiMetadata extends Omit<ObjectMeta, "managedFields"> {
  name: string;
  managedFields?: ManagedFieldsEntry[] | undefined;
  [field: string]: unknown;
}

/** One object of the API, of any kind. Objects in the store are never changed in place. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ApiMetadata;
  [field: string]: unknown;
}

/** `namespace/name`, or `/name` for kinds without a namespace. */
type NamespacedName = `${string}/${string}`;

const namespacedName = (namespace: string | undefined, name: string): NamespacedName => `${namespace ?? ""}/${name}`;

export const keyOf = ({ metadata }: ApiObject): NamespacedName => namespacedName(metadata.namespace, metadata.name);

const LONG_CHARACTERS = 32 * 1024;

const knownJson = new WeakMap<object, string | WeakRef<Uint8Array>>();

/**
 * An object's JSON, made once for each version of the object. A long one is bytes, which all its clients share, and which are
 * kept only while there are any.
 */
export function jsonOf(object: object): string | Uint8Array {
  const known = knownJson.get(object);
  const found = known instanceof WeakRef ? known.deref() : known;
  if (found !== undefined) return found;
  const text = JSON.stringify(object);
  const json = text.length > LONG_CHARACTERS ? Buffer.from(text) : text;
  knownJson.set(object, typeof json === "string" ? json : new WeakRef(json));
  return json;
}

/** The part of an object that clients write: its status may change between a read and a write, a dry run sets no version. */
export function writtenPart({ metadata, status: _, ...object }: { metadata: object; status?: unknown }): unknown {
  const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata as Partial<ApiMetadata>;
  return { ...object, metadata: kept };
}

/** No vowels, and no digits that look like letters: no names that mean something. Source: apimachinery's `rand.String`. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const RANDOM_LENGTH = 5;
const MAX_GENERATED_LENGTH = 63;

/** @param random in [0, 1) */
export function generateName(prefix: string, random: () => number): string {
  const letters = Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]);
  return prefix.slice(0, MAX_GENERATED_LENGTH - RANDOM_LENGTH) + letters.join("");
}

/** Causes for refusing a name. @param check the rule of all kinds; kinds with stricter rules check those too */
export function checkObjectName(name: string, check = checkDnsSubdomain): StatusCause[] {
  return check(name).map((message) => invalidValue("metadata.name", JSON.stringify(name), message));
}

/**
 * Values of one object, fields and items at every level, those of managedFields included: each takes time on the way to
 * the file. etcd's limit of 1.5 MiB refuses objects of some 100,000.
 */
export const MAX_VALUES = 10_000;
/** Values of an object as its author writes it: managedFields have nearly as many. */
export const MAX_WRITTEN_VALUES = MAX_VALUES / 2;

/**
 * @returns the keys of all maps
 * @throws ApiError 413 when a value has more than `most` values; 400 when it is nested more deeply than a manifest may be
 */
export function checkSize(value: unknown, most = MAX_VALUES): number {
  let count = 0;
  let keys = 0;
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw badRequest(`the object provided has more than ${MAX_DEPTH} levels of nesting`);
    const next: unknown[] = [];
    for (const one of level) {
      if (typeof one !== "object" || one === null) continue;
      const members = Object.values(one);
      count += members.length;
      if (!Array.isArray(one)) keys += members.length;
      if (count > most) throw tooManyValues(most);
      for (const member of members) next.push(member);
    }
    level = next;
  }
  return keys;
}

/** Identifies a resource in the store: `pods`, `deployments.apps`. */
export type ResourceId = string;

/** One change of one object. */
export interface StoreEvent {
  type: "ADDED" | "MODIFIED" | "DELETED";
  resource: ResourceId;
  /** The object after the change; for a deletion its last state, with the revision of the deletion. */
  object: ApiObject;
  /** The object before the change, so that selectors see objects enter and leave a selection; undefined when added. */
  previous: ApiObject | undefined;
  revision: number;
}

/** Events kept for each resource, for watches that begin at an older revision and for readers that are slow. */
const DEFAULT_WINDOW = { events: 500, bytes: 2 * 1024 * 1024 };

/** Limits of the events that are kept for each resource; the last event is kept in any case. */
export interface EventWindow {
  events: number;
  /** Approximate size of their objects as JSON. */
  bytes: number;
}

/**
 * All objects of all kinds, with one revision counter, and the recent events of each kind. In memory only: objects that
 * are kept on disk are written before they are stored here. Objects are never changed in place.
 */
export class ObjectStore {
  readonly #clock: RevisionClock;
  readonly #window: EventWindow;
  readonly #tables = new Map<ResourceId, Table>();
  readonly #listeners = new Set<(event: StoreEvent) => void>();
  /** Events before it are unknown. */
  #startRevision: number;

  constructor(clock: RevisionClock, window: EventWindow = DEFAULT_WINDOW) {
    this.#clock = clock;
    this.#window = window;
    this.#startRevision = clock.current;
  }

  get revision(): number {
    return this.#clock.current;
  }

  get(resource: ResourceId, namespace: string | undefined, name: string): ApiObject | undefined {
    return this.#tables.get(resource)?.objects.get(namespacedName(namespace, name));
  }

  /** Sorted by namespace, then name. The list is not changed afterwards. */
  list(resource: ResourceId, namespace?: string): readonly ApiObject[] {
    const table = this.#tables.get(resource);
    if (!table) return [];
    table.sorted ??= [...table.objects.values()].sort(byNamespaceAndName);
    return namespace === undefined
      ? table.sorted
      : table.sorted.filter(({ metadata }) => metadata.namespace === namespace);
  }

  /** Adds or replaces an object and gives it the next resourceVersion. @returns the object as it is kept */
  put(resource: ResourceId, object: ApiObject): ApiObject {
    const table = this.#table(resource);
    const previous = table.objects.get(keyOf(object));
    const revision = this.#clock.next();
    const kept = withRevision(object, revision);
    table.objects.set(keyOf(object), kept);
    table.sorted = table.sorted && spliced(table.sorted, kept, previous ? 1 : 0, [kept]);
    this.#publish(table, { type: previous ? "MODIFIED" : "ADDED", resource, object: kept, previous, revision });
    return kept;
  }

  /** @returns the object as it was, undefined when there was none */
  remove(resource: ResourceId, namespace: string | undefined, name: string): ApiObject | undefined {
    const table = this.#tables.get(resource);
    const key = namespacedName(namespace, name);
    const previous = table?.objects.get(key);
    if (!table || !previous) return undefined;
    table.objects.delete(key);
    table.sorted = table.sorted && spliced(table.sorted, previous, 1, []);
    const revision = this.#clock.next();
    const object = withRevision(previous, revision);
    this.#publish(table, { type: "DELETED", resource, object, previous, revision });
    return previous;
  }

  /** Called with every change from now on, in order. Must not throw. @returns ends it */
  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * The first event after `revision`; undefined when there is none yet.
   * @throws ApiError 410 when the events since then are no longer all known
   */
  eventAfter(resource: ResourceId, revision: number): StoreEvent | undefined {
    const table = this.#table(resource);
    if (revision < table.knownSince) {
      throw expired(`too old resource version: ${revision} (${table.knownSince})`);
    }
    return table.events[firstIndex(table.events, (event) => event.revision > revision)];
  }

  #table(resource: ResourceId): Table {
    const knownSince = this.#startRevision;
    const make = (): Table => ({ objects: new Map(), sorted: undefined, events: [], bytes: 0, knownSince });
    return this.#tables.getOrInsertComputed(resource, make);
  }

  /** All present objects were read at the start: watches of an earlier process must list again. */
  markStart(): void {
    this.#startRevision = this.#clock.current;
    const none = { events: [], bytes: 0, knownSince: this.#startRevision };
    for (const table of this.#tables.values()) Object.assign(table, none, { events: [] });
  }

  #publish(table: Table, event: StoreEvent): void {
    table.events.push(event);
    table.bytes += roughSizeOf(event.object);
    // Dropped in batches: removing the first element of an array copies the array.
    if (table.events.length > 2 * this.#window.events || table.bytes > 2 * this.#window.bytes) this.#trim(table);
    for (const listener of [...this.#listeners]) listener(event);
  }

  #trim(table: Table): void {
    const { events } = table;
    let dropped = 0;
    while (
      dropped < events.length - 1 &&
      (events.length - dropped > this.#window.events || table.bytes > this.#window.bytes)
    ) {
      table.bytes -= roughSizeOf(events[dropped]!.object);
      dropped++;
    }
    table.knownSince = events[dropped - 1]?.revision ?? table.knownSince;
    events.splice(0, dropped);
  }
}

interface Table {
  readonly objects: Map<NamespacedName, ApiObject>;
  /** Created on demand. */
  sorted: readonly ApiObject[] | undefined;
  events: StoreEvent[];
  /** Size of the objects of `events`, see {@link roughSizeOf}. */
  bytes: number;
  /** Every event after this revision is in `events`. */
  knownSince: number;
}

/** Approximate size of an object as JSON, for a limit of memory. Unit: bytes. */
function roughSizeOf(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 4;
  let bytes = 2;
  if (Array.isArray(value)) for (const item of value) bytes += roughSizeOf(item) + 1;
  else for (const name in value) bytes += name.length + 4 + roughSizeOf((value as Record<string, unknown>)[name]);
  return bytes;
}

const withRevision = (object: ApiObject, revision: number): ApiObject => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion: String(revision) },
});

function byNamespaceAndName(a: ApiObject, b: ApiObject): number {
  return compare(a.metadata.namespace ?? "", b.metadata.namespace ?? "") || compare(a.metadata.name, b.metadata.name);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Where the items of a sorted list begin for which something is true, as it is for all after them. */
function firstIndex<T>(sorted: readonly T[], isTrue: (item: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isTrue(sorted[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A copy with other objects in the place of this one: sorting thousands again takes longer than the rest of a write. */
function spliced(sorted: readonly ApiObject[], object: ApiObject, dropped: 0 | 1, added: readonly ApiObject[]) {
  const index = firstIndex(sorted, (other) => byNamespaceAndName(other, object) >= 0);
  return sorted.toSpliced(index, dropped, ...added);
}

/** Revisions handed out before the mark is written again. */
const BLOCK = 100_000;

/**
 * One clock of resourceVersions for all kinds, which never goes back, also over restarts: a mark beyond every revision
 * handed out is written ahead of time, and a new process begins there.
 */
export class RevisionClock {
  readonly #mark: Persisted<number>;
  /** The newest revision handed out. */
  current: number;
  #reserved: number;

  constructor(mark: Persisted<number>) {
    this.#mark = mark;
    this.current = Math.max(mark.read() ?? 0, 1);
    this.#reserved = this.current;
    this.#reserve();
  }

  next(): number {
    this.current++;
    this.#reserve();
    return this.current;
  }

  #reserve(): void {
    if (this.current < this.#reserved) return;
    this.#reserved = this.current + BLOCK;
    this.#mark.write(this.#reserved);
  }
}
