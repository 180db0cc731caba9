import type { Server } from "bun";
import { freePorts } from "../test-servers.ts";
import type { ControlPlane } from "./control-plane.ts";

interface ProxiedRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  isWatch: boolean;
}

/** Answer in place of the API server; undefined: the API server answers. */
export type Fault = (request: ProxiedRequest) => Response | undefined;

const aFailure = (code: number, reason: string) => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  code,
  reason,
  message: `injected ${code}`,
});

export const aRefusal = (code: number, reason: string, headers: Record<string, string> = {}): Response =>
  Response.json(aFailure(code, reason), { status: code, headers });

/** A watch whose version is too old. */
export const anExpiredWatch = (): Response =>
  new Response(`${JSON.stringify({ type: "ERROR", object: aFailure(410, "Expired") })}\n`);

/**
 * An HTTP proxy before an API server that counts requests and answers some of them itself. It speaks for one node: with
 * the administrator's certificate, as that node. To be closed.
 */
export class FaultyProxy {
  readonly #server: Server<undefined>;
  readonly #plane: ControlPlane;
  readonly #user: Record<string, string>;
  readonly #open = new Map<AbortController, string>();
  #requests: ProxiedRequest[] = [];
  #fault: Fault | undefined;

  constructor(plane: ControlPlane, nodeName: string) {
    this.#plane = plane;
    this.#user = { "Impersonate-User": `system:node:${nodeName}`, "Impersonate-Group": "system:nodes" };
    const fetch = (request: Request) => this.#answer(request);
    this.#server = Bun.serve({ hostname: "127.0.0.1", port: freePorts(1)[0]!, idleTimeout: 0, fetch });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** Requests since the last {@link forget}, oldest first. */
  get requests(): readonly ProxiedRequest[] {
    return this.#requests;
  }

  /** Path and query of each watch that is open. */
  get openWatches(): readonly string[] {
    return [...this.#open.values()];
  }

  forget(): void {
    this.#requests = [];
  }

  /** From now on these requests go wrong; open watches end. */
  inject(fault: Fault | undefined): void {
    this.#fault = fault;
    this.endWatches();
  }

  endWatches(): void {
    for (const controller of this.#open.keys()) controller.abort();
  }

  async close(): Promise<void> {
    this.endWatches();
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname: path, search, searchParams: query } = new URL(request.url);
    const seen = { method: request.method, path, query, isWatch: query.get("watch") === "true" };
    this.#requests.push(seen);
    const wrong = this.#fault?.(seen);
    if (wrong) return wrong;
    const end = new AbortController();
    if (seen.isWatch) this.#open.set(end, `${path}${search}`);
    const forget = () => this.#open.delete(end);
    // A body that waits for the next event does not notice that its receiver is gone.
    request.signal.addEventListener("abort", () => end.abort());
    end.signal.addEventListener("abort", forget);
    const { cert, key } = this.#plane.administrator;
    const contentType = request.headers.get("Content-Type");
    const hasBody = request.method !== "GET";
    try {
      const answer = await fetch(`${this.#plane.url}${path}${search}`, {
        method: request.method,
        headers: { ...this.#user, ...(contentType !== null && { "Content-Type": contentType }) },
        ...(hasBody && { body: await request.arrayBuffer() }),
        tls: { cert, key, ca: this.#plane.authority.cert },
        signal: end.signal,
        timeout: false,
      } as RequestInit);
      const headers = { "Content-Type": answer.headers.get("Content-Type") ?? "application/json" };
      return new Response(pass(answer.body, end) as unknown as ReadableStream, { status: answer.status, headers });
    } catch {
      forget();
      return aRefusal(502, "BadGateway");
    }
  }
}

/** A body until its end, that of its receiver, or the signal. */
async function* pass(body: ReadableStream<Uint8Array> | null, end: AbortController) {
  try {
    for await (const chunk of body ?? []) yield chunk;
  } catch {
    // The watch was ended.
  } finally {
    end.abort();
  }
}
