import type { AppLogger } from "../../src/daemon/logging.ts";
import { ApiServerModel } from "./api-server-model.ts";
import { Collections, hasCollections } from "./collections.ts";
import { SECRET_MARKS } from "./desired.ts";
import { EngineHttp } from "./engine-http.ts";
import { EngineModel, type ModelContainer } from "./engine-model.ts";
import { FirewallModel } from "./firewall-model.ts";
import { ManifestServer } from "./manifest-server.ts";
import { PodNetwork } from "./pod-network.ts";
import { SeededRandom } from "./seeded-random.ts";
import { CGROUPS, type DiskFailure, SimulatedDisk } from "./simulated-disk.ts";
import { EARLIER, replaceModules } from "./simulated-modules.ts";
import { CrashedError, VirtualTime } from "./virtual-time.ts";

export const MANIFESTS = "/etc/kubernetes/manifests";
export const ROOT_DIR = "/var/lib/kubelet-ts";

const STEPS_KEPT = 200;
/** Files that hold values of Secrets: manifests as they were read or submitted. */
const SECRET_PLACES = /^\/var\/lib\/kubelet-ts\/(checkpoints|manifests)\//;

const hasSecret = (text: string | Buffer) => SECRET_MARKS.some((mark) => text.includes(mark));

/** Output of a program. */
const toStream = (text: string) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });

/** One machine: its clock, disk and engine, and kubelet-ts on it, as `kubelet-ts --pod-manifest-path` assembles it. */
export class World {
  readonly seed: number;
  readonly time: VirtualTime;
  readonly disk: SimulatedDisk;
  readonly engine: EngineModel;
  readonly wire: EngineHttp;
  readonly pods: PodNetwork;
  /** Every eighth machine is a node of a cluster: this is its API server, and how it reaches that. */
  readonly cluster: ApiServerModel | undefined;
  readonly clusterWire: EngineHttp | undefined;
  /** Every third machine has iptables: on the others names of Services lead to pods. */
  readonly firewall = new FirewallModel();
  /** Every other machine has clients of the local API. */
  readonly hasApi: boolean;
  /** On every third machine the manifests have a disk of their own. */
  readonly hasMount: boolean;
  #isMounted = true;
  /** Every fourth machine has manifests from a URL. */
  readonly hasUrl: boolean;
  readonly collections: Collections | undefined;
  readonly sockets = new Map<string, Route>();
  /** Clients that wait for a response. */
  readonly #clients = new Set<() => void>();
  /** Name of the machine. */
  hostName = "node1";
  /** `--hostname-override` of the next process. */
  nodeName = "";
  /** Options of the next process, in addition to {@link OPTIONS}. */
  flags: Readonly<Record<string, unknown>> = {};
  /** The value of a Secret is where it may not be. */
  onSecret: (place: string) => void = () => {};
  /** The last things that happened. */
  readonly steps: string[] = [];
  /** Called with every step, for `--trace`. */
  onStep: ((line: string) => void) | undefined;
  /** Lines of the log of level warning and above, in all. */
  logLines = 0;
  readonly errors: string[] = [];
  processes = 0;
  /** A process ended without having been asked to. */
  onUnexpectedEnd: () => void = () => {};
  /** A process has begun. */
  onStart: () => void = () => {};
  onPowerCut: () => void = () => {};
  /** The node has another name than the process before it. */
  onRename: () => void = () => {};
  /** Name of the node of the last process. */
  #keptName: string | undefined;
  #hash = 0n;
  #writes = 0;
  #running: { version: number; own: readonly ModelContainer[] } = { version: -1, own: [] };
  #now = { ms: -1, text: "" };
  /** Versions of the program, the one that starts next first. */
  #programs: Program[] = [];
  #stop: AbortController | undefined;
  #endOfProcess: "stopped" | "restart" | Error | undefined;

