import type { CoreEvent } from "../../base/api/event.ts";
import type { Container, ContainerState, ContainerStatus, Pod, Volume } from "../../base/api/pod.ts";
import { quantityToMilli, quantityToWhole } from "../../base/api/quantity.ts";
import type { PodSummary } from "../../base/api/stats-summary.ts";
import type { Finding } from "../../base/model/finding.ts";
import { allContainersOf, allStatusesOf, containersOf, isEphemeral, type PodUID } from "../../base/model/pod.ts";
import type { ProbeKind, ProbeOutcome } from "../../base/model/prober.ts";
import type { ContainerDetail, ManifestView, PodDetail, ProbeAttempt } from "../../page/wire.ts";
import type { PodExplanation } from "../../plan/status/explain-pod.ts";
import type { CgroupStats } from "../../stats/cgroups/cgroup-figures.ts";

export interface PodDetailFacts extends Pick<PodDetail, "row" | "services" | "imageUpdates" | "manifest"> {
  /** As the reader may see it. */
  pod: Pod;
  usage: PodSummary | undefined;
  events: readonly CoreEvent[];
  explanation: PodExplanation;
  probeAttempts: (container: string, kind: ProbeKind) => readonly ProbeAttempt[];
  /** Counters of a running container. */
  counters: (container: string) => CgroupStats | undefined;
}

/** Everything the page shows of one pod. Pure. */
export function toPodDetail(facts: PodDetailFacts): PodDetail {
  const { row, pod, usage, events, explanation, manifest, imageUpdates } = facts;
  const { metadata, spec, status } = pod;
  return {
    row,
    metadata,
    status,
    services: facts.services,
    containers: allContainersOf(spec).map((container) => toContainerDetail(container, facts)),
    volumes: (spec.volumes ?? []).map(({ name, ...source }) => {
      const measured = usage?.volume?.find((volume) => volume.name === name);
      return {
        name,
        type: describeVolume(source),
        usedBytes: measured?.usedBytes ?? 0,
        capacityBytes: volumeLimit(source) ?? measured?.capacityBytes ?? 0,
      };
    }),
    events: events.filter(({ involvedObject }) => involvedObject.uid === metadata.uid),
    explanation: [...explanation.causes, ...explanation.recent].map(({ subject, problem, facts, fix }) => ({
      problem: `${subject}: ${problem}`,
      facts,
      fix,
    })),
    imageUpdates,
    manifest,
  };
}

/** The type of a volume with the object or the path that it shows. */
function describeVolume(source: Omit<Volume, "name">): string {
  const type = Object.keys(source).find((key) => source[key as keyof typeof source] !== undefined) ?? "";
  const { emptyDir, configMap, secret, hostPath, persistentVolumeClaim } = source;
  if (emptyDir?.medium === "Memory") return `${type} in memory`;
  const what = configMap?.name ?? secret?.secretName ?? hostPath?.path ?? persistentVolumeClaim?.claimName ?? "";
  return what === "" ? type : `${type} ${what}`;
}

const volumeLimit = ({ emptyDir }: Omit<Volume, "name">): number | undefined =>
  emptyDir?.sizeLimit === undefined ? undefined : quantityToWhole(emptyDir.sizeLimit);

function kindOf(container: Container, { spec }: Pod): ContainerDetail["kind"] {
  if (isEphemeral(spec, container.name)) return "ephemeral";
  if (!spec.initContainers?.includes(container)) return "main";
  return container.restartPolicy === "Always" ? "sidecar" : "init";
}

function toContainerDetail(container: Container, facts: PodDetailFacts): ContainerDetail {
  const { name } = container;
  const kind = kindOf(container, facts.pod);
  const status = allStatusesOf(facts.pod.status).find((it) => it.name === name);
  const usage = facts.usage?.containers?.find((it) => it.name === name);
  const counters = facts.counters(name);
  const { limits } = container.resources ?? {};
  const { periods, throttledPeriods = 0 } = counters?.cpu ?? {};
  return {
    kind,
    spec: container,
    state: describeState(status, kind),
    status,
    cpuLimitCores: limits?.cpu ? quantityToMilli(limits.cpu) / 1000 : 0,
    memoryLimitBytes: limits?.memory ? quantityToWhole(limits.memory) : 0,
    cpuCores: (usage?.cpu?.usageNanoCores ?? 0) / 1e9,
    memoryBytes: usage?.memory?.workingSetBytes ?? 0,
    throttling: periods ? { periods, throttled: throttledPeriods } : null,
    oomKills: counters?.memory.oomKills ?? null,
    probeAttempts: {
      startup: facts.probeAttempts(name, "startup"),
      readiness: facts.probeAttempts(name, "readiness"),
      liveness: facts.probeAttempts(name, "liveness"),
    },
  };
}

/** Init and ephemeral containers are never ready while they run. */
function describeState(status: ContainerStatus | undefined, kind: ContainerDetail["kind"]): string {
  const { running, waiting, terminated } = status?.state ?? {};
  if (running) return status?.ready || kind === "init" || kind === "ephemeral" ? "running" : "running, not ready";
  if (terminated) return `${terminated.reason ?? "terminated"} (exit code ${terminated.exitCode})`;
  return waiting?.reason ?? "waiting";
}

