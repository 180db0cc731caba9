import * as v from "valibot";
import { unlessAborted } from "../../base/concurrency/unless-aborted.ts";
import { linesOf, partsOfList } from "../../base/files/bounded-stream.ts";
import { killExecProcesses } from "../../base/host/process-sample.ts";
import type { CommandOptions, CommandResult, OutputChunk } from "../../base/model/container-access.ts";
import type { UnreachableKind } from "../../base/model/engine-error.ts";
import { apiAtLeast } from "../../base/text/api-version.ts";
import { jsonIfValid } from "../../base/text/json.ts";
import { DockerError, DockerProtocolError, DockerUnreachableError } from "./docker-error.ts";
import { type DockerEndpoint, endpointText } from "./endpoint.ts";
import { type ExecInspect, VersionSchema } from "./schemas.ts";
import {
  type CallOptions,
  type DockerRequest,
  DockerTransport,
  MAX_RESPONSE_BYTES,
  realSchedule,
  type Schedule,
  type TakeResponse,
} from "./transport.ts";

/** `killExecProcesses` of base/host, in this thread or another one: a machine may have many processes. */
export type KillExecProcesses = (hostPid: number, containerId: string) => number | Promise<number>;

/** The calls that an exec consists of; `DockerClient` has them. */
interface ExecCalls {
  execCreate(id: string, argv: readonly string[]): Promise<string>;
  execStart(execId: string, options: { signal?: AbortSignal | undefined }): Promise<AsyncIterable<OutputChunk>>;
  execInspect(execId: string): Promise<ExecInspect>;
  readonly killExecProcesses: KillExecProcesses;
}

const DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024;
/** Pause between, and number of, attempts to read the exit code of an exec that has just ended. */
const SETTLE_PAUSE_MS = 25;
const SETTLE_ATTEMPTS = 400;
/**
 * Longest wait for the end of a killed exec: engines since 28 report it up to 2 s later. The kill continues after it.
 */
const KILL_TIMEOUT_MS = 3000;

/**
 * Runs a command to its end; one that ended but left children that hold its output has its exit code.
 * @throws DockerError 404, 409; TimeoutError when the engine never showed it running
 */
export async function runExec(
  calls: ExecCalls,
  id: string,
  argv: readonly string[],
  options: Partial<CommandOptions>,
  schedule: Schedule,
): Promise<CommandResult> {
  const { signal } = options;
  const maxOutputBytes = options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
  const stop = new AbortController();
  let timedOut = false;
  let cancelTimer = () => {};
  const startTimer = (timeoutMs: number) => {
    cancelTimer = schedule(timeoutMs, () => {
      timedOut = true;
      stop.abort(new DOMException("the exec's time has elapsed", "TimeoutError"));
    });
  };
  const stopped = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;

  const kept: Uint8Array[] = [];
  const keptStderr: Uint8Array[] = [];
  let keptBytes = 0;
  const outcome = (exitCode: number | undefined): CommandResult => ({
    exitCode,
    output: new TextDecoder().decode(Buffer.concat(kept)),
    stderr: new TextDecoder().decode(Buffer.concat(keptStderr)),
    timedOut,
  });

  let execId: string | undefined;
  try {
    // Not aborted: creation is quick, and an exec whose id is unknown could not be killed.
    execId = await calls.execCreate(id, argv);
    stopped.throwIfAborted();
    // The command's time begins here, without the time that the engine needed to create the exec.
    if (options.timeoutMs && options.timeoutMs > 0) startTimer(options.timeoutMs);
    for await (const { stream, data } of await calls.execStart(execId, { signal: stopped })) {
      const room = maxOutputBytes - keptBytes;
      if (room > 0) {
        const piece = data.slice(0, room);
        kept.push(piece);
        if (stream === "stderr") keptStderr.push(piece);
        keptBytes += Math.min(room, data.length);
      }
    }
    // It ended in time: an engine that is slow to say how does not make it late.
    cancelTimer();
    return outcome(await exitCodeOf(calls, execId, schedule));
  } catch (error) {
    if (!stopped.aborted) throw error;
    let found: ExecInspect | undefined;
    if (execId !== undefined) {
      const killing = killExec(calls, execId, schedule, (seen) => {
        found ??= seen;
      });
      await Promise.race([killing, pause(schedule, KILL_TIMEOUT_MS)]);
    }
    // The engine (frozen, very busy) never showed the command running: its time-out says nothing about the command.
    if (!timedOut || !found || signal?.aborted) throw error;
    // It had ended; its children kept its output open, and were killed. Or a busy engine had not sent its output.
    timedOut = found.Running || found.ExitCode === null;
    return timedOut ? outcome(undefined) : { ...outcome(found.ExitCode!), isCut: true };
  } finally {
    cancelTimer();
  }
}

