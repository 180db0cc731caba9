import { join } from "node:path";
import * as v from "valibot";
import { StateFile } from "../base/host/state-file.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Configuration } from "../base/model/configuration.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { ResolvedOptions } from "../config/resolve-options.ts";
import { decideStart, type StartDecision, type TriedConfiguration } from "../plan/config-trial.ts";

/** `.cur` and `.lkg` of `--dynamic-config-dir`. */
export interface ConfigurationStore {
  tried: Persisted<TriedConfiguration>;
  lastKnownGood: Persisted<Configuration>;
}

/** How this process came to its configuration. */
export interface ConfigurationStart {
  store: ConfigurationStore;
  decision: Exclude<StartDecision, { use: "none" }>;
  /** As the files are. */
  assigned: Configuration;
  lastKnownGood: Configuration | undefined;
  /** Options by the last known good configuration; undefined without one. */
  goodOptions: KubeletOptions | undefined;
}

interface ChosenConfiguration {
  /** To be used; with `errors`, which end the start. */
  resolved: ResolvedOptions;
  /** Absent without configuration files, without trials, and when the start fails. */
  start?: ConfigurationStart;
}

const ConfigurationSchema = v.object({
  id: v.string(),
  files: v.array(v.object({ path: v.string(), text: v.string() })),
});
const TriedConfigurationSchema: v.GenericSchema<unknown, TriedConfiguration> = v.object({
  ...ConfigurationSchema.entries,
  failedRuns: v.number(),
  rejected: v.exactOptional(v.string()),
});

export function openConfigurationStore(
  directory: string,
  clock: Pick<Clock, "schedule">,
  warn: (message: string) => void,
): ConfigurationStore {
  const open = <T>(name: string, schema: v.GenericSchema<unknown, T>) =>
    new StateFile(
      join(directory, name),
      { version: 1, durable: true, parse: (data) => v.parse(schema, data) },
      clock,
      warn,
    );
  return { tried: open(".cur", TriedConfigurationSchema), lastKnownGood: open(".lkg", ConfigurationSchema) };
}

/**
 * Chooses between the configuration of the files and the last known good one. Only reads.
 * @param resolved by the files as they are
 * @param resolveWith resolves the same command line with the content of another configuration
 * @param openStore called with the directory of the store
 */
export async function chooseConfiguration(
  resolved: ResolvedOptions,
  resolveWith: (configuration: Configuration) => Promise<ResolvedOptions>,
  openStore: (directory: string) => ConfigurationStore,
): Promise<ChosenConfiguration> {
  const { options, errors, configuration: assigned } = resolved;
  if (!assigned || options.configTrialPeriodMs === 0 || options.runOnce) return { resolved };
  const store = openStore(options.dynamicConfigDir);
  const lastKnownGood = store.lastKnownGood.read();
  const good = lastKnownGood && (await resolveWith(lastKnownGood));
  // It may contradict the flags, which have changed since.
  const usable = good && good.errors.length === 0 ? lastKnownGood : undefined;
  const decision = decideStart({ current: store.tried.read(), lastKnownGood: usable }, assigned, errors);
  if (decision.use === "none") return { resolved };
  const start = { store, decision, assigned, lastKnownGood: usable, goodOptions: usable && good?.options };
  return { resolved: decision.use === "assigned" || !good ? resolved : good, start };
}
