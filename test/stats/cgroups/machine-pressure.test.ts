import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readMachinePressure } from "../../../src/stats/cgroups/machine-pressure.ts";

test("the pressure of the machine is that of the last ten seconds; a kernel without PSI has none", () => {
  const proc = mkdtempSync(join(tmpdir(), "pressure-"));
  try {
    expect(readMachinePressure(proc)).toBeUndefined();
    mkdirSync(join(proc, "pressure"));
    const write = (name: string, avg10: string) =>
      writeFileSync(join(proc, "pressure", name), `some avg10=${avg10} avg60=3.03 avg300=1.50 total=17971086\n`);
    write("cpu", "97.58");
    write("memory", "0.00");
    expect(readMachinePressure(proc)).toBeUndefined();
    write("io", "1.17");
    expect(readMachinePressure(proc)).toEqual({ cpu: 97.58, memory: 0, io: 1.17 });
  } finally {
    rmSync(proc, { recursive: true });
  }
});
