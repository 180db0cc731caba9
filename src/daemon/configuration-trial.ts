import type { Clock } from "../base/model/clock.ts";
import type { Configuration, ConfigurationStatus } from "../base/model/configuration.ts";
import { type EventRecorder, nodeTarget } from "../base/model/pod-event.ts";
import { compareOptions, type KubeletOptions } from "../config/option-table.ts";
import { findSymptoms, judgeTrial, type TrialHealth, type TrialProgress } from "../plan/config-trial.ts";
import type { ConfigurationStart } from "./choose-configuration.ts";

interface ConfigurationTrialDeps {
  clock: Clock;
  recorder: EventRecorder;
  nodeName: string;
  start: ConfigurationStart;
  /** Options of the start. */
  options: KubeletOptions;
  trialMs: number;
  health: () => TrialHealth;
  /** Puts the last known good configuration in force, by a restart of kubelet-ts if necessary. */
  rollBack: (configuration: Configuration) => Promise<void>;
}

/** Health is checked this often, only during a trial. */
const TICK_MS = 10_000;

/**
 * Watches a new configuration until it has been healthy for the trial period. Then it is the last known good one; if it
 * makes the kubelet unhealthy, the last known good one comes back. Writes `.cur` and `.lkg`, records events of the node.
 */
export class ConfigurationTrial {
  readonly #deps: ConfigurationTrialDeps;
  status: ConfigurationStatus;
  /** Options of the last known good configuration. */
  #goodOptions: KubeletOptions | undefined;
  /** undefined while nothing is on trial. */
  #trial:
    | { configuration: Configuration; options: KubeletOptions; needsRestart: boolean; progress: TrialProgress }
    | undefined;
  #rejected: { id: string; why: string } | undefined;
  #cancel: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: ConfigurationTrialDeps) {
    this.#deps = deps;
    const { decision, assigned, lastKnownGood, goodOptions } = deps.start;
    this.#goodOptions = goodOptions;
    const isAssigned = decision.use === "assigned";
    this.status = {
      assigned,
      active: isAssigned ? assigned : decision.configuration,
      lastKnownGood,
      error: isAssigned ? undefined : decision.error,
    };
  }

  /** Writes down that this process uses the configuration, before anything else that may fail. */
  begin(): void {
    const { decision, store, assigned } = this.#deps.start;
    if (decision.tried) store.tried.write(decision.tried);
    if (decision.use === "last-known-good") {
      if (decision.tried) this.#rejected = { id: assigned.id, why: decision.error };
      this.#record("Warning", "KubeletConfigRejected", this.#rollbackMessage(decision.error));
    } else if (decision.isOnTrial) {
      this.#beginTrial(assigned, { ...this.#deps.options }, false);
    }
  }

  /** Why this configuration is not taken over; undefined when it may be. */
  refusalOf({ id }: Configuration): string | undefined {
    return this.#rejected?.id === id ? this.#rejected.why : undefined;
  }

  /** The files cannot be used; what is in force stays. */
  invalid(configuration: Configuration, errors: string): void {
    this.status = { ...this.status, assigned: configuration, error: errors };
    const kept = `configuration ${this.status.active?.id} stays in force`;
    this.#record("Warning", "InvalidKubeletConfig", `${errors}; ${kept}`);
  }

  /**
   * The live options of this configuration are in force.
   * @param needRestart options that wait for a restart of kubelet-ts
   */
  assigned(configuration: Configuration, options: KubeletOptions, needRestart: readonly string[]): void {
    const needsRestart = needRestart.length > 0;
    const error = needsRestart ? `these settings need a restart of kubelet-ts: ${needRestart.join(", ")}` : undefined;
    if (configuration.id === this.status.assigned?.id && error === this.status.error) return;
    const active = needsRestart ? this.status.active : configuration;
    this.status = { ...this.status, assigned: configuration, active, error };
    this.#rejected = undefined;
    if (this.#trial?.configuration.id === configuration.id) return;
    this.#endTrial();
    const isGood = configuration.id === this.status.lastKnownGood?.id;
    this.#deps.start.store.tried.write({ ...configuration, failedRuns: isGood ? 0 : 1 });
    if (isGood) this.#record("Normal", "KubeletConfigChanged", `Configuration ${describe(configuration)} is in force`);
    else this.#beginTrial(configuration, { ...options }, needsRestart);
  }

  /** The process ends normally, which does not count against the configuration. */
  stopped(): void {
    this.#isStopped = true;
    const trial = this.#trial;
    this.#endTrial();
    if (!trial) return;
    const { tried } = this.#deps.start.store;
    const { decision } = this.#deps.start;
    const isOfStart = decision.use === "assigned" && decision.tried.id === trial.configuration.id;
    const failedRuns = isOfStart ? decision.tried.failedRuns - 1 : 0;
    tried.write({ ...trial.configuration, failedRuns });
  }

  /** The process ends by an error, which counts against the configuration. */
  failed(): void {
    this.#isStopped = true;
    this.#endTrial();
  }

  #beginTrial(configuration: Configuration, options: KubeletOptions, needsRestart: boolean): void {
    const { clock, trialMs } = this.#deps;
    const progress = { startedAtMs: clock.monotonicMs(), unwellSinceMs: undefined };
    this.#trial = { configuration, options, needsRestart, progress };
    const seconds = Math.round(trialMs / 1000);
    const since = needsRestart ? "its live settings are in force" : "is in force";
    const message = `Configuration ${describe(configuration)}: ${since}, on trial for ${seconds} s`;
    this.#record("Normal", "KubeletConfigChanged", message);
    this.#scheduleTick();
  }

  #endTrial(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#trial = undefined;
  }

  #scheduleTick(): void {
    const { clock, trialMs } = this.#deps;
    this.#cancel = clock.schedule(Math.min(TICK_MS, trialMs), () => this.#tick());
  }

  #tick(): void {
    this.#cancel = undefined;
    const { clock, trialMs, health } = this.#deps;
    if (!this.#trial || this.#isStopped) return;
    const { options, needsRestart, progress } = this.#trial;
    const changed = this.#goodOptions && compareOptions(this.#goodOptions, options);
    const symptoms = findSymptoms(changed ? [...changed.live, ...changed.needRestart] : [], health());
    const verdict = judgeTrial(progress, { nowMs: clock.monotonicMs(), trialMs, symptoms, needsRestart });
    switch (verdict.is) {
      case "on-trial":
        this.#trial.progress = verdict.progress;
        this.#scheduleTick();
        break;
      case "good":
        this.#becomeGood();
        break;
      case "good-until-restart":
        this.#deps.start.store.tried.write({ ...this.#trial.configuration, failedRuns: 0 });
        this.#endTrial();
        break;
      case "rejected":
        this.#reject(verdict.why);
        break;
      default:
        verdict satisfies never;
    }
  }

  #becomeGood(): void {
    if (!this.#trial) return;
    const { configuration, options } = this.#trial;
    const { store } = this.#deps.start;
    this.#endTrial();
    const { id, files } = configuration;
    store.lastKnownGood.write({ id, files });
    store.tried.write({ id, files, failedRuns: 0 });
    this.#goodOptions = options;
    this.status = { ...this.status, lastKnownGood: configuration };
    const message = `Configuration ${describe(configuration)} is the last known good one now`;
    this.#record("Normal", "KubeletConfigGood", message);
  }

  #reject(why: string): void {
    const { lastKnownGood } = this.status;
    if (!this.#trial || !lastKnownGood) return;
    const { configuration } = this.#trial;
    this.#endTrial();
    this.#deps.start.store.tried.write({ ...configuration, failedRuns: 0, rejected: why });
    this.#rejected = { id: configuration.id, why };
    this.status = { ...this.status, active: lastKnownGood, error: why };
    this.#record("Warning", "KubeletConfigRejected", this.#rollbackMessage(why));
    void this.#deps.rollBack(lastKnownGood);
  }

  #rollbackMessage(why: string): string {
    const { assigned, lastKnownGood } = this.status;
    const rejected = assigned ? describe(assigned) : "of the files";
    return `Configuration ${rejected} is not used: ${why}; the last known good one (${lastKnownGood?.id}) is in force. Correct the file to have it tried again`;
  }

  #record(type: "Normal" | "Warning", reason: string, message: string): void {
    const { recorder, nodeName } = this.#deps;
    recorder.record(nodeTarget(nodeName), { type, reason, message });
  }
}

/** `1f0c… (/etc/kubelet-ts/config.yaml)`. */
const describe = ({ id, files }: Configuration): string => {
  const [first] = files;
  const more = files.length > 1 ? ` and ${files.length - 1} more` : "";
  return first ? `${id} (${first.path}${more})` : id;
};
