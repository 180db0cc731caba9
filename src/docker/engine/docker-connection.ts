import * as v from "valibot";
import { compareApiVersions, type Negotiation, negotiate } from "./api-version.ts";
import { realSchedule, type Schedule } from "./deadline.ts";
import { DockerProtocolError } from "./docker-error.ts";
import type { CallOptions, DockerRequest, QueryValue } from "./docker-request.ts";
import type { DockerEndpoint } from "./endpoint.ts";
import { type KillExecProcesses, killExecProcesses } from "./exec-kill.ts";
import { DockerTransport } from "./transport.ts";

interface DockerClientOptions {
  /** `Clock.schedule`, for deadlines; the real timer when absent. */
  schedule?: Schedule | undefined;
  /** Deadline of a call that sets none; default 2 min. `--runtime-request-timeout`. */
  timeoutMs?: number | undefined;
  /** Default: in this thread. */
  killExecProcesses?: KillExecProcesses | undefined;
}

/** The agreed API version and how calls are made and answers checked: the base of every call of `DockerClient`. */
export class DockerConnection {
  readonly endpoint: DockerEndpoint;
  protected readonly transport: DockerTransport;
  protected readonly schedule: Schedule;
  readonly killExecProcesses: KillExecProcesses;
  #negotiation: Promise<Negotiation> | undefined;
  #apiVersion: string | undefined;

  constructor(endpoint: DockerEndpoint, options: DockerClientOptions = {}) {
    this.endpoint = endpoint;
    this.schedule = options.schedule ?? realSchedule;
    this.killExecProcesses = options.killExecProcesses ?? killExecProcesses;
    this.transport = new DockerTransport(endpoint, this.schedule, options.timeoutMs);
  }

  /** Negotiated version, e.g. `1.41`; known after `connect` or the first call. */
  get apiVersion(): string | undefined {
    return this.#apiVersion;
  }

  /** Whether the negotiated API is at least `version`, e.g. `supports("1.44")`. False before `connect`. */
  supports(version: string): boolean {
    return this.#apiVersion !== undefined && compareApiVersions(this.#apiVersion, version) >= 0;
  }

  /**
   * Negotiates an API version: the lower of our maximum and the engine's. The first call does it implicitly; repeat it
   * after the engine came back, which may be another version then.
   * @throws DockerUnreachableError with a message that says what to do
   */
  async connect(options: CallOptions = {}): Promise<Negotiation> {
    const attempt = negotiate(this.transport, options);
    this.#negotiation = attempt;
    try {
      const agreed = await attempt;
      this.#apiVersion = agreed.apiVersion;
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
    if (!signal) return shared;
    return new Promise((resolve, reject) => {
      const leave = () => reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      shared.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
    });
  }

  /** `/v1.41` and the path, after negotiation if there was none yet. */
  protected async path(path: string, options: CallOptions): Promise<string> {
    return `/v${this.#apiVersion ?? (await this.engine(options)).apiVersion}${path}`;
  }

  protected async get<const S extends v.GenericSchema>(
    path: string,
    schema: S,
    query: Readonly<Record<string, QueryValue>> | undefined,
    options: CallOptions,
  ): Promise<v.InferOutput<S>> {
    const { signal, timeoutMs } = options;
    const full = await this.path(path, options);
    const answer = await this.transport.send({ signal, timeoutMs, method: "GET", path: full, query });
    return this.parse(schema, answer.text, `GET ${path}`);
  }

  protected async post<const S extends v.GenericSchema>(
    path: string,
    schema: S,
    json: unknown,
    query: Readonly<Record<string, QueryValue>> | undefined,
    options: CallOptions,
  ): Promise<v.InferOutput<S>> {
    const full = await this.path(path, options);
    const answer = await this.transport.send({ ...options, method: "POST", path: full, query, json });
    return this.parse(schema, answer.text, `POST ${path}`);
  }

  /** A POST whose answer is its status. */
  protected async command(
    path: string,
    query: Readonly<Record<string, QueryValue>>,
    options: CallOptions,
    json?: unknown,
  ): Promise<number> {
    const full = await this.path(path, options);
    return (await this.transport.send({ ...options, method: "POST", path: full, query, json })).status;
  }

  protected async delete(
    path: string,
    query: Readonly<Record<string, QueryValue>>,
    options: CallOptions,
  ): Promise<string> {
    const full = await this.path(path, options);
    return (await this.transport.send({ ...options, method: "DELETE", path: full, query })).text;
  }

  protected async open(request: DockerRequest) {
    return this.transport.open({ ...request, path: await this.path(request.path, request) });
  }

  protected parse<const S extends v.GenericSchema>(schema: S, text: string, operation: string): v.InferOutput<S> {
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
}

/** Docker's filters: `{ label: ["a=b", "c"], status: ["running"] }`; within a key any (labels: all) must match. */
export type Filters = Readonly<Record<string, readonly string[]>>;

/** One segment of a path. */
export const segment = (name: string) => encodeURIComponent(name);

/** An image name: its slashes separate. */
export const segments = (name: string) => name.split("/").map(encodeURIComponent).join("/");

export function filtersText(filters: Filters | undefined): string | undefined {
  return filters && Object.keys(filters).length > 0 ? JSON.stringify(filters) : undefined;
}
