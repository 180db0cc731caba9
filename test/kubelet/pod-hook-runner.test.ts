import { describe, expect, test } from "bun:test";
import type { LifecycleHandler } from "../../src/base/api/container.ts";
import type { ContainerAccess } from "../../src/base/model/container-access.ts";
import { type HookTarget, PodHookRunner, runLifecycleHook } from "../../src/kubelet/pod-hook-runner.ts";
import { aContainer, aPod, aRunning } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingRecorder } from "../support/recording-logger.ts";
import { freePorts, rawServers } from "../support/test-servers.ts";

const rawServer = rawServers();
const TARGET: HookTarget = {
  containerId: "c1",
  containerName: "c",
  pod: { name: "web-node1", namespace: "default", uid: "u1" },
  podIp: "127.0.0.1",
  ports: [{ name: "web", containerPort: 1, protocol: "TCP" }],
};
const never = new AbortController().signal;

function run(
  handler: LifecycleHandler,
  options: { exec?: ContainerAccess["run"]; signal?: AbortSignal; clock?: FakeClock } = {},
) {
  const exec = options.exec ?? (() => Promise.reject(new Error("no exec here")));
  const deps = { exec: { run: exec }, clock: options.clock ?? new FakeClock(), version: "1.20" };
  return runLifecycleHook(handler, TARGET, deps, options.signal ?? never);
}

/** The error it must end with. */
async function failureOf(...args: Parameters<typeof run>): Promise<Error> {
  const error = await run(...args).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Error);
  return error as Error;
}

describe("exec", () => {
  // Texts from the recorded case 42-poststart-hooks.
  test.each([
    { command: ["true"], exitCode: 0, output: "x", stderr: "", want: undefined },
    {
      command: ["sh", "-c", "echo out; echo err >&2; exit 4"],
      exitCode: 4,
      output: "out\nerr\n",
      stderr: "err\n",
      want:
        'Exec lifecycle hook ([sh -c echo out; echo err >&2; exit 4]) for Container "c" in Pod ' +
        "\"web-node1_default(u1)\" failed - error: command 'sh -c echo out; echo err >&2; exit 4' exited with 4: err\n" +
        ', message: "out\\nerr\\n"',
    },
    {
      command: ["false"],
      exitCode: 1,
      output: "",
      stderr: "",
      want:
        'Exec lifecycle hook ([false]) for Container "c" in Pod "web-node1_default(u1)" failed' +
        " - error: command 'false' exited with 1: , message: \"\"",
    },
  ])("exit $exitCode of $command is reported as by the kubelet", async ({ command, want, ...ended }) => {
    const ending = run({ exec: { command: [...command] } }, { exec: async () => ({ ...ended, timedOut: false }) });
    expect(await ending.catch((error: Error) => error.message)).toBe(want);
  });

  test("an engine that refuses", async () => {
    const error = await failureOf({ exec: { command: ["x"] } });
    expect(error.message).toContain("- error: no exec here, message:");
    expect(error.cause).toBeInstanceOf(Error);
  });

  test("an abort ends it with the abort's reason", async () => {
    const stop = new AbortController();
    const exec: ContainerAccess["run"] = (_id, _argv, { signal }) =>
      new Promise((_resolve, reject) => signal!.addEventListener("abort", () => reject(new Error("cut"))));
    const ended = run({ exec: { command: ["sleep", "20"] } }, { exec, signal: stop.signal }).catch((e: unknown) => e);
    stop.abort("grace is over");
    expect(await ended).toBe("grace is over");
  });
});

