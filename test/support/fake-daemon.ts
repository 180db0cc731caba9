import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface FakeRequest {
  method: string;
  /** Without the version. */
  path: string;
  /** e.g. `1.41`; undefined for an unversioned path. */
  version: string | undefined;
  query: URLSearchParams;
  headers: Headers;
  body: string;
}

export type FakeRoute = (request: FakeRequest) => Response | Promise<Response>;

export interface FakeDaemonOptions {
  apiVersion?: string;
  minApiVersion?: string;
  /** Answers by `METHOD /path`; other requests are answered 404 as by Docker. */
  routes?: Record<string, FakeRoute>;
}

/** Something that speaks as dockerd does, on a socket of its own. */
export class FakeDaemon implements Disposable {
  readonly socketPath: string;
  readonly requests: FakeRequest[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), "kts-"));
  readonly #server: Bun.Server<undefined>;

  constructor(options: FakeDaemonOptions = {}) {
    this.socketPath = join(this.#directory, "d.sock");
    const apiVersion = options.apiVersion ?? "1.41";
    const routes: Record<string, FakeRoute> = {
      "GET /_ping": () => new Response("OK", { headers: { "Api-Version": apiVersion } }),
      "GET /version": () =>
        Response.json({
          Version: "20.10.24",
          ApiVersion: apiVersion,
          MinAPIVersion: options.minApiVersion ?? "1.12",
          Arch: "amd64",
          Os: "linux",
        }),
      ...options.routes,
    };
    this.#server = Bun.serve({
      unix: this.socketPath,
      // Bun takes it for a Unix socket too; its types do not.
      ...({ idleTimeout: 0 } as object),
      development: false,
      fetch: async (raw) => {
        const url = new URL(raw.url);
        const [, version, path = "/"] = /^(?:\/v(\d+\.\d+))?(\/.*)$/.exec(url.pathname) ?? [];
        const request = {
          method: raw.method,
          path: decodeURIComponent(path),
          version,
          query: url.searchParams,
          headers: raw.headers,
          body: await raw.text(),
        };
        this.requests.push(request);
        const route = routes[`${request.method} ${request.path}`];
        return route ? route(request) : Response.json({ message: "page not found" }, { status: 404 });
      },
    });
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** A socket on which `onConnection` may do what no server would. */
export class RawDaemon implements Disposable {
  readonly socketPath: string;
  readonly #directory = mkdtempSync(join(tmpdir(), "kts-"));
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();

  private constructor(onConnection: (socket: net.Socket) => void) {
    this.socketPath = join(this.#directory, "d.sock");
    this.#server = net.createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      onConnection(socket);
    });
  }

  static async listen(onConnection: (socket: net.Socket) => void): Promise<RawDaemon> {
    const daemon = new RawDaemon(onConnection);
    await new Promise<void>((resolve) => daemon.#server.listen(daemon.socketPath, resolve));
    return daemon;
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
