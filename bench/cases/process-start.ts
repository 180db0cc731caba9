import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY } from "../../test/support/kubelet-process.ts";
import { TestNode } from "../../test/support/test-node.ts";
import { until } from "../../test/support/until.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";

const ROUNDS = 20;

async function measureVersion(): Promise<Measurement[]> {
  const runs: number[] = [];
  const floors: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    runs.push(await timeProcess([BINARY, "--version"]));
    floors.push(await timeProcess(["/bin/true"]));
  }
  return [{ what: "--version", unit: "ms", value: median(runs), runs, floor: median(floors), floorText: "/bin/true" }];
}

async function timeProcess(cmd: string[]): Promise<number> {
  const started = performance.now();
  const exitCode = await Bun.spawn({ cmd, stdin: "ignore", stdout: "ignore", stderr: "ignore" }).exited;
  if (exitCode !== 0) throw new Error(`${cmd.join(" ")} ended with ${exitCode}`);
  return performance.now() - started;
}

/** Measures with a socket that accepts the first call and never answers. */
async function measureFirstCall(): Promise<Measurement[]> {
  const runs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) runs.push(await timeToFirstCall(round));
  return [{ what: "process start to first Docker call", unit: "ms", value: median(runs), runs, goal: { atMost: 60 } }];
}

async function timeToFirstCall(round: number): Promise<number> {
  const socketPath = join(tmpdir(), `kubelet-ts-bench-${process.pid}-${round}.sock`);
  const { promise: firstCall, resolve, reject } = Promise.withResolvers<number>();
  const listener = Bun.listen({ unix: socketPath, socket: { data: () => resolve(performance.now()) } });
  const node = new TestNode({ socketPath });
  try {
    const manifest = join(node.manifestDir, "p.json");
    node.writeManifest("p.json", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "p" },
      spec: { containers: [{ name: "app", image: "busybox:test" }] },
    });
    const started = performance.now();
    const child = node.spawn(["--runonce", ...node.identityFlags(), manifest]);
    child.finished().then(({ stderr }) => reject(new Error(`the kubelet ended without a call:\n${stderr}`)));
    return (await firstCall) - started;
  } finally {
    await node.endProcesses();
    listener.stop(true);
    node.removeFiles();
    rmSync(socketPath, { force: true });
  }
}

/** The process and its children, from the start to the end: other work on the machine hardly changes it. */
async function measureProcessorTime(): Promise<Measurement[]> {
  const runs: number[] = [];
  for (let round = 0; round < ROUNDS / 2; round++) {
    const node = new TestNode();
    try {
      const ignored = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
      const child = Bun.spawn({ cmd: [BINARY, ...node.flags()], ...ignored });
      await until("its health", () => node.read("/healthz", node.healthzPort));
      child.kill("SIGTERM");
      await child.exited;
      runs.push(Number(child.resourceUsage()!.cpuTime.total) / 1000);
    } finally {
      await node.cleanUp();
    }
  }
  return [
    { what: "processor time of a kubelet without pods", unit: "ms", value: median(runs), runs, goal: { atMost: 250 } },
  ];
}

export const processStartCases: readonly BenchCase[] = [
  { name: "version", about: "time of --version, against a program that does nothing", run: measureVersion },
  { name: "first-call", about: "from process start to the first call to the engine", run: measureFirstCall },
  { name: "start-cpu", about: "processor time of a start and a stop without pods", run: measureProcessorTime },
];
