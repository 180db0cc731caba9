import type { EngineRequest, EngineResponse } from "./engine-model.ts";
import { ManifestServer } from "./manifest-server.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Faults between the program and the engine. Shares are of 1. */
export interface WireFaults {
  /** Nothing listens. */
  isRefusing: boolean;
  /** Requests wait until then. */
  hangsUntilMs: number;
  /** The engine did it, and the response was lost. */
  cutShare: number;
  /** 500 instead of doing it. */
  errorShare: number;
  /** Each response takes up to this time. */
  latencyMs: number;
}

const QUIET: Readonly<WireFaults> = { isRefusing: false, hangsUntilMs: 0, cutShare: 0, errorShare: 0, latencyMs: 3 };

interface Call {
  method: string;
  path: string;
  reject: (error: Error) => void;
  isStream: boolean;
}

/** The engine, or the API server of a cluster. */
interface Server {
  readonly isUp: boolean;
  handle(request: EngineRequest, respond: (response: EngineResponse) => void): void;
  closeStreams(): void;
}

/** `fetch` of the program: HTTP to a server, with the faults of a wire. */
export class EngineHttp {
  readonly #time: VirtualTime;
  readonly #engine: Server;
  readonly #origin: string;
  readonly #random: SeededRandom;
  readonly #open = new Set<Call>();
  #faults = QUIET;
  /** Pings that wait for the next fault. */
  readonly #heldPings = new Set<() => void>();
  /** The other machine that the program asks. */
  readonly manifests: ManifestServer;
  requests = 0;
  onRequest: ((text: string) => void) | undefined;
  /** The engine cannot do what a request asks for. */
  onRefusal: ((text: string, message: string) => void) | undefined;

  constructor(time: VirtualTime, engine: Server, random: SeededRandom, origin = ORIGIN) {
    this.#time = time;
    this.#engine = engine;
    this.#origin = origin;
    this.#random = random;
    this.manifests = new ManifestServer(random);
  }

  get openCalls(): number {
    return this.#open.size;
  }

  /** A fault begins. */
  disturb(faults: Partial<WireFaults>): void {
    this.#faults = { ...this.#faults, ...faults };
    this.#releasePings();
  }

  repair(): void {
    this.#faults = QUIET;
  }

  /**
   * The response to a ping of an engine that answers everything. It comes when that ends: thousands of pings in between would have
   * had the same one.
   * @returns undefined while there are faults
   */
  holdPing(signal: AbortSignal | undefined): Promise<void> | undefined {
    if (!this.#isQuiet || signal?.aborted) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const release = () => {
      this.#heldPings.delete(release);
      signal?.removeEventListener("abort", onAbort);
      resolve();
    };
    const onAbort = () => {
      this.#heldPings.delete(release);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#heldPings.add(release);
    return promise;
  }

  get #isQuiet(): boolean {
    const { isRefusing, hangsUntilMs, cutShare, errorShare, latencyMs } = this.#faults;
    const isPrompt = hangsUntilMs <= this.#time.nowMs && latencyMs === QUIET.latencyMs;
    return this.#engine.isUp && !isRefusing && isPrompt && cutShare === 0 && errorShare === 0;
  }

  /** A fault lasts. */
  get isDisturbed(): boolean {
    return !this.#isQuiet;
  }

