/**
 * `npm run attack [-- name…]`: runs attacks against dist/kubelet-ts (or KUBELET_TS_BINARY), all of them when none is named,
 * and prints what each did to the kubelet: growth of its memory, the longest time for which its event loop was held, restarts
 * of healthy pods (which must be 0). `npm run attack -- --list` names them. Needs a Docker engine; loopback only; removes what it started.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { liveNodes, TestNode } from "../test/support/test-node.ts";
import { apiAttacks } from "./attack/api-attacks.ts";
import type { Attack, AttackTarget, Figure } from "./attack/attack.ts";
import { clusterAttacks } from "./attack/cluster-attacks.ts";
import { podAttacks } from "./attack/pod-attacks.ts";
import { serverAttacks } from "./attack/server-attacks.ts";
import { streamAttacks } from "./attack/stream-attacks.ts";

/** The figures without an attack, for comparison. */
const nothing: Attack = {
  name: "nothing",
  about: "no attack, for comparison",
  maxGrowthMegabytes: 64,
  run: async () => {
    await Bun.sleep(20_000);
    return [];
  },
};

const ATTACKS: readonly Attack[] = [
  nothing,
  ...streamAttacks,
  ...serverAttacks,
  ...apiAttacks,
  ...podAttacks,
  ...clusterAttacks,
];
const BYSTANDERS = 3;
/** Processor time for which an attack may hold the supervising loop at a stretch. Unit: milliseconds. */
const MAX_SLICE_MS = 50;
const SLICES_MODULE = join(import.meta.dir, "attack", "loop-slices.ts");

const bystander = (name: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: "app",
        image: "busybox:test",
        command: ["sh", "-c", "echo ok > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"],
        livenessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 3 },
      },
    ],
  },
});

function readMegabytes(pid: number, field: "VmRSS" | "VmHWM" | "RssFile"): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? Number.NaN) / 1024;
}

/** Processor time of a process so far. Unit: seconds. */
function readCpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = 0, system = 0] = text.slice(text.lastIndexOf(")")).split(" ").slice(12, 14).map(Number);
  return (user + system) / 100;
}

/**
 * The longest times for which the event loop was held so far, those of the kubelet's process. Unit: milliseconds of processor time.
 * Source: attack/loop-slices.ts.
 */
const readSlices = (file: string, pid: number): number[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.split(" ").map(Number))
    .flatMap(([process, ms]) => (process === pid && ms !== undefined ? [ms] : []));

async function restartsOf(node: TestNode): Promise<number> {
  // Work of the attack may still be in progress: then the answer is 429 or 503.
  let pods = await node.pods().catch(() => undefined);
  for (let attempt = 0; !pods && attempt < 20; attempt++) {
    await Bun.sleep(500);
    pods = await node.pods().catch(() => undefined);
  }
  if (!pods) return Number.POSITIVE_INFINITY;
  const bystanders = pods.filter(({ metadata }) => metadata.name?.startsWith("bystander-"));
  const counts = bystanders.flatMap(
    ({ status }) => status.containerStatuses?.map(({ restartCount }) => restartCount) ?? [],
  );
  return counts.length < BYSTANDERS ? Number.POSITIVE_INFINITY : counts.reduce((sum, count) => sum + count, 0);
}

async function runAttack(attack: Attack): Promise<boolean> {
  if (attack.impossible !== undefined) {
    console.log(`${attack.name}: not run: ${attack.impossible}`);
    return true;
  }
  const node = new TestNode();
  try {
    for (let i = 0; i < BYSTANDERS; i++) node.writeManifest(`bystander-${i}.json`, bystander(`bystander-${i}`));
    const slicesFile = join(node.directory, "slices");
    writeFileSync(slicesFile, "");
    const child = await node.start(attack.flags?.(node), {
      prefix: [
        "nice",
        "-n",
        "-20",
        "env",
        `BUN_OPTIONS=--preload ${SLICES_MODULE}`,
        `KUBELET_TS_ATTACK_SLICES=${slicesFile}`,
      ],
    });
    const { pid } = child;
    await node.until("the bystanders to run", async () => {
      const pods = await node.pods();
      return pods.length === BYSTANDERS && pods.every(({ status }) => status.phase === "Running");
    });
    await Bun.sleep(3_000);
    const target: AttackTarget = { node, pid };
    const before = {
      megabytes: readMegabytes(pid, "VmRSS"),
      fileMegabytes: readMegabytes(pid, "RssFile"),
      cpuSeconds: readCpuSeconds(pid),
      slices: readSlices(slicesFile, pid).length,
    };
    // Resets the kernel's record of the peak.
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
    const startMs = performance.now();
    const own = await attack.run(target);
    const seconds = (performance.now() - startMs) / 1_000;
    if (!child.running) throw new Error(`The kubelet ended: ${child.log.slice(-2_000)}`);
    const peak = readMegabytes(pid, "VmHWM");
    const cpuSeconds = readCpuSeconds(pid) - before.cpuSeconds;
    // Pages of the program's file stay once they are touched, and are no memory of a client.
    const filePages = readMegabytes(pid, "RssFile") - before.fileMegabytes;
    await Bun.sleep(2_000);
    const slices = readSlices(slicesFile, pid).slice(before.slices);
    const figures: Figure[] = [
      {
        what: "growth of RSS at its peak",
        unit: `MB, of which ${filePages.toFixed(1)} are pages of the program's file`,
        value: peak - before.megabytes,
        atMost: attack.maxGrowthMegabytes,
      },
      { what: "restarts of bystanders", unit: "", value: await restartsOf(node), atMost: 0 },
      {
        what: "longest slice of the event loop",
        unit: `ms of processor time (${slices.filter((ms) => ms > MAX_SLICE_MS).length} above the limit)`,
        value: Math.max(0, ...slices),
        atMost: MAX_SLICE_MS,
      },
      ...own,
    ];
    console.log(
      `${attack.name} (${seconds.toFixed(0)} s, ${cpuSeconds.toFixed(1)} of processor time): ${attack.about}`,
    );
    for (const { what, unit, value, atMost } of figures) {
      const verdict = value <= atMost ? "ok" : `ABOVE ${atMost}`;
      console.log(`  ${what}: ${Number.isInteger(value) ? value : value.toFixed(1)} ${unit} ${verdict}`);
    }
    return figures.every(({ value, atMost }) => value <= atMost);
  } finally {
    await node.cleanUp();
  }
}

const args = process.argv.slice(2);
if (args.includes("--list")) {
  for (const { name, about } of ATTACKS) console.log(`${name.padEnd(18)} ${about}`);
  process.exit(0);
}
const unknown = args.find((name) => !ATTACKS.some((attack) => attack.name === name));
if (unknown !== undefined) {
  console.error(`There is no attack "${unknown}". Known: ${ATTACKS.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, async () => {
    await Promise.allSettled([...liveNodes].map((node) => node.cleanUp()));
    process.exit(1);
  });
}
const chosen = args.length === 0 ? ATTACKS : ATTACKS.filter(({ name }) => args.includes(name));
let allHeld = true;
for (const attack of chosen) allHeld = (await runAttack(attack)) && allHeld;
process.exit(allHeld ? 0 : 1);
