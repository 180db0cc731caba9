import type { Clock } from "../../base/model/clock.ts";
import type { KubeletView } from "../../server/view.ts";
import type { ApiObject, ObjectStore } from "../object-store.ts";

/** Bursts of events are taken over together. */
const DELAY_MS = 100;
/** Events of clients that are kept. */
const MAX_WRITTEN = 1_000;
/** Each is there for this time after its last write. Source: the API server's `--event-ttl`. */
const WRITTEN_MS = 60 * 60_000;

/**
 * The events of the API: those that the kubelet recorded, from the first request on, and those that clients wrote, in memory
 * and within a limit of their own.
 */
export class NodeEvents {
  readonly #store: ObjectStore;
  readonly #clock: Clock;
  /** Version of each event of the store that was recorded here; those of clients have none. */
  readonly #versions = new WeakMap<ApiObject, string>();
  readonly #writtenMs = new WeakMap<ApiObject, number>();
  /** Versions of recorded events that clients have deleted: another occurrence shows them again. */
  #deleted: ReadonlySet<string> = new Set();
  #view: Pick<KubeletView, "events"> | undefined;
  #revision = -1;
  #cancel: (() => void) | undefined;

  constructor(store: ObjectStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** An event was recorded. */
  recorded(): void {
    if (!this.#view) return;
    this.#cancel ??= this.#clock.schedule(DELAY_MS, () => {
      this.#cancel = undefined;
      this.sync();
    });
  }

  stop(): void {
    this.#view = undefined;
    this.#cancel?.();
  }

  isRecorded(event: ApiObject): boolean {
    return this.#versions.has(event);
  }

  delete(event: ApiObject): void {
    this.#deleted = new Set([...this.#deleted, this.#versions.get(event) ?? ""]);
    this.sync();
  }

  /** @param view followed from now on */
  sync(view = this.#view): void {
    if (!view) return;
    this.#view = view;
    const all = this.#store.list("events");
    this.#dropWritten(all.filter((event) => !this.isRecorded(event)));
    const recorded = all.filter((event) => this.isRecorded(event));
    const { revision, items } = view.events();
    const versions = new Set(items.map(({ metadata }) => metadata.resourceVersion));
    this.#deleted = this.#deleted.intersection(versions);
    if (revision === this.#revision && versions.size - this.#deleted.size === recorded.length) return;
    this.#revision = revision;
    const kept = new Set<ApiObject>();
    for (const event of items) {
      const { name, namespace, resourceVersion } = event.metadata;
      if (this.#deleted.has(resourceVersion)) continue;
      const live = this.#store.get("events", namespace, name);
      const isSame = live && this.#versions.get(live) === resourceVersion;
      const shown = isSame ? live : this.#store.put("events", event as unknown as ApiObject);
      this.#versions.set(shown, resourceVersion);
      kept.add(shown);
    }
    for (const event of recorded) if (!kept.has(event)) this.#remove(event);
  }

  /** Events that were not written for too long go, and of too many the oldest. */
  #dropWritten(events: readonly ApiObject[]): void {
    const nowMs = this.#clock.monotonicMs();
    const isYoung = (event: ApiObject) => nowMs - this.#writtenMs.getOrInsert(event, nowMs) < WRITTEN_MS;
    const newestFirst = events.filter(isYoung).toSorted((a, b) => revisionOf(b) - revisionOf(a));
    const kept = new Set(newestFirst.slice(0, MAX_WRITTEN));
    for (const event of events) if (!kept.has(event)) this.#remove(event);
  }

  #remove({ metadata: { namespace, name } }: ApiObject): void {
    this.#store.remove("events", namespace, name);
  }
}

const revisionOf = ({ metadata }: ApiObject) => Number(metadata.resourceVersion);
