import { buildPauseImage } from "../../src/docker/pause-image.ts";
import { EventStream } from "./event-stream.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface EngineRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  body: unknown;
  /** `Content-Type` of the body. */
  type?: string | undefined;
}

export interface EngineResponse {
  status: number;
  json?: unknown;
  text?: string;
  bytes?: Uint8Array;
  headers?: Record<string, string>;
  stream?: EventStream;
}

type Respond = (response: EngineResponse) => void;
type Status = "created" | "running" | "exited" | "removing";

/** The cause of a transition: a request, the program in the container itself, another program, or the machine. */
export type Cause = "request" | "itself" | "stranger" | "machine";

export interface Transition {
  what: "create" | "start" | "term" | "kill" | "end" | "remove" | "start-failed";
  container: ModelContainer;
  by: Cause;
}

interface CreateBody {
  Image: string;
  Labels?: Record<string, string>;
  Cmd?: string[] | null;
  Entrypoint?: string[] | null;
  Env?: string[];
  StopSignal?: string;
  HostConfig?: {
    NetworkMode?: string;
    CgroupParent?: string;
    Memory?: number;
    Binds?: string[];
    Mounts?: { Source?: string; Target: string }[];
  };
}

export interface ModelContainer {
  id: string;
  name: string;
  body: CreateBody;
  labels: Readonly<Record<string, string>>;
  imageId: string;
  status: Status;
  createdMs: number;
  startedMs: number;
  finishedMs: number;
  exitCode: number;
  isOomKilled: boolean;
  error: string;
  pid: number;
  ip: string;
  starts: number;
  /** Its probes fail until then. */
  unhealthyUntilMs: number;
  /** Wall time of the request that asked it to stop. */
  termMs: number | undefined;
  cancel: (() => void)[];
  onEnd: (() => void)[];
  /** Commands that were run in it since its start, but for those of probes. */
  hooks: string[];
}

const refusal = (status: number, message: string): EngineResponse => ({ status, json: { message } });

const NEVER = "0001-01-01T00:00:00Z";
const EVENTS_KEPT = 256;
const PAUSE = buildPauseImage("amd64");

interface ModelImage {
  id: string;
  tags: string[];
}

/**
 * A Docker engine 20.10 as its API shows it: names, states, events, exit codes, refusals; containers are programs of one word.
 * `run`: until TERM. `exit SECONDS CODE`. `deaf`: until KILL. `slow SECONDS`: takes that long to end after TERM.
 */
export class EngineModel {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly containers = new Map<string, ModelContainer>();
  readonly #byName = new Map<string, ModelContainer>();
  readonly images = new Map<string, ModelImage>();
  /** Images of the registry that were pushed to a tag, in all. */
  readonly #pushes = new Map<string, number>();
  /** When a reference was pulled last. */
  readonly pulledMs = new Map<string, number>();
  /** Names of volumes. */
  readonly #volumes = new Set<string>();
  onVolumeRemoval: (name: string) => void = () => {};
  readonly #streams = new Set<EventStream>();
  #events: { line: string; timeNano: bigint; type: string; labels: Readonly<Record<string, string>> }[] = [];
  readonly #execs = new Map<
    string,
    { container: ModelContainer; argv: readonly string[]; exitCode: number | null; isRunning: boolean }
  >();
  /** Grows with each change of a container. */
  version = 0;
  /** The text of each container in a list, while it is in this state. */
  readonly #listed = new WeakMap<ModelContainer, { state: string; text: string }>();
  #lists = { version: -1, encoded: new Map<string, Uint8Array>() };
  #ids = 0;
  #pids = 1000;
  #addresses = 0;
  isUp = true;
  hasLiveRestore = false;
  /** A share of starts fails after the container was created. */
  failingStartShare = 0;
  /** A share of pulls fails half-way. */
  failingPullShare = 0;
  /** Events reach the program this much later. */
  eventDelayMs = 2;
  /** Some events never arrive. */
  lostEventShare = 0;
  /** Removing takes up to this time, in which the name stays taken. */
  removalMs = 40;
  readonly observers = new Set<(transition: Transition) => void>();

