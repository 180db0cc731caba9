import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pod, PodStatus } from "../../src/base/api/pod.ts";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import { isConflict, isNotFound } from "../../src/docker/engine/docker-error.ts";
import { parseEndpoint } from "../../src/docker/engine/endpoint.ts";
import type { ContainerSummary } from "../../src/docker/engine/schemas.ts";
import { computeRootHash, LABEL } from "../../src/docker/labels.ts";
import { chainPrefix, KernelRules } from "../../src/kubelet/kernel-rules.ts";
import { type KubeletExit, KubeletProcess } from "./kubelet-process.ts";
import { RecordingLogger } from "./recording-logger.ts";
import { TestDocker } from "./test-docker.ts";
import { freePorts } from "./test-servers.ts";
import { PATIENCE_MS, until } from "./until.ts";

/** Part of every node name of this run, so that what a killed run left behind can be distinguished from another run's. */
export const RUN_ID = process.env.KUBELET_TS_TEST_RUN ?? Math.random().toString(36).slice(2, 8);

/** More would make the engine slow for other users. */
const REMOVALS_AT_A_TIME = 8;

let nodeCount = 0;

/** Nodes that were not cleaned up yet, for a run that ends early. */
export const liveNodes = new Set<TestNode>();

export interface TestNodeOptions {
  /** The socket of a private engine, which ends its containers itself. Default: the one the tests run against. */
  socketPath?: string;
}

export type PodItem = Pod & { status: PodStatus };

export const isReady = ({ status }: PodItem): boolean =>
  status.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;

/**
 * A node of its own for one test: name, root directory, manifest directory and ports that no other test has. Whatever it
 * starts on the engine carries its name as a label, and `cleanUp` removes exactly that.
 */
export class TestNode {
  readonly name: string;
  /** Below the system's temporary directory; everything of this node lies in it. */
  readonly directory: string;
  readonly rootDir: string;
  readonly manifestDir: string;
  readonly readOnlyPort: number;
  readonly healthzPort: number;
  readonly cadvisorPort: number;
  readonly kubeletPort: number;
  readonly docker: TestDocker;
  readonly #socketPath: string;
  readonly #processes: KubeletProcess[] = [];

