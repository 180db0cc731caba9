import * as v from "valibot";
import {
  type ContainerCreated,
  ContainerCreatedSchema,
  type ContainerInspect,
  ContainerInspectSchema,
  type ContainerStats,
  ContainerStatsSchema,
  type ContainerSummary,
  ContainerSummarySchema,
  ContainerUpdatedSchema,
  ContainerWaitSchema,
  type ExecInspect,
  ExecInspectSchema,
  IdSchema,
} from "./container-schema.ts";
import { DockerConnection } from "./docker-connection.ts";
import { DockerUnreachableError, isNotFound } from "./docker-error.ts";
import { type DockerEndpoint, endpointText, parseEndpoint } from "./endpoint.ts";
import { type DockerEvent, type EventsOptions, eventStreamEnded, parseEvent } from "./events.ts";
import { type ExecOptions, type ExecOutcome, runExec } from "./exec.ts";
import {
  type ImageInspect,
  ImageInspectSchema,
  ImageRemovedSchema,
  type ImageSummary,
  ImageSummarySchema,
  type ProgressLine,
} from "./image-schema.ts";
import { loadedName, pullQuery, type RegistryAuth, readProgress, registryAuthHeader } from "./image-transfer.ts";
import { demultiplex, jsonLines, type OutputChunk, rawOutput } from "./stream-frames.ts";
import {
  type DiskUsage,
  DiskUsageSchema,
  type DockerNetwork,
  type DockerVolume,
  type EngineInfoAnswer,
  type EngineVersion,
  InfoSchema,
  NetworkSchema,
  VersionSchema,
  VolumeListSchema,
  VolumeSchema,
} from "./system-schema.ts";
import type { CallOptions } from "./transport.ts";

/** Docker's filters: `{ label: ["a=b", "c"], status: ["running"] }`; within a key any (labels: all) must match. */
export type Filters = Readonly<Record<string, readonly string[]>>;

export interface LogsOptions extends CallOptions {
  /** Both streams when neither is given. */
  stdout?: boolean | undefined;
  stderr?: boolean | undefined;
  /** Last so many lines; absent = all. */
  tail?: number | undefined;
  /** Unix seconds, may have a fraction. */
  since?: string | number | undefined;
  /** Each line begins with an RFC 3339 time and a blank. */
  timestamps?: boolean | undefined;
  /** Go on until the container ends or the signal aborts. */
  follow?: boolean | undefined;
  /** Whether it has a TTY; looked up when absent. */
  tty?: boolean | undefined;
}

export interface PullOptions {
  auth?: RegistryAuth | undefined;
  onProgress?: ((line: ProgressLine) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** The pull fails as `timeout` when so long no line of progress came. Default 60 s, 0 = never. */
  idleTimeoutMs?: number | undefined;
  /** e.g. `linux/arm64`; the engine's own when absent. */
  platform?: string | undefined;
}

/** What one call of ours takes at most where it moves much data or waits for the kernel. */
const LONG_CALL_MS = 10 * 60_000;
const PULL_IDLE_MS = 60_000;
/** Beside a stop's own time: the engine may need to unmount and to tear networks down. */
const STOP_MARGIN_MS = 60_000;

/**
 * One Docker engine. Every call ends by itself: with an answer, at its deadline, or with the caller's signal (it then
 * rejects with the signal's reason). Answers pass a schema.
 *
 * Every call throws DockerError (the engine said no), DockerUnreachableError (no engine answered) or DockerProtocolError
 * (the answer makes no sense). Bun repeats a GET or DELETE whose pooled connection died; a POST is not repeated, it fails
 * as `connection-lost` with `mayHaveBeenDone`: look first, then repeat.
 */
export class DockerClient extends DockerConnection {
  /** The flag's endpoint, else DOCKER_HOST's, else the default socket. @throws DockerUnreachableError `bad-endpoint` */
  static endpointFrom(
    flag: string | undefined,
    env: Readonly<Record<string, string | undefined>> = process.env,
  ): DockerEndpoint {
    return parseEndpoint(flag, env);
  }

  // --- the engine ---

  /** Answers "OK" or throws. Unversioned, so it works with any engine. */
  async ping(options: CallOptions = {}): Promise<void> {
    await this.transport.send({ timeoutMs: 10_000, ...options, method: "GET", path: "/_ping" });
  }

  version(options: CallOptions = {}): Promise<EngineVersion> {
    return this.get("/version", VersionSchema, undefined, options);
  }

