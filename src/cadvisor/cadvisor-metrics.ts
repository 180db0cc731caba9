import type { MachineInfo } from "../api/machine-info.ts";
import { MetricPage } from "../metrics/metric-page.ts";
import { endOfText, familyHeader, labelText, stampText, type TextFormat } from "../metrics/prometheus-text.ts";
import type { NodeSample } from "../stats/sampler.ts";
import { EntityLabels, toEntities } from "./cadvisor-entity.ts";
import type { CadvisorFacts } from "./cadvisor-facts.ts";
import { containerFamilies } from "./cadvisor-families.ts";

/**
 * `/metrics/cadvisor`: names, labels, types and units as kubelet 1.20 (oracle 95), and a few that newer ones have
 * (bytes of block I/O, OOM kills, pressure). Megabytes with a hundred pods, so each page is made from the one before.
 */
export class CadvisorPage {
  readonly #format: TextFormat;
  readonly #page: MetricPage;
  readonly #labels = new EntityLabels();
  /** How many read a page at present. */
  readonly #readers = new WeakMap<Uint8Array, number>();
  #last: { sample: NodeSample; bytes: Uint8Array<ArrayBuffer> } | undefined;

  constructor(format: TextFormat) {
    this.#format = format;
    this.#page = new MetricPage(format);
  }

  /** Hands the page of this sample to `use`, which may read it until its promise is settled. */
  async read<T>(
    sample: NodeSample,
    readFacts: () => CadvisorFacts,
    use: (page: Uint8Array<ArrayBuffer>) => Promise<T>,
  ): Promise<T> {
    const page = this.render(sample, readFacts);
    this.#readers.set(page, (this.#readers.get(page) ?? 0) + 1);
    try {
      return await use(page);
    } finally {
      this.#readers.set(page, this.#readers.get(page)! - 1);
    }
  }

  /**
   * Makes the page, once for each sample. It may be made over when two others have been made.
   * @param readFacts called only when a page is made
   */
  render(sample: NodeSample, readFacts: () => CadvisorFacts): Uint8Array<ArrayBuffer> {
    if (this.#last?.sample === sample) return this.#last.bytes;
    const facts = readFacts();
    const page = this.#page;
    page.begin(` ${stampText(sample.at, this.#format)}`, (earlier) => (this.#readers.get(earlier) ?? 0) > 0);
    page.text(versionText(facts, this.#format));
    const entities = toEntities(sample, this.#labels);
    for (const { name, help, type, stamped, write } of containerFamilies(sample, facts)) {
      page.family(name, help, type, stamped);
      for (const entity of entities) write(entity, page);
    }
    page.text(machineText(facts.machine, this.#format) + endOfText(this.#format));
    this.#last = { sample, bytes: page.end() };
    return this.#last.bytes;
  }
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