  constructor(time: VirtualTime, random: SeededRandom) {
    this.#time = time;
    this.#random = random;
  }

  // --- what happens to it ---

  /** dockerd stops and comes back. @param kind `kill`: without a word to the containers */
  restart(downMs: number, kind: "stop" | "kill"): void {
    if (!this.isUp) return;
    const running = this.#running();
    this.isUp = false;
    this.closeStreams();
    this.#events = [];
    if (!this.hasLiveRestore && kind === "stop") {
      for (const container of running) this.#end(container, isPause(container) ? 0 : 143, "machine");
    }
    this.#time.after(downMs, () => {
      if (!this.hasLiveRestore && kind === "kill") {
        for (const container of this.#running()) this.#end(container, 255, "machine");
      }
      this.#boot();
    });
  }

  /** The machine loses power; the engine is back with it. */
  cutPower(): void {
    this.closeStreams();
    this.#events = [];
    for (const container of this.#running()) this.#end(container, 255, "machine");
    this.#boot();
  }

  /** A removal that was under way is done at the start. */
  #boot(): void {
    for (const container of [...this.containers.values()]) {
      if (container.status === "removing") this.#forget(container, "request");
    }
    this.isUp = true;
  }

  /** The event streams break; the engine goes on. */
  closeStreams(): void {
    for (const stream of this.#streams) stream.end();
    this.#streams.clear();
  }

  /** A container of another program. */
  addForeign(name: string): ModelContainer {
    this.images.set("theirs:1", { id: "sha256:theirs", tags: ["theirs:1"] });
    const container = this.#add(name, { Image: "theirs:1", Cmd: ["run"], Labels: { owner: "a stranger" } });
    this.#start(container, "stranger");
    return container;
  }

  /** `docker kill`, `docker stop` or `docker rm -f` by a person, the OOM killer, or a bug of the program. */
  endByForce(container: ModelContainer, exitCode: number, by: Cause, isOom = false): void {
    if (container.status !== "running") return;
    container.isOomKilled = isOom;
    this.#end(container, exitCode, by);
  }

  /** `docker restart` by a person. @returns false for a program that ends alone, and for a sandbox */
  restartByForce(container: ModelContainer): boolean {
    if (container.status !== "running" || isPause(container) || programOf(container)[0] === "exit") return false;
    this.#end(container, 143, "stranger");
    this.#start(container, "stranger");
    return true;
  }

  /** Events of what happens in it reach no stream. */
  unseen(run: () => void): void {
    const { lostEventShare } = this;
    this.lostEventShare = 1;
    run();
    this.lostEventShare = lostEventShare;
  }

  /** The container that has an address. */
  holderOf(ip: string): ModelContainer | undefined {
    for (const container of this.containers.values()) if (container.ip === ip) return container;
    return undefined;
  }

  /** The container whose program has a port of a pod's address. */
  listenerAt(ip: string, port: number): ModelContainer | undefined {
    const mode = `container:${this.holderOf(ip)?.id}`;
    for (const container of this.containers.values()) {
      const { body, status } = container;
      if (status !== "running" || body.HostConfig?.NetworkMode !== mode) continue;
      if (body.Env?.includes(`PORT=${port}`)) return container;
    }
    return undefined;
  }

  /** Someone pushes another image to a tag of the registry. */
  push(reference: string): void {
    this.#pushes.set(reference, (this.#pushes.get(reference) ?? 0) + 1);
  }

  removeByForce(container: ModelContainer): void {
    if (container.status === "running") this.#end(container, 137, "stranger");
    this.#forget(container, "stranger");
  }

  // --- requests ---

  handle(request: EngineRequest, respond: Respond): void {
    const { method, path } = request;
    const parts = path
      .split("/")
      .filter((part) => part !== "")
      .map(decodeURIComponent);
    const [kind = "", ...rest] = parts;
    switch (kind) {
      case "_ping":
        return respond({ status: 200, text: "OK", headers: { "api-version": "1.41" } });
      case "version":
        return respond({
          status: 200,
          json: { Version: "20.10.24", ApiVersion: "1.41", MinAPIVersion: "1.12", Os: "linux", Arch: "amd64" },
        });
      case "info":
        return respond({ status: 200, json: this.#info() });
      case "events":
        return respond(this.#listen(request.query));
      case "containers":
        return this.#containers(request, rest, respond);
      case "exec":
        return this.#exec(request, rest, respond);
      case "images":
        return this.#images(request, rest, respond);
      case "volumes":
        return respond(this.#volume(request, rest));
      default:
        respond(refusal(404, `page not found: ${method} ${path}`));
    }
  }

  #info(): object {
    return {
      ServerVersion: "20.10.24",
      Architecture: "x86_64",
      DockerRootDir: "/var/lib/docker",
      Driver: "overlay2",
      LoggingDriver: "json-file",
      CgroupDriver: "cgroupfs",
      CgroupVersion: "1",
      SecurityOptions: ["name=seccomp,profile=default"],
      Runtimes: { runc: {} },
      LiveRestoreEnabled: this.hasLiveRestore,
    };
  }

  #volume({ method, body }: EngineRequest, [name = ""]: string[]): EngineResponse {
    const isNew = method === "POST" && name === "create";
    const Name = isNew ? (JSON.parse(String(body)) as { Name: string }).Name : name;
    if (isNew) this.#volumes.add(Name);
    if (!this.#volumes.has(Name)) return refusal(404, `get ${Name}: no such volume`);
    if (method === "DELETE") {
      this.#volumes.delete(Name);
      this.onVolumeRemoval(Name);
      return { status: 204 };
    }
    const Mountpoint = `/var/lib/docker/volumes/${Name}/_data`;
    return { status: isNew ? 201 : 200, json: { Name, Driver: "local", Mountpoint, Labels: {}, Options: {} } };
  }

  #containers(
    { method, query, body }: EngineRequest,
    [id = "", verb = "", more = ""]: string[],
    respond: Respond,
  ): void {
    if (method === "GET" && id === "json") return respond({ status: 200, bytes: this.#list(query) });
    if (method === "POST" && id === "create")
      return this.#create(query.get("name") ?? "", JSON.parse(String(body)), respond);
    const container = this.containers.get(id) ?? this.#byName.get(id);
    if (!container) return respond(refusal(404, `No such container: ${id}`));
    switch (`${method} ${verb}`) {
      case "GET json":
        return respond({ status: 200, json: this.#inspect(container) });
      case "POST start":
        return this.#startRequest(container, respond);
      case "POST stop":
        return this.#stopRequest(container, Number(query.get("t") ?? 10), respond);
      case "POST kill":
        return this.#killRequest(container, respond);
      case "POST exec":
        return this.#execCreate(container, JSON.parse(String(body)).Cmd as string[], respond);
      case "DELETE ":
        return this.#removeRequest(container, query.get("force") === "1", respond);
      default:
        respond(refusal(404, `page not found: ${method} ${verb} ${more}`));
    }
  }

  #create(name: string, body: CreateBody, respond: Respond): void {
    const image = this.#findImage(body.Image);
    if (!image) return respond(refusal(404, `No such image: ${body.Image}`));
    const holder = this.#byName.get(name);
    if (holder) {
      const message = `Conflict. The container name "/${name}" is already in use by container "${holder.id}". You have to remove (or rename) that container to be able to reuse that name.`;
      return respond(refusal(409, message));
    }
    const container = this.#add(name, body);
    this.#tell({ what: "create", container, by: "request" });
    this.#emit(container, "create");
    respond({ status: 201, json: { Id: container.id, Warnings: [] } });
  }

  #add(name: string, body: CreateBody): ModelContainer {
    const id = (++this.#ids).toString(16).padStart(12, "0") + this.#random.hex(52);
    const container: ModelContainer = {
      id,
      name: name || `unnamed_${this.#ids}`,
      body,
      labels: body.Labels ?? {},
      imageId: this.#findImage(body.Image)?.id ?? "",
      status: "created",
      createdMs: this.#time.wallMs,
      startedMs: 0,
      finishedMs: 0,
      exitCode: 0,
      isOomKilled: false,
      error: "",
      pid: 0,
      ip: "",
      starts: 0,
      unhealthyUntilMs: 0,
      termMs: undefined,
      cancel: [],
      onEnd: [],
      hooks: [],
    };
    this.containers.set(id, container);
    this.#byName.set(container.name, container);
    return container;
  }

  #startRequest(container: ModelContainer, respond: Respond): void {
    if (container.status === "running") return respond({ status: 304 });
    if (container.status === "removing") {
      return respond(refusal(409, "container is marked for removal and cannot be started"));
    }
    const peerId = /^container:(.+)$/.exec(container.body.HostConfig?.NetworkMode ?? "")?.[1];
    const peer = peerId === undefined ? undefined : (this.containers.get(peerId) ?? this.#byName.get(peerId));
    const failed = (status: number, message: string) => {
      container.error = message;
      container.exitCode ||= 128;
      this.#tell({ what: "start-failed", container, by: "request" });
      respond({ status, json: { message } });
    };
    if (peerId !== undefined && !peer) return failed(404, `No such container: ${peerId}`);
    if (peer && peer.status !== "running") {
      return failed(409, `cannot join network of a non running container: ${peer.id}`);
    }
    if (this.#random.chance(this.failingStartShare)) {
      return failed(500, "OCI runtime create failed: a simulated failure");
    }
    // runc needs its time.
    this.#time.after(this.#random.between(20, 120), () => {
      if (!this.isUp || this.containers.get(container.id) !== container || container.status === "removing") {
        return respond(refusal(404, `No such container: ${container.id}`));
      }
      if (peer && peer.status !== "running") {
        return failed(409, `cannot join network of a non running container: ${peer.id}`);
      }
      if (container.status !== "running") this.#start(container, "request");
      respond({ status: 204 });
    });
  }

  #start(container: ModelContainer, by: Cause): void {
    container.status = "running";
    container.startedMs = this.#time.wallMs;
    container.finishedMs = 0;
    container.exitCode = 0;
    container.error = "";
    container.isOomKilled = false;
    container.termMs = undefined;
    container.hooks = [];
    container.starts++;
    container.pid = ++this.#pids;
    if (!container.body.HostConfig?.NetworkMode?.startsWith("container:")) {
      const address = ++this.#addresses;
      container.ip = `172.17.${(address >> 8) & 255}.${address & 255}`;
    }
    this.#tell({ what: "start", container, by });
    this.#emit(container, "start");
    const [word, seconds = "0", code = "0"] = hasBadValue(container) ? ["exit", "1", "1"] : programOf(container);
    if (word === "exit") {
      container.cancel.push(
        this.#time.after(Number(seconds) * 1000, () => this.#end(container, Number(code), "itself")),
      );
    }
  }

  #stopRequest(container: ModelContainer, graceSeconds: number, respond: Respond): void {
    if (container.status !== "running") return respond({ status: 304 });
    container.onEnd.push(() => this.#time.after(5, () => respond({ status: 204 })));
    this.#term(container, "request");
    container.cancel.push(
      this.#time.after(graceSeconds * 1000, () => {
        if (container.status !== "running") return;
        this.#tell({ what: "kill", container, by: "request" });
        this.#end(container, 137, "request");
      }),
    );
  }

  #term(container: ModelContainer, by: Cause): void {
    container.termMs ??= this.#time.wallMs;
    this.#tell({ what: "term", container, by });
    const [word, seconds = "0"] = programOf(container);
    if (word === "deaf") return;
    const delayMs = word === "slow" ? Number(seconds) * 1000 : this.#random.between(1, 60);
    const code = isPause(container) ? 0 : 143;
    container.cancel.push(this.#time.after(delayMs, () => this.#end(container, code, by)));
  }

  #killRequest(container: ModelContainer, respond: Respond): void {
    if (container.status !== "running") {
      return respond(refusal(409, `Cannot kill container: ${container.id}: Container ${container.id} is not running`));
    }
    this.#tell({ what: "kill", container, by: "request" });
    this.#end(container, 137, "request");
    respond({ status: 204 });
  }

  #end(container: ModelContainer, exitCode: number, by: Cause): void {
    if (container.status !== "running") return;
    for (const cancel of container.cancel.splice(0)) cancel();
    container.status = "exited";
    container.exitCode = exitCode;
    container.finishedMs = this.#time.wallMs;
    container.pid = 0;
    container.ip = "";
    this.#tell({ what: "end", container, by });
    if (container.isOomKilled) this.#emit(container, "oom");
    this.#emit(container, "die", { exitCode: String(exitCode) });
    for (const listener of container.onEnd.splice(0)) listener();
  }

  #removeRequest(container: ModelContainer, isForced: boolean, respond: Respond): void {
    if (container.status === "removing") {
      return respond(refusal(409, `removal of container ${container.id} is already in progress`));
    }
    if (container.status === "running") {
      if (!isForced) {
        const message = `You cannot remove a running container ${container.id}. Stop the container before attempting removal or force remove`;
        return respond(refusal(409, message));
      }
      this.#tell({ what: "kill", container, by: "request" });
      this.#end(container, 137, "request");
    }
    container.status = "removing";
    this.version++;
    this.#time.after(this.#random.between(1, this.removalMs), () => {
      if (!this.isUp) return;
      this.#forget(container, "request");
      respond({ status: 204 });
    });
  }

  #forget(container: ModelContainer, by: Cause): void {
    if (!this.containers.delete(container.id)) return;
    if (this.#byName.get(container.name) === container) this.#byName.delete(container.name);
    this.#tell({ what: "remove", container, by });
    this.#emit(container, "destroy");
  }

  #list(query: URLSearchParams): Uint8Array {
    const key = `${query.get("all")} ${query.get("filters")}`;
    if (this.#lists.version !== this.version) this.#lists = { version: this.version, encoded: new Map() };
    const encoded = this.#lists.encoded.get(key) ?? new TextEncoder().encode(`[${this.#readList(query)}]`);
    this.#lists.encoded.set(key, encoded);
    return encoded;
  }

  #readList(query: URLSearchParams): string[] {
    const { label = [] } = JSON.parse(query.get("filters") ?? "{}") as { label?: string[] };
    const isAll = query.get("all") === "1";
    return [...this.containers.values()]
      .filter(
        ({ labels, status }) => (isAll || status === "running") && label.every((filter) => matches(labels, filter)),
      )
      .map((container) => this.#toListed(container));
  }

  #toListed(container: ModelContainer): string {
    const { id, name, body, imageId, status, labels } = container;
    const state = `${name} ${imageId} ${status}`;
    const known = this.#listed.get(container);
    if (known?.state === state) return known.text;
    const item = {
      Id: id,
      Names: [`/${name}`],
      Image: body.Image,
      ImageID: imageId,
      State: status,
      Labels: labels,
      NetworkSettings: networksOf(container),
    };
    const text = JSON.stringify(item);
    this.#listed.set(container, { state, text });
    return text;
  }

  #inspect(container: ModelContainer): object {
    const { id, name, body, labels, imageId, status, pid, exitCode, isOomKilled, error } = container;
    const isRunning = status === "running";
    return {
      Id: id,
      Created: toText(container.createdMs),
      Name: `/${name}`,
      Image: imageId,
      State: {
        Status: status,
        Running: isRunning,
        Paused: false,
        OOMKilled: isOomKilled,
        Dead: false,
        Pid: pid,
        ExitCode: exitCode,
        Error: error,
        StartedAt: toText(container.startedMs),
        FinishedAt: toText(container.finishedMs),
      },
      LogPath: `/var/lib/docker/containers/${id}/${id}-json.log`,
      ResolvConfPath: `/var/lib/docker/containers/${id}/resolv.conf`,
      Config: { ...body, HostConfig: undefined, Labels: labels },
      HostConfig: body.HostConfig ?? {},
      GraphDriver: { Data: { UpperDir: `/var/lib/docker/overlay2/${id}/diff` } },
      NetworkSettings: networksOf(container),
    };
  }

  // --- exec: `check` asks whether the container is healthy ---

  #execCreate(container: ModelContainer, argv: readonly string[], respond: Respond): void {
    if (container.status !== "running") {
      return respond(refusal(409, `Container ${container.id} is not running`));
    }
    const id = (++this.#ids).toString(16).padStart(64, "e");
    this.#execs.set(id, { container, argv, exitCode: null, isRunning: false });
    respond({ status: 201, json: { Id: id } });
  }

  #exec({ method }: EngineRequest, [id = "", verb = ""]: string[], respond: Respond): void {
    const exec = this.#execs.get(id);
    if (!exec) return respond(refusal(404, `No such exec instance: ${id}`));
    if (method === "GET") {
      const { exitCode, isRunning, container } = exec;
      if (exitCode !== null) this.#execs.delete(id);
      return respond({
        status: 200,
        json: { ID: id, Running: isRunning, ExitCode: exitCode, Pid: 0, ContainerID: container.id },
      });
    }
    if (verb !== "start") return respond({ status: 200 });
    if (exec.container.status !== "running") {
      this.#execs.delete(id);
      return respond(refusal(409, `Container ${exec.container.id} is not running`));
    }
    const isProbe = exec.argv[0] === "check";
    if (!isProbe) exec.container.hooks.push(exec.argv.join(" "));
    exec.exitCode = isProbe && exec.container.unhealthyUntilMs > this.#time.nowMs ? 1 : 0;
    if (exec.exitCode !== 0) this.#time.stir();
    respond({ status: 200, text: "" });
  }

  // --- images ---

  #findImage(reference: string): ModelImage | undefined {
    const direct = this.images.get(reference) ?? this.images.get(`${reference}:latest`);
    return direct ?? [...this.images.values()].find(({ id }) => id === reference);
  }

  #images({ method, query }: EngineRequest, rest: string[], respond: Respond): void {
    const name = rest.join("/");
    if (method === "GET" && name === "json") {
      const all = new Set(this.images.values());
      return respond({
        status: 200,
        json: [...all].map(({ id, tags }) => ({
          Id: id,
          RepoTags: tags,
          RepoDigests: [],
          Created: 0,
          Size: 1000,
          Labels: {},
        })),
      });
    }
    if (method === "POST" && name === "load") {
      const image = { id: PAUSE.id, tags: [PAUSE_NAME] };
      this.images.set(PAUSE_NAME, image);
      this.#emitImage(PAUSE_NAME, "load");
      return respond({ status: 200, text: `${JSON.stringify({ stream: `Loaded image: ${PAUSE_NAME}\n` })}\n` });
    }
    if (method === "POST" && name === "create") return this.#pull(query, respond);
    const reference = name.replace(/\/json$/, "");
    const image = this.#findImage(reference);
    if (!image) return respond(refusal(404, `No such image: ${reference}`));
    const isPauseImage = image.id === PAUSE.id;
    respond({
      status: 200,
      json: {
        Id: image.id,
        RepoTags: image.tags,
        RepoDigests: [],
        Created: "1970-01-01T00:00:00Z",
        Architecture: "amd64",
        Os: "linux",
        Size: 1000,
        RootFS: { Layers: [isPauseImage ? PAUSE.layer : "sha256:layer"] },
        Config: isPauseImage
          ? { Entrypoint: ["/pause"], User: "65535:65535", Labels: { [PAUSE_LABEL]: "1" } }
          : { Cmd: ["run"] },
      },
    });
  }

  #pull(query: URLSearchParams, respond: Respond): void {
    const reference = `${query.get("fromImage")}:${query.get("tag")}`;
    const line = (value: object) => `${JSON.stringify(value)}\n`;
    const start = line({ status: `Pulling from ${reference}`, id: query.get("tag") });
    this.#time.after(this.#random.between(500, 8000), () => {
      if (reference.startsWith("missing")) {
        return respond(refusal(404, `manifest for ${reference} not found: manifest unknown`));
      }
      if (this.#random.chance(this.failingPullShare)) {
        return respond({
          status: 200,
          text: start + line({ error: "unexpected EOF", errorDetail: { message: "unexpected EOF" } }),
        });
      }
      const pushed = `${reference} ${this.#pushes.get(reference) ?? 0}`;
      const id = `sha256:${Bun.hash(pushed).toString(16).padStart(64, "0")}`;
      const before = this.images.get(reference);
      // The former image has no name any more.
      if (before && before.id !== id) this.images.set(before.id, { id: before.id, tags: [] });
      this.images.set(reference, { id, tags: [reference] });
      this.pulledMs.set(reference, this.#time.nowMs);
      this.#emitImage(reference, "pull");
      respond({ status: 200, text: start + line({ status: `Status: Downloaded newer image for ${reference}` }) });
    });
  }

  // --- events ---

  #listen(query: URLSearchParams): EngineResponse {
    const { type = [], label = [] } = JSON.parse(query.get("filters") ?? "{}") as { type?: string[]; label?: string[] };
    const takes = (event: { type: string; labels: Readonly<Record<string, string>> }) =>
      (type.length === 0 || type.includes(event.type)) && label.every((text) => matches(event.labels, text));
    const stream = new EventStream(takes, () => this.#streams.delete(stream));
    const since = query.get("since");
    if (since !== null) {
      const [seconds = "0", fraction = ""] = since.split(".");
      const from = BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0") || "0");
      for (const event of this.#events) if (event.timeNano >= from && takes(event)) stream.push(event.line);
    }
    this.#streams.add(stream);
    return { status: 200, stream };
  }

  #emit(container: ModelContainer, action: string, more: Record<string, string> = {}): void {
    const attributes = { ...container.labels, name: container.name, image: container.body.Image, ...more };
    this.#send("container", action, container.id, attributes, container.labels);
  }

  #emitImage(reference: string, action: string): void {
    this.#send("image", action, reference, { name: reference }, {});
  }

  #send(
    type: string,
    action: string,
    id: string,
    attributes: Record<string, string>,
    labels: Readonly<Record<string, string>>,
  ): void {
    if (!this.isUp) return;
    const wallMs = Math.floor(this.#time.wallMs);
    const timeNano = BigInt(wallMs) * 1_000_000n + BigInt(this.#events.length % 1000);
    const event = {
      Type: type,
      Action: action,
      Actor: { ID: id, Attributes: attributes },
      time: Math.floor(wallMs / 1000),
    };
    const line = `${JSON.stringify(event).slice(0, -1)},"timeNano":${timeNano}}\n`;
    const entry = { line, timeNano, type, labels };
    this.#events.push(entry);
    if (this.#events.length > EVENTS_KEPT) this.#events.shift();
    if (this.#random.chance(this.lostEventShare)) return;
    this.#time.after(this.#random.between(0.1, this.eventDelayMs), () => {
      for (const stream of this.#streams) if (stream.takes(entry)) stream.push(line);
    });
  }

  #running(): ModelContainer[] {
    return [...this.containers.values()].filter(({ status }) => status === "running");
  }

  #tell(transition: Transition): void {
    this.version++;
    for (const observer of this.observers) observer(transition);
  }
}

const PAUSE_NAME = "kubelet-ts/pause:1";
const PAUSE_LABEL = "kubelet-ts.io/pause";

const isPause = ({ imageId }: ModelContainer) => imageId === PAUSE.id;

const programOf = ({ body }: ModelContainer): readonly string[] => [...(body.Entrypoint ?? []), ...(body.Cmd ?? [])];

/** Programs end when their value of a Secret or ConfigMap is bad: of a version that is no whole number. */
export const hasBadValue = ({ body: { Env = [] } }: ModelContainer): boolean =>
  Env.some((text) => /^(TOKEN|CONFIG)=.*\.5$/.test(text));

function matches(labels: Readonly<Record<string, string>>, filter: string): boolean {
  const at = filter.indexOf("=");
  return at < 0 ? filter in labels : labels[filter.slice(0, at)] === filter.slice(at + 1);
}

function toText(ms: number): string {
  return ms === 0 ? NEVER : new Date(ms).toISOString();
}

const networksOf = ({ ip }: ModelContainer) => ({ Networks: { bridge: { IPAddress: ip, GlobalIPv6Address: "" } } });
