import { parsePressure } from "./cgroup-stats.ts";
import { readText } from "./read-text.ts";

/** Share of the last ten seconds in which some task waited. Unit: per cent. */
interface MachinePressure {
  cpu: number;
  memory: number;
  io: number;
}

/** PSI of the whole machine; undefined where the kernel does not report it. @param procRoot in tests a directory of fixtures */
export function readMachinePressure(procRoot = "/proc"): MachinePressure | undefined {
  const [cpu, memory, io] = ["cpu", "memory", "io"].map(
    (resource) => parsePressure(readText(`${procRoot}/pressure/${resource}`))?.some.avg10,
  );
  return cpu === undefined || memory === undefined || io === undefined ? undefined : { cpu, memory, io };
}
