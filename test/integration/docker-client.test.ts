import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DockerEvent } from "../../src/docker/engine/docker-client.ts";
import { computeRootHash } from "../../src/docker/labels.ts";
import { aDockerEngine } from "../support/docker-engine.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { testEngineContract } from "../support/engine-contract.ts";
import { TestDocker } from "../support/test-docker.ts";
import { engineSocketPath, RUN_ID } from "../support/test-node.ts";
import { SLOWNESS, until } from "../support/until.ts";

const client = new TestDocker({ kind: "unix", path: engineSocketPath() });
const label = `kubelet-ts.test/client-${RUN_ID}`;
const decoder = new TextDecoder();
let count = 0;

const uniqueName = () => `kts-client-${RUN_ID}-${process.pid}-${++count}`;

/** A container of busybox without a network. */
async function create(cmd: string[], more: Record<string, unknown> = {}, name = uniqueName()): Promise<string> {
  const { HostConfig, ...config } = more as { HostConfig?: object };
  const own = { Labels: { [label]: "1" }, HostConfig: { NetworkMode: "none", ...HostConfig } };
  const body = { Image: "busybox:test", Cmd: cmd, ...config, ...own };
  return (await client.createContainer(name, body)).Id;
}

async function run(cmd: string[], more: Record<string, unknown> = {}): Promise<string> {
  const id = await create(cmd, more);
  await client.startContainer(id);
  return id;
}

/**
 * Command lines of all living processes of a container, as the host sees them. A zombie has none: what is killed below a
 * process 1 that reaps no child, such as sleep, stays one, and no signal could change that.
 */
function processesOf(id: string): string[] {
  const seen: string[] = [];
  for (const pid of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      if (!readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(id)) continue;
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      if (commandLine !== "") seen.push(commandLine);
    } catch {
      // Gone in the meantime.
    }
  }
  return seen.sort();
}

describeWithEngine("the Docker client on a real engine", () => {
  afterEach(async () => {
    for (const { Id } of await client.listContainers({ all: true, filters: { label: [label] } })) {
      await client.removeContainer(Id, { force: true, volumes: true });
    }
  });

  test("knows the engine", async () => {
    const engine = await client.connect();
    const info = await client.info();
    expect(engine.serverVersion).toBe(info.ServerVersion);
    expect(["cgroupfs", "systemd"]).toContain(info.CgroupDriver);
    expect(await client.imagesBytes()).toBeGreaterThan(0);
  });

  test("logs of a TTY, which 20.10 does not announce", async () => {
    const id = await run(["sh", "-c", "echo one; echo bad >&2"], { Tty: true });
    await client.waitContainer(id);
    const seen: Record<string, string> = {};
    for await (const { stream, data } of await client.containerLogs(id)) {
      seen[stream] = (seen[stream] ?? "") + decoder.decode(data);
    }
    expect(seen).toEqual({ stdout: "one\r\nbad\r\n" });
  });

  test("events arrive in order, and a cursor continues where the last connection ended", async () => {
    const filters = { type: ["container"], label: [label] };
    const stop = new AbortController();
    const first: DockerEvent[] = [];
    const opened = Promise.withResolvers<void>();
    const reading = (async () => {
      for await (const event of client.events({ filters, signal: stop.signal, onOpen: opened.resolve }))
        first.push(event);
    })();
    await opened.promise;
    const one = await run(["sh", "-c", "exit 3"]);
    await client.waitContainer(one);
    await until("its end", () => first.some(({ action }) => action === "die"));
    stop.abort();
    await reading;
    expect(first.map(({ id, action }) => `${id === one} ${action}`)).toEqual(["true create", "true start", "true die"]);
    const died = first.at(-1);
    expect(died?.attributes).toMatchObject({ exitCode: "3", [label]: "1" });

    const two = await create(["true"]);
    const stopAgain = new AbortController();
    const second: DockerEvent[] = [];
    const since = died?.cursor ?? "";
    for await (const event of client.events({ filters, since, signal: stopAgain.signal })) {
      second.push(event);
      if (event.id === two) stopAgain.abort();
    }
    // The event of the cursor itself may come again, nothing before it does.
    expect(second.filter(({ cursor }) => cursor !== since).map(({ id }) => id)).toEqual([two]);
  });

  describe("exec", () => {
    test("when the time has elapsed nothing of it is left, not even its children", async () => {
      const id = await run(["sleep", "1000"]);
      const before = processesOf(id);
      expect(before).toEqual(["sleep 1000"]);
      const script = "echo begun; sleep 2001 & (sleep 2002; true) & sh -c 'sleep 2003; true'; true";
      for (let round = 0; round < 3; round++) {
        const outcome = await client.exec(id, ["sh", "-c", script], { timeoutMs: 400 * SLOWNESS });
        expect(outcome).toMatchObject({ timedOut: true, exitCode: undefined });
      }
      await until("only its own process to be left", () => processesOf(id).length === 1);
      expect(processesOf(id)).toEqual(before);
    });

    test("what an ended command left behind, holding its output open, is not an exception", async () => {
      const id = await run(["sleep", "1000"]);
      const outcome = await client.exec(id, ["sh", "-c", "sleep 2005 & exit 0"], { timeoutMs: 1000 * SLOWNESS });
      // Engines differ in whether the output then ends with the command or with what it left behind.
      if (!outcome.timedOut) return expect(outcome.exitCode).toBe(0);
      await until("only its own process to be left", () => processesOf(id).length === 1);
    });

    test("when the caller aborts nothing of it is left either", async () => {
      const id = await run(["sleep", "1000"]);
      const stop = new AbortController();
      const call = client.exec(id, ["sh", "-c", "sleep 2004; true"], { signal: stop.signal });
      await until("it to run", () => processesOf(id).length > 1);
      stop.abort(new Error("enough"));
      await expect(call).rejects.toThrow("enough");
      await until("only its own process to be left", () => processesOf(id).length === 1);
    });
  });

  test("three hundred open streams hold no short call up", async () => {
    const id = await run(["sleep", "1000"]);
    const program = join(import.meta.dir, "../support/open-streams.ts");
    const child = Bun.spawn([process.execPath, program, engineSocketPath(), id], {
      env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" },
      stdout: "ignore",
    });
    expect(await child.exited).toBe(0);
  });

  test("connections that end leave no file descriptor behind", async () => {
    const openFiles = () => readdirSync("/proc/self/fd").length;
    const useConnections = async () => {
      const stop = new AbortController();
      for await (const _ of client.events({ signal: stop.signal, onOpen: () => stop.abort() }));
      await client.inspectContainer("kts-no-such-container").catch(() => {});
    };
    for (let round = 0; round < 10; round++) await useConnections();
    const before = openFiles();
    for (let round = 0; round < 200; round++) await useConnections();
    await until("the sockets to be closed", () => openFiles() <= before + 5);
  });
});

describeWithEngine("Docker as a container engine", () => {
  const node = testNode();
  testEngineContract(async () => {
    const { signal } = new AbortController();
    const owner = { nodeName: node.name, rootHash: computeRootHash(node.rootDir) };
    const engine = aDockerEngine(engineSocketPath(), owner);
    await engine.connect(signal);
    const image = await engine.images.imageStatus("busybox:test");
    if (!image) throw new Error("busybox:test is missing: npm run images -- --test");
    const shared = { owner, engine: engine.info() };
    return {
      pods: engine.pods,
      containers: engine.containers,
      images: engine.images,
      volumes: engine.volumes,
      sandbox: { ...shared, image: await engine.ensurePauseImage(signal) },
      container: { ...shared, image },
    };
  });
});
