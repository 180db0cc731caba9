import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeContainersOf, TestNode } from "../../test/support/test-node.ts";
import { type BenchCase, type Measurement, median, percentile } from "../bench-case.ts";
import { type PodBodies, readPodBodies, startBare } from "../floor.ts";
import { idlePod } from "../running-pods.ts";

const KILLS = 100;
const EDITS = 20;
/** More than a tick of the slowest kernel clock (100 Hz). */
const CLOCK_TICK_MS = 20;

/** Time until the engine reported the next start of a container. */
interface Reaction {
  sinceActMs: number;
  /** Since the engine's `die` event: the earliest sign of it. */
  sinceDieMs: number;
}

async function nextStart(node: TestNode, act: () => Promise<unknown> | unknown): Promise<Reaction> {
  const stop = new AbortController();
  const opened = Promise.withResolvers<void>();
  const filters = { type: ["container"], event: ["start", "die"], label: [`kubelet-ts.io/node=${node.name}`] };
  let diedAt = Number.NaN;
  const seen = (async () => {
    for await (const event of node.docker.events({ filters, signal: stop.signal, onOpen: opened.resolve })) {
      if (event.attributes["io.kubernetes.container.name"] !== "app") continue;
      if (event.action === "start") return performance.now();
      diedAt = performance.now();
    }
    throw new Error("the event stream ended");
  })();
  await opened.promise;
  const startedAt = performance.now();
  await act();
  try {
    const at = await seen;
    return { sinceActMs: at - startedAt, sinceDieMs: at - diedAt };
  } finally {
    stop.abort();
  }
}

/** One bare container in a sandbox that runs, and one bare pod: what each step costs without a kubelet. */
async function bareTimes(node: TestNode, bodies: PodBodies[], floorNode: string, rounds: number) {
  const pods: number[] = [];
  for (let round = 0; round < rounds; round++) {
    pods.push(await startBare(node.docker, bodies.slice(0, 1), 1));
    await removeContainersOf(node.docker, floorNode);
  }
  const only: number[] = [];
  const sandbox = bodies[0]!.sandbox;
  const container = bodies[0]!.containers[0]!;
  for (let round = 0; round < rounds; round++) {
    const { Id } = await node.docker.createContainer(`floor-s-${process.pid}-${round}`, sandbox);
    await node.docker.startContainer(Id);
    const startedAt = performance.now();
    const hostConfig = {
      ...(container.HostConfig as object),
      NetworkMode: `container:${Id}`,
      IpcMode: `container:${Id}`,
    };
    const made = await node.docker.createContainer(`floor-c-${process.pid}-${round}`, {
      ...container,
      HostConfig: hostConfig,
    });
    await node.docker.startContainer(made.Id);
    only.push(performance.now() - startedAt);
    await removeContainersOf(node.docker, floorNode);
  }
  return { podMs: median(pods), containerMs: median(only) };
}

async function measureReaction(): Promise<Measurement[]> {
  await using node = new TestNode();
  const floorNode = node.bareName;
  node.writeManifest("web.json", idlePod("web"));
  await node.start(["--v=2"]);
  await node.runningContainer("app");
  const bodies = await readPodBodies(node.docker, await node.listAll(), floorNode);
  const { podMs, containerMs } = await bareTimes(node, bodies, floorNode, 15);

  const kills: Reaction[] = [];
  for (let round = 0; round < KILLS; round++) {
    // Each in its own pod, so that no back-off delays it.
    node.writeManifest("victim.json", idlePod(`victim-${round}`));
    const victim = await node.until("the victim to run", async () =>
      (await node.containers("app")).find(
        ({ State, Names }) => State === "running" && Names[0]?.includes(`victim-${round}-`),
      ),
    );
    kills.push(await nextStart(node, () => node.docker.killContainer(victim.Id, "SIGKILL")));
  }
  node.removeManifest("victim.json");

  const renamed: number[] = [];
  const written: number[] = [];
  for (let round = 0; round < EDITS; round++) {
    const scratch = join(node.directory, "scratch.json");
    writeFileSync(scratch, JSON.stringify(idlePod(`renamed-${round}`)));
    // A rename within the clock tick of the last write cannot be distinguished from that write.
    await Bun.sleep(CLOCK_TICK_MS);
    const rename = () => renameSync(scratch, join(node.manifestDir, `renamed-${round}.json`));
    renamed.push((await nextStart(node, rename)).sinceActMs);
    const text = JSON.stringify(idlePod(`written-${round}`));
    const write = () => writeFileSync(join(node.manifestDir, `written-${round}.json`), text);
    written.push((await nextStart(node, write)).sinceActMs);
  }
  const sinceDie = kills.map(({ sinceDieMs }) => sinceDieMs);
  const sinceKill = kills.map(({ sinceActMs }) => sinceActMs);
  return [
    {
      what: "container ended to its replacement running, p50",
      unit: "ms",
      value: median(sinceDie),
      floor: containerMs,
      floorText: "bare create and start of one container",
      goal: { ratioAtMost: 1.3 },
    },
    { what: "  p99", unit: "ms", value: percentile(sinceDie, 0.99) },
    { what: "  from `docker kill` on, with the engine's own clean-up, p50", unit: "ms", value: median(sinceKill) },
    { what: "  p99", unit: "ms", value: percentile(sinceKill, 0.99) },
    {
      what: "manifest renamed into place to container running",
      unit: "ms",
      value: median(renamed),
      runs: renamed,
      floor: podMs,
      floorText: "bare create and start of sandbox and container",
      goal: { ratioAtMost: 1.3 },
    },
    {
      what: "manifest written in place to container running; 100 ms of it: no further write",
      unit: "ms",
      value: median(written),
      runs: written,
    },
  ];
}

export const lifecycleCases: readonly BenchCase[] = [
  {
    name: "reaction",
    about: "restart of a killed container and start of a new manifest, against bare calls",
    run: measureReaction,
  },
];
