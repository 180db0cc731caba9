import { join } from "node:path";
import type { BenchCase, Measurement } from "../bench-case.ts";
import type { ProbesReport } from "./probes-process.ts";

const PROCESS = join(import.meta.dir, "probes-process.ts");
const SECONDS = 30;

async function report(role: "manager" | "floor", port: string): Promise<ProbesReport> {
  const child = Bun.spawn([process.execPath, PROCESS, role, port, String(SECONDS)], { stderr: "inherit" });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`the ${role} of the case probes ended with ${child.exitCode}`);
  return JSON.parse(text) as ProbesReport;
}

/** CPU of 600 probes (a third of them done once their containers have started), against the same connections bare. */
async function measureProbes(): Promise<Measurement[]> {
  const server = Bun.spawn([process.execPath, PROCESS, "server"], { stdout: "pipe" });
  try {
    const { value } = await server.stdout.getReader().read();
    const port = new TextDecoder().decode(value).trim();
    const floor = await report("floor", port);
    const manager = await report("manager", port);
    return [
      {
        what: "CPU of 200 pods with 3 probes each, every 10 s",
        unit: "%",
        value: manager.cpuPercent,
        floor: floor.cpuPercent,
        floorText: "the same connections, bare",
        goal: { ratioAtMost: 2 },
      },
      { what: "  attempts made", unit: "per s", value: manager.attemptsPerSecond, floor: floor.attemptsPerSecond },
    ];
  } finally {
    server.kill();
    await server.exited;
  }
}

export const probesCases: readonly BenchCase[] = [
  {
    name: "probes",
    about: "CPU of the prober alone: 200 pods with startup, liveness and readiness probes against a local server",
    run: measureProbes,
  },
];