  info(options: CallOptions = {}): Promise<EngineInfoAnswer> {
    return this.get("/info", InfoSchema, undefined, options);
  }

  /** Walks the whole store: seconds on a big one. */
  diskUsage(options: CallOptions = {}): Promise<DiskUsage> {
    return this.get("/system/df", DiskUsageSchema, undefined, { timeoutMs: LONG_CALL_MS, ...options });
  }

  /**
   * What happens at the engine, on a connection of its own, until the signal aborts (it then ends without an error).
   * @throws DockerUnreachableError `connection-lost` when the engine goes away: connect again, `since` the last cursor.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<DockerEvent> {
    try {
      const stream = await this.open({
        method: "GET",
        path: "/events",
        query: { since: options.since, filters: filtersText(options.filters) },
        signal: options.signal,
        timeoutMs: 30_000,
      });
      options.onOpen?.();
      for await (const line of jsonLines(stream.chunks)) yield parseEvent(line);
    } catch (error) {
      if (options.signal?.aborted) return;
      throw error;
    }
    if (!options.signal?.aborted) throw eventStreamEnded(endpointText(this.endpoint));
  }

  // --- containers ---

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
  inspectContainer(id: string, options: CallOptions & { size?: boolean } = {}): Promise<ContainerInspect> {
    return this.get(`/containers/${segment(id)}/json`, ContainerInspectSchema, { size: options.size }, options);
  }

  /** As the engine wrote it, for comparisons and diagnosis. */
  inspectContainerRaw(id: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.get(`/containers/${segment(id)}/json`, v.record(v.string(), v.unknown()), undefined, options);
  }

  /**
   * Creates a container. When the connection dies on the way, the name is looked up before anything is repeated: a
   * container with that name and all these labels is the one just created.
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
      if (!(error instanceof DockerUnreachableError) || error.kind !== "connection-lost") throw error;
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

  /**
   * TERM (or `signal`), and KILL after `timeoutSeconds`; answers when it has ended.
   * @param stop.signal e.g. `SIGINT`; engines before API 1.42 cannot take it and send the image's own.
   * @returns false when it had ended already
   */
  async stopContainer(
    id: string,
    stop: { timeoutSeconds: number; signal?: string | undefined },
    options: CallOptions = {},
  ): Promise<boolean> {
    const seconds = Math.max(0, Math.ceil(stop.timeoutSeconds));
    const answer = await this.transport.sendAlone({
      timeoutMs: seconds * 1000 + STOP_MARGIN_MS,
      ...options,
      method: "POST",
      path: await this.path(`/containers/${segment(id)}/stop`, options),
      // 0 must be said: left out it means ten seconds.
      query: { t: String(seconds), signal: this.supports("1.42") ? stop.signal : undefined },
    });
    return answer.status !== 304;
  }

  /** @throws DockerError 409 when it does not run */
  async killContainer(id: string, signal: string, options: CallOptions = {}): Promise<void> {
    await this.command(`/containers/${segment(id)}/kill`, { signal }, options);
  }

  /** @param remove.force kill it first; `volumes` with its anonymous volumes */
  async removeContainer(
    id: string,
    remove: { force?: boolean; volumes?: boolean } = {},
    options: CallOptions = {},
  ): Promise<void> {
    await this.delete(`/containers/${segment(id)}`, { force: remove.force, v: remove.volumes }, options);
  }

