import type { ConfigMap, Secret } from "../base/api/config-objects.ts";
import type { ChangeLogger } from "../base/logging/change-logger.ts";
import type { DesiredPod, ManifestLocation, PodDeletion } from "../base/model/desired-state.ts";
import { type DesiredObject, objectKey } from "../base/model/desired-state.ts";
import type { Finding } from "../base/model/finding.ts";
import { type PodFullName, type PodUID, podFullName } from "../base/model/pod.ts";
import type { ManifestResult } from "../manifest/object-reading.ts";

export interface Objects {
  pods: readonly DesiredPod[];
  configMaps: readonly ConfigMap[];
  secrets: readonly Secret[];
  /** Objects of other kinds; absent in sets that older versions kept. */
  objects?: readonly DesiredObject[];
  /** Where objects other than pods begin, by `ObjectKey`; absent in sets that older versions kept. */
  locations?: Readonly<Record<string, ManifestLocation>>;
}

/** Everything one source wants at one time; its pods that are not in the set are removed. */
export interface SourceSet extends Objects {
  /**
   * false: a text is bad, and not even a checkpoint says what it wanted before. Running pods that no text describes may
   * be its pods and must be left alone.
   */
  isComplete: boolean;
  findings: readonly Finding[];
  /** How pods that are no longer in the set are deleted; only an API says it. */
  deletions?: ReadonlyMap<PodUID, PodDeletion>;
  /** Pods that run by an older text, with the reason: the newest one is bad, or the source cannot be read. */
  stale: ReadonlyMap<PodFullName, string>;
  /** The pods run by a checkpoint alone: any other source that describes them takes them over. */
  isKept?: boolean;
  /** Name of the source the pods came from, which is not configured any more. */
  unclaimedFrom?: string;
}

/** State of a source, for `/healthz?verbose`, metrics and people. */
export interface SourceStatus {
  kind: "file" | "http" | "api";
  /** Path or masked URL. */
  name: string;
  /**
   * `waiting`: not read yet. `failing`: the last read failed. `restored`: failing since the start, the checkpoint is used.
   * `unclaimed`: not configured any more, its pods run on.
   */
  state: "waiting" | "ok" | "failing" | "restored" | "unclaimed";
  message?: string;
  pods: number;
  lastSuccess?: Date;
  reads: number;
  failures: number;
}

/** The reads of a source: how many there were, and how the last one went. */
export class SourceReads {
  /** Why the last read failed; undefined when it succeeded. */
  failure: string | undefined;
  count = 0;
  lastSuccess: Date | undefined;
  #failures = 0;
  #lastAttempt: Date | undefined;

  begin(now: Date): void {
    this.count++;
    this.#lastAttempt = now;
  }

  end(failure: string | undefined): void {
    this.failure = failure;
    if (failure === undefined) this.lastSuccess = this.#lastAttempt;
    else this.#failures++;
  }

  status(source: Pick<SourceStatus, "kind" | "name">, state: SourceStatus["state"], pods: number): SourceStatus {
    return {
      kind: source.kind,
      name: source.name,
      state,
      ...(this.failure !== undefined && { message: this.failure }),
      pods,
      ...(this.lastSuccess && { lastSuccess: this.lastSuccess }),
      reads: this.count,
      failures: this.#failures,
    };
  }
}

/** Parses one text; a long one in the background. */
export type ReadText = (bytes: Uint8Array, name: string) => ManifestResult | Promise<ManifestResult>;

/** Notes in each pod and workload which source they come from. */
export const withSource = <T extends Objects>(objects: T, sourceId: string): T => ({
  ...objects,
  pods: objects.pods.map((pod) => ({ ...pod, sourceId })),
  ...(objects.objects && { objects: objects.objects.map((object) => ({ ...object, sourceId })) }),
});

export const EMPTY_OBJECTS: Objects = { pods: [], configMaps: [], secrets: [] };

export const EMPTY_SET: SourceSet = { ...EMPTY_OBJECTS, findings: [], stale: new Map(), isComplete: true };

/** The objects alone, as they are stored. */
export function objectsOf({ pods, configMaps, secrets, objects = [], locations = {} }: Objects): Objects {
  return { pods, configMaps, secrets, objects, locations };
}

export const isEmptyObjects = ({ pods, configMaps, secrets, objects = [] }: Objects): boolean =>
  pods.length + configMaps.length + secrets.length + objects.length === 0;

export const hasErrors = (findings: readonly Finding[]): boolean =>
  findings.some(({ severity }) => severity === "error");

const objectName = (object: ConfigMap | Secret): PodFullName => podFullName(object.metadata);

/**
 * The good part of a new text, and from the text before it what the new one no longer says while it holds errors: a
 * mistake in one document must neither stop its pod nor delay the others.
 */
export function keepLastGood(before: Objects, now: ManifestResult): Objects {
  if (!hasErrors(now.findings)) return objectsOf(now);
  const keep = <T>(old: readonly T[], fresh: readonly T[], nameOf: (item: T) => string): readonly T[] => {
    const named = new Set(fresh.map(nameOf));
    return [...fresh, ...old.filter((item) => !named.has(nameOf(item)))];
  };
  return {
    pods: keep(before.pods, now.pods, ({ pod }) => podFullName(pod.metadata)),
    configMaps: keep(before.configMaps, now.configMaps, objectName),
    secrets: keep(before.secrets, now.secrets, objectName),
    objects: keep(before.objects ?? [], now.objects, ({ kind, object }) => objectKey(kind, object.metadata)),
    locations: joinLocations([now, before]),
  };
}

/** Locations of several texts; the first that names an object counts. */
export const joinLocations = (all: readonly Pick<Objects, "locations">[]): Record<string, ManifestLocation> =>
  Object.assign({}, ...all.map(({ locations }) => locations).reverse());

/** Pods of `live` that `now` does not bring: they run by an older text. */
export function staleNames(live: Objects, now: Objects): PodFullName[] {
  const fresh = new Set(now.pods);
  return live.pods.filter((pod) => !fresh.has(pod)).map(({ pod }) => podFullName(pod.metadata));
}

/**
 * Logs findings, each once while it stays.
 * @param stale pods that stay as before because of the first error
 * @returns their keys, which begin with `prefix`
 */
export function logFindings(
  facts: ChangeLogger,
  prefix: string,
  findings: readonly Finding[],
  stale: readonly PodFullName[],
): Set<string> {
  const keys = new Set<string>();
  let effect = stale.length > 0 ? `; pods that stay as before: ${stale.join(", ")}` : "";
  for (const finding of findings) {
    const key = `${prefix}${finding.document}:${finding.field}:${finding.message}`;
    keys.add(key);
    const isError = finding.severity === "error";
    facts.log(key, isError ? "error" : "warn", `${describeFinding(finding)}${isError ? effect : ""}`);
    if (isError) effect = "";
  }
  return keys;
}

/** One line for a finding, as a compiler writes it. */
export function describeFinding({ file, line, column, field, message }: Finding): string {
  return `${file}:${line}:${column}: ${field === "" ? "" : `${field}: `}${message}`;
}