/** Reads the exit code; the stream may end a moment before the engine has recorded it. */
export async function exitCodeOf(
  calls: Pick<ExecCalls, "execInspect">,
  execId: string,
  schedule: Schedule,
): Promise<number | undefined> {
  for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
    const seen = await calls.execInspect(execId);
    if (!seen.Running && seen.ExitCode !== null) return seen.ExitCode;
    await pause(schedule, SETTLE_PAUSE_MS);
  }
  return undefined;
}

/** Kills an exec once it runs: a busy engine may start it only after the time-out. Never rejects. */
export async function killExec(
  calls: Pick<ExecCalls, "execInspect" | "killExecProcesses">,
  execId: string,
  schedule: Schedule,
  onSeen: (seen: ExecInspect) => void = () => {},
): Promise<void> {
  try {
    for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
      const seen = await calls.execInspect(execId);
      // A pid of 0: the engine is still starting it, so it is inspected again.
      if (seen.Pid > 0) {
        onSeen(seen);
        await calls.killExecProcesses(seen.Pid, seen.ContainerID);
      }
      if (!seen.Running && seen.ExitCode !== null) return;
      await pause(schedule, SETTLE_PAUSE_MS);
    }
  } catch {
    // The exec is unknown, or the engine unreachable: its container is gone, or the next exec reports the failure.
  }
}

const pause = (schedule: Schedule, ms: number) => new Promise<void>((resolve) => void schedule(ms, resolve));

interface DockerClientOptions {
  /** `Clock.schedule`, for deadlines; the real timer when absent. */
  schedule?: Schedule | undefined;
  /** Deadline of a call that sets none; default 2 min. `--runtime-request-timeout`. */
  timeoutMs?: number | undefined;
  /** Default: in this thread. */
  killExecProcesses?: KillExecProcesses | undefined;
}

/** The agreed API version and how calls are made and responses checked: the base of every call of `DockerClient`. */
export class DockerConnection {
  readonly endpoint: DockerEndpoint;
  protected readonly transport: DockerTransport;
  protected readonly schedule: Schedule;
  readonly killExecProcesses: KillExecProcesses;
  #negotiation: Promise<Negotiation> | undefined;
  /** Negotiated version, e.g. `1.41`; known after `connect` or the first call. */
  apiVersion: string | undefined;

  constructor(endpoint: DockerEndpoint, options: DockerClientOptions = {}) {
    this.endpoint = endpoint;
    this.schedule = options.schedule ?? realSchedule;
    this.killExecProcesses = options.killExecProcesses ?? killExecProcesses;
    this.transport = new DockerTransport(endpoint, this.schedule, options.timeoutMs);
  }

