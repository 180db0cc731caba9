/**
 * One process of the case `probes`: `server`, `manager <port> <seconds>` or `floor <port> <seconds>`. The last two print
 * the CPU they used as JSON.
 */
import net from "node:net";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import type { Logger } from "../../src/base/model/logger.ts";
import { HostProber } from "../../src/kubelet/prober/host-prober.ts";
import { ProbeManager } from "../../src/kubelet/prober/probe-manager.ts";
import { aContainer, aPod, aRunning, aSandbox, aSnapshot } from "../../test/support/builders.ts";

const PODS = 200;
const PERIOD_SECONDS = 10;
/** Attempts in a period once every startup probe has succeeded: liveness by HTTP, readiness by HTTP and TCP in turn. */
const ATTEMPTS = PODS * 2;
const WARM_UP_MS = (PERIOD_SECONDS + 2) * 1000;

/** Report of a probe process. */
export interface ProbesReport {
  cpuPercent: number;
  attemptsPerSecond: number;
}

async function measure(seconds: number, attempts: () => number): Promise<ProbesReport> {
  await Bun.sleep(WARM_UP_MS);
  const before = attempts();
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  await Bun.sleep(seconds * 1000);
  const { user, system } = process.cpuUsage(cpu);
  const elapsedMs = performance.now() - startMs;
  return {
    cpuPercent: (user + system) / 10 / elapsedMs,
    attemptsPerSecond: ((attempts() - before) * 1000) / elapsedMs,
  };
}

function serve(): void {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: () => new Response("ok"),
  });
  console.log(server.port);
}

async function runManager(port: number, seconds: number): Promise<ProbesReport> {
  const clock = new SystemClock();
  const silent: Logger = { error: console.error, warn: console.error, info() {}, debug() {} };
  let attempts = 0;
  const manager = new ProbeManager({
    clock,
    logger: silent,
    recorder: { record: (pod, event) => console.error(pod.name, event.message) },
    prober: new HostProber({ exec: { run: () => Promise.reject(new Error("no exec")) }, clock, version: "1.20" }),
    random: Math.random,
    node: { ip: "" },
  });
  manager.attempts.add(() => attempts++);
  const http = { httpGet: { path: "/", port, scheme: "HTTP" as const } };
  const times = { timeoutSeconds: 1, periodSeconds: PERIOD_SECONDS, successThreshold: 1, failureThreshold: 3 };
  for (let n = 0; n < PODS; n++) {
    const container = aContainer({
      startupProbe: { ...http, ...times },
      livenessProbe: { ...http, ...times },
      readinessProbe: { ...(n % 2 ? http : { tcpSocket: { port } }), ...times },
    });
    const uid = `pod-${n}`;
    const snapshot = aSnapshot(
      [aRunning("app", { id: `c${n}`, startedAt: new Date() })],
      [aSandbox({ ips: ["127.0.0.1"] })],
    );
    manager.update(aPod({ containers: [container] }, { uid }), { ...snapshot, uid });
  }
  const report = await measure(seconds, () => attempts);
  await manager.stop();
  return report;
}

/** The same connections without a prober, on a tick of 200 ms. */
async function runFloor(port: number, seconds: number): Promise<ProbesReport> {
  let attempts = 0;
  let owed = 0;
  const timer = setInterval(() => {
    for (owed += (ATTEMPTS / PERIOD_SECONDS) * 0.2; owed >= 1; owed--) {
      const isTcp = attempts++ % 4 === 0;
      const socket = net.connect(port, "127.0.0.1");
      socket.on("error", (error) => console.error(error.message));
      socket.on("connect", () => {
        if (isTcp) socket.destroy();
        else socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);
      });
      socket.on("data", () => socket.destroy());
    }
  }, 200);
  const report = await measure(seconds, () => attempts);
  clearInterval(timer);
  return report;
}

if (import.meta.main) {
  const [role, port, seconds] = process.argv.slice(2);
  if (role === "server") serve();
  else {
    const run = role === "manager" ? runManager : runFloor;
    console.log(JSON.stringify(await run(Number(port), Number(seconds))));
    process.exit(0);
  }
}
