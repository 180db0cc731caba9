import type { Clock } from "../base/model/clock.ts";
import type { StreamedResponse } from "../server/http-response.ts";
import { ApiError, badRequest, expired } from "./api-error.ts";
import { type ApiObject, jsonOf } from "./api-object.ts";
import { parseIncludeObject, type ShowObject } from "./list-response.ts";
import type { WantedForm } from "./media-type.ts";
import type { ObjectStore, StoreEvent } from "./object-store.ts";
import { apiVersionOf, type ResourceDefinition, resourceId } from "./resource-definition.ts";
import type { Selection } from "./selection.ts";
import { type IncludeObject, metadataText, tableText } from "./table.ts";

/** Time between two bookmarks. Source: apiserver's watch cache. */
const BOOKMARK_MS = 60_000;
/** A watch without `timeoutSeconds` ends after 30 to 60 minutes. Source: `--min-request-timeout`. */
const MIN_TIMEOUT_MS = 1_800_000;

interface WatchDeps {
  store: ObjectStore;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
}

/**
 * `?watch=true`: one JSON object a line for each change, as long as the client reads. Without a resourceVersion, or with
 * `0`, everything there is comes first as ADDED. A reader that is slower than the store forgets is sent back to list.
 * @throws ApiError 400
 */
export function watchResponse(
  { store, clock, random }: WatchDeps,
  definition: ResourceDefinition,
  selection: Selection,
  query: URLSearchParams,
  form: WantedForm,
  show: ShowObject,
  signal: AbortSignal,
): StreamedResponse {
  const since = parseRevision(query.get("resourceVersion"));
  const timeoutMs = parseTimeout(query.get("timeoutSeconds")) ?? MIN_TIMEOUT_MS * (1 + random());
  const sendsBookmarks = query.get("allowWatchBookmarks") === "true";
  const sendsInitialEvents = query.get("sendInitialEvents") === "true";
  const includeObject = form.shape === "table" ? parseIncludeObject(query) : "Metadata";
  const lines = new EventLines(store, definition, form, includeObject, show, clock);
  const watch = new Watch(store, definition, selection);
  const chunks = () =>
    watchLines({ store, clock, watch, lines, since, timeoutMs, sendsBookmarks, sendsInitialEvents, signal });
  return { status: 200, headers: { "Content-Type": "application/json" }, chunks: { [Symbol.asyncIterator]: chunks } };
}

interface WatchCourse {
  store: ObjectStore;
  clock: Clock;
  watch: Watch;
  lines: EventLines;
  since: number | undefined;
  timeoutMs: number;
  sendsBookmarks: boolean;
  sendsInitialEvents: boolean;
  signal: AbortSignal;
}

async function* watchLines(course: WatchCourse): AsyncGenerator<string | Uint8Array> {
  const { store, clock, watch, lines, since, sendsBookmarks, sendsInitialEvents } = course;
  const end = new AbortController();
  const cancelTimeout = clock.schedule(course.timeoutMs, () => end.abort());
  const stop = AbortSignal.any([course.signal, end.signal]);
  const wake = () => watch.wake();
  stop.addEventListener("abort", wake, { once: true });
  let isBookmarkDue = false;
  let cancelBookmark = () => {};
  const planBookmark = () => {
    cancelBookmark = clock.schedule(BOOKMARK_MS, () => {
      isBookmarkDue = true;
      watch.wake();
    });
  };
  if (sendsBookmarks) planBookmark();
  try {
    if (since !== undefined && since > store.revision) throw tooNew(since, store.revision);
    if (sendsInitialEvents || since === undefined || since === 0) {
      for (const object of watch.openWithState()) yield lines.event("ADDED", object);
      if (sendsInitialEvents && sendsBookmarks) yield lines.bookmark(store.revision, true);
    } else watch.open(since);
    while (!stop.aborted) {
      const next = watch.take();
      if (next) yield lines.event(next.type, next.object);
      else if (isBookmarkDue) {
        isBookmarkDue = false;
        yield lines.bookmark(store.revision, false);
        planBookmark();
      } else await watch.wait();
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    yield `${JSON.stringify({ type: "ERROR", object: error.status })}\n`;
  } finally {
    cancelTimeout();
    cancelBookmark();
    stop.removeEventListener("abort", wake);
    watch.close();
  }
}

interface SelectedEvent {
  type: StoreEvent["type"];
  object: ApiObject;
}

/** A reader of the changes of a selection. It remembers a position in the events of the store, not the events. */
class Watch {
  readonly #store: ObjectStore;
  readonly #resource: string;
  readonly #selection: Selection;
  /** Revision up to which the events were taken. */
  #taken = 0;
  #unsubscribe: () => void = () => {};
  #wake: (() => void) | undefined;

  constructor(store: ObjectStore, definition: ResourceDefinition, selection: Selection) {
    this.#store = store;
    this.#resource = resourceId(definition);
    this.#selection = selection;
  }

  /** Begins after a revision. */
  open(since: number): void {
    this.#taken = since;
    this.#unsubscribe = this.#store.subscribe(({ resource }) => {
      if (resource === this.#resource) this.wake();
    });
  }

  /** Begins now. @returns everything there is */
  openWithState(): readonly ApiObject[] {
    this.open(this.#store.revision);
    return this.#store.list(this.#resource, this.#selection.namespace).filter(this.#selection.matches);
  }

  /** @throws ApiError 410 when the reader has fallen too far behind */
  take(): SelectedEvent | undefined {
    for (;;) {
      const event = this.#store.eventAfter(this.#resource, this.#taken);
      if (!event) return undefined;
      this.#taken = event.revision;
      const selected = this.#select(event);
      if (selected) return selected;
    }
  }

  /** Resolves when there may be something to take, or after {@link wake}. Call it right after `take` found nothing. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  close(): void {
    this.#unsubscribe();
  }

  /** An object that enters the selection is ADDED, one that leaves it is DELETED. */
  #select({ type, object, previous }: StoreEvent): SelectedEvent | undefined {
    const { matches } = this.#selection;
    const was = previous !== undefined && matches(previous);
    const is = type !== "DELETED" && matches(object);
    if (!was && !is) return undefined;
    return { type: is ? (was ? "MODIFIED" : "ADDED") : "DELETED", object };
  }
}

