import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { PodStatus } from "../base/api/pod.ts";
import type { ObjectKey } from "../base/model/desired-object.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { Bindings, ClaimRecords } from "./claims.ts";
import type { PreparedWorkload } from "./prepare-state.ts";
import type { ControllerState } from "./reconcile-workload.ts";
import type { WorkloadRecord } from "./workload-record.ts";

/** Kept across restarts. */
export interface WorkloadState {
  /** Records by {@link ObjectKey}. */
  records: Record<string, WorkloadRecord>;
  claims: Bindings;
  /** Absent in files of releases that kept none. */
  claimRecords?: ClaimRecords;
  /** PersistentVolumes that claims are bound to, by name. */
  volumes?: Record<string, PersistentVolume>;
}

/** A workload of the sources, and the outcome of its last reconciliation. */
export interface Entry {
  desired: PreparedWorkload;
  record: WorkloadRecord;
  /** Statuses the last decision was made from. */
  seen: Map<PodUID, PodStatus | undefined>;
  state: ControllerState | undefined;
  /** Monotonic; the decision holds no longer than that. */
  wakeAtMs: number;
}

/** The records of all workloads and the bindings of claims, in one file. */
export class WorkloadRecords {
  readonly #file: Persisted<WorkloadState>;
  readonly #entries = new Map<ObjectKey, Entry>();
  /** Restored records of workloads that no source has reported since the start. */
  readonly #restored: Map<string, WorkloadRecord>;
  bindings: Bindings;
  claims: ClaimRecords;
  /** PersistentVolumes that claims are bound to: they stay mounted when their text is removed. */
  volumes: Readonly<Record<string, PersistentVolume>>;
  /** Workloads of a file without claims: those of their pods are Docker volumes. */
  readonly #withoutClaims: ReadonlySet<string>;

  constructor(file: Persisted<WorkloadState>) {
    this.#file = file;
    const { claims = {}, records = {}, claimRecords, volumes = {} } = file.read() ?? {};
    this.#restored = new Map(Object.entries(records));
    this.bindings = claims;
    this.claims = claimRecords ?? {};
    this.volumes = volumes;
    this.#withoutClaims = new Set(claimRecords ? [] : Object.keys(records));
  }

  /** Whether the workload had pods before claims were recorded. */
  hadUnrecordedClaims(key: ObjectKey): boolean {
    return this.#withoutClaims.has(key);
  }

  entry(key: ObjectKey): Entry | undefined {
    return this.#entries.get(key);
  }

  /** Entries of the workloads that sources have reported. */
  entries(): Entry[] {
    return [...this.#entries.values()];
  }

  /** The record of a workload, also of one that no source has reported yet. */
  get(key: ObjectKey): WorkloadRecord | undefined {
    return this.#entries.get(key)?.record ?? this.#restored.get(key);
  }

  all(): Map<string, WorkloadRecord> {
    const records = new Map<string, WorkloadRecord>(this.#restored);
    for (const [key, { record }] of this.#entries) records.set(key, record);
    return records;
  }

  set(key: ObjectKey, entry: Entry): void {
    this.#restored.delete(key);
    this.#entries.set(key, entry);
  }

  /** Keeps a record of a workload that the next reconciliation takes over. */
  restore(key: string, record: WorkloadRecord): void {
    this.#restored.set(key, record);
  }

  delete(key: ObjectKey): void {
    this.#entries.delete(key);
    this.#restored.delete(key);
  }

  /**
   * Deletes the records of workloads that are not wanted any more.
   * @param mayForget a restored record of this key may be deleted: every source was read, or another object has the name
   * @returns whether there was one, and the records that had an entry
   */
  retain(
    isKept: (key: string, record: WorkloadRecord) => boolean,
    mayForget: (key: string) => boolean,
  ): { isChanged: boolean; deleted: WorkloadRecord[] } {
    const deleted = [...this.#entries].filter(([key, { record }]) => !isKept(key, record));
    for (const [key] of deleted) this.#entries.delete(key);
    const forgotten = [...this.#restored].filter(([key, record]) => mayForget(key) && !isKept(key, record));
    for (const [key] of forgotten) this.#restored.delete(key);
    return { isChanged: deleted.length + forgotten.length > 0, deleted: deleted.map(([, { record }]) => record) };
  }

  /** Must be called before pods of a changed record are started, so that a later process finds them. */
  save(): void {
    const { bindings: claims, claims: claimRecords, volumes } = this;
    this.#file.write({ records: Object.fromEntries(this.all()), claims, claimRecords, volumes });
  }
}
