import * as v from "valibot";
import type { CommandResult } from "../../base/model/container-access.ts";
import { DockerConnection, demultiplex, type Filters, filtersText, rawOutput, segment } from "./docker-connection.ts";
import { DockerUnreachableError, isNotFound } from "./docker-error.ts";
import { type ExecOptions, type OutputChunk, runExec } from "./exec.ts";
import {
  type ContainerCreated,
  ContainerCreatedSchema,
  type ContainerInspect,
  ContainerInspectSchema,
  type ContainerSummary,
  ContainerSummarySchema,
  ContainerUpdatedSchema,
  type ExecInspect,
  ExecInspectSchema,
  IdSchema,
} from "./schemas.ts";
import type { CallOptions, HijackedConnection } from "./transport.ts";

export interface LogsOptions extends CallOptions {
  /** Both streams when neither is given. */
  stdout?: boolean | undefined;
  stderr?: boolean | undefined;
  /** Number of last lines; absent = all. */
  tail?: number | undefined;
  /** Unix seconds, may have a fraction. */
  since?: string | number | undefined;
  /** Each line begins with an RFC 3339 time and a blank. */
  timestamps?: boolean | undefined;
  /** Continue until the container ends or the signal aborts. */
  follow?: boolean | undefined;
  /** Whether it has a TTY; looked up when absent. */
  tty?: boolean | undefined;
}

/** Added to a stop's own time: the engine may need to unmount and to tear networks down. */
const STOP_MARGIN_MS = 60_000;

/** The calls about containers and about commands run in them. */
export class ContainerCalls extends DockerConnection {
  /** Running ones only unless `all`. */
  listContainers(
    query: { all?: boolean; filters?: Filters | undefined } = {},
    options: CallOptions = {},
  ): Promise<ContainerSummary[]> {
    return this.get(
      "/containers/json",
      v.array(ContainerSummarySchema),
      { all: query.all, filters: filtersText(query.filters) },
      options,
    );
  }

  /** @param id id, id prefix or name */
  inspectContainer(id: string, options: CallOptions = {}): Promise<ContainerInspect> {
    return this.get(`/containers/${segment(id)}/json`, ContainerInspectSchema, undefined, options);
  }

  /** As the engine wrote it, for comparisons and diagnosis. */
  inspectContainerRaw(id: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.get(`/containers/${segment(id)}/json`, v.record(v.string(), v.unknown()), undefined, options);
  }

  /**
   * Creates a container. `name` "" lets the engine choose. When the connection breaks before the response, the name is looked up
   * before anything is repeated: a container with that name and all these labels is the one just created.
   * @param body Config with HostConfig and NetworkingConfig.
   * @throws DockerError 404 no such image, 409 the name is taken, 400 a bad body
   */
  async createContainer(
    name: string,
    body: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<ContainerCreated> {
    const create = () => this.post("/containers/create", ContainerCreatedSchema, body, { name }, options);
    try {
      return await create();
    } catch (error) {
      // Without a name there is nothing to look up by.
      if (!(error instanceof DockerUnreachableError) || error.kind !== "connection-lost" || name === "") throw error;
      try {
        const found = await this.inspectContainer(name, options);
        const wanted = Object.entries((body.Labels ?? {}) as Record<string, string>);
        if (wanted.every(([key, value]) => found.Config.Labels[key] === value)) return { Id: found.Id, Warnings: [] };
      } catch (lookup) {
        if (isNotFound(lookup)) return create();
      }
      throw error;
    }
  }

  /** @returns false when it ran already */
  async startContainer(id: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.command(`/containers/${segment(id)}/start`, {}, options)) !== 304;
  }

  /** TERM (or `stop.signal`, from API 1.42), KILL after `timeoutSeconds`. @returns false when it had ended already */
  async stopContainer(
    id: string,
    stop: { timeoutSeconds: number; signal?: string | undefined },
    options: CallOptions = {},
  ): Promise<boolean> {
    const seconds = Math.max(0, Math.ceil(stop.timeoutSeconds));
    const response = await this.transport.send({
      timeoutMs: seconds * 1000 + STOP_MARGIN_MS,
      ...options,
      method: "POST",
      path: await this.path(`/containers/${segment(id)}/stop`, options),
      // 0 must be said: left out it means ten seconds.
      query: { t: String(seconds), signal: this.supports("1.42") ? stop.signal : undefined },
    });
    return response.status !== 304;
  }

  /** @param remove.force kill it first; `volumes` with its anonymous volumes */
  async removeContainer(
    id: string,
    remove: { force?: boolean; volumes?: boolean } = {},
    options: CallOptions = {},
  ): Promise<void> {
    await this.delete(`/containers/${segment(id)}`, { force: remove.force, v: remove.volumes }, options);
  }

