import * as v from "valibot";
import { parseFieldSelector, parseLabelSelector, type SelectableFields } from "../base/api/meta.ts";
import type { Clock } from "../base/model/clock.ts";
import type { HttpResponse, StreamedResponse } from "../server/request-handler.ts";
import { ApiError, badRequest, expired } from "./api-error.ts";
import type { ApiObject, ObjectStore, ResourceId, StoreEvent } from "./object-store.ts";
import type { Presentation } from "./presentation.ts";
import { apiVersionOf, resourceId, type Target } from "./resource-definition.ts";

const COMMON_FIELDS: SelectableFields<ApiObject> = {
  "metadata.name": ({ metadata }) => metadata.name,
  "metadata.namespace": ({ metadata }) => metadata.namespace,
};

/** The objects of a resource that a request selects. */
interface Selection {
  resource: ResourceId;
  namespace: string | undefined;
  matches: (object: ApiObject) => boolean;
}

/**
 * Label and field selectors of a request; its name selects one object, as in a watch of one object.
 * @throws ApiError 400
 */
export function parseSelection({ definition, namespace, name }: Target, query: URLSearchParams): Selection {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  if ("problem" in labels) throw badRequest(`unable to parse requirement: ${labels.problem}`);
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "", { ...COMMON_FIELDS, ...definition.fields });
  if ("problem" in fields) throw badRequest(fields.problem);
  const matches = (object: ApiObject) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (name === "" || object.metadata.name === name) &&
    labels((definition.complete?.(object) ?? object).metadata.labels ?? {}) &&
    fields(object);
  return { resource: resourceId(definition), namespace, matches };
}

/** Where a list continues: the revision of the first page, and the last object of the page before. Opaque to clients. */
const TokenSchema = v.object({ rv: v.number(), ns: v.string(), name: v.string() });
type ContinueToken = v.InferOutput<typeof TokenSchema>;

/**
 * A list, whole or one page of it. Pages show each object as it is when the page is asked for: the revision of the list
 * is that of the first page, so that a watch from there misses nothing.
 * @throws ApiError 400, 410
 */
export function listResponse(
  store: ObjectStore,
  { resource, namespace, matches }: Selection,
  query: URLSearchParams,
  presentation: Presentation,
): HttpResponse | StreamedResponse {
  const limit = parseWhole(query, "limit") ?? 0;
  const token = parseToken(query.get("continue"), store.revision);
  let objects = store.list(resource, namespace).filter(matches);
  if (token) {
    objects = objects.filter(({ metadata }) => {
      const ns = metadata.namespace ?? "";
      return ns > token.ns || (ns === token.ns && metadata.name > token.name);
    });
  }
  const revision = token?.rv ?? store.revision;
  const page = limit > 0 ? objects.slice(0, limit) : objects;
  const last = page.at(-1)?.metadata;
  const isPartial = page.length < objects.length && last !== undefined;
  const metadata = {
    resourceVersion: String(revision),
    ...(isPartial && {
      continue: encodeToken({ rv: revision, ns: last.namespace ?? "", name: last.name }),
      remainingItemCount: objects.length - page.length,
    }),
  };
  return inPieces(presentation.list(page, metadata));
}

const JSON_HEADERS = { "Content-Type": "application/json" };
/** A longer list is made while the client takes it: of many clients at a time, none holds a whole list. */
const MAX_WHOLE_BYTES = 256 * 1024;
const MIN_CHUNK_BYTES = 32 * 1024;

function inPieces(pieces: Generator<string | Uint8Array>): HttpResponse | StreamedResponse {
  const first: Uint8Array[] = [];
  let length = 0;
  for (let next = pieces.next(); !next.done; next = pieces.next()) {
    const piece = toBytes(next.value);
    first.push(piece);
    length += piece.length;
    if (length > MAX_WHOLE_BYTES) return { status: 200, headers: JSON_HEADERS, chunks: joined(first, pieces) };
  }
  return { status: 200, headers: JSON_HEADERS, body: Buffer.concat(first) };
}

/** The pieces, short ones put together to chunks that are worth a write. A long one is not copied: clients share it. */
async function* joined(...parts: Iterable<string | Uint8Array>[]): AsyncGenerator<Uint8Array> {
  let short: Uint8Array[] = [];
  let length = 0;
  for (const pieces of parts) {
    for (const piece of pieces) {
      const bytes = toBytes(piece);
      if (length + bytes.length > MIN_CHUNK_BYTES) {
        yield Buffer.concat(short);
        short = [];
        length = 0;
      }
      if (bytes.length > MIN_CHUNK_BYTES) yield bytes;
      else {
        short.push(bytes);
        length += bytes.length;
      }
    }
  }
  yield Buffer.concat(short);
}

const toBytes = (text: string | Uint8Array): Uint8Array => (typeof text === "string" ? Buffer.from(text) : text);

const encodeToken = (token: ContinueToken) => Buffer.from(JSON.stringify(token)).toString("base64url");

function parseToken(text: string | null, current: number): ContinueToken | undefined {
  if (!text) return undefined;
  const token = v.safeParse(v.pipe(v.string(), v.parseJson(), TokenSchema), Buffer.from(text, "base64url").toString());
  if (!token.success) throw badRequest("continue key is not valid");
  // The token is from before the root directory was emptied.
  if (token.output.rv > current)
    throw expired("The provided continue parameter is too old to display a consistent list result.");
  return token.output;
}

/** Time between two bookmarks. Source: apiserver's watch cache. */
const BOOKMARK_MS = 60_000;
/** A watch without `timeoutSeconds` ends after 30 to 60 minutes. Source: `--min-request-timeout`. */
const MIN_TIMEOUT_MS = 1_800_000;

