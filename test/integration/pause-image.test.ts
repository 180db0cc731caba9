import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPauseImage, ensurePauseImage, PAUSE_IMAGE, pauseExecutable } from "../../src/docker/pause-image.ts";
import { describeWithEngine, privateEngine } from "../support/engine.ts";
import { TestDocker } from "../support/test-docker.ts";
import { engineSocketPath, RUN_ID } from "../support/test-node.ts";
import { until } from "../support/until.ts";

const client = new TestDocker({ kind: "unix", path: engineSocketPath() });
const label = `kubelet-ts.test/pause-${RUN_ID}`;
let count = 0;

async function start(image: string, hostConfig: object = {}, more: object = {}): Promise<string> {
  const { Id } = await client.createContainer(`kts-pause-${RUN_ID}-${process.pid}-${++count}`, {
    Image: image,
    Labels: { [label]: "1" },
    HostConfig: { NetworkMode: "none", ...hostConfig },
    ...more,
  });
  await client.startContainer(Id);
  return Id;
}

/** Number of rt_sigtimedwait on this machine. */
const SIGTIMEDWAIT = process.arch === "arm64" ? "137" : "128";

/** Whether it waits for its signals: before that, the kernel drops them, for process 1 has no handlers. */
const isReady = (pid: number) => readFileSync(`/proc/${pid}/syscall`, "utf8").startsWith(`${SIGTIMEDWAIT} `);

async function startPause(hostConfig: object = {}): Promise<{ id: string; pid: number }> {
  const id = await start(await ensurePauseImage(client), hostConfig);
  const { Pid } = (await client.inspectContainer(id)).State;
  await until("pause to be ready", () => isReady(Pid));
  return { id, pid: Pid };
}

/** State letters of the children of a process. */
function childStates(parent: number): string[] {
  const states: string[] = [];
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      const [state, of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (Number(of) === parent) states.push(state ?? "");
    } catch {
      // Gone in the meantime.
    }
  }
  return states;
}

describeWithEngine("the pause image on a real engine", () => {
  afterEach(async () => {
    for (const { Id } of await client.listContainers({ all: true, filters: { label: [label] } })) {
      await client.removeContainer(Id, { force: true, volumes: true });
    }
  });

  test("is loaded on first use, on an engine that never had it, and has the id that was computed", async () => {
    const engine = await privateEngine();
    const { architecture } = await engine.docker.connect();
    const wanted = buildPauseImage(architecture === "arm64" ? "arm64" : "amd64");
    await expect(engine.docker.inspectImage(PAUSE_IMAGE)).rejects.toMatchObject({ status: 404 });
    expect(await ensurePauseImage(engine.docker)).toBe(wanted.id);
    expect(await ensurePauseImage(engine.docker)).toBe(wanted.id);
    const seen = await engine.docker.inspectImage(PAUSE_IMAGE);
    expect(seen.RootFS.Layers).toEqual([wanted.layer]);
    expect(seen.Config).toMatchObject({ Entrypoint: ["/pause"], User: "65535:65535" });
    // A user cleans up, or uses the name for something else: it is there again when it is needed.
    await engine.docker.removeImage(PAUSE_IMAGE);
    expect(await ensurePauseImage(engine.docker)).toBe(wanted.id);
  });

  test("runs without privileges, in some kilobytes, with nothing open but what it was given; SIGINT alone of these ends it", async () => {
    const { id, pid } = await startPause();
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    expect(status).toMatch(/^Uid:\s+65535\s+65535/m);
    expect(status).toMatch(/^Gid:\s+65535\s+65535/m);
    expect(Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0)).toBeLessThan(64);
    expect(readdirSync(`/proc/${pid}/fd`).sort()).toEqual(["0", "1", "2"]);
    for (const signal of ["SIGHUP", "SIGUSR1", "SIGCHLD", "SIGWINCH", "SIGCONT", "SIGSTOP", "SIGCONT"]) {
      await client.killContainer(id, signal);
    }
    expect((await client.inspectContainer(id)).State).toMatchObject({ Running: true, Pid: pid });
    await client.killContainer(id, "SIGINT");
    expect(await client.waitContainer(id)).toEqual({ exitCode: 0 });
  });

  test("reaps the orphans of a shared process namespace; SIGTERM ends it", async () => {
    const { id, pid } = await startPause({ IpcMode: "shareable" });
    // Each loop outlives its shell, becomes a child of process 1, and ends there when it is told to.
    const script = "for i in 1 2 3 4 5 6 7 8 9 10; do (until [ -e /end ]; do sleep 0.1; done &); done; exec sleep 1000";
    const [PidMode, NetworkMode, IpcMode] = Array(3).fill(`container:${id}`);
    const parent = await start("busybox:test", { PidMode, NetworkMode, IpcMode }, { Cmd: ["sh", "-c", script] });
    await until("ten orphans to be reparented", () => childStates(pid).length === 10);
    await client.exec(parent, ["touch", "/end"]);
    await until("all of them to be reaped", () => childStates(pid).length === 0);
    await client.killContainer(id, "SIGTERM");
    expect(await client.waitContainer(id)).toEqual({ exitCode: 0 });
  });

  const qemu = ["/usr/bin/qemu-aarch64-static", "/usr/bin/qemu-aarch64"].find(existsSync);
  test.skipIf(qemu === undefined)("the arm64 program runs (under qemu) and ends on TERM with 0", async () => {
    const directory = mkdtempSync(join(tmpdir(), "kts-pause-"));
    try {
      const program = join(directory, "pause");
      writeFileSync(program, pauseExecutable("arm64"), { mode: 0o755 });
      const child = Bun.spawn([qemu ?? "", program]);
      await until("it to be ready", () => isReady(child.pid));
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
