import type { MachineInfo } from "../api/machine-info.ts";
import type { Summary } from "../api/stats-summary.ts";
import type { TextFormat } from "../stats/prometheus-text.ts";

/** The measurements the routes hand out; `NodeStats` is the one that takes them. Nothing is measured while nobody asks. */
export interface StatsSource {
  machineInfo(): MachineInfo;
  summary(onlyCpuAndMemory: boolean): Promise<Summary>;
  /** `/metrics/cadvisor`, whole text. */
  cadvisorMetrics(format: TextFormat): Promise<string>;
  /** `/metrics/resource`, whole text. */
  resourceMetrics(format: TextFormat): Promise<string>;
}
