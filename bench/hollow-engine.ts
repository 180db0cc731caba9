import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";

interface HollowContainer {
  Id: string;
  Name: string;
  Created: string;
  Config: { Labels: Record<string, string>; Image: string };
  HostConfig: { NetworkMode?: string };
  StartedAt: string;
  FinishedAt: string;
  Status: "created" | "running" | "exited";
  ExitCode: number;
}

const NEVER = "0001-01-01T00:00:00Z";
const IMAGE_ID = `sha256:${"1".repeat(64)}`;
const VERSION = { Version: "20.10.24", ApiVersion: "1.41", MinAPIVersion: "1.12", Os: "linux", Arch: "amd64" };

/**
 * An engine whose containers are entries of a table: they start at once and do nothing, as those of kubemark's hollow
 * nodes, so that only the kubelet is measured. To be closed.
 */
export class HollowEngine {
  readonly socketPath: string;
  readonly #directory = mkdtempSync(join(tmpdir(), "kts-hollow-"));
  readonly #server: Bun.Server<undefined>;
  readonly #containers = new Map<string, HollowContainer>();
  readonly #listeners = new Set<ReadableStreamDefaultController<string>>();
  #count = 0;

  constructor() {
    this.socketPath = join(this.#directory, "engine.sock");
    writeFileSync(join(this.#directory, "resolv.conf"), "nameserver 127.0.0.1\n");
    this.#server = Bun.serve({
      unix: this.socketPath,
      // Bun takes it for a Unix socket too; its types do not.
      ...({ idleTimeout: 0 } as object),
      development: false,
      fetch: async (request) => {
        const url = new URL(request.url);
        const path = url.pathname.replace(/^\/v\d+\.\d+/, "");
        return await this.#answer(request, path, url.searchParams);
      },
    });
  }

  /** Containers that run, without sandboxes. */
  get running(): HollowContainer[] {
    return [...this.#containers.values()].filter(
      ({ Status, HostConfig }) => Status === "running" && HostConfig.NetworkMode?.startsWith("container:"),
    );
  }

  /** Ends a container, as its process does. */
  exit(container: HollowContainer, exitCode: number): void {
    Object.assign(container, { Status: "exited", ExitCode: exitCode, FinishedAt: new Date().toISOString() });
    this.#emit(container, "die");
  }

  close(): void {
    void this.#server.stop(true);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #answer(request: Request, path: string, query: URLSearchParams): Promise<Response> {
    const [, kind, name = "", verb = ""] =
      /^\/([^/]+)(?:\/(.+?))?(?:\/(json|start|stop|kill|update))?$/.exec(path) ?? [];
    switch (`${request.method} ${kind}`) {
      case "GET _ping":
        return new Response("OK", { headers: { "Api-Version": VERSION.ApiVersion } });
      case "GET version":
        return Response.json(VERSION);
      case "GET info":
        return Response.json(this.#info());
      case "GET events":
        return this.#events();
      case "GET images":
        return Response.json(name === "json" ? [] : this.#image(decodeURIComponent(name)));
      case "GET containers":
        return name === "json" ? this.#list(query) : this.#inspect(name);
      case "POST containers":
        return name === "create" ? await this.#create(request, query) : this.#change(name, verb);
      case "DELETE containers":
        return this.#remove(name);
      default:
        return Response.json({ message: `page not found: ${request.method} ${path}` }, { status: 404 });
    }
  }

  #info(): object {
    return {
      Name: "hollow",
      OperatingSystem: "hollow",
      ServerVersion: VERSION.Version,
      Architecture: "x86_64",
      OSType: "linux",
      NCPU: cpus().length,
      MemTotal: totalmem(),
      DockerRootDir: this.#directory,
      Driver: "overlay2",
      LoggingDriver: "json-file",
      CgroupDriver: "cgroupfs",
      CgroupVersion: "1",
      SecurityOptions: ["name=seccomp,profile=default"],
      Runtimes: { runc: {} },
      DefaultRuntime: "runc",
    };
  }

  #events(): Response {
    let own: ReadableStreamDefaultController<string> | undefined;
    return new Response(
      new ReadableStream<string>({
        start: (controller) => {
          own = controller;
          this.#listeners.add(controller);
          controller.enqueue("\n");
        },
        cancel: () => void (own && this.#listeners.delete(own)),
      }) as unknown as ReadableStream,
    );
  }

  #emit({ Id, Config, ExitCode }: HollowContainer, Action: string): void {
    const Attributes = { ...Config.Labels, ...(Action === "die" && { exitCode: String(ExitCode) }) };
    const nowMs = Date.now();
    const event = { Type: "container", Action, Actor: { ID: Id, Attributes }, time: Math.floor(nowMs / 1000) };
    const line = `${JSON.stringify(event).slice(0, -1)},"timeNano":${nowMs}000000}\n`;
    for (const listener of this.#listeners) listener.enqueue(line);
  }

  #image(reference: string): object {
    return { Id: IMAGE_ID, RepoTags: [reference], Created: NEVER, Architecture: "amd64", Os: "linux", Config: {} };
  }

  async #create(request: Request, query: URLSearchParams): Promise<Response> {
    const { HostConfig, ...Config } = (await request.json()) as HollowContainer["Config"] & HollowContainer;
    const Id = (++this.#count).toString(16).padStart(64, "0");
    const container: HollowContainer = {
      Id,
      Name: `/${query.get("name")}`,
      Created: new Date().toISOString(),
      Config,
      HostConfig,
      StartedAt: NEVER,
      FinishedAt: NEVER,
      Status: "created",
      ExitCode: 0,
    };
    this.#containers.set(Id, container);
    return Response.json({ Id, Warnings: [] }, { status: 201 });
  }

  #change(id: string, verb: string): Response {
    const container = this.#containers.get(id);
    if (!container) return notFound(id);
    if (verb === "start") {
      Object.assign(container, { Status: "running", StartedAt: new Date().toISOString() });
      this.#emit(container, "start");
    } else if ((verb === "stop" || verb === "kill") && container.Status === "running") this.exit(container, 137);
    return verb === "update" ? Response.json({ Warnings: [] }) : new Response(null, { status: 204 });
  }