/** A line of a watch as it was sent last. */
interface SentLine {
  type: StoreEvent["type"];
  object: ApiObject;
  bytes: Uint8Array;
}

/** The last line of each store: watches of one kind mostly send the same line at the same time. */
const lastLines = new WeakMap<ObjectStore, SentLine>();

/** Events as lines, in the form the client wants. */
class EventLines {
  readonly #store: ObjectStore;
  readonly #definition: ResourceDefinition;
  readonly #form: WantedForm;
  readonly #includeObject: IncludeObject;
  readonly #show: ShowObject;
  readonly #clock: Clock;
  #isFirst = true;

  constructor(
    store: ObjectStore,
    definition: ResourceDefinition,
    form: WantedForm,
    includeObject: IncludeObject,
    show: ShowObject,
    clock: Clock,
  ) {
    this.#store = store;
    this.#definition = definition;
    this.#form = form;
    this.#includeObject = includeObject;
    this.#show = show;
    this.#clock = clock;
  }

  event(type: StoreEvent["type"], object: ApiObject): string | Uint8Array {
    const shown = this.#show(object);
    const line = () => `{"type":"${type}","object":${this.#text(shown)}}\n`;
    if (this.#form.shape !== "object") return line();
    let last = lastLines.get(this.#store);
    if (last?.object !== shown || last.type !== type) {
      last = { type, object: shown, bytes: Buffer.from(line()) };
      lastLines.set(this.#store, last);
    }
    return last.bytes;
  }

  /** @param endsInitial marks the end of what there was when the watch began */
  bookmark(revision: number, endsInitial: boolean): string {
    const metadata = {
      resourceVersion: String(revision),
      creationTimestamp: null,
      ...(endsInitial && { annotations: { "k8s.io/initial-events-end": "true" } }),
    };
    const { kind } = this.#definition;
    const object = { kind, apiVersion: apiVersionOf(this.#definition), metadata } as unknown as ApiObject;
    const text = this.#form.shape === "object" ? JSON.stringify(object) : this.#text(object);
    return `{"type":"BOOKMARK","object":${text}}\n`;
  }

  #text(object: ApiObject): string {
    const { shape, metaVersion } = this.#form;
    if (shape === "object") return jsonOf(object);
    if (shape === "metadata") return metadataText(object, metaVersion);
    const { resourceVersion } = object.metadata;
    const options = { metaVersion, includeObject: this.#includeObject, now: this.#clock.now() };
    const text = tableText([object], this.#definition, { resourceVersion }, options, this.#isFirst);
    this.#isFirst = false;
    return text;
  }
}

const tooNew = (wanted: number, current: number) =>
  expired(`The resourceVersion for the provided watch is too new: ${wanted}, current: ${current}`);

function parseRevision(text: string | null): number | undefined {
  if (text === null || text === "") return undefined;
  const revision = Number(text);
  if (!Number.isSafeInteger(revision) || revision < 0) {
    throw badRequest(`resourceVersion: Invalid value: "${text}": must be a whole number`);
  }
  return revision;
}

function parseTimeout(text: string | null): number | undefined {
  if (text === null || text === "" || text === "0") return undefined;
  const seconds = Number(text);
  if (!Number.isInteger(seconds) || seconds < 0) throw badRequest(`timeoutSeconds: Invalid value: "${text}"`);
  return seconds * 1000;
}
