import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseCoreTimes } from "../../../src/base/host/proc.ts";
import { readMemory, toCoreUse, toInterfaceRows } from "../../../src/daemon/assembly/page-machine.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("memory of the machine", () => {
  const proc = tempDir();
  const lines = ["MemTotal: 100", "MemAvailable: 60", "Buffers: 5", "Cached: 20", "SwapTotal: 50", "SwapFree: 40"];
  writeFileSync(join(proc, "meminfo"), lines.map((line) => `${line} kB\n`).join(""));
  expect(readMemory(proc)).toEqual({
    totalBytes: 102_400,
    availableBytes: 61_440,
    cachedBytes: 25_600,
    swapBytes: 51_200,
    swapUsedBytes: 10_240,
  });
});

test("use of a core is what it did between two readings", () => {
  const stat = (...cores: string[]) => `cpu 1 2 3 4 5 6 7 8\n${cores.join("\n")}\nintr 1 2 3\nbtime 5\n`;
  const before = parseCoreTimes(stat("cpu0 100 0 50 800 10 0 0 0 0 0", "cpu2 0 0 0 0 0 0 0 0 0 0"));
  const after = parseCoreTimes(stat("cpu0 120 10 55 840 15 2 3 15 0 0", "cpu2 0 0 0 0 0 0 0 0 0 0"));
  expect(toCoreUse(before, after)).toEqual([
    { user: 30, system: 10, wait: 5, stolen: 15 },
    { user: 0, system: 0, wait: 0, stolen: 0 },
  ]);
  expect(toCoreUse(before, after.slice(1))).toEqual([]);
});

test("interfaces that carried nothing are left out", () => {
  const counters = { rxPackets: 0, txPackets: 0, rxErrors: 1, txErrors: 2, rxDropped: 3, txDropped: 4 };
  const rows = toInterfaceRows([
    { name: "ifb0", rxBytes: 0, txBytes: 0, ...counters },
    { name: "eth0", rxBytes: 10, txBytes: 20, ...counters },
  ]);
  expect(rows).toEqual([{ name: "eth0", receivedBytes: 10, sentBytes: 20, errors: 3, dropped: 7 }]);
});