/** The pod without termination messages that may be the end of a log: logs need a session. Pure. */
export function hideLogEnds(pod: Pod): Pod {
  const { spec, status } = pod;
  const mayShowLog = ({ terminationMessagePolicy: policy }: Container) => policy === "FallbackToLogsOnError";
  const hidden = new Set(
    containersOf(spec)
      .filter(mayShowLog)
      .map(({ name }) => name),
  );
  if (!status || hidden.size === 0) return pod;
  const hide = (statuses: ContainerStatus[]) =>
    statuses.map((it) =>
      hidden.has(it.name) ? { ...it, state: withoutMessage(it.state), lastState: withoutMessage(it.lastState) } : it,
    );
  return {
    ...pod,
    status: {
      ...status,
      ...(status.initContainerStatuses && { initContainerStatuses: hide(status.initContainerStatuses) }),
      ...(status.containerStatuses && { containerStatuses: hide(status.containerStatuses) }),
    },
  };
}

function withoutMessage(state: ContainerState): ContainerState {
  if (!state.terminated) return state;
  const { message: _, ...terminated } = state.terminated;
  return { ...state, terminated };
}

/** Attempts without what commands wrote and servers sent when a probe succeeded: events show those of failures only. Pure. */
export const hideProbeOutput = (attempts: readonly ProbeAttempt[]): ProbeAttempt[] =>
  attempts.map((attempt) => (attempt.result === "success" ? { ...attempt, output: "" } : attempt));

/** A longer manifest is shown as the decoded pod. */
export const MAX_SHOWN_MANIFEST_BYTES = 1024 * 1024;

interface ManifestFacts {
  file: string;
  /** 1-based line at which the document of the pod begins; undefined when it is not known. */
  line: number | undefined;
  /** Contents of the file; undefined for a reader that may not see them, and where there is no file. */
  text: string | undefined;
  findings: readonly Finding[];
  /** The pod as YAML, shown instead of a text that cannot be shown. */
  rendered: string;
}

/** The document of a pod with what is wrong in it. Pure. */
export function toManifestView({ file, line, text, findings, rendered }: ManifestFacts): ManifestView {
  const part = text === undefined ? undefined : documentAt(text, line ?? 1);
  const isSource = part !== undefined && !HIDDEN_KINDS.test(part.text);
  const first = isSource ? part.firstLine : 1;
  const last = isSource ? first + part.text.split("\n").length : Number.POSITIVE_INFINITY;
  return {
    text: isSource ? part.text : rendered,
    isSource,
    firstLine: first,
    findings: findings
      .filter((finding) => finding.file === file && (!isSource || (finding.line >= first && finding.line <= last)))
      .map(({ line: at, column, severity, field, message }) => ({
        line: at,
        column,
        isError: severity === "error",
        message: field === "" ? message : `${field}: ${message}`,
      })),
  };
}

/** Values of Secrets are shown to no one. */
const HIDDEN_KINDS = /\bkind["']?\s*:\s*["']?(?:Secret|SecretList|List)\b/;

/** The YAML document around a line, without its separators. A file that is not YAML is one document. */
function documentAt(text: string, line: number): { text: string; firstLine: number } {
  const lines = text.split("\n");
  const isSeparator = (index: number) => /^---(\s|$)/.test(lines[index] ?? "");
  let first = Math.min(Math.max(line - 1, 0), lines.length - 1);
  if (isSeparator(first)) first++;
  while (first > 0 && !isSeparator(first - 1)) first--;
  let end = first;
  while (end < lines.length && !isSeparator(end)) end++;
  return { text: lines.slice(first, end).join("\n").trimEnd(), firstLine: first + 1 };
}

const MAX_ATTEMPTS = 20;
/** Unit: UTF-16 code units. */
const MAX_OUTPUT = 200;

/** The last attempts of each probe of the pods that are there, for the page. */
export class ProbeLog {
  readonly #attempts = new Map<PodUID, Map<string, ProbeAttempt[]>>();

  add(
    uid: PodUID,
    container: string,
    kind: ProbeKind,
    outcome: ProbeOutcome,
    durationMs: number,
    timeMs: number,
  ): void {
    const pod = this.#attempts.getOrInsertComputed(uid, () => new Map());
    const attempts = pod.getOrInsert(`${container} ${kind}`, []);
    attempts.push({ time: timeMs, result: outcome.result, output: outcome.output.slice(0, MAX_OUTPUT), durationMs });
    if (attempts.length > MAX_ATTEMPTS) attempts.shift();
  }

  /** The pod was removed. */
  forget(uid: PodUID): void {
    this.#attempts.delete(uid);
  }

  attempts(uid: PodUID, container: string, kind: ProbeKind): readonly ProbeAttempt[] {
    return this.#attempts.get(uid)?.get(`${container} ${kind}`) ?? [];
  }
}
