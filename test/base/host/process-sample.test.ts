import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isOfContainer, sampleProcesses } from "../../../src/base/host/process-sample.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const tempDir = tempDirs();

interface FakeProcess {
  parent: number;
  name?: string;
  state?: string;
  ticks?: [number, number];
  /** State and context switches of each thread. */
  threads?: [string, number, number][];
}

function fakeProc(processes: Record<number, FakeProcess>): string {
  const proc = tempDir();
  writeFileSync(join(proc, "uptime"), "1 1");
  for (const [pid, { parent, name = "app", state = "S", ticks = [0, 0], threads = [["S", 1, 2]] }] of Object.entries(
    processes,
  )) {
    mkdirSync(join(proc, pid));
    const zeros = Array.from({ length: 9 }, () => 0).join(" ");
    writeFileSync(join(proc, pid, "stat"), `${pid} (${name}) ${state} ${parent} ${zeros} ${ticks.join(" ")} 0 0`);
    for (const [index, [threadState, voluntary, involuntary]] of threads.entries()) {
      const directory = join(proc, pid, "task", String(Number(pid) + index));
      mkdirSync(directory, { recursive: true });
      const lines = [
        `Name:\t${name}`,
        `State:\t${threadState} (whatever)`,
        `voluntary_ctxt_switches:\t${voluntary}`,
        `nonvoluntary_ctxt_switches:\t${involuntary}`,
      ];
      writeFileSync(join(directory, "status"), `${lines.join("\n")}\n`);
    }
  }
  return proc;
}

const inStates = (...states: string[]) => states.map((state): [string, number, number] => [state, 1, 1]);

describe("samples of processes", () => {
  test("what a main process has started counts with it, what others have does not", () => {
    const proc = fakeProc({
      10: { parent: 1, name: "a ) (b", ticks: [1, 2] },
      11: { parent: 10, ticks: [3, 0], threads: [["S", 10, 0]] },
      12: { parent: 11, ticks: [0, 4], threads: [["S", 100, 0]] },
      20: { parent: 1, ticks: [50, 50], threads: [["R", 1000, 0]] },
    });
    expect(sampleProcesses([10, 20, 30], proc)).toEqual([
      { state: "asleep", switches: 113, cpuMs: 100 },
      { state: "busy", switches: 1000, cpuMs: 1000 },
      { state: "gone", switches: 0, cpuMs: 0 },
    ]);
  });

  test.each<[string, FakeProcess, string]>([
    ["one thread that runs is enough", { parent: 1, threads: inStates("S", "R") }, "busy"],
    ["waiting for a disk is work", { parent: 1, threads: inStates("D") }, "busy"],
    ["a zombie has ended", { parent: 1, state: "Z", threads: inStates("Z") }, "gone"],
    ["the runtime's own process is not a program yet", { parent: 1, name: "runc:[2:INIT]" }, "starting"],
  ])("%s", (_, main, want) => {
    expect(sampleProcesses([10], fakeProc({ 10: main }))[0]?.state).toBe(want as never);
  });

  test("a real process asleep has not run from one sample to the next; one that ended is gone", async () => {
    const child = Bun.spawn(["sleep", "60"]);
    try {
      const asleep = await until("the child to sleep", () => {
        const [sample] = sampleProcesses([child.pid]);
        return sample?.state === "asleep" && sample;
      });
      expect(sampleProcesses([child.pid])).toEqual([asleep]);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(sampleProcesses([child.pid])[0]?.state).toBe("gone");
  });

  test("a pid belongs to the container its cgroup names", () => {
    const proc = fakeProc({ 10: { parent: 1 } });
    const id = "f".repeat(64);
    writeFileSync(join(proc, "10", "cgroup"), `4:memory:/kubepods/besteffort/podx/${id}\n`);
    expect(isOfContainer(10, id, proc)).toBe(true);
    expect(isOfContainer(10, "e".repeat(64), proc)).toBe(false);
    expect(isOfContainer(11, id, proc)).toBe(false);
  });
});