describe("httpGet", () => {
  test("any answer is success, asked for as the manifest says", async () => {
    const server = await rawServer((socket) => socket.end("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"));
    const httpHeaders = [{ name: "X-A", value: "b" }];
    await run({ httpGet: { path: "/stop", port: server.port, scheme: "HTTP", httpHeaders } });
    expect(await server.request).toBe(
      `GET /stop HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nUser-Agent: kube-lifecycle/1.20\r\nAccept: */*\r\n` +
        "X-A: b\r\nConnection: close\r\n\r\n",
    );
  });

  test("a closed port", async () => {
    const [port = 0] = freePorts(1);
    const error = await failureOf({ httpGet: { path: "/", port, scheme: "HTTP" } });
    const detail = `Get "http://127.0.0.1:${port}/": dial tcp 127.0.0.1:${port}: connect: connection refused`;
    expect(error.message).toBe(
      'Http lifecycle hook (/) for Container "c" in Pod "web-node1_default(u1)" failed' +
        ` - error: ${detail}, message: ""`,
    );
  });

  test("HTTPS before a plain server falls back to HTTP", async () => {
    const requests: string[] = [];
    const server = await rawServer((socket, text) => {
      requests.push(text);
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    await run({ httpGet: { path: "/x", port: server.port, scheme: "HTTPS" } });
    expect(requests[1]).toStartWith("GET /x HTTP/1.1\r\n");
  });

  test("an unknown port name", async () => {
    const error = await failureOf({ httpGet: { path: "/", port: "nope", scheme: "HTTP" } });
    expect(error.message).toContain('- error: port "nope" not found, message:');
  });
});

test("sleep waits its seconds and no longer; an abort ends it", async () => {
  const clock = new FakeClock();
  let isOver = false;
  void run({ sleep: { seconds: 5 } }, { clock }).then(() => {
    isOver = true;
  });
  await clock.advance(4999);
  expect(isOver).toBe(false);
  await clock.advance(1);
  expect(isOver).toBe(true);

  const none = run({ sleep: { seconds: 0 } }, { clock });
  await clock.advance(0);
  await none;
  const stopped = run({ sleep: { seconds: 5 } }, { clock, signal: AbortSignal.abort("over") });
  expect(await stopped.catch((error: unknown) => error)).toBe("over");
});

test.each([
  { handler: { tcpSocket: { port: 80 } }, detail: "invalid handler: tcpSocket is not supported in lifecycle hooks" },
  { handler: {}, detail: "invalid handler: no handler given" },
])("refuses $detail", async ({ handler, detail }) => {
  const error = await failureOf(handler);
  expect(error.message).toBe(`Cannot run handler: ${detail}`);
});

test("a postStart hook that fails is an event, and its container is told", async () => {
  const recorder = new RecordingRecorder();
  const exec = { run: () => Promise.reject(new Error("no such command")) };
  const node = { name: "node1", ip: "192.0.2.1", cpuCount: 1, memoryBytes: 1 };
  const runner = new PodHookRunner({ exec, clock: new FakeClock(), version: "1.20", recorder, node });
  const container = aContainer({ lifecycle: { postStart: { exec: { command: ["x"] } } } });
  const started = runner.runPostStart({ pod: aPod(), container, podIps: [] }, "c1", never);
  await expect(started).rejects.toThrow("no such command");
  expect(recorder.events).toEqual([
    expect.stringMatching(/ FailedPostStartHook Exec lifecycle hook .*no such command/),
  ]);
});

test.each([
  ["the one it was created with, after an edit that changed it", ["old"], ["new"], ["old"]],
  ["the one it was created with, after an edit that dropped it", ["old"], undefined, ["old"]],
  ["the one of its manifest, for a container that was created without", undefined, ["new"], ["new"]],
])("the preStop hook of a container is %s", async (_, created, edited, expected) => {
  const ran: string[] = [];
  const exec: ContainerAccess["run"] = async (_id, argv) => {
    ran.push(...argv);
    return { exitCode: 0, output: "", stderr: "", timedOut: false };
  };
  const node = { name: "node1", ip: "192.0.2.1", cpuCount: 1, memoryBytes: 1 };
  const deps = {
    exec: { run: exec },
    clock: new FakeClock(),
    version: "1.20",
    recorder: new RecordingRecorder(),
    node,
    left: async (ips: readonly string[]) => void ran.push(`left ${ips.join()}`),
  };
  const hook = (command: string[]) => ({ exec: { command } });
  const label = "annotation.io.kubernetes.container.preStopHandler";
  const labels: Record<string, string> = created ? { [label]: JSON.stringify(hook(created)) } : {};
  const isPodEnd = created !== undefined;
  const request = { container: aRunning("app", { labels }), pod: aPod(), podIps: ["ip"], graceSeconds: 30, isPodEnd };
  const spec = aContainer(edited && { lifecycle: { preStop: hook(edited) } });
  await new PodHookRunner(deps).runPreStopThen(request, spec, never, async () => void ran.push("stop"));
  expect(ran).toEqual([...expected, ...(isPodEnd ? ["left ip"] : []), "stop"]);
});