interface WatchDeps {
  store: ObjectStore;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  selection: Selection;
  presentation: Presentation;
}

/**
 * `?watch=true`: one JSON object a line for each change, as long as the client reads. Without a resourceVersion, or with
 * `0`, everything there is comes first as ADDED. A reader that is slower than the store forgets is sent back to list.
 * @throws ApiError 400
 */
export function watchResponse(deps: WatchDeps, query: URLSearchParams, signal: AbortSignal): StreamedResponse {
  const seconds = parseWhole(query, "timeoutSeconds");
  const options: WatchOptions = {
    since: parseWhole(query, "resourceVersion", ": must be a whole number"),
    timeoutMs: seconds ? seconds * 1000 : MIN_TIMEOUT_MS * (1 + deps.random()),
    sendsBookmarks: query.get("allowWatchBookmarks") === "true",
    sendsInitialEvents: query.get("sendInitialEvents") === "true",
  };
  const chunks = { [Symbol.asyncIterator]: () => new Watch(deps).lines(options, signal) };
  return { status: 200, headers: JSON_HEADERS, chunks };
}

interface WatchOptions {
  since: number | undefined;
  timeoutMs: number;
  sendsBookmarks: boolean;
  sendsInitialEvents: boolean;
}

/** One line of a watch, in pieces. A long object is not copied: watches share it. */
function toLine(type: string, object: string | Uint8Array): Uint8Array[] {
  const parts = [Buffer.from(`{"type":"${type}","object":`), toBytes(object), Buffer.from("}\n")];
  return object.length > MIN_CHUNK_BYTES ? parts : [Buffer.concat(parts)];
}

/** A reader of the changes of a selection. It remembers a position in the events of the store, not the events. */
class Watch {
  readonly #deps: WatchDeps;
  /** Revision up to which the events were taken. */
  #taken = 0;
  #wake: () => void = () => {};
  #isFirstLine = true;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  async *lines(options: WatchOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { store, clock, selection, presentation } = this.#deps;
    const { since, timeoutMs, sendsBookmarks, sendsInitialEvents } = options;
    const end = new AbortController();
    const cancelTimeout = clock.schedule(timeoutMs, () => end.abort());
    const stop = AbortSignal.any([signal, end.signal]);
    const wake = () => this.#wake();
    stop.addEventListener("abort", wake, { once: true });
    let isBookmarkDue = false;
    let cancelBookmark = () => {};
    const planBookmark = () => {
      cancelBookmark = clock.schedule(BOOKMARK_MS, () => {
        isBookmarkDue = true;
        this.#wake();
      });
    };
    if (sendsBookmarks) planBookmark();
    const unsubscribe = store.subscribe(({ resource }) => {
      if (resource === selection.resource) this.#wake();
    });
    try {
      if (since !== undefined && since > store.revision) {
        throw expired(`The resourceVersion for the provided watch is too new: ${since}, current: ${store.revision}`);
      }
      const isFromState = sendsInitialEvents || since === undefined || since === 0;
      this.#taken = isFromState ? store.revision : since;
      if (isFromState) {
        for (const object of store.list(selection.resource, selection.namespace).filter(selection.matches)) {
          yield* this.#line("ADDED", presentation.show(object));
        }
        if (sendsInitialEvents && sendsBookmarks) yield* this.#bookmark(true);
      }
      while (!stop.aborted) {
        const line = this.#next();
        if (line !== undefined) yield* line;
        else if (isBookmarkDue) {
          isBookmarkDue = false;
          yield* this.#bookmark(false);
          planBookmark();
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      yield* toLine("ERROR", JSON.stringify(error.status));
    } finally {
      cancelTimeout();
      cancelBookmark();
      stop.removeEventListener("abort", wake);
      unsubscribe();
    }
  }

  /**
   * The line of the next event of the selection: an object that enters it is ADDED, one that leaves it is DELETED.
   * @returns undefined when there is none yet
   * @throws ApiError 410 when the reader has fallen too far behind
   */
  #next(): Uint8Array[] | undefined {
    const { store, selection, presentation } = this.#deps;
    for (;;) {
      const event = store.eventAfter(selection.resource, this.#taken);
      if (!event) return undefined;
      this.#taken = event.revision;
      const was = event.previous !== undefined && selection.matches(event.previous);
      const is = event.type !== "DELETED" && selection.matches(event.object);
      const type = is ? (was ? "MODIFIED" : "ADDED") : "DELETED";
      if (was || is) return this.#line(type, presentation.show(event.object));
    }
  }

  #line(type: StoreEvent["type"] | "BOOKMARK", shown: ApiObject): Uint8Array[] {
    const text = this.#deps.presentation.text(shown, this.#isFirstLine);
    this.#isFirstLine = false;
    return toLine(type, text);
  }

  /** @param endsInitial marks the end of what there was when the watch began */
  #bookmark(endsInitial: boolean): Uint8Array[] {
    const { store, presentation } = this.#deps;
    const metadata = {
      resourceVersion: String(store.revision),
      creationTimestamp: null,
      ...(endsInitial && { annotations: { "k8s.io/initial-events-end": "true" } }),
    };
    const { kind } = presentation.kind;
    const object = { kind, apiVersion: apiVersionOf(presentation.kind), metadata } as unknown as ApiObject;
    return this.#line("BOOKMARK", object);
  }
}

/** @param hint ends the message. @throws ApiError 400 */
function parseWhole(query: URLSearchParams, name: string, hint = ""): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw badRequest(`${name}: Invalid value: "${text}"${hint}`);
  return value;
}
