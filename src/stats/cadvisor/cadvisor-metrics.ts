import type { MachineInfo } from "../../base/api/machine-info.ts";
import {
  endOfText,
  familyHeader,
  labelText,
  numberText,
  type TextFormat,
  timestampText,
} from "../metrics/prometheus-text.ts";
import type { NodeSample } from "../node-sample.ts";
import { type AddSample, labelsText, toEntities } from "./cadvisor-entity.ts";
import type { CadvisorFacts } from "./cadvisor-facts.ts";
import { containerFamilies } from "./cadvisor-families.ts";

/**
 * `/metrics/cadvisor` in parts of one family each: names, labels, types and units of kubelet 1.20, and bytes of block
 * I/O, OOM kills and pressure as newer ones have them.
 */
export function* cadvisorMetricsParts(
  sample: NodeSample,
  facts: CadvisorFacts,
  format: TextFormat,
): Generator<string, void> {
  yield versionText(facts, format);
  const entities = toEntities(sample);
  const timestamp = timestampText(sample.at, format);
  for (const { name, help, type, hasTimestamp, write } of containerFamilies(sample, facts)) {
    const end = hasTimestamp ? ` ${timestamp}\n` : "\n";
    let samples = "";
    const add: AddSample = (labels, value, own) => {
      samples += `${name}${labelsText(labels, own)} ${numberText(value)}${end}`;
    };
    for (const entity of entities) write(entity, add);
    if (samples) yield familyHeader(name, help, type, format) + samples;
  }
  yield machineText(facts.machine, format) + endOfText(format);
}

function versionText({ engineVersion, kernelVersion, osVersion }: CadvisorFacts, format: TextFormat): string {
  const help =
    "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.";
  const labels = labelText(
    ["cadvisorRevision", "cadvisorVersion", "dockerVersion", "kernelVersion", "osVersion"],
    ["", "", engineVersion, kernelVersion, osVersion],
  );
  return `${familyHeader("cadvisor_version_info", help, "gauge", format)}cadvisor_version_info${labels} 1\n`;
}

function machineText(machine: MachineInfo, format: TextFormat): string {
  const names = ["boot_id", "machine_id", "system_uuid"];
  const values = [machine.boot_id, machine.machine_id, machine.system_uuid];
  const gauge = (name: string, help: string, samples: readonly (readonly [string, number])[]) =>
    familyHeader(name, help, "gauge", format) +
    samples.map(([labels, value]) => `${name}${labels} ${value}\n`).join("");
  const labels = labelText(names, values);
  const nvm = (mode: string) => labelText([...names, "mode"], [...values, mode]);
  return [
    gauge("machine_cpu_cores", "Number of logical CPU cores.", [[labels, machine.num_cores]]),
    gauge("machine_cpu_physical_cores", "Number of physical CPU cores.", [[labels, machine.num_physical_cores]]),
    gauge("machine_cpu_sockets", "Number of CPU sockets.", [[labels, machine.num_sockets]]),
    gauge("machine_memory_bytes", "Amount of memory installed on the machine.", [[labels, machine.memory_capacity]]),
    gauge("machine_nvm_avg_power_budget_watts", "NVM power budget.", [[labels, machine.nvm.avg_power_budget]]),
    gauge("machine_nvm_capacity", "NVM capacity value labeled by NVM mode (memory mode or app direct mode).", [
      [nvm("app_direct_mode"), machine.nvm["app direct_mode_capacity"]],
      [nvm("memory_mode"), machine.nvm.memory_mode_capacity],
    ]),
    gauge("machine_scrape_error", "1 if there was an error while getting machine metrics, 0 otherwise.", [["", 0]]),
  ].join("");
}
