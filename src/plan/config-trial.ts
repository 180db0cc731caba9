/** Decides which configuration the kubelet runs with: a new one is on trial until it has been healthy for a while. */
import type { Configuration } from "../base/model/configuration.ts";
import type { KubeletOptions } from "../config/option-table.ts";

/** The configuration that was tried last, as `.cur` keeps it. */
export interface TriedConfiguration extends Configuration {
  /** Processes that used it on trial and did not end in order; the running one counts until it stops. */
  failedRuns: number;
  /** Why it is not used; absent while it may be. */
  rejected?: string;
}

export interface KnownConfigurations {
  current?: TriedConfiguration | undefined;
  lastKnownGood?: Configuration | undefined;
}

export type StartDecision =
  /** `tried` is written before anything else is done. */
  | { use: "assigned"; isOnTrial: boolean; tried: TriedConfiguration }
  /** @property tried to be written; absent when the files could not be used at all */
  | { use: "last-known-good"; configuration: Configuration; error: string; tried?: TriedConfiguration }
  /** There is nothing to go back to: the errors end the start. */
  | { use: "none" };

/** A process may be killed once or twice for other reasons: a power cut, a lack of memory. */
const MAX_FAILED_RUNS = 3;

/** Chooses the configuration of a start. @param errors of the assigned configuration; non-empty: it cannot be used */
export function decideStart(
  known: KnownConfigurations,
  assigned: Configuration,
  errors: readonly string[],
): StartDecision {
  const { current, lastKnownGood } = known;
  if (errors.length > 0) {
    if (!lastKnownGood || lastKnownGood.id === assigned.id) return { use: "none" };
    return { use: "last-known-good", configuration: lastKnownGood, error: errors.join("; ") };
  }
  const before = current?.id === assigned.id ? current : undefined;
  const failedRuns = before?.failedRuns ?? 0;
  const { id, files } = assigned;
  if (lastKnownGood?.id === id) return { use: "assigned", isOnTrial: false, tried: { id, files, failedRuns: 0 } };
  if (lastKnownGood) {
    const rejected = before?.rejected ?? (failedRuns >= MAX_FAILED_RUNS ? toFailedRunsText(failedRuns) : undefined);
    if (rejected !== undefined) {
      const tried = { id, files, failedRuns, rejected };
      return { use: "last-known-good", configuration: lastKnownGood, error: rejected, tried };
    }
  }
  return { use: "assigned", isOnTrial: true, tried: { id, files, failedRuns: failedRuns + 1 } };
}

const toFailedRunsText = (count: number) =>
  `kubelet-ts ended ${count} times without being stopped while it was on trial`;

/** Parts of the kubelet that a configuration may break. */
export interface TrialHealth {
  /** Why the engine does not respond. */
  engineError: string | undefined;
  /** Names of configured ports that are not open. */
  closedPorts: readonly string[];
  /** Node conditions that are true: `MemoryPressure`. */
  pressures: readonly string[];
}

/** Options that can cause each symptom. Others cannot, so that an engine that is down does not condemn a new log level. */
const ENGINE_OPTIONS: ReadonlySet<keyof KubeletOptions> = new Set([
  "dockerEndpoint",
  "cgroupDriver",
  "runtimeRequestTimeoutMs",
]);
const PORT_OPTIONS = /port$|address$|^tls|^cert|clientCaFile|anonymousAuth|enableServer/i;
const PRESSURE_OPTIONS = /^eviction|Reserved/;

/** How long a symptom must last. Pressure evicts pods at once. */
const LASTING_MS = 60_000;

interface Symptom {
  text: string;
  /** 0 = immediately. */
  lastingMs: number;
}

/** Symptoms that the changed options explain. Pure. */
export function findSymptoms(changed: readonly (keyof KubeletOptions)[], health: TrialHealth): Symptom[] {
  const because = (names: readonly string[]) => `after a change of ${names.join(", ")}`;
  const engine = changed.filter((name) => ENGINE_OPTIONS.has(name));
  const ports = changed.filter((name) => PORT_OPTIONS.test(name));
  const pressure = changed.filter((name) => PRESSURE_OPTIONS.test(name));
  const symptoms: Symptom[] = [];
  if (engine.length > 0 && health.engineError !== undefined) {
    symptoms.push({ text: `${health.engineError} (${because(engine)})`, lastingMs: LASTING_MS });
  }
  if (ports.length > 0 && health.closedPorts.length > 0) {
    const closed = health.closedPorts.map((name) => `the ${name} port`).join(", ");
    symptoms.push({ text: `${closed} cannot be opened (${because(ports)})`, lastingMs: LASTING_MS });
  }
  if (pressure.length > 0 && health.pressures.length > 0) {
    symptoms.push({ text: `${health.pressures.join(", ")} (${because(pressure)})`, lastingMs: 0 });
  }
  return symptoms;
}

/** Times are monotonic. */
export interface TrialProgress {
  startedAtMs: number;
  /** Since when there have been symptoms without a break. */
  unwellSinceMs: number | undefined;
}

type TrialVerdict =
  | { is: "on-trial"; progress: TrialProgress }
  | { is: "good" }
  /** Its live settings are; the others decide after a restart. */
  | { is: "good-until-restart" }
  | { is: "rejected"; why: string };

interface TrialObservation {
  nowMs: number;
  trialMs: number;
  symptoms: readonly Symptom[];
  /** Some options take effect at the next start only: until then it cannot become the last known good one. */
  needsRestart: boolean;
}

/** Continues a trial by one observation. The trial begins again after each symptom. */
export function judgeTrial(progress: TrialProgress, observation: TrialObservation): TrialVerdict {
  const { nowMs, trialMs, symptoms, needsRestart } = observation;
  if (symptoms.length === 0) {
    const startedAtMs = progress.unwellSinceMs === undefined ? progress.startedAtMs : nowMs;
    if (nowMs - startedAtMs >= trialMs) return { is: needsRestart ? "good-until-restart" : "good" };
    return { is: "on-trial", progress: { startedAtMs, unwellSinceMs: undefined } };
  }
  const unwellSinceMs = progress.unwellSinceMs ?? nowMs;
  const lasting = symptoms.filter(({ lastingMs }) => nowMs - unwellSinceMs >= Math.min(lastingMs, trialMs));
  if (lasting.length > 0) return { is: "rejected", why: lasting.map(({ text }) => text).join("; ") };
  return { is: "on-trial", progress: { ...progress, unwellSinceMs } };
}
