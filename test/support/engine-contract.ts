import { expect, test } from "bun:test";
import type { ContainerAccess, OutputChunk } from "../../src/base/model/container-access.ts";
import type {
  ContainerRequest,
  ImageEngine,
  PodEngine,
  RuntimeEvent,
  SandboxRequest,
  VolumeEngine,
} from "../../src/base/model/container-engine.ts";
import { aContainerRequest, aPod, aSandboxRequest } from "../docker/mapping-requests.ts";
import { until } from "./until.ts";

/** An engine to be tested, with what its requests have to name. */
interface ContractEngine {
  pods: PodEngine;
  containers: ContainerAccess;
  /** Has `busybox:test`. */
  images: ImageEngine;
  volumes: Pick<VolumeEngine, "createVolume" | "inspectVolume" | "removeVolume">;
  sandbox?: Partial<SandboxRequest>;
  container?: Partial<ContainerRequest>;
  /** Waits for a step; a fake engine's clock has to be moved meanwhile. */
  finish?<T>(step: Promise<T>): Promise<T>;
}

/** Its log is two lines. */
const COMMAND = ["sh", "-c", "echo one; echo two; exec sleep 600"];

async function textOf(log: AsyncIterable<OutputChunk>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const { data } of log) text += decoder.decode(data, { stream: true });
  return text;
}