  constructor(options: TestNodeOptions = {}) {
    nodeCount += 1;
    this.name = `t-${RUN_ID}-${process.pid.toString(36)}-${nodeCount}`;
    this.directory = fs.mkdtempSync(join(tmpdir(), `kubelet-ts-${this.name}-`));
    this.rootDir = join(this.directory, "root");
    this.manifestDir = join(this.directory, "manifests");
    for (const folder of [this.rootDir, this.manifestDir, join(this.directory, "home")]) fs.mkdirSync(folder);
    [this.readOnlyPort, this.healthzPort, this.cadvisorPort, this.kubeletPort] = freePorts(4) as [0, 0, 0, 0];
    this.#socketPath = options.socketPath ?? engineSocketPath();
    this.docker = new TestDocker({ kind: "unix", path: this.#socketPath });
    liveNodes.add(this);
  }

  /** For containers that a test makes without the kubelet: label them with it, and `cleanUp` takes them along. */
  get bareName(): string {
    return `${this.name}-bare`;
  }

  identityFlags(): string[] {
    return [
      `--hostname-override=${this.name}`,
      `--root-dir=${this.rootDir}`,
      `--docker-endpoint=unix://${this.#socketPath}`,
      `--pod-logs-dir=${join(this.directory, "log-pods")}`,
      `--containers-logs-dir=${join(this.directory, "log-containers")}`,
    ];
  }

  /**
   * Flags of a long-running kubelet: identity, manifest directory and ports. The authenticated port needs a process that makes a
   * certificate, a quarter of a start: tests of it open it with {@link kubeletPort}.
   */
  flags(): string[] {
    return [
      ...this.identityFlags(),
      `--pod-manifest-path=${this.manifestDir}`,
      `--read-only-port=${this.readOnlyPort}`,
      `--healthz-port=${this.healthzPort}`,
      `--cadvisor-port=${this.cadvisorPort}`,
      "--local-api-port=0",
      "--port=0",
    ];
  }

  /** Runs the binary with exactly these arguments. @param options `prefix`: a command that runs the rest of its arguments */
  spawn(
    args: readonly string[],
    options: { stdin?: string; env?: Record<string, string>; prefix?: readonly string[] } = {},
  ): KubeletProcess {
    const env = { PATH: process.env.PATH ?? "", HOME: join(this.directory, "home"), ...options.env };
    const child = new KubeletProcess(args, env, this.directory, options.stdin, options.prefix);
    this.#processes.push(child);
    return child;
  }

  /** Runs a command of the program on this node to its end. @param line its first words, with spaces between them */
  run(line: string, ...more: string[]): Promise<KubeletExit> {
    return this.spawn([`--root-dir=${this.rootDir}`, ...line.split(" "), ...more]).finished();
  }

  /** `--runonce` to its end. @param args manifests and further flags */
  runOnce(args: readonly string[], options: { stdin?: string } = {}): Promise<KubeletExit> {
    return this.spawn(["--runonce", ...this.identityFlags(), ...args], options).finished();
  }

  /** Starts the long-running kubelet and waits until it answers on its healthz port. @param args further flags */
  async start(args: readonly string[] = [], options: { prefix?: readonly string[] } = {}): Promise<KubeletProcess> {
    const child = this.spawn([...this.flags(), ...args], options);
    await until(
      "the kubelet's /healthz",
      async () => {
        if (!child.running) return true;
        return await this.read("/healthz", this.healthzPort);
      },
      { details: () => this.diagnosis() },
    );
    if (!child.running) throw new Error(`The kubelet ended while starting.\n${await this.diagnosis()}`);
    return child;
  }

  /** Writes a manifest the way an operator's editor should: whole, then renamed into place. */
  writeManifest(file: string, manifest: string | object): string {
    const path = join(this.manifestDir, file);
    const scratch = join(this.manifestDir, `.${file}.tmp`);
    fs.writeFileSync(scratch, typeof manifest === "string" ? manifest : JSON.stringify(manifest));
    fs.renameSync(scratch, path);
    return path;
  }

  removeManifest(file: string): void {
    fs.rmSync(join(this.manifestDir, file));
  }

  async pods(): Promise<PodItem[]> {
    return (await this.readJson<{ items: PodItem[] | null }>("/pods")).items ?? [];
  }

  /** One of them, by its name without that of the node. */
  async pod(name: string): Promise<PodItem | undefined> {
    return (await this.pods()).find(({ metadata }) => metadata.name === `${name}-${this.name}`);
  }

  async statusOf(name: string): Promise<PodStatus | undefined> {
    return (await this.pod(name))?.status;
  }

  async waitingOf(name: string) {
    return (await this.statusOf(name))?.containerStatuses?.[0]?.state.waiting;
  }

  untilPhase(name: string, phase: string, limitMs = PATIENCE_MS): Promise<PodItem> {
    return this.until(
      `${name} to be ${phase}`,
      async () => {
        const pod = await this.pod(name);
        return pod?.status.phase === phase && pod;
      },
      limitMs,
    );
  }

  /** Waits until that many pods are Ready. @returns all pods, those that are not Ready included */
  readyPods(count: number): Promise<PodItem[]> {
    return this.until(`${count} Ready pods`, async () => {
      const pods = await this.pods();
      return pods.filter(isReady).length === count && pods;
    });
  }

  /** The response of a path, by default of the read-only port. */
  async read(path: string, port = this.readOnlyPort): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${text}`);
    return text;
  }

  async readJson<T>(path: string, port = this.readOnlyPort): Promise<T> {
    return JSON.parse(await this.read(path, port)) as T;
  }

  /** Sandboxes and containers of this node on the engine, running or not, in no order. */
  listAll(): Promise<ContainerSummary[]> {
    const label = [`${LABEL.node}=${this.name}`, `${LABEL.root}=${computeRootHash(this.rootDir)}`];
    return this.docker.listContainers({ all: true, filters: { label } });
  }

  /** Containers without sandboxes; only those of `containerName` when given. */
  async containers(containerName?: string): Promise<ContainerSummary[]> {
    return (await this.listAll()).filter(
      ({ Labels }) =>
        Labels[LABEL.type] === "container" &&
        (containerName === undefined || Labels[LABEL.containerName] === containerName),
    );
  }

  async containerIds(containerName?: string): Promise<string[]> {
    return (await this.containers(containerName)).map(({ Id }) => Id).sort();
  }

  async sandboxes(): Promise<ContainerSummary[]> {
    return (await this.listAll()).filter(({ Labels }) => Labels[LABEL.type] === "podsandbox");
  }

  async running(containerName?: string): Promise<ContainerSummary[]> {
    return (await this.containers(containerName)).filter(({ State }) => State === "running");
  }

  /** Waits for as many running containers as wanted, and no others. */
  untilRunning(count: number): Promise<ContainerSummary[]> {
    return this.until(`${count} containers to run`, async () => {
      const running = await this.running();
      return running.length === count && running;
    });
  }

  runningContainer(containerName: string): Promise<ContainerSummary> {
    return this.until(`container "${containerName}" to run`, async () => (await this.running(containerName))[0]);
  }

  successorOf(containerName: string, ...ids: string[]): Promise<ContainerSummary> {
    return this.until(`another container "${containerName}" to run`, async () =>
      (await this.running(containerName)).find(({ Id }) => !ids.includes(Id)),
    );
  }

  untilEmpty(): Promise<true> {
    return this.until("no container", async () => (await this.listAll()).length === 0);
  }

  async removeAll(containers: readonly { Id: string }[]): Promise<void> {
    for (const { Id } of containers) await removeContainer(this.docker, Id);
  }

  async exec(containerId: string, ...argv: string[]): Promise<string> {
    return (await this.docker.exec(containerId, argv)).output;
  }

  /** Output of a container, both streams. */
  async logs(containerId: string): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const { data } of await this.docker.containerLogs(containerId))
      text += decoder.decode(data, { stream: true });
    return text;
  }

  /** Waits as `until` does; a failure shows the kubelet's log and this node's containers. */
  until<T>(
    what: string,
    attempt: () => T | Promise<T>,
    limitMs = PATIENCE_MS,
  ): Promise<NonNullable<Exclude<T, false>>> {
    return until(what, attempt, { limitMs, details: () => this.diagnosis() });
  }

  /** Waits until the log of a kubelet contains this. */
  untilLogged(kubelet: KubeletProcess, text: string | RegExp): Promise<true> {
    const isLogged = () => (typeof text === "string" ? kubelet.log.includes(text) : text.test(kubelet.log));
    return this.until(`"${text}" in the log`, isLogged);
  }

  async diagnosis(): Promise<string> {
    const logs = this.#processes.map(
      (child) => `kubelet ${child.pid}${child.running ? "" : " (ended)"}:\n${lastLines(child.log)}`,
    );
    const containers = (await this.listAll().catch(() => [])).map(({ Names, State, Image }) =>
      [Names[0], Image, State].join("  "),
    );
    return [...logs, `containers: ${containers.length}`, ...containers].join("\n");
  }

  /** `await using node = new TestNode()` cleans up at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.cleanUp();
  }

  /** Ends its kubelets, removes its containers, unmounts and deletes its files. Safe to call again. */
  async cleanUp(): Promise<void> {
    await this.endProcesses();
    if (this.#socketPath === engineSocketPath()) {
      await removeContainersOf(this.docker, this.name);
      await removeContainersOf(this.docker, this.bareName);
    }
    if (this.#hadServices()) await removeServiceRules(this.rootDir);
    this.removeFiles();
  }

  /** Whether the kernel may have rules of its Services. */
  #hadServices(): boolean {
    const state = join(this.rootDir, "state");
    return !fs.existsSync(state) || fs.readdirSync(state).some((name) => name.startsWith("service-addresses"));
  }

  async endProcesses(): Promise<void> {
    await Promise.all(this.#processes.map((child) => child.kill()));
  }

  removeFiles(): void {
    unmountBelow(this.directory);
    fs.rmSync(this.directory, { recursive: true, force: true });
    liveNodes.delete(this);
  }
}

/** Removes the kernel's rules for the Services of a root directory. */
async function removeServiceRules(rootDir: string): Promise<void> {
  const prefix = chainPrefix(computeRootHash(rootDir));
  const logger = new RecordingLogger();
  for (const family of ["IPv4", "IPv6"] as const) {
    const rules = new KernelRules({
      family,
      clock: new SystemClock(),
      logger,
      prefix,
      rootDir,
      nodePortAddresses: [],
      sandboxes: () => [],
    });
    // There are none without iptables, or without root.
    await rules.remove().catch(() => {});
  }
}

/** Removes every container labelled with this node name with the cgroups of their pods, and nothing else. */
export async function removeContainersOf(docker: TestDocker, nodeName: string): Promise<void> {
  const found = await docker.listContainers({ all: true, filters: { label: [`${LABEL.node}=${nodeName}`] } });
  const cgroups = await podCgroupsOf(docker, found);
  const queue = found.values();
  await Promise.all(
    Array.from({ length: REMOVALS_AT_A_TIME }, async () => {
      for (const { Id } of queue) await removeContainer(docker, Id);
    }),
  );
  for (const cgroup of cgroups) removeCgroup(cgroup);
}

/**
 * Removes one with its anonymous volumes; it may be gone already, or be removed by another call (409). A mount namespace that
 * another process is just making keeps its file system busy for a moment: that is tried again.
 */
export async function removeContainer(docker: TestDocker, id: string): Promise<void> {
  await until("the container to be removed", async () => {
    const error = await docker.removeContainer(id, { force: true, volumes: true }).catch((reason: Error) => reason);
    if (!(error instanceof Error) || isNotFound(error) || isConflict(error)) return true;
    throw error;
  });
}

/** The cgroups of the pods of these containers, as `CgroupParent` names them. */
export async function podCgroupsOf(docker: TestDocker, containers: readonly ContainerSummary[]): Promise<string[]> {
  const parentOf = async ({ Id }: ContainerSummary) => {
    try {
      const { HostConfig } = await docker.inspectContainerRaw(Id);
      return (HostConfig as { CgroupParent?: string }).CgroupParent ?? "";
    } catch (error) {
      if (isNotFound(error)) return "";
      throw error;
    }
  };
  const parents = await Promise.all(containers.map(parentOf));
  return [...new Set(parents)].filter((parent) => /^\/.*\bpod[^/]*$|^kubepods.*-pod[^-]*\.slice$/.test(parent));
}

/**
 * Path below the cgroup file systems of what Docker was given as CgroupParent: a path, or under the systemd driver the
 * name of a slice, which spells out the slices above it.
 */
export function toParentPath(cgroupParent: string): string {
  if (!cgroupParent.endsWith(".slice")) return cgroupParent;
  const parts = cgroupParent.slice(0, -".slice".length).split("-");
  return `/${parts.map((_, index) => `${parts.slice(0, index + 1).join("-")}.slice`).join("/")}`;
}

/** On cgroup v1 there is one in each hierarchy, on v2 just one. Those still in use stay. */
export function removeCgroup(parent: string): void {
  if (parent.endsWith(".slice")) {
    Bun.spawnSync(["systemctl", "stop", parent]);
    fs.rmSync(join("/run/systemd/system.control", `${parent}.d`), { recursive: true, force: true });
  }
  const path = toParentPath(parent);
  const root = "/sys/fs/cgroup";
  for (const folder of [root, ...fs.readdirSync(root).map((name) => join(root, name))]) {
    try {
      fs.rmdirSync(join(folder, path));
    } catch {
      // Not in this hierarchy, or not empty.
    }
  }
}

/** The engine the tests run against. They need its files, so it must be one on this machine. */
export function engineSocketPath(): string {
  const endpoint = parseEndpoint(undefined, process.env);
  if (endpoint.kind !== "unix") throw new Error("The integration tests need an engine on a Unix socket.");
  return endpoint.path;
}

/** Mounts must go before their directories can: memory-backed volumes, those of an engine. */
export function unmountBelow(directory: string): void {
  const points = fs
    .readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${directory}/`));
  // The innermost come last in the file.
  for (const point of points.reverse()) Bun.spawnSync(["umount", "--lazy", point]);
}

/** A call that the kubelet does not make, as of the docker command. @throws when the engine refuses */
export async function callEngine(
  path: string,
  headers: Record<string, string> = {},
  method = "POST",
  body?: Bun.BodyInit,
): Promise<string> {
  const response = await fetch(`http://docker${path}`, { unix: engineSocketPath(), method, headers, body });
  const text = await response.text();
  // Errors after the first byte come inside a successful answer.
  if (!response.ok || text.includes('"errorDetail"')) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text;
}

/** An answer as the engine gives it, with what our own schemas drop. @throws when the engine refuses */
export const readEngine = (path: string): Promise<string> => callEngine(path, {}, "GET");

const lastLines = (text: string) => text.trimEnd().split("\n").slice(-40).join("\n");
