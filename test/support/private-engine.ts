import * as fs from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { isConflict, isNotFound } from "../../src/docker/engine/docker-error.ts";
import { TestDocker } from "./test-docker.ts";
import { engineSocketPath, podCgroupsOf, RUN_ID, removeCgroup, unmountBelow } from "./test-node.ts";
import { until } from "./until.ts";

/**
 * A dockerd in addition to the machine's: own socket, data, bridge and processes. It leaves the packet filter alone, so its
 * containers reach the host and each other but not the world; unless it has a network of its own. Needs root.
 */
export class PrivateEngine {
  /** Short on purpose: the path of a Unix socket has 108 bytes. */
  readonly directory = fs.mkdtempSync(`/tmp/kte-${RUN_ID}-`);
  readonly socketPath = join(this.directory, "docker.sock");
  readonly docker = new TestDocker({ kind: "unix", path: this.socketPath });
  readonly dataRoot = join(this.directory, "data");
  /** At most 15 characters. */
  readonly #bridge = `kt${this.directory.slice(-6).toLowerCase()}`;
  readonly #subnet = `10.${200 + randomBelow(50)}.${1 + randomBelow(250)}`;
  #child: Subprocess | undefined;

  readonly #flags: readonly string[];
  /** Runs the rest of its arguments in the network of the engine. */
  readonly enter: readonly string[];