/** The contract of a `ContainerEngine`, for the fake one of the tests and for Docker. */
export function testEngineContract(open: () => Promise<ContractEngine> | ContractEngine): void {
  const { signal } = new AbortController();

  const start = async () => {
    const engine = await open();
    const { pods, finish = (step) => step } = engine;
    const uid = crypto.randomUUID();
    const resources = { requests: { cpu: "100m" }, limits: { memory: "32Mi" } };
    const pod = aPod({
      metadata: { uid, name: `contract-${uid.slice(0, 8)}` },
      container: { command: COMMAND, resources },
    });
    const sandbox = await finish(pods.startSandbox(aSandboxRequest(pod, engine.sandbox), signal));
    const request = { ...engine.container, command: COMMAND, sandboxId: sandbox.id };
    const id = await finish(pods.createContainer(aContainerRequest(pod, request), signal));
    const stateOf = async () => {
      const seen = await pods.inspect(id);
      return seen?.kind === "container" ? seen.container.state : undefined;
    };
    const end = async () => {
      for (const each of [id, sandbox.id]) await pods.remove(each, uid, signal);
    };
    return { ...engine, finish, pod, uid, sandbox, id, stateOf, end };
  };

  test("a sandbox runs, a container is created in it, starts and is stopped; each step twice", async () => {
    const { pods, finish, uid, pod, sandbox, id, stateOf, end } = await start();
    try {
      expect(await pods.inspect(sandbox.id)).toMatchObject({
        kind: "sandbox",
        pod: { uid, name: pod.metadata.name!, namespace: "default" },
        sandbox: { state: "ready", attempt: 0, hash: "sandbox-hash", pid: sandbox.pid, ips: sandbox.ips },
      });
      expect(await pods.inspect(id)).toMatchObject({
        kind: "container",
        container: {
          name: "c",
          sandboxId: sandbox.id,
          state: "created",
          restartCount: 0,
          hash: "container-hash",
          pid: 0,
        },
      });
      expect(await pods.pidOf(id, signal)).toBe(0);

      await finish(pods.start(id, signal));
      await finish(pods.start(id, signal));
      expect(await stateOf()).toBe("running");
      expect(await pods.pidOf(id, signal)).toBeGreaterThan(0);
      const ours = (await pods.list()).filter((it) => [id, sandbox.id].includes(it.id));
      expect(ours.map(({ id: each, state }) => [each, state]).sort()).toEqual(
        [id, sandbox.id].map((each) => [each, "running"]).sort(),
      );

      for (const each of [id, sandbox.id, id, "0".repeat(64)]) await finish(pods.stop(each, 0, undefined, signal));
      expect(await stateOf()).toBe("exited");
      expect(await pods.inspect(sandbox.id)).toMatchObject({ sandbox: { state: "notready", ips: [], pid: 0 } });
    } finally {
      await end();
    }
    await end();
    expect(await pods.inspect(id)).toBeUndefined();
    expect(await pods.pidOf(id, signal)).toBeUndefined();
  });

  test("limits change while a container runs", async () => {
    const { pods, finish, id, end } = await start();
    try {
      await finish(pods.start(id, signal));
      await pods.resize(id, { cpuShares: 204, memoryBytes: 2 ** 26, memorySwapBytes: 2 ** 26 }, signal);
      const limits = { cpuShares: 204, memoryBytes: 2 ** 26 };
      expect(await pods.inspect(id)).toMatchObject({ container: { limits } });
    } finally {
      await end();
    }
  });

  test("a watch reports every start and end", async () => {
    const { pods, finish, id, end } = await start();
    const watching = new AbortController();
    const events: RuntimeEvent[] = [];
    const open = Promise.withResolvers<void>();
    const onEvent = (event: RuntimeEvent) => void (event.id === id && events.push(event));
    const watch = pods.watch({ onOpen: open.resolve, onEvent, onLost: () => {}, signal: watching.signal });
    try {
      await open.promise;
      await finish(pods.start(id, signal));
      await finish(pods.stop(id, 0, undefined, signal));
      await until("the end to be reported", () => events.some(({ action }) => action === "die"));
      const actions = events.map(({ action }) => action);
      expect(actions.indexOf("start")).toBeLessThan(actions.indexOf("die"));
      expect(actions).toContain("start");
    } finally {
      watching.abort();
      await watch;
      await end();
    }
  });

  test("a container's log is read whole, from its end and up to a size", async () => {
    const { pods, containers, finish, id, end } = await start();
    const all = { follow: false, timestamps: false, stdout: true, stderr: true };
    const read = async (more: object) => textOf(await containers.logs(id, { ...all, ...more }, signal));
    try {
      await finish(pods.start(id, signal));
      await until("both lines to be written", async () => (await read({})) === "one\ntwo\n");
      expect(await read({ tailLines: 1 })).toBe("two\n");
      expect(await read({ tailLines: 0 })).toBe("");
      expect(await read({ limitBytes: 5 })).toBe("one\nt");
    } finally {
      await end();
    }
  });

  test("commands run in a container, to their end or held", async () => {
    const { pods, containers, finish, id, end } = await start();
    try {
      await finish(pods.start(id, signal));
      const ended = { exitCode: 0, output: "a b\n", stderr: "", timedOut: false };
      expect(await containers.run(id, ["echo", "a", "b"], { signal })).toMatchObject(ended);
      expect(await containers.run(id, ["false"], { signal })).toMatchObject({ ...ended, exitCode: 1, output: "" });
      expect((await containers.run(id, ["no-such-program"], { signal })).exitCode).toBeOneOf([126, 127]);

      const streams = { stdin: false, stdout: true, stderr: true, tty: false };
      const held = await containers.exec(id, ["echo", "a"], streams);
      let output = "";
      for await (const { stream, data } of held.output) output += `${stream}: ${new TextDecoder().decode(data)}`;
      expect([output, await held.exitCode()]).toEqual(["stdout: a\n", 0]);
      await held.close();
      await held.close();
    } finally {
      await end();
    }
  });

  test("images are found by name and by id; one that is not there is removed already", async () => {
    const { images } = await open();
    const found = await images.imageStatus("busybox:test");
    expect(found).toMatchObject({ ref: "busybox:test", user: "", repoTags: expect.arrayContaining(["busybox:test"]) });
    expect(await images.imageStatus(found!.id)).toEqual({ ...found!, ref: found!.id });
    const listed = (await images.list(signal)).find(({ id }) => id === found!.id);
    expect(listed).toMatchObject({ keys: expect.arrayContaining(["docker.io/library/busybox:test"]), isPause: false });

    const missing = `kts-contract-${crypto.randomUUID()}:1`;
    expect(await images.imageStatus(missing)).toBeUndefined();
    expect(await images.remove({ ...listed!, id: `sha256:${"0".repeat(64)}`, tags: [missing] }, signal)).toBe(true);
  });

  test("a volume is made, found and removed; each step twice", async () => {
    const { volumes } = await open();
    const name = `kts-contract-${crypto.randomUUID()}`;
    const wanted = { name, driver: "local" as const, options: {}, labels: { "kubelet-ts.test/contract": "1" } };
    try {
      await volumes.createVolume(wanted, signal);
      await volumes.createVolume(wanted, signal);
      expect(await volumes.inspectVolume(name, signal)).toMatchObject({ name, driver: "local", labels: wanted.labels });
    } finally {
      await volumes.removeVolume(name, signal);
    }
    await volumes.removeVolume(name, signal);
    expect(await volumes.inspectVolume(name, signal)).toBeUndefined();
  });
}