  #releasePings(): void {
    for (const release of [...this.#heldPings]) release();
  }

  /** Every connection breaks. */
  breakConnections(): void {
    for (const call of [...this.#open]) call.reject(connectionError("ECONNRESET"));
    this.#releasePings();
  }

  /** The process is gone: its connections as well. */
  forget(): void {
    this.#open.clear();
    this.#heldPings.clear();
    this.#engine.closeStreams();
  }

  readonly fetch = (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const text = String(url);
    const isManifest = text === ManifestServer.url;
    if (!text.startsWith(this.#origin) && !isManifest) return Promise.reject(connectionError("ConnectionRefused"));
    try {
      this.#time.effect();
    } catch {
      return new Promise(() => {});
    }
    if (isManifest) return this.#fetchManifest(init);
    if (!this.#isQuiet) this.#time.stir();
    const { process } = this.#time;
    const method = init.method ?? "GET";
    const queryAt = text.indexOf("?");
    const path = text.slice(this.#origin.length, queryAt < 0 ? undefined : queryAt).replace(/^\/v\d+\.\d+/, "");
    const query = new URLSearchParams(queryAt < 0 ? "" : text.slice(queryAt));
    this.requests++;
    this.onRequest?.(`${method} ${path}`);
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const signal = init.signal ?? undefined;
    let isOver = false;
    const call: Call = { method, path, isStream: false, reject: (error) => end(() => reject(error)) };
    const onAbort = () => call.reject(signal?.reason as Error);
    const end = (settle: () => void) => {
      if (isOver) return;
      isOver = true;
      if (!call.isStream) this.#open.delete(call);
      signal?.removeEventListener("abort", onAbort);
      settle();
    };
    if (signal?.aborted) return Promise.reject(signal.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#open.add(call);
    const body = init.body as unknown;
    const type = (init.headers as Record<string, string> | undefined)?.["Content-Type"];
    this.#arrive(call, process, () => {
      if (this.#random.chance(this.#faults.errorShare)) {
        if (process !== this.#time.process) return;
        return end(() => resolve(toResponse({ status: 500, json: { message: "a simulated error" } })));
      }
      this.#engine.handle({ method, path, query, body, type }, (response) => {
        if (response.status >= 400)
          this.onRefusal?.(`${method} ${path}`, (response.json as { message: string }).message);
        // The process that asked may have died meanwhile: another one must not get its response.
        if (isOver || process !== this.#time.process) return void response.stream?.end();
        const isCut = !response.stream && this.#random.chance(this.#faults.cutShare);
        this.#time.afterForProcess(this.#delay(), () => {
          if (isCut) return call.reject(connectionError("ECONNRESET"));
          end(() => resolve(toResponse(response)));
          const { stream } = response;
          if (stream) signal?.addEventListener("abort", () => stream.end(signal.reason as Error), { once: true });
        });
      });
    });
    return promise;
  };

  #fetchManifest({ headers, signal }: RequestInit): Promise<Response> {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    this.#time.afterForProcess(MANIFEST_MS, () => {
      if (this.manifests.isLying) this.#time.stir();
      const response = this.manifests.respond(new Headers(headers).get("if-none-match"));
      if (response === "silence") return;
      resolve(response === "cut" ? cutShort(this.manifests.half) : toResponse(response));
    });
    return promise;
  }

  #delay(): number {
    return this.#random.between(0.2, this.#faults.latencyMs);
  }

  /** The request reaches the engine, however long it hangs; the program may be gone by then. */
  #arrive(call: Call, process: number, handle: () => void): void {
    const faults = this.#faults;
    if (faults.isRefusing || !this.#engine.isUp) {
      this.#time.afterForProcess(0.1, () => call.reject(connectionError("ECONNREFUSED")));
      return;
    }
    const dueMs = Math.max(this.#time.nowMs + this.#delay(), faults.hangsUntilMs);
    this.#time.at(dueMs, () => {
      if (this.#engine.isUp) handle();
      else if (process === this.#time.process) call.reject(connectionError("ECONNRESET"));
    });
  }
}

const ORIGIN = "http://docker";
/** Time that the server of manifests takes. */
const MANIFEST_MS = 20;

function connectionError(code: string): Error {
  return Object.assign(new Error(`simulated ${code}`), { code });
}

/** A response of which the second half never comes. */
function cutShort(half: string): Response {
  async function* chunks() {
    yield encoder.encode(half);
    throw connectionError("ECONNRESET");
  }
  return { status: 200, headers: { get: () => null }, body: toBody(chunks()) } as unknown as Response;
}

function toResponse({ status, json, text, bytes, headers = {}, stream }: EngineResponse): Response {
  const encoded = bytes ?? encode(text ?? (json === undefined ? undefined : JSON.stringify(json)));
  const chunks = stream ?? (encoded === undefined ? null : oneChunk(encoded));
  return {
    status,
    ok: status < 300,
    headers: { get: (name: string) => headers[name.toLowerCase()] ?? null },
    body: chunks && toBody(chunks),
  } as unknown as Response;
}

/** A ReadableStream, as far as it is used. */
function toBody(chunks: AsyncIterable<Uint8Array>) {
  const reader = () => {
    const iterator = chunks[Symbol.asyncIterator]();
    return {
      read: () => iterator.next(),
      cancel: async () => void (await iterator.return?.()),
      releaseLock: () => {},
    };
  };
  return { getReader: reader, cancel: async () => {}, [Symbol.asyncIterator]: () => chunks[Symbol.asyncIterator]() };
}

const encoder = new TextEncoder();
const encode = (text: string | undefined) => (text === undefined ? undefined : encoder.encode(text));

/** As an async generator that yields once, at less cost. */
function oneChunk(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  let isRead = false;
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    if (isRead) return { done: true, value: undefined };
    isRead = true;
    return { done: false, value: bytes };
  };
  const close = async (): Promise<IteratorResult<Uint8Array>> => {
    isRead = true;
    return { done: true, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: close }) };
}