  /** Whether the negotiated API is at least `version`, e.g. `supports("1.44")`. */
  async supports(version: string, options: CallOptions = {}): Promise<boolean> {
    return apiAtLeast(await this.#agreed(options), version);
  }

  /**
   * Negotiates the API version; repeat it after the engine came back.
   * @throws DockerUnreachableError that says what to do
   */
  async connect(options: CallOptions = {}): Promise<Negotiation> {
    const attempt = negotiate(this.transport, options);
    this.#negotiation = attempt;
    try {
      const agreed = await attempt;
      this.apiVersion = agreed.apiVersion;
      return agreed;
    } catch (error) {
      if (this.#negotiation === attempt) this.#negotiation = undefined;
      throw error;
    }
  }

  /** The negotiated versions. Concurrent first callers share one negotiation; aborting one does not abort it for the others. */
  async engine({ signal }: CallOptions = {}): Promise<Negotiation> {
    signal?.throwIfAborted();
    const shared = this.#negotiation ?? this.connect();
    return signal ? unlessAborted(shared, signal) : shared;
  }

  /** The negotiated version, after negotiation if there was none yet. */
  async #agreed(options: CallOptions): Promise<string> {
    return this.apiVersion ?? (await this.engine(options)).apiVersion;
  }

  /** `/v1.41` and the path. */
  protected async path(path: string, options: CallOptions = {}): Promise<string> {
    return `/v${await this.#agreed(options)}${path}`;
  }

  /** A call whose response is read whole and checked. */
  protected async call<const S extends v.GenericSchema>(
    method: DockerRequest["method"],
    path: string,
    schema: S,
    request: Call = {},
  ): Promise<v.InferOutput<S>> {
    return parseAs(schema, await this.send(method, path, request), `${method} ${path}`);
  }

  /** A list that is checked while it comes, some items in each turn of the event loop: an engine can hold thousands. */
  protected async list<const S extends v.GenericSchema>(path: string, item: S, request: Call) {
    const items: v.InferOutput<S>[] = [];
    await this.read({ ...request, method: "GET", path }, async ({ body }, operation) => {
      for await (const part of partsOfList(body, LIST, MAX_RESPONSE_BYTES))
        items.push(...parseAs(v.array(item), part, operation));
    });
    return items;
  }

  /** @returns the text of the response */
  protected async send(method: DockerRequest["method"], path: string, request: Call = {}): Promise<string> {
    return (await this.transport.send({ ...request, method, path: await this.path(path, request) })).text;
  }

  protected async open(request: DockerRequest) {
    return this.transport.open({ ...request, path: await this.path(request.path, request) });
  }

  protected async read<T>(request: DockerRequest, take: TakeResponse<T>): Promise<T> {
    return this.transport.read({ ...request, path: await this.path(request.path, request) }, take);
  }
}

/** A text of the engine. @throws DockerProtocolError for another shape */
export function parseAs<const S extends v.GenericSchema>(schema: S, text: string, operation: string): v.InferOutput<S> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new DockerProtocolError(operation, `no JSON: ${text.slice(0, 200)}`, { cause });
  }
  const result = v.safeParse(schema, json, { abortEarly: true });
  if (result.success) return result.output;
  const issue = result.issues[0];
  throw new DockerProtocolError(operation, `${v.getDotPath(issue) ?? "the whole"}: ${issue.message}`);
}

/** As Go writes a list of containers or images. */
const LIST = ["[", '},{"Id":', "]"];

/** Everything of a request besides its method and path. */
type Call = Omit<DockerRequest, "method" | "path">;

/** Docker's filters: `{ label: ["a=b", "c"], status: ["running"] }`; within a key any (labels: all) must match. */
export type Filters = Readonly<Record<string, readonly string[]>>;

/** One segment of a path. */
export const segment = (name: string) => encodeURIComponent(name);

/** An image name: its slashes separate. */
export const segments = (name: string) => name.split("/").map(encodeURIComponent).join("/");

export function filtersText(filters: Filters | undefined): string | undefined {
  return filters && Object.keys(filters).length > 0 ? JSON.stringify(filters) : undefined;
}

/** The newest API whose shapes are known here (Docker 29.0). Newer engines support it too. */
const MAX_API_VERSION = "1.52";

/** Docker 17.09: sandboxes need `IpcMode: shareable`, which came with it. */
const MIN_API_VERSION = "1.32";

interface Negotiation {
  /** Version of all later calls: the lower of our maximum and the engine's. */
  apiVersion: string;
  /** Highest version that the engine supports. */
  engineApiVersion: string;
  /** e.g. `20.10.24`. */
  serverVersion: string;
  /** As Go names it: amd64, arm64. */
  architecture: string;
}

/** The response is `OK`. */
export const PING = { method: "GET", path: "/_ping", maxResponseBytes: 4096 } as const;