  async renameContainer(id: string, name: string, options: CallOptions = {}): Promise<void> {
    await this.command(`/containers/${segment(id)}/rename`, { name }, options);
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

  /** Waits (no deadline of its own) until it has ended, or ends the next time. */
  async waitContainer(
    id: string,
    condition: "not-running" | "next-exit" | "removed" = "not-running",
    options: CallOptions = {},
  ): Promise<{ exitCode: number; error: string }> {
    const path = `/containers/${segment(id)}/wait`;
    const answer = await this.transport.sendAlone({
      timeoutMs: 0,
      ...options,
      method: "POST",
      path: await this.path(path, options),
      query: { condition },
    });
    const parsed = this.parse(ContainerWaitSchema, answer.text, `POST ${path}`);
    return { exitCode: parsed.StatusCode, error: parsed.Error?.Message ?? "" };
  }

  /** What a container wrote, in pieces that are no lines, until its end or (followed) until the signal aborts. */
  async *containerLogs(id: string, options: LogsOptions = {}): AsyncGenerator<OutputChunk> {
    const both = options.stdout === undefined && options.stderr === undefined;
    try {
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
      yield* tty ? rawOutput(stream.chunks) : demultiplex(stream.chunks);
    } catch (error) {
      if (options.follow && options.signal?.aborted) return;
      throw error;
    }
  }

  /** One look at its counters, without the second that a rate would take. */
  containerStats(id: string, options: CallOptions = {}): Promise<ContainerStats> {
    const query = { stream: "false", "one-shot": this.supports("1.41") ? "true" : undefined };
    return this.get(`/containers/${segment(id)}/stats`, ContainerStatsSchema, query, options);
  }

  /** Unpacks a tar archive into a directory of a container. */
  async putArchive(id: string, directory: string, tar: Bun.BodyInit, options: CallOptions = {}): Promise<void> {
    await this.transport.send({
      timeoutMs: LONG_CALL_MS,
      ...options,
      method: "PUT",
      path: await this.path(`/containers/${segment(id)}/archive`, options),
      query: { path: directory },
      body: tar,
    });
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

  // --- exec ---

  /** @returns the exec's id */
  async execCreate(id: string, argv: readonly string[], options: ExecOptions & CallOptions = {}): Promise<string> {
    const body = {
      Cmd: argv,
      AttachStdout: true,
      AttachStderr: true,
      ...(options.env ? { Env: options.env } : {}),
      ...(options.user !== undefined ? { User: options.user } : {}),
      ...(options.workingDir !== undefined ? { WorkingDir: options.workingDir } : {}),
    };
    const call = { signal: options.signal };
    return (await this.post(`/containers/${segment(id)}/exec`, IdSchema, body, undefined, call)).Id;
  }

  /** Starts it and hands on its output, on a connection of its own. Leaving the loop does not end the process. */
  async execStart(execId: string, options: CallOptions = {}): Promise<AsyncIterable<OutputChunk>> {
    const path = await this.path(`/exec/${segment(execId)}/start`, options);
    const json = { Detach: false, Tty: false };
    const stream = await this.transport.open({ timeoutMs: 0, ...options, method: "POST", path, json });
    return demultiplex(stream.chunks);
  }

  execInspect(execId: string, options: CallOptions = {}): Promise<ExecInspect> {
    return this.get(`/exec/${segment(execId)}/json`, ExecInspectSchema, undefined, options);
  }

  /**
   * Runs a command to its end. When the time is over or the signal aborts, its processes are killed, not only left.
   * @throws DockerError 404 no such container, 409 not running or paused
   */
  exec(id: string, argv: readonly string[], options: ExecOptions = {}): Promise<ExecOutcome> {
    return runExec(this, id, argv, options, this.schedule);
  }

  // --- images ---

  /**
   * Fetches an image from its registry.
   * @param reference with tag or digest; neither means `:latest`
   * @throws DockerError 404 unknown or denied, 500 everything else a registry can do; `timeout` without progress
   */
  async pullImage(reference: string, options: PullOptions = {}): Promise<void> {
    const idleMs = options.idleTimeoutMs ?? PULL_IDLE_MS;
    const operation = "POST /images/create";
    const stop = new AbortController();
    const forward = () => stop.abort(options.signal?.reason);
    if (options.signal?.aborted) forward();
    else options.signal?.addEventListener("abort", forward, { once: true });
    const giveUp = () =>
      stop.abort(
        new DockerUnreachableError(
          "timeout",
          operation,
          `Pulling ${reference} made no progress for ${idleMs / 1000} s`,
        ),
      );
    let cancel = idleMs > 0 ? this.schedule(idleMs, giveUp) : () => {};
    try {
      const stream = await this.open({
        method: "POST",
        path: "/images/create",
        query: { ...pullQuery(reference), platform: options.platform },
        ...(options.auth ? { headers: { "X-Registry-Auth": registryAuthHeader(options.auth) } } : {}),
        signal: stop.signal,
        timeoutMs: 0,
      });
      await readProgress(stream.chunks, operation, (line) => {
        cancel();
        if (idleMs > 0) cancel = this.schedule(idleMs, giveUp);
        options.onProgress?.(line);
      });
    } finally {
      cancel();
      options.signal?.removeEventListener("abort", forward);
    }
  }

  /**
   * Loads a `docker save` archive, plain or compressed.
   * @param archive bytes, a `Bun.file`, or a stream
   * @returns names of the images, or ids of those without a name
   */
  async loadImage(archive: Bun.BodyInit, options: CallOptions = {}): Promise<string[]> {
    const answer = await this.transport.send({
      timeoutMs: LONG_CALL_MS,
      ...options,
      method: "POST",
      path: await this.path("/images/load", options),
      query: { quiet: true },
      body: archive,
    });
    const loaded: string[] = [];
    const chunks = async function* () {
      yield new TextEncoder().encode(answer.text);
    };
    await readProgress(chunks(), "POST /images/load", (line) => {
      const name = loadedName(line);
      if (name !== undefined) loaded.push(name);
    });
    return loaded;
  }

  /** @throws DockerError 404 */
  inspectImage(reference: string, options: CallOptions = {}): Promise<ImageInspect> {
    return this.get(`/images/${segments(reference)}/json`, ImageInspectSchema, undefined, options);
  }

  listImages(
    query: { all?: boolean; filters?: Filters | undefined } = {},
    options: CallOptions = {},
  ): Promise<ImageSummary[]> {
    const parameters = { all: query.all, filters: filtersText(query.filters) };
    return this.get("/images/json", v.array(ImageSummarySchema), parameters, options);
  }

  /**
   * @returns ids and names that went
   * @throws DockerError 404; 409 a container uses it
   */
  async removeImage(
    reference: string,
    remove: { force?: boolean; noPrune?: boolean } = {},
    options: CallOptions = {},
  ): Promise<string[]> {
    const path = `/images/${segments(reference)}`;
    const answer = await this.delete(path, { force: remove.force, noprune: remove.noPrune }, options);
    return this.parse(ImageRemovedSchema, answer, `DELETE ${path}`).map((step) => step.Deleted || step.Untagged);
  }

  async tagImage(reference: string, repository: string, tag: string, options: CallOptions = {}): Promise<void> {
    await this.command(`/images/${segments(reference)}/tag`, { repo: repository, tag }, options);
  }

  // --- volumes and networks ---

  /** Creates it, or answers the one there is with that name. */
  createVolume(
    body: {
      Name: string;
      Driver?: string;
      DriverOpts?: Record<string, string>;
      Labels?: Record<string, string>;
    },
    options: CallOptions = {},
  ): Promise<DockerVolume> {
    return this.post("/volumes/create", VolumeSchema, body, undefined, options);
  }

  inspectVolume(name: string, options: CallOptions = {}): Promise<DockerVolume> {
    return this.get(`/volumes/${segment(name)}`, VolumeSchema, undefined, options);
  }

  async listVolumes(filters?: Filters, options: CallOptions = {}): Promise<DockerVolume[]> {
    return (await this.get("/volumes", VolumeListSchema, { filters: filtersText(filters) }, options)).Volumes;
  }

  async removeVolume(name: string, force = false, options: CallOptions = {}): Promise<void> {
    await this.delete(`/volumes/${segment(name)}`, { force }, options);
  }

  listNetworks(filters?: Filters, options: CallOptions = {}): Promise<DockerNetwork[]> {
    return this.get("/networks", v.array(NetworkSchema), { filters: filtersText(filters) }, options);
  }

  inspectNetwork(name: string, options: CallOptions = {}): Promise<DockerNetwork> {
    return this.get(`/networks/${segment(name)}`, NetworkSchema, undefined, options);
  }

  /** @returns its id. @throws DockerError 409 the name is taken (with `CheckDuplicate`, and always from API 1.44) */
  async createNetwork(
    body: { Name: string } & Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<string> {
    const answer = await this.post("/networks/create", IdSchema, { CheckDuplicate: true, ...body }, undefined, options);
    return answer.Id;
  }

  async removeNetwork(name: string, options: CallOptions = {}): Promise<void> {
    await this.delete(`/networks/${segment(name)}`, {}, options);
  }

  async connectNetwork(
    name: string,
    body: { Container: string; EndpointConfig?: Readonly<Record<string, unknown>> },
    options: CallOptions = {},
  ): Promise<void> {
    await this.command(`/networks/${segment(name)}/connect`, {}, options, body);
  }

  async disconnectNetwork(
    name: string,
    body: { Container: string; Force?: boolean },
    options: CallOptions = {},
  ): Promise<void> {
    await this.command(`/networks/${segment(name)}/disconnect`, {}, options, body);
  }
}

const segment = (name: string) => encodeURIComponent(name);

/** An image name: its slashes separate. */
const segments = (name: string) => name.split("/").map(encodeURIComponent).join("/");

function filtersText(filters: Filters | undefined): string | undefined {
  return filters && Object.keys(filters).length > 0 ? JSON.stringify(filters) : undefined;
}