  constructor(seed: number) {
    this.seed = seed;
    this.hasApi = seed % 2 === 1;
    this.hasUrl = seed % 4 === 2;
    this.hasMount = seed % 3 === 1;
    this.collections = hasCollections(seed) ? new Collections(() => this.time.process) : undefined;
    const random = new SeededRandom(seed);
    // Some day of some year.
    this.time = new VirtualTime(seed, Date.UTC(2026, random.whole(0, 11), random.whole(1, 28), random.whole(0, 23)));
    const host = {
      wallMs: () => this.time.wallMs,
      effect: () => this.time.effect(),
      deliver: (run: () => void) => void this.time.afterForProcess(1, run),
      random: new SeededRandom(seed ^ 0xd15c),
    };
    this.disk = new SimulatedDisk(host);
    this.engine = new EngineModel(this.time, new SeededRandom(seed ^ 0xe1));
    this.wire = new EngineHttp(this.time, this.engine, new SeededRandom(seed ^ 0x317e));
    if (isNode(seed)) {
      this.cluster = new ApiServerModel(this.time, new SeededRandom(seed ^ 0xa91), seed % 16 === 4);
      this.clusterWire = new EngineHttp(this.time, this.cluster, new SeededRandom(seed ^ 0xa92), CLUSTER);
      this.nodeName = "node1";
    }
    this.pods = new PodNetwork(this.time, this.engine, new SeededRandom(seed ^ 0x9e7));
    this.disk.onWrite = (path, data) => {
      if (!path.startsWith(CGROUPS)) this.#writes++;
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      if (!SECRET_PLACES.test(path) && hasSecret(bytes)) this.onSecret(path);
    };
    this.wire.onRequest = (text) => {
      if (!isRead(text)) this.#record(`request ${text}`);
    };
    // On a node of a cluster they are those of kube-proxy.
    this.firewall.isInstalled = seed % 3 === 0 && !this.cluster;
    this.firewall.hasGenerations = seed % 15 !== 0;
    // Processes of a container are in a cgroup of its own.
    this.engine.observers.add(({ what, container: { id, body } }) => {
      const { CgroupParent = "/docker" } = body.HostConfig ?? {};
      for (const name of CONTROLLERS) {
        if (what === "start") this.disk.makeDirectory(`${CGROUPS}${name}${CgroupParent}/${id}`);
        if (what === "end") this.disk.remove(`${CGROUPS}${name}${CgroupParent}/${id}`);
      }
    });
    // dockerd keeps a directory for each container.
    this.engine.observers.add(({ what, container: { id } }) => {
      const directory = `/var/lib/docker/containers/${id}`;
      if (what === "remove") this.disk.remove(directory);
      if (what !== "create") return;
      this.disk.makeDirectory(directory);
      this.disk.write(`${directory}/resolv.conf`, "nameserver 10.0.0.1\n");
    });
    this.engine.observers.add(({ what, container, by }) => {
      this.time.stir(by === "request" || by === "itself" ? "engine" : undefined);
      this.#record(
        `engine: ${what} of ${container.name} ${container.id.slice(0, 12)} by ${by}${what === "end" ? ` with ${container.exitCode}` : ""}`,
      );
    });
  }

  /** Hash of everything that happened: equal seeds have equal ones. */
  get hash(): string {
    return this.#hash.toString(16).padStart(16, "0");
  }

  /** Something happens to the machine that the program has not done. @param isChange false: a question, after which looks find the same */
  note(text: string, isChange = true): void {
    if (isChange) this.time.stir();
    this.#record(text);
  }

  /** Whether a text has the value of a Secret. */
  readonly hasSecret = hasSecret;

  #record(text: string): void {
    const line = `${this.now} ${text}`;
    this.#hash = BigInt(Bun.hash(line, this.#hash));
    this.steps.push(line);
    if (this.steps.length > 2 * STEPS_KEPT) this.steps.splice(0, STEPS_KEPT);
    this.onStep?.(line);
  }

  /** `day 12 03:04:05.678` */
  get now(): string {
    const ms = Math.floor(this.time.nowMs);
    if (ms !== this.#now.ms) {
      const time = new Date(ms % DAY_MS).toISOString().slice(11, 23);
      this.#now = { ms, text: `day ${Math.floor(ms / DAY_MS)} ${time}` };
    }
    return this.#now.text;
  }

  /** Loads the program, unless another machine has; afterwards the clocks and files of this JavaScript realm are those of the world. */
  async load(mutant?: string): Promise<void> {
    this.disk.makeDirectory(MANIFESTS, this.hasMount ? MANIFESTS_DEVICE : undefined);
    this.disk.makeDirectory(ROOT_DIR);
    this.#makeKernelFiles();
    this.disk.sync();
    replaceModules(this, mutant);
    this.#programs = [await loadProgram("../..")];
    if (EARLIER !== undefined) this.#programs.push(await loadProgram(EARLIER));
    if (!living) {
      for (const { DockerClient } of this.#programs) holdPings(DockerClient.prototype, () => living!.wire);
      noteUncaughtErrors(() => living!.errors);
    }
    living = this;
    this.time.install();
    const fetch = (url: string | URL, init?: RequestInit) =>
      (this.clusterWire && String(url).startsWith(CLUSTER) ? this.clusterWire : this.wire).fetch(url, init);
    Object.assign(globalThis, { fetch, Worker: this.#workerClass() });
    Bun.which = (name) => (this.firewall.isInstalled && name.startsWith("iptables-") ? `/usr/sbin/${name}` : null);
    Bun.spawn = ((argv: string[], options: { stdin?: Uint8Array | "ignore" }) =>
      this.#runProgram(argv, options.stdin)) as unknown as typeof Bun.spawn;
    Object.defineProperty(process, "pid", { value: 4242 });
  }

  /** Requests to the engine, and files that were written, in all. */
  get effort(): { requests: number; writes: number } {
    return { requests: this.wire.requests, writes: this.#writes };
  }

  /** Name of the node, as its last process had it. */
  get currentName(): string {
    return this.#keptName ?? "";
  }

  get isRunning(): boolean {
    return this.#stop !== undefined;
  }

  /** Running containers and sandboxes of kubelet-ts. */
  ownRunning(): readonly ModelContainer[] {
    const { version, containers } = this.engine;
    if (this.#running.version === version) return this.#running.own;
    const isOwn = ({ status, labels }: ModelContainer) => status === "running" && labels["kubelet-ts.io/node"];
    this.#running = { version, own: [...containers.values()].filter(isOwn) };
    return this.#running.own;
  }

  /** How the process ended alone; undefined while it runs. */
  get endOfProcess(): "stopped" | "restart" | Error | undefined {
    return this.#endOfProcess;
  }

  /** The next process is of the other version. */
  exchangeProgram(): void {
    this.#programs.push(...this.#programs.splice(0, 1));
    this.note("another version of kubelet-ts is installed");
  }

  startProcess(): void {
    const [program] = this.#programs;
    if (this.#stop || !program) return;
    const stop = new AbortController();
    this.#stop = stop;
    this.#endOfProcess = undefined;
    this.processes++;
    this.note(`kubelet-ts starts, process ${this.processes}`);
    this.time.onCrash = () => {
      this.note("kubelet-ts crashes");
      this.time.after(0, () => this.#endUnexpectedly());
    };
    this.time.beginProcess(() => {
      const run = async () => {
        // As the command does before it supervises.
        const lock = await program.lockRootDir(ROOT_DIR);
        const kept = program.keepNodeName(ROOT_DIR, this.nodeName);
        for (const notice of kept.notices) this.note(`log warn: ${notice}`);
        if (kept.name !== this.#keptName) this.onRename();
        this.#keptName = kept.name;
        const options = {
          ...structuredClone(program.DEFAULT_KUBELET_OPTIONS),
          ...OPTIONS,
          ...this.flags,
          enableServer: this.hasApi,
          manifestUrls: this.hasUrl ? [ManifestServer.url] : [],
          hostnameOverride: kept.name,
          ...(this.cluster && NODE_OPTIONS),
        };
        const end = await program.runForever({
          options: options as never,
          manifests: [],
          environment: {},
          logger: this.#logger(),
          resolve: () => new Promise(() => {}),
          configuration: undefined,
          configPaths: [],
          stop: stop.signal,
          onServers: () => {},
        });
        lock?.release();
        return end;
      };
      void run().then(
        (end) => {
          this.#endOfProcess = end;
        },
        (error: Error) => {
          this.#endOfProcess = error;
          this.note(`kubelet-ts ends: ${error.message}`);
          this.time.after(0, () => this.#endUnexpectedly());
        },
      );
    });
    this.onStart();
  }

  /** A person starts another kubelet-ts on the same root directory, while one runs. */
  startSecond(onStarted: () => void): void {
    if (!this.isRunning || this.time.isDead) return;
    const { processes } = this;
    this.time.afterForProcess(0, async () => {
      const lock = await this.#programs[0]?.lockRootDir(ROOT_DIR).catch(() => undefined);
      // A process that ends has given the directory free.
      if (lock && this.#endOfProcess === undefined && this.processes === processes) onStarted();
      lock?.release();
    });
  }

  /** A client asks the local API. @returns undefined without a response: whether it was done is not known */
  ask(method: string, path: string, body: object | undefined, type: string): Promise<ApiResponse | undefined> {
    const { promise, resolve } = Promise.withResolvers<ApiResponse | undefined>();
    const giveUp = () => {
      if (this.#clients.delete(giveUp)) this.time.after(0, () => resolve(undefined));
    };
    this.#clients.add(giveUp);
    this.time.after(CLIENT_PATIENCE_MS, giveUp);
    const send = async () => {
      const response = await this.#send(method, path, body, type);
      if (!response) return giveUp();
      const { status, body: text = "" } = response;
      const answer = { status, text: typeof text === "string" ? text : new TextDecoder().decode(text) };
      if (!path.includes("/secrets") && hasSecret(answer.text)) this.onSecret(`the answer to ${method} ${path}`);
      if (this.#clients.delete(giveUp)) this.time.after(1, () => resolve(answer));
    };
    if (this.isRunning && !this.time.isDead) this.time.afterForProcess(1, () => void send());
    else giveUp();
    return promise;
  }

  /** A client watches the local API. Resolves when the watch ends; never when the process does. */
  async watch(path: string, signal: AbortSignal, onText: (text: string) => void): Promise<void> {
    const response = await this.#send("GET", path, undefined, "", signal);
    for await (const chunk of response?.chunks ?? []) {
      const text = new TextDecoder().decode(chunk);
      if (hasSecret(text)) this.onSecret(`the watch of ${path}`);
      onText(text);
    }
  }

  /** @returns undefined: nothing listens */
  async #send(
    method: string,
    path: string,
    body: object | undefined,
    type: string,
    signal = new AbortController().signal,
  ) {
    const { pathname, searchParams: query } = new URL(path, "http://localhost");
    const headers: Record<string, string> = { "content-type": type, "user-agent": "simulated-client" };
    return await this.sockets.get(`${ROOT_DIR}/api.sock`)?.({
      method,
      path: pathname,
      query,
      header: (name: string) => headers[name.toLowerCase()] ?? null,
      signal,
      upgrade: "",
      shown: undefined,
      sessions: 0,
      body: async () => new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body)),
    });
  }

  /** SIGTERM. */
  askToStop(): void {
    this.note("kubelet-ts is asked to stop");
    this.#stop?.abort(new Error("SIGTERM"));
  }

  /** It ended alone. */
  #endUnexpectedly(): void {
    if (!this.#stop) return;
    this.killProcess();
    this.onUnexpectedEnd();
  }

  /** SIGKILL. */
  killProcess(): void {
    if (!this.#stop) return;
    this.#stop = undefined;
    this.time.dropProcess();
    this.wire.forget();
    this.clusterWire?.forget();
    this.sockets.clear();
    for (const giveUp of [...this.#clients]) giveUp();
    this.disk.endProcess();
    this.note("kubelet-ts is gone");
  }

  /** The machine loses power, and is back after a time. */
  cutPower(): void {
    this.killProcess();
    this.note("power cut");
    this.onPowerCut();
    this.disk.cutPower();
    this.disk.remove(CGROUPS);
    this.engine.cutPower();
    this.wire.repair();
    this.firewall.boot();
    this.#makeKernelFiles();
  }

  /** UIDs of pods that have a cgroup. */
  get podCgroups(): string[] {
    const paths = [...this.disk.list(CGROUPS).keys()];
    return paths.flatMap((path) => /\/kubepods\/.*?pod([0-9a-f-]+)\//.exec(path)?.[1] ?? []);
  }

  /** @param code undefined: the disk works again */
  failDisk(code?: DiskFailure, below = ROOT_DIR): void {
    this.disk.failure = code && { code, below };
    this.note(code ? `the disk says ${code}` : "the disk works");
  }

  /** A program does its work at once, and ends a moment later. */
  #runProgram(argv: string[], stdin: Uint8Array | "ignore" | undefined) {
    if (!argv[0]?.startsWith("/usr/sbin/iptables-")) throw new Error("no other programs are installed");
    this.time.effect();
    const input = stdin instanceof Uint8Array ? new TextDecoder().decode(stdin) : "";
    const { exitCode, stdout, stderr } = this.firewall.run(argv, input);
    const { promise, resolve } = Promise.withResolvers<number>();
    this.time.afterForProcess(PROGRAM_MS, () => resolve(exitCode));
    return { stdout: toStream(stdout), stderr: toStream(stderr), exited: promise, signalCode: null, kill: () => {} };
  }

  mountManifests(isMounted: boolean): void {
    this.#isMounted = isMounted;
    this.disk.write("/proc/self/mountinfo", this.#mountInfo);
  }

  get #mountInfo(): string {
    const manifests = `9 1 8:${MANIFESTS_DEVICE} / ${MANIFESTS} rw - ext4 /dev/sda2 rw`;
    return [
      "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
      ...CONTROLLERS.map(
        (name, index) => `${index + 2} 1 0:${index + 2} / ${CGROUPS}${name} rw - cgroup cgroup rw,${name}`,
      ),
      ...(this.hasMount && this.#isMounted ? [manifests] : []),
      "",
    ].join("\n");
  }

  #makeKernelFiles(): void {
    const { disk } = this;
    const files: Record<string, string> = {
      "/proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 0 kB\n",
      "/proc/stat": "cpu0 1 0 1 1000 0 0 0 0 0 0\nbtime 1700000000\n",
      "/proc/loadavg": "0.10 0.10 0.10 1/100 1000\n",
      "/proc/diskstats": "",
      "/proc/swaps": "Filename Type Size Used Priority\n",
      "/proc/mounts": "/dev/sda1 / ext4 rw 0 0\n",
      "/proc/self/mountinfo": this.#mountInfo,
      "/proc/self/oom_score_adj": "-999\n",
      "/proc/self/limits": "Max open files 1000000 1000000 files\n",
      "/proc/self/status": "VmRSS: 60000 kB\n",
      "/proc/net/unix": "Num       RefCount Protocol Flags    Type St Inode Path\n",
      "/proc/net/route": "Iface\tDestination\tGateway\n",
      "/proc/sys/kernel/random/boot_id": `${new SeededRandom(this.time.nowMs ^ this.seed).uuid()}\n`,
      "/proc/sys/net/bridge/bridge-nf-call-iptables": "1\n",
      "/proc/sys/kernel/pid_max": "32768\n",
      "/proc/sys/kernel/threads-max": "100000\n",
      "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
      "/etc/hosts": "127.0.0.1 localhost\n",
      [KUBECONFIG]: JSON.stringify({
        clusters: [{ name: "cluster", cluster: { server: CLUSTER } }],
        contexts: [{ name: "node", context: { cluster: "cluster" } }],
      }),
      "/etc/resolv.conf": "nameserver 10.0.0.1\n",
    };
    for (const [path, text] of Object.entries(files)) {
      disk.makeDirectory(path.slice(0, path.lastIndexOf("/")));
      disk.write(path, text);
    }
    for (const name of CONTROLLERS) disk.makeDirectory(`${CGROUPS}${name}`);
    for (const directory of ["/run", "/tmp", "/var/log", "/var/lib/docker/containers", "/dev"])
      disk.makeDirectory(directory);
  }

  #logger(): AppLogger {
    const write = (level: string, isKept: boolean) => (message: string, fields?: object) => {
      const more = fields && Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
      if (hasSecret(message + more)) this.onSecret(`a line of the log: ${message}`);
      if (!isKept) return;
      this.logLines++;
      this.#record(`log ${level}: ${message}${more}`);
      if (level === "error" && /unexpected|TypeError|undefined is not|Cannot read/.test(message + more)) {
        this.errors.push(message + more);
      }
    };
    return {
      error: write("error", true),
      warn: write("warn", true),
      info: write("info", true),
      debug: write("debug", false),
      setVerbosity: () => {},
    };
  }

  /** Background threads: their tasks run in this one, a moment later. */
  #workerClass() {
    const { time } = this;
    const tasks = () =>
      this.#programs[0]?.BACKGROUND_TASKS as unknown as Record<string, (...values: unknown[]) => unknown>;
    return class SimulatedWorker {
      #listener: ((event: { data: unknown }) => void) | undefined;

      addEventListener(event: string, listener: (event: { data: unknown }) => void): void {
        if (event === "message") this.#listener = listener;
      }

      #parts: unknown[] = [];

      postMessage(part: unknown): void {
        this.#parts.push(copy(part));
        const [{ id, task, count }, ...copied] = this.#parts as [{ id: number; task: string; count: number }];
        if (copied.length < count) return;
        this.#parts = [];
        time.afterForProcess(0.3, async () => {
          try {
            const value = await tasks()[task]?.(...copied);
            this.#listener?.({ data: { id, ok: true, value } });
          } catch (error) {
            const { message, code, name } = error as NodeJS.ErrnoException;
            this.#listener?.({
              data: { id, ok: false, error: { message, name, ...(code !== undefined && { code }) } },
            });
          }
        });
      }

      unref(): void {}

      terminate(): void {}
    };
  }
}

/** A value as another thread gets it. Most are texts and plain objects, which cost less in this way. */
function copy<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy) as T;
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, copy(one)])) as T;
}

export const DAY_MS = 86_400_000;
/** `st_dev` of the disk of the manifests. */
const MANIFESTS_DEVICE = 2;
/** Controllers of cgroups, each with a hierarchy of its own. */
const CONTROLLERS = ["cpu", "memory"] as const;
/** Longest wait of a client of the API. */
const CLIENT_PATIENCE_MS = 60_000;
/** Time that iptables takes. */
const PROGRAM_MS = 8;
/** Address of the machine. */
export const NODE_IP = "10.0.0.5";

interface ApiResponse {
  status: number;
  text: string;
}

type Route = (
  request: object,
) => Promise<{ status: number; body?: string | Uint8Array; chunks?: AsyncIterable<Uint8Array> }>;

/** The parts of the program that a machine uses. @param root directory with its `src` */
async function loadProgram(root: string) {
  const load = async <Module>(file: string) => (await import(`${root}/src/${file}`)) as Module;
  return {
    ...(await load<typeof import("../../src/daemon/run-forever.ts")>("daemon/run-forever.ts")),
    ...(await load<typeof import("../../src/daemon/background/background-tasks.ts")>(
      "daemon/background/background-tasks.ts",
    )),
    ...(await load<typeof import("../../src/config/option-table.ts")>("config/option-table.ts")),
    ...(await load<typeof import("../../src/base/host/node-name.ts")>("base/host/node-name.ts")),
    ...(await load<typeof import("../../src/base/host/root-directory.ts")>("base/host/root-directory.ts")),
    ...(await load<typeof import("../../src/docker/engine/docker-client.ts")>("docker/engine/docker-client.ts")),
  };
}
type Program = Awaited<ReturnType<typeof loadProgram>>;

/** The machine that lives now, of those that live one after the other in this process. */
let living: World | undefined;

/** The program listens for nothing. */
function noteUncaughtErrors(errors: () => string[]): void {
  for (const event of ["unhandledRejection", "uncaughtException"] as const) {
    process.on(event, (error: unknown) => {
      const message = `uncaught: ${error instanceof Error ? error.stack : String(error)}`;
      if (!(error instanceof CrashedError)) errors().push(message);
    });
  }
  process.on = (() => process) as typeof process.on;
}

/** While the engine answers everything, a ping costs nothing. */
function holdPings(client: Program["DockerClient"]["prototype"], wire: () => EngineHttp): void {
  const { ping } = client;
  client.ping = async function (options) {
    await (wire().holdPing(options?.signal) ?? ping.call(this, options));
  };
}

/** Machines that are nodes of a cluster. */
export const isNode = (seed: number): boolean => seed % 8 === 4;
const CLUSTER = "http://cluster.test";
const KUBECONFIG = "/etc/kubernetes/kubelet.conf";
/** Heartbeats are most of what a node asks for, and each is as the one before. */
const NODE_OPTIONS = { kubeconfig: KUBECONFIG, nodeStatusUpdateFrequencyMs: 600_000, nodeLeaseDurationSeconds: 2400 };

/** Requests that change nothing. */
const isRead = (text: string) => text.startsWith("GET ") || text.includes("/exec");

/** Flags of the machine: no ports, since no one connects, and no statistics, since no one reads them. */
const OPTIONS = {
  rootDir: ROOT_DIR,
  podManifestPaths: [MANIFESTS],
  enableServer: false,
  readOnlyPort: 0,
  healthzPort: 0,
  cadvisorPort: 0,
  port: 0,
  localApiPort: 0,
  evictionHard: [],
  volumeStatsAggPeriodMs: 0,
  fileCheckFrequencyMs: 600_000,
  httpCheckFrequencyMs: 300_000,
  // Events tell what happens; a day has faults enough for the lists to find what they missed.
  syncFrequencyMs: 300_000,
  failSwapOn: false,
};