/** Selects the newest common API version. @throws DockerUnreachableError `not-docker`, `too-old`, `too-new` */
async function negotiate(transport: DockerTransport, options: CallOptions): Promise<Negotiation> {
  const where = endpointText(transport.endpoint);
  const operation = "GET /_ping";
  const fail = (kind: UnreachableKind, message: string, cause?: unknown) =>
    new DockerUnreachableError(kind, operation, message, { cause });
  const notDocker = (cause?: unknown) =>
    fail(
      "not-docker",
      `What listens at ${where} is no Docker engine: it does not answer /_ping as Docker does${cause instanceof DockerError ? ` (${cause.status}: ${cause.daemonMessage.slice(0, 200)})` : ""}`,
      cause,
    );

  let apiHeader: string | undefined;
  try {
    const ping = await transport.send({ timeoutMs: 10_000, ...options, ...PING });
    if (ping.text.trim() !== "OK") throw notDocker();
    apiHeader = ping.headers.get("api-version") ?? undefined;
  } catch (error) {
    if (error instanceof DockerProtocolError) throw notDocker(error);
    // A 500 comes from an engine that is still starting; any other status from something else.
    throw error instanceof DockerError && error.status < 500 ? notDocker(error) : error;
  }
  const response = await transport.send({
    timeoutMs: 10_000,
    ...options,
    method: "GET",
    path: "/version",
    maxResponseBytes: 1024 * 1024,
  });
  const version = v.safeParse(VersionSchema, jsonIfValid(response.text));
  const engineApiVersion = apiHeader ?? (version.success ? version.output.ApiVersion : "");
  if (!version.success || !/^\d+\.\d+$/.test(engineApiVersion)) throw notDocker();

  const engine = `Docker ${version.output.Version} at ${where}`;
  if (!apiAtLeast(engineApiVersion, MIN_API_VERSION)) {
    throw fail(
      "too-old",
      `${engine} is too old: it supports API ${engineApiVersion}, at least ${MIN_API_VERSION} (Docker 17.09) is needed. Upgrade Docker`,
    );
  }
  const lowest = version.output.MinAPIVersion;
  if (lowest !== "" && !apiAtLeast(MAX_API_VERSION, lowest)) {
    throw fail(
      "too-new",
      `${engine} is too new: it supports no API below ${lowest}, this kubelet-ts none above ${MAX_API_VERSION}. Upgrade kubelet-ts`,
    );
  }
  return {
    apiVersion: apiAtLeast(engineApiVersion, MAX_API_VERSION) ? MAX_API_VERSION : engineApiVersion,
    engineApiVersion,
    serverVersion: version.output.Version,
    architecture: version.output.Arch,
  };
}

const HEADER_BYTES = 8;

/** Docker's own frames of a command have at most so many. */
const MAX_PAYLOAD_BYTES = 32 * 1024;

/**
 * Takes Docker's multiplexed stream apart: frames of `[stream, 0, 0, 0, length]` and payload. A frame of a log is a line: those
 * of one stream that arrive together become one piece, by moving them together in their chunk.
 * @throws Error where no header is: the container has a TTY
 */
export async function* demultiplex(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<OutputChunk> {
  let header = 0;
  let headerFill = 0;
  let payloadLeft = 0;
  let stream: OutputChunk["stream"] = "stdout";
  for await (const chunk of chunks) {
    // The piece that is being joined.
    let [from, to] = [0, 0];
    for (let at = 0; at < chunk.length; ) {
      if (payloadLeft > 0) {
        const end = Math.min(chunk.length, at + payloadLeft);
        payloadLeft -= end - at;
        if (from === to) [from, to] = [at, end];
        else while (at < end) chunk[to++] = chunk[at++]!;
        at = end;
        continue;
      }
      header = ((header << 8) | chunk[at++]!) >>> 0;
      headerFill++;
      if (headerFill === 4) {
        if ((header & 0xfcff_ffff) !== 0) throw new Error("not a multiplexed stream");
        // 3 is the engine's own error text; it belongs to what the reader should see as stderr.
        const next = header >>> 24 >= 2 ? "stderr" : "stdout";
        if (next !== stream && from < to) yield { stream, data: chunk.subarray(from, to) };
        if (next !== stream) from = to;
        stream = next;
      } else if (headerFill === HEADER_BYTES) {
        headerFill = 0;
        payloadLeft = header;
        if (to - from + payloadLeft <= MAX_PAYLOAD_BYTES) continue;
        if (from < to) yield { stream, data: chunk.subarray(from, to) };
        from = to;
      }
    }
    if (from < to) yield { stream, data: chunk.subarray(from, to) };
  }
}

/** A TTY's raw stream: everything is stdout. */
export async function* rawOutput(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<OutputChunk> {
  for await (const data of chunks) yield { stream: "stdout", data };
}

/** Longest line of JSON: a longer one means that the server is not Docker. */
const MAX_LINE_CHARACTERS = 16 * 1024 * 1024;

/** Lines of JSON without blank ones. @throws StreamTooLongError */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array> | null): AsyncGenerator<string> {
  for await (const line of linesOf(chunks, MAX_LINE_CHARACTERS)) {
    const text = line.trim();
    if (text !== "") yield text;
  }
}
