import { beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { LifecycleHandler, Probe } from "../../src/base/api/probe.ts";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import type { ProbeOutcome } from "../../src/base/model/prober.ts";
import { DockerContainers } from "../../src/docker/docker-containers.ts";
import { tarArchive } from "../../src/docker/engine/tar.ts";
import { LABEL } from "../../src/docker/labels.ts";
import { HookError, runLifecycleHook } from "../../src/kubelet/pod-hook-runner.ts";
import { HostProber } from "../../src/kubelet/prober/host-prober.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { until } from "../support/until.ts";

const never = new AbortController().signal;
const SHELL_LESS_IMAGE = "kubelet-ts-test/shell-less:1";

describeWithEngine("probes of real containers", () => {
  const node = testNode();
  const clock = new SystemClock();
  const prober = new HostProber({ exec: new DockerContainers(node.docker), clock, version: "1.20" });

  /** A running container of this node; removed with it. @returns its id and address */
  async function run(image: string, argv: string[]): Promise<{ id: string; ip: string }> {
    const name = `${node.name}-${argv.join("-").replace(/[^a-zA-Z0-9]+/g, "-")}`;
    const body = { Image: image, Entrypoint: argv, Cmd: [], Labels: { [LABEL.node]: node.name } };
    const { Id: id } = await node.docker.createContainer(name, body);
    await node.docker.startContainer(id);
    const { NetworkSettings } = (await node.docker.inspectContainerRaw(id)) as {
      NetworkSettings: { Networks: Record<string, { IPAddress: string }> };
    };
    return { id, ip: Object.values(NetworkSettings.Networks)[0]!.IPAddress };
  }

  function attempt(container: { id: string; ip: string }, fields: Partial<Probe>): Promise<ProbeOutcome> {
    const probe = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3, ...fields };
    return prober.attempt(probe, { containerId: container.id, podIp: container.ip, ports: [] }, never);
  }

  const execute = async (id: string, argv: string[]) => (await node.docker.exec(id, argv)).output;

  let sleeper: { id: string; ip: string };
  beforeAll(async () => {
    sleeper = await run("busybox:test", ["sleep", "100000"]);
  });

  test("exec: the exit code decides, the output is both streams", async () => {
    expect(await attempt(sleeper, { exec: { command: ["sh", "-c", "echo out; exit 0"] } })).toEqual({
      result: "success",
      output: "out\n",
    });
    const failed = await attempt(sleeper, { exec: { command: ["cat", "/nope"] } });
    expect(failed).toEqual({ result: "failure", output: "cat: can't open '/nope': No such file or directory\n" });
  });

  test("exec: a command that is not there fails", async () => {
    const { result, output } = await attempt(sleeper, { exec: { command: ["/no-such-program"] } });
    expect(result).toBe("failure");
    expect(output).toContain("no such file or directory");
  });

  test("exec: output beyond 10 KiB is dropped", async () => {
    const { result, output } = await attempt(sleeper, {
      exec: { command: ["sh", "-c", "yes | head -c 100000"] },
      timeoutSeconds: 20,
    });
    expect(result).toBe("success");
    expect(output.length).toBe(10_240);
  });

  test("exec: what runs over its time is killed with all its children; nothing piles up", async () => {
    const command = ["sh", "-c", "sleep 31415 & sleep 31415"];
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => attempt(sleeper, { exec: { command } })));
    for (const outcome of outcomes) {
      expect(outcome).toEqual({
        result: "failure",
        output: 'command timed out: "sh -c sleep 31415 & sleep 31415" timed out after 1s',
      });
    }
    const processes = () => execute(sleeper.id, ["ps", "-o", "args"]);
    await until("the killed commands to be gone", async () => !(await processes()).includes("31415"));
    expect(await processes()).toContain("sleep 100000");
  });

  test("exec: a container that is gone says nothing about health", async () => {
    const gone = { id: "0".repeat(64), ip: "" };
    expect((await attempt(gone, { exec: { command: ["true"] } })).result).toBe("unknown");
  });

  test("httpGet and tcpSocket need nothing inside an image without a shell", async () => {
    await loadShellLessImage();
    const server = await run(SHELL_LESS_IMAGE, ["/httpd", "-f", "-p", "8000", "-h", "/www"]);
    const http = (path: string, port = 8000): Partial<Probe> => ({ httpGet: { path, port, scheme: "HTTP" } });
    await until("the server to listen", async () => (await attempt(server, http("/ok"))).result === "success");

    expect(await attempt(server, http("/ok"))).toEqual({ result: "success", output: "hi\n" });
    expect(await attempt(server, http("/nope"))).toEqual({
      result: "failure",
      output: "HTTP probe failed with statuscode: 404",
    });
    expect(await attempt(server, http("/ok", 8001))).toEqual({
      result: "failure",
      output: `Get "http://${server.ip}:8001/ok": dial tcp ${server.ip}:8001: connect: connection refused`,
    });
    expect(await attempt(server, { tcpSocket: { port: 8000 } })).toEqual({ result: "success", output: "" });
    expect((await attempt(server, { exec: { command: ["sh", "-c", "true"] } })).result).toBe("failure");
    await node.docker.removeContainer(server.id, { force: true });
    await node.docker.removeImage(SHELL_LESS_IMAGE);
  });

  async function loadShellLessImage(): Promise<void> {
    const layer = tarArchive([
      { path: "httpd", mode: 0o755, data: await fileOf(sleeper.id, "/bin/busybox") },
      { path: "www/", mode: 0o755, data: new Uint8Array() },
      { path: "www/ok", mode: 0o644, data: Buffer.from("hi\n") },
    ]);
    const digest = createHash("sha256").update(layer).digest("hex");
    const { architecture } = await node.docker.engine();
    const config = Buffer.from(
      JSON.stringify({
        architecture: architecture === "aarch64" ? "arm64" : "amd64",
        os: "linux",
        config: { Cmd: ["/httpd"] },
        rootfs: { type: "layers", diff_ids: [`sha256:${digest}`] },
      }),
    );
    const manifest = [{ Config: "config.json", RepoTags: [SHELL_LESS_IMAGE], Layers: ["layer.tar"] }];
    await node.docker.loadImage(
      tarArchive([
        { path: "manifest.json", mode: 0o644, data: Buffer.from(JSON.stringify(manifest)) },
        { path: "config.json", mode: 0o644, data: config },
        { path: "layer.tar", mode: 0o644, data: layer },
      ]),
    );
  }

  /** One file out of a container. */
  async function fileOf(id: string, path: string): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of await node.docker.getArchive(id, path)) pieces.push(piece);
    const archive = Buffer.concat(pieces);
    const size = Number.parseInt(archive.toString("latin1", 124, 135), 8);
    return archive.subarray(512, 512 + size);
  }

  const hook = (handler: LifecycleHandler, signal = never) =>
    runLifecycleHook(
      handler,
      {
        containerId: sleeper.id,
        containerName: "c",
        pod: { name: "p-node1", namespace: "default", uid: "u1" },
        podIp: sleeper.ip,
        ports: [],
      },
      { exec: new DockerContainers(node.docker), clock, version: "1.20" },
      signal,
    );

  test("an exec hook that fails is reported in the words of the recorded kubelet", async () => {
    await hook({ exec: { command: ["true"] } });
    const error = await hook({ exec: { command: ["sh", "-c", "exit 4"] } }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HookError);
    expect((error as HookError).message).toBe(
      'Exec lifecycle hook ([sh -c exit 4]) for Container "c" in Pod "p-node1_default(u1)" failed' +
        " - error: command 'sh -c exit 4' exited with 4: , message: \"\"",
    );
  });

  test("a hook that times out leaves no process behind", async () => {
    const stop = new AbortController();
    const ended = hook({ exec: { command: ["sleep", "27182"] } }, stop.signal).catch((thrown: unknown) => thrown);
    const processes = () => execute(sleeper.id, ["ps", "-o", "args"]);
    await until("the hook to run", async () => (await processes()).includes("sleep 27182"));
    stop.abort("grace is over");
    expect(await ended).toBe("grace is over");
    await until("the hook to be gone", async () => !(await processes()).includes("sleep 27182"));
  });
});