  #remove(id: string): Response {
    const container = this.#containers.get(id);
    if (!container) return notFound(id);
    this.#containers.delete(id);
    this.#emit(container, "destroy");
    return new Response(null, { status: 204 });
  }

  #list(query: URLSearchParams): Response {
    const { label = [] } = JSON.parse(query.get("filters") ?? "{}") as { label?: string[] };
    const pairs = label.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)] as const);
    const found = [...this.#containers.values()].filter(({ Config }) =>
      pairs.every(([name, value]) => Config.Labels[name] === value),
    );
    return Response.json(
      found.map(({ Id, Name, Created, Config, Status }) => ({
        Id,
        Names: [Name],
        Image: Config.Image,
        ImageID: IMAGE_ID,
        Created: Math.floor(Date.parse(Created) / 1000),
        State: Status,
        Status,
        Labels: Config.Labels,
      })),
    );
  }

  #inspect(id: string): Response {
    const container = this.#containers.get(id) ?? [...this.#containers.values()].find(({ Name }) => Name === `/${id}`);
    if (!container) return notFound(id);
    const { Status, StartedAt, FinishedAt, ExitCode, Config, HostConfig, Created, Name, Id } = container;
    const isRunning = Status === "running";
    const address = `10.1.${Math.floor(this.#indexOf(Id) / 250)}.${(this.#indexOf(Id) % 250) + 1}`;
    return Response.json({
      Id,
      Name,
      Created,
      Image: IMAGE_ID,
      Config,
      HostConfig,
      State: {
        Status,
        Running: isRunning,
        Pid: isRunning ? process.pid : 0,
        ExitCode,
        StartedAt,
        FinishedAt,
        Error: "",
      },
      LogPath: join(this.#directory, `${Id}.log`),
      ResolvConfPath: join(this.#directory, "resolv.conf"),
      NetworkSettings: { Networks: isRunning ? { bridge: { IPAddress: address } } : {} },
    });
  }

  #indexOf = (id: string) => Number.parseInt(id.slice(-8), 16);
}

const notFound = (id: string) => Response.json({ message: `No such container: ${id}` }, { status: 404 });