  /** Changes resources of a living container. @param body Resources, e.g. `{ CpuShares: 512, Memory: 1 << 26 }` */
  async updateContainer(
    id: string,
    body: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<string[]> {
    const path = `/containers/${segment(id)}/update`;
    return (await this.post(path, ContainerUpdatedSchema, body, undefined, options)).Warnings;
  }

  /** The output of a container in pieces that are not lines, until its end or (followed) until the signal aborts. */
  async *containerLogs(id: string, options: LogsOptions = {}): AsyncGenerator<OutputChunk> {
    try {
      yield* await this.openContainerLogs(id, options);
    } catch (error) {
      if (options.follow && options.signal?.aborted) return;
      throw error;
    }
  }

  /** Resolves when the response begins, so that a refusal rejects before the first piece is read. */
  async openContainerLogs(id: string, options: LogsOptions = {}): Promise<AsyncIterable<OutputChunk>> {
    const both = options.stdout === undefined && options.stderr === undefined;
    const stream = await this.open({
      method: "GET",
      path: `/containers/${segment(id)}/logs`,
      query: {
        stdout: both || options.stdout,
        stderr: both || options.stderr,
        tail: options.tail,
        since: options.since,
        timestamps: options.timestamps,
        follow: options.follow,
      },
      signal: options.signal,
      timeoutMs: options.timeoutMs,
    });
    // Engines before API 1.42 do not say which of the two it is.
    const type = stream.header("content-type") ?? "";
    const tty = type.includes("multiplexed-stream")
      ? false
      : (options.tty ?? (type.includes("raw-stream") || (await this.inspectContainer(id, options)).Config.Tty));
    return tty ? rawOutput(stream.chunks) : demultiplex(stream.chunks);
  }

  /** A file or directory of a container as a tar archive. */
  async getArchive(id: string, path: string, options: CallOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    const stream = await this.open({
      ...options,
      method: "GET",
      path: `/containers/${segment(id)}/archive`,
      query: { path },
    });
    return stream.chunks;
  }

  /** @returns the exec's id */
  async execCreate(id: string, argv: readonly string[], options: ExecOptions & CallOptions = {}): Promise<string> {
    const body = {
      Cmd: argv,
      AttachStdout: options.streams?.stdout ?? true,
      AttachStderr: options.streams?.stderr ?? true,
      ...(options.streams?.stdin ? { AttachStdin: true } : {}),
      ...(options.streams?.tty ? { Tty: true } : {}),
    };
    const call = { signal: options.signal };
    return (await this.post(`/containers/${segment(id)}/exec`, IdSchema, body, undefined, call)).Id;
  }

  /** Starts it and yields its output, on its own connection. Leaving the loop does not end the process. */
  async execStart(execId: string, options: CallOptions = {}): Promise<AsyncIterable<OutputChunk>> {
    const path = await this.path(`/exec/${segment(execId)}/start`, options);
    const json = { Detach: false, Tty: false };
    const stream = await this.transport.open({ timeoutMs: 0, ...options, method: "POST", path, json });
    return demultiplex(stream.chunks);
  }

  /** Starts it and holds its streams. @param tty as it was created */
  async execHold(execId: string, tty: boolean, options: CallOptions = {}): Promise<HijackedConnection> {
    const path = await this.path(`/exec/${segment(execId)}/start`, options);
    return this.transport.hijack({ ...options, method: "POST", path, json: { Detach: false, Tty: tty } });
  }

  /** @throws DockerError 409 when it has not started yet, or ended */
  async execResize(execId: string, size: { width: number; height: number }, options: CallOptions = {}): Promise<void> {
    await this.command(`/exec/${segment(execId)}/resize`, { h: String(size.height), w: String(size.width) }, options);
  }

  /** Holds the streams of the container's own process, from now on. */
  async attachContainer(
    id: string,
    streams: { stdin: boolean; stdout: boolean; stderr: boolean },
    options: CallOptions = {},
  ): Promise<HijackedConnection> {
    const path = await this.path(`/containers/${segment(id)}/attach`, options);
    const { stdin, stdout, stderr } = streams;
    return this.transport.hijack({ ...options, method: "POST", path, query: { stream: true, stdin, stdout, stderr } });
  }

  async resizeContainer(id: string, size: { width: number; height: number }, options: CallOptions = {}): Promise<void> {
    const path = `/containers/${segment(id)}/resize`;
    await this.command(path, { h: String(size.height), w: String(size.width) }, options);
  }

  execInspect(execId: string, options: CallOptions = {}): Promise<ExecInspect> {
    return this.get(`/exec/${segment(execId)}/json`, ExecInspectSchema, undefined, options);
  }

  /** Runs a command to its end. When its time has elapsed or the signal aborts, its processes are killed. */
  exec(id: string, argv: readonly string[], options: ExecOptions = {}): Promise<CommandResult> {
    return runExec(this, id, argv, options, this.schedule);
  }
}