  /**
   * @param dataMiB the size of the file system for its images and containers, in memory; absent: the machine's own
   * @param flags of dockerd, in addition to those that make it a private one
   * @param hasNetwork it has a network namespace of its own, with the packet filter that Docker writes there
   */
  constructor({
    dataMiB,
    flags = [],
    hasNetwork = false,
  }: { dataMiB?: number; flags?: readonly string[]; hasNetwork?: boolean } = {}) {
    this.#flags = hasNetwork ? flags : ["--iptables=false", "--ip6tables=false", ...flags];
    this.enter = hasNetwork ? ["nsenter", `--net=/run/netns/${this.#bridge}`] : [];
    if (hasNetwork) {
      runOrThrow("ip", "netns", "add", this.#bridge);
      runOrThrow(...this.enter, "ip", "link", "set", "lo", "up");
    }
    fs.mkdirSync(this.dataRoot);
    if (dataMiB === undefined) runOrThrow("mount", "--bind", this.dataRoot, this.dataRoot);
    else runOrThrow("mount", "-t", "tmpfs", "-o", `size=${dataMiB}m`, "tmpfs", this.dataRoot);
    // As systemd does for the whole machine. Otherwise dockerd mounts the folder over itself and takes that away at its end: what
    // a start mounts at that moment is hidden below the next one, and the container's files stay busy.
    runOrThrow("mount", "--make-shared", this.dataRoot);
    // For cleaning up after a run that was killed.
    fs.writeFileSync(join(this.directory, "bridge"), this.#bridge);
  }

  /** Starts it, or starts it again after `stop` or `kill`; answers when it answers. */
  async start(): Promise<void> {
    this.#createBridge();
    // dockerd trusts pid files whose process exists, as a zombie does on a machine that does not reap it. Its containerd
    // dies with it. Both are known to be gone.
    const containerdPid = join(this.directory, "exec", "containerd", "containerd.pid");
    await until("the last containerd to end", () => !isAlive(containerdPid));
    fs.rmSync(containerdPid, { force: true });
    fs.rmSync(join(this.directory, "dockerd.pid"), { force: true });
    // A flag that the machine's own file has too would be refused.
    const config = join(this.directory, "daemon.json");
    fs.writeFileSync(config, "{}");
    const log = fs.openSync(this.#logFile, "a");
    try {
      this.#child = Bun.spawn({
        cmd: [
          ...this.enter,
          "dockerd",
          `--config-file=${config}`,
          `--host=unix://${this.socketPath}`,
          `--data-root=${this.dataRoot}`,
          `--exec-root=${join(this.directory, "exec")}`,
          `--pidfile=${join(this.directory, "dockerd.pid")}`,
          `--bridge=${this.#bridge}`,
          ...this.#flags,
        ],
        env: { PATH: `${process.env.PATH ?? ""}:/usr/sbin:/sbin` },
        stdin: "ignore",
        stdout: log,
        stderr: log,
      });
    } finally {
      fs.closeSync(log);
    }
    const child = this.#child;
    const answers = async () => {
      if (child.exitCode !== null) return true;
      await this.docker.ping({ timeoutMs: 2_000 });
      return true;
    };
    await until("the private dockerd", answers, { limitMs: 60_000, details: () => this.#logTail() });
    if (child.exitCode !== null) throw new Error(`The private dockerd ended at once.\n${this.#logTail()}`);
  }

  /** SIGTERM, as a machine's service manager does; it stops its containers first. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  /** SIGKILL: its containers run on, unobserved until `start`. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Stops answering without going away, until `thaw`. On return it has stopped: threads that run hear of it a little later. */
  freeze(): void {
    if (!this.#child) return;
    this.#child.kill("SIGSTOP");
    while (!isStopped(this.#child.pid)) Bun.sleepSync(1);
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Loads images of the engine that the tests run against. */
  async provideImages(...names: string[]): Promise<void> {
    const machine = new TestDocker({ kind: "unix", path: engineSocketPath() });
    const archive = await machine.saveImages(names, new AbortController().signal);
    await this.docker.loadImage(new Blob(await Array.fromAsync(archive)));
  }

  #logTail(): string {
    return fs.readFileSync(this.#logFile, "utf8").trimEnd().split("\n").slice(-15).join("\n");
  }

  /**
   * Kills its containers, ends it, removes its mounts, bridge and files, with them what the containers wrote. It removes no
   * container: a root file system that an engine killed before has mounted twice stays busy. Safe to call again.
   */
  async cleanUp(): Promise<void> {
    this.thaw();
    // Containers that outlived a kill have no engine: a fresh dockerd finds and ends them.
    if (this.#child && (this.#child.exitCode ?? this.#child.signalCode) !== null) await this.start();
    const cgroups = this.#child ? await this.#killContainers() : [];
    await this.stop();
    for (const cgroup of cgroups) removeCgroup(cgroup);
    unmountBelow(this.directory);
    Bun.spawnSync([...this.enter, "ip", "link", "delete", this.#bridge], { stderr: "ignore" });
    if (this.enter.length > 0) Bun.spawnSync(["ip", "netns", "delete", this.#bridge], { stderr: "ignore" });
    fs.rmSync(this.directory, { recursive: true, force: true });
    this.#child = undefined;
  }

  get #logFile(): string {
    return join(this.directory, "dockerd.log");
  }

  /** @returns the cgroups of their pods */
  async #killContainers(): Promise<string[]> {
    const found = await this.docker.listContainers({ all: true });
    const cgroups = await podCgroupsOf(this.docker, found);
    const kill = async ({ Id }: { Id: string }) => {
      const error = await this.docker.killContainer(Id, "SIGKILL").catch((reason: Error) => reason);
      // One that does not run, or that a kubelet that the test has just stopped had begun to remove.
      if (error instanceof Error && !isConflict(error) && !isNotFound(error)) throw error;
    };
    await Promise.all(found.map(kill));
    return cgroups;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#child?.kill(signal);
    await this.#child?.exited;
  }

  #createBridge(): void {
    const ip = (...words: string[]) => [...this.enter, "ip", ...words];
    if (Bun.spawnSync(ip("link", "show", this.#bridge)).exitCode === 0) return;
    runOrThrow(...ip("link", "add", "name", this.#bridge, "type", "bridge"));
    runOrThrow(...ip("address", "add", `${this.#subnet}.1/24`, "dev", this.#bridge));
    runOrThrow(...ip("link", "set", this.#bridge, "up"));
  }
}

function runOrThrow(...cmd: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(cmd);
  if (exitCode !== 0) throw new Error(`${cmd.join(" ")}: ${stderr.toString().trim()}`);
}

const randomBelow = (limit: number) => Math.floor(Math.random() * limit);

/** Whether the process of a pid file runs; one that ended and was not reaped does not. */
function isAlive(pidFile: string): boolean {
  try {
    const pid = fs.readFileSync(pidFile, "utf8").trim();
    return !/^State:\s+[ZX]/m.test(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function isStopped(pid: number): boolean {
  try {
    return fs
      .readdirSync(`/proc/${pid}/task`)
      .every((thread) => /^State:\s+[TtZX]/m.test(fs.readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8")));
  } catch {
    return !fs.existsSync(`/proc/${pid}`);
  }
}
