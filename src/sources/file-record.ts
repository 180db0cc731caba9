import type { Finding } from "../base/model/finding.ts";
import { type PodFullName, podFullName } from "../base/model/identity.ts";
import type { FileIdentity } from "./manifest-files.ts";
import { describeFinding, joinLocations, type Objects, type SourceSet } from "./source-set.ts";

/** File systems count time in ticks, and two writes in one tick look like one: younger files are read again every time. */
const RACY_MS = 2_000;

/** State of one manifest file. */
export interface FileRecord {
  /** Identity of the text last read; absent when it must be read again in any case. */
  identity?: FileIdentity;
  /** Hash of the newest settled text; "" before the first; a message when it could not be read. */
  hash: string;
  /** The objects of this file. */
  live: Objects;
  /** Findings in the newest settled text, also when it is invalid. */
  findings: readonly Finding[];
  stale: readonly PodFullName[];
  /** A newer text that is not settled, and its start time (monotonic). */
  pending?: { hash: string; sinceMs: number };
  missingSinceMs?: number;
  /** It had errors when it was first read; its earlier content is unknown. */
  isUnknown?: boolean;
}

/** Notes the identity of the text that was read, so that it is not read again while it stays the same. */
export function remember(record: FileRecord, identity: FileIdentity, ageMs: number): void {
  if (ageMs >= RACY_MS) record.identity = identity;
  else delete record.identity;
}

/**
 * The set of a source: its files together, in the order of their paths. Pure.
 * @param outOfReach why the source cannot be read; then every pod is stale
 */
export function assembleFiles(byPath: ReadonlyMap<string, FileRecord>, outOfReach?: string): SourceSet {
  const paths = [...byPath.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const records = paths.map((path) => byPath.get(path)!);
  // A file that is missing gives way to one that describes the same pods: it was moved.
  const here = records.filter((record) => record.missingSinceMs === undefined);
  const namesHere = new Set(here.flatMap(({ live }) => live.pods.map(({ pod }) => podFullName(pod.metadata))));
  const isMoved = (record: FileRecord) =>
    record.missingSinceMs !== undefined && record.live.pods.some(({ pod }) => namesHere.has(podFullName(pod.metadata)));
  const used = records.filter((record) => !isMoved(record));
  // A pod that is kept from an older text gives way to the same pod in a good file.
  const fresh = new Set(used.flatMap((record) => freshNames(record)));
  const isOutdated = (record: FileRecord, name: PodFullName) => record.stale.includes(name) && fresh.has(name);
  const podsOf = (record: FileRecord) =>
    record.live.pods.filter(({ pod }) => !isOutdated(record, podFullName(pod.metadata)));
  const stale = new Map<PodFullName, string>();
  for (const record of used) {
    const error = record.findings.find(({ severity }) => severity === "error");
    for (const { pod } of podsOf(record)) {
      const name = podFullName(pod.metadata);
      if (error && record.stale.includes(name)) stale.set(name, describeFinding(error));
      else if (!error && outOfReach) stale.set(name, outOfReach);
    }
  }
  return {
    pods: used.flatMap(podsOf),
    configMaps: used.flatMap(({ live }) => live.configMaps),
    secrets: used.flatMap(({ live }) => live.secrets),
    objects: used.flatMap(({ live }) => live.objects ?? []),
    locations: joinLocations(used.map(({ live }) => live)),
    findings: used.flatMap(({ findings }) => findings),
    stale,
    isComplete: !used.some(({ isUnknown }) => isUnknown),
  };
}

function freshNames({ live, stale }: FileRecord): PodFullName[] {
  return live.pods.map(({ pod }) => podFullName(pod.metadata)).filter((name) => !stale.includes(name));
}
