import * as v from "valibot";
import { text, textMap, whole } from "../../base/api/docker-json.ts";
import type {
  CommandOptions,
  CommandResult,
  LogSelection,
  OutputChunk,
  StreamSelection,
  TerminalSize,
} from "../../base/model/container-access.ts";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { withoutTag } from "../../base/text/image-reference.ts";
import {
  DockerConnection,
  demultiplex,
  type Filters,
  filtersText,
  jsonLines,
  PING,
  parseAs,
  rawOutput,
  runExec,
  segment,
  segments,
} from "./docker-connection.ts";
import { DockerError, DockerUnreachableError, isNotFound } from "./docker-error.ts";
import { endpointText } from "./endpoint.ts";
import {
  type ContainerInspect,
  ContainerInspectSchema,
  type ContainerSummary,
  ContainerSummarySchema,
  DiskUsageSchema,
  type Distribution,
  DistributionSchema,
  type DockerNetwork,
  type DockerVolume,
  type EngineInfoResponse,
  type ExecInspect,
  ExecInspectSchema,
  IdSchema,
  type ImageInspect,
  ImageInspectSchema,
  type ImageSummary,
  ImageSummarySchema,
  InfoSchema,
  NetworkSchema,
  type ProgressLine,
  ProgressLineSchema,
  VolumeSchema,
} from "./schemas.ts";
import type { CallOptions, HijackedConnection } from "./transport.ts";

interface PullOptions {
  auth?: RegistryAuth | undefined;
  onProgress?: ((line: ProgressLine) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** The pull fails as `timeout` after this time without a line of progress. Default 60 s, 0 = never. */
  idleTimeoutMs?: number | undefined;
}

/** Deadline of a call that moves much data or waits for the kernel. */
const LONG_CALL_MS = 10 * 60_000;
const PULL_IDLE_MS = 60_000;
/** Added to a stop's own time: the engine may need to unmount and to tear networks down. */
const STOP_MARGIN_MS = 60_000;

const AnyObjectSchema = v.record(v.string(), v.unknown());

/**
 * One Docker engine. Every call ends: with a response, at its deadline, or with the caller's signal (it then
 * rejects with the signal's reason). Responses pass a schema.
 *
 * Every call throws DockerError (the engine refused), DockerUnreachableError (no engine responded) or DockerProtocolError
 * (the response has another shape). Bun repeats a GET or DELETE whose pooled connection died. A POST is not repeated: it fails
 * as `connection-lost`: it may have been done, so check first, then repeat.
 */
export class DockerClient extends DockerConnection {
  // --- the engine ---

  /** Resolves or throws. Unversioned, so it works with any engine. */
  async ping(options: CallOptions = {}): Promise<void> {
    await this.transport.send({ timeoutMs: 10_000, ...options, ...PING });
  }

  info(options: CallOptions = {}): Promise<EngineInfoResponse> {
    return this.call("GET", "/info", InfoSchema, options);
  }

  /** Bytes of all image layers. Before API 1.42 the engine measures every container and volume too: seconds on a big store. */
  async imagesBytes(options: CallOptions = {}): Promise<number> {
    const usage = await this.call("GET", "/system/df", DiskUsageSchema, { ...options, query: { type: "image" } });
    return (usage.ImageUsage ?? usage.ImagesUsage)?.TotalSize ?? usage.LayersSize;
  }

  /** Events until the signal aborts. @throws DockerUnreachableError: connect again, with the last cursor as `since` */
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
      if (!options.signal?.aborted) throw error;
    }
    if (options.signal?.aborted) return;
    // An engine that ends the stream is going away: for the reader that is a lost connection, not an end.
    const why = `The Docker engine at ${endpointText(this.endpoint)} ended the event stream; it may be restarting`;
    throw new DockerUnreachableError("connection-lost", "GET /events", why);
  }

  // --- containers, and commands run in them ---

  /** Running ones only unless `all`. */
  listContainers(query: ListQuery = {}, options: CallOptions = {}): Promise<ContainerSummary[]> {
    return this.list("/containers/json", ContainerSummarySchema, { ...options, query: listParameters(query) });
  }

  /** @param id id, id prefix or name */
  inspectContainer(id: string, options: CallOptions = {}): Promise<ContainerInspect> {
    return this.call("GET", `/containers/${segment(id)}/json`, ContainerInspectSchema, options);
  }

  /** As the engine wrote it, for comparisons and diagnosis. */
  inspectContainerRaw(id: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.call("GET", `/containers/${segment(id)}/json`, AnyObjectSchema, options);
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
  ): Promise<{ Id: string }> {
    const create = () => this.call("POST", "/containers/create", IdSchema, { ...options, query: { name }, json: body });
    try {
      return await create();
    } catch (error) {
      // Without a name there is nothing to look up by.
      if (!(error instanceof DockerUnreachableError) || error.kind !== "connection-lost" || name === "") throw error;
      try {
        const found = await this.inspectContainer(name, options);
        const wanted = Object.entries((body.Labels ?? {}) as Record<string, string>);
        if (wanted.every(([key, value]) => found.Config.Labels[key] === value)) return { Id: found.Id };
      } catch (lookup) {
        if (isNotFound(lookup)) return create();
      }
      throw error;
    }
  }

  /** @throws DockerError 404 no such network, 403 the container is in it already */
  async connectNetwork(
    network: string,
    body: { Container: string; EndpointConfig: object },
    options: CallOptions = {},
  ): Promise<void> {
    await this.send("POST", `/networks/${segment(network)}/connect`, { ...options, json: body });
  }

  /** Does nothing to one that runs. */
  async startContainer(id: string, options: CallOptions = {}): Promise<void> {
    await this.send("POST", `/containers/${segment(id)}/start`, options);
  }

  /** TERM (or `stop.signal`, from API 1.42), KILL after `timeoutSeconds`. Does nothing to one that has ended. */
  async stopContainer(
    id: string,
    stop: { timeoutSeconds: number; signal?: string | undefined },
    options: CallOptions = {},
  ): Promise<void> {
    const seconds = Math.max(0, Math.ceil(stop.timeoutSeconds));
    const signal = (await this.supports("1.42", options)) ? stop.signal : undefined;
    await this.send("POST", `/containers/${segment(id)}/stop`, {
      timeoutMs: seconds * 1000 + STOP_MARGIN_MS,
      ...options,
      // 0 must be sent: without a time the engine waits for ten seconds.
      query: { t: seconds, signal },
    });
  }

  /** Sends a signal to the main process of a container, `USR1`. */
  async killContainer(id: string, signal: string, options: CallOptions = {}): Promise<void> {
    await this.send("POST", `/containers/${segment(id)}/kill`, { ...options, query: { signal } });
  }

  /** @param remove.force kill it first; `volumes` with its anonymous volumes */
  async removeContainer(
    id: string,
    remove: { force?: boolean; volumes?: boolean } = {},
    options: CallOptions = {},
  ): Promise<void> {
    const query = { force: remove.force, v: remove.volumes };
    await this.send("DELETE", `/containers/${segment(id)}`, { ...options, query });
  }

  /** Changes resources of a living container. @param body Resources, e.g. `{ CpuShares: 512, Memory: 1 << 26 }` */
  async updateContainer(id: string, body: Readonly<Record<string, unknown>>, options: CallOptions): Promise<void> {
    await this.send("POST", `/containers/${segment(id)}/update`, { ...options, json: body });
  }

  /**
   * The output of a container in pieces that are not lines. Resolves when the response begins, so that a refusal rejects
   * before the first piece is read.
   */
  async containerLogs(
    id: string,
    { stdout, stderr, tailLines: tail, since: from, timestamps, follow }: Partial<LogSelection> = {},
    options: CallOptions = {},
  ): Promise<AsyncIterable<OutputChunk>> {
    const both = stdout === undefined && stderr === undefined;
    const since = from && (from.getTime() / 1000).toFixed(3);
    const stream = await this.open({
      ...options,
      method: "GET",
      path: `/containers/${segment(id)}/logs`,
      query: { stdout: both || stdout, stderr: both || stderr, tail, since, timestamps, follow },
    });
    // Engines before API 1.42 do not say which of the two it is.
    const type = stream.headers.get("content-type") ?? "";
    const tty = type.includes("multiplexed-stream")
      ? false
      : type.includes("raw-stream") || (await this.inspectContainer(id, options)).Config.Tty;
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

  /** @param streams stdout and stderr without a terminal when absent. @returns the exec's id */
  async execCreate(id: string, argv: readonly string[], streams?: StreamSelection): Promise<string> {
    const json = {
      Cmd: argv,
      AttachStdout: streams?.stdout ?? true,
      AttachStderr: streams?.stderr ?? true,
      ...(streams?.stdin ? { AttachStdin: true } : {}),
      ...(streams?.tty ? { Tty: true } : {}),
    };
    return (await this.call("POST", `/containers/${segment(id)}/exec`, IdSchema, { json })).Id;
  }

  /** Starts it and yields its output, on its own connection. Leaving the loop does not end the process. */
  async execStart(execId: string, options: CallOptions = {}): Promise<AsyncIterable<OutputChunk>> {
    const path = `/exec/${segment(execId)}/start`;
    const json = { Detach: false, Tty: false };
    return demultiplex((await this.open({ timeoutMs: 0, ...options, method: "POST", path, json })).chunks);
  }

  /** Starts it and holds its streams. @param tty as it was created */
  async execHold(execId: string, tty: boolean): Promise<HijackedConnection> {
    const path = await this.path(`/exec/${segment(execId)}/start`);
    return this.transport.hijack({ method: "POST", path, json: { Detach: false, Tty: tty } });
  }

  /** @throws DockerError 409 when it has not started yet, or ended */
  async execResize(execId: string, { width, height }: TerminalSize): Promise<void> {
    await this.send("POST", `/exec/${segment(execId)}/resize`, { query: { h: height, w: width } });
  }

  /** Holds the streams of the container's own process, from now on. */
  async attachContainer(id: string, { stdin, stdout, stderr }: StreamSelection): Promise<HijackedConnection> {
    const path = await this.path(`/containers/${segment(id)}/attach`);
    return this.transport.hijack({ method: "POST", path, query: { stream: true, stdin, stdout, stderr } });
  }

  async resizeContainer(id: string, { width, height }: TerminalSize): Promise<void> {
    await this.send("POST", `/containers/${segment(id)}/resize`, { query: { h: height, w: width } });
  }

  execInspect(execId: string, options: CallOptions = {}): Promise<ExecInspect> {
    return this.call("GET", `/exec/${segment(execId)}/json`, ExecInspectSchema, options);
  }

  /** Runs a command to its end. When its time has elapsed or the signal aborts, its processes are killed. */
  exec(id: string, argv: readonly string[], options: Partial<CommandOptions> = {}): Promise<CommandResult> {
    return runExec(this, id, argv, options, this.schedule);
  }

  // --- images ---

  /**
   * @param reference without tag or digest: `:latest`
   * @throws DockerError 404 unknown or denied, 500 the rest; `timeout`
   */
  async pullImage(reference: string, options: PullOptions = {}): Promise<void> {
    const idleMs = options.idleTimeoutMs ?? PULL_IDLE_MS;
    const stop = new AbortController();
    const giveUp = () => {
      const why = `Pulling ${reference} made no progress for ${idleMs / 1000} s`;
      stop.abort(new DockerUnreachableError("timeout", "POST /images/create", why));
    };
    let cancel = idleMs > 0 ? this.schedule(idleMs, giveUp) : () => {};
    try {
      const stream = await this.open({
        method: "POST",
        path: "/images/create",
        query: pullQuery(reference),
        headers: registryAuthHeaders(options.auth),
        signal: options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal,
        timeoutMs: 0,
      });
      await readProgress(stream.chunks, "POST /images/create", (line) => {
        cancel();
        if (idleMs > 0) cancel = this.schedule(idleMs, giveUp);
        options.onProgress?.(line);
      });
    } finally {
      cancel();
    }
  }

  /** A `docker save` archive of images, as a stream. @throws DockerError 404 */
  async saveImages(references: readonly string[], signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const query = references.map((reference) => `names=${encodeURIComponent(reference)}`).join("&");
    const stream = await this.open({ method: "GET", path: `/images/get?${query}`, signal, timeoutMs: 0 });
    return stream.chunks;
  }

  /**
   * Loads a `docker save` archive, plain or compressed.
   * @returns names of the images, or ids of those without a name
   */
  async loadImage(archive: Bun.BodyInit, options: CallOptions = {}): Promise<string[]> {
    const query = { quiet: true };
    const request = {
      timeoutMs: LONG_CALL_MS,
      ...options,
      method: "POST",
      path: "/images/load",
      query,
      body: archive,
    } as const;
    const loaded: string[] = [];
    const note = (line: ProgressLine) => loaded.push(...[loadedName(line) ?? []].flat());
    await this.read(request, ({ body }, operation) => readProgress(body, operation, note));
    return loaded;
  }

  /** @throws DockerError 404 */
  inspectImage(reference: string, options: CallOptions = {}): Promise<ImageInspect> {
    return this.call("GET", `/images/${segments(reference)}/json`, ImageInspectSchema, options);
  }

  /** Looks an image up in its registry through the engine, without pulling. @throws DockerError 401, 403, 404, 500 */
  async inspectDistribution(
    reference: string,
    { auth, ...options }: CallOptions & { auth?: RegistryAuth | undefined },
  ): Promise<Distribution> {
    const request = { ...options, headers: registryAuthHeaders(auth) };
    return this.call("GET", `/distribution/${segments(reference)}/json`, DistributionSchema, request);
  }

  /** As the engine wrote it. @throws DockerError 404 */
  inspectImageRaw(reference: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.call("GET", `/images/${segments(reference)}/json`, AnyObjectSchema, options);
  }

  listImages(query: ListQuery = {}, options: CallOptions = {}): Promise<ImageSummary[]> {
    return this.list("/images/json", ImageSummarySchema, { ...options, query: listParameters(query) });
  }

  /** @throws DockerError 404; 409 a container uses it */
  async removeImage(reference: string, remove: { force?: boolean } = {}, options: CallOptions = {}): Promise<void> {
    await this.send("DELETE", `/images/${segments(reference)}`, { ...options, query: { force: remove.force } });
  }

  // --- volumes and networks ---

  /** Creates it, or returns the one there is with that name. */
  createVolume(body: Readonly<Record<string, unknown>>, options: CallOptions = {}): Promise<DockerVolume> {
    return this.call("POST", "/volumes/create", VolumeSchema, { ...options, json: body });
  }

  inspectVolume(name: string, options: CallOptions = {}): Promise<DockerVolume> {
    return this.call("GET", `/volumes/${segment(name)}`, VolumeSchema, options);
  }

  async removeVolume(name: string, options: CallOptions = {}): Promise<void> {
    await this.send("DELETE", `/volumes/${segment(name)}`, options);
  }

  listNetworks(options: CallOptions = {}): Promise<DockerNetwork[]> {
    return this.call("GET", "/networks", v.array(NetworkSchema), options);
  }
}

interface ListQuery {
  all?: boolean;
  filters?: Filters | undefined;
}

const listParameters = ({ all, filters }: ListQuery) => ({ all, filters: filtersText(filters) });

/** Both wire shapes: up to API 1.51 with `status`, `id` and `from` in addition, from 1.52 without. */
const EventLineSchema = v.object({
  Action: text,
  Actor: v.nullish(v.object({ ID: text, Attributes: textMap }), { ID: "", Attributes: {} }),
  /** Unix seconds. */
  time: whole,
});

/** Something happened at the engine. */
export interface DockerEvent {
  /** `create`, `start`, `die`, `oom`, `destroy`, `health_status`, `exec_start`, … without what follows a colon. */
  action: string;
  /** Container id, image reference, network id, … */
  id: string;
  /** Labels of a container, and `name`, `image`, `exitCode`, `signal`, `container`, … */
  attributes: Readonly<Record<string, string>>;
  /**
   * Time by the engine's clock: as `since` of the next request it resumes the stream here; the event itself may be repeated.
   * Unit: seconds, nine decimals.
   */
  cursor: string;
}

interface EventsOptions {
  /** A `cursor`, or Unix seconds. Events since then are sent first, then those to come. */
  since?: string | undefined;
  /** e.g. `{ type: ["container"], label: ["kubelet-ts.io/node=a"] }`. */
  filters?: Filters | undefined;
  signal?: AbortSignal | undefined;
  /** The engine has responded: all later events will be delivered. List existing objects now. */
  onOpen?: (() => void) | undefined;
}

/** One line of `/events`. @throws DockerProtocolError */
export function parseEvent(line: string): DockerEvent {
  const parsed = parseAs(EventLineSchema, line, "GET /events");
  // Nanoseconds exceed what a JavaScript number holds exactly: they are read from the text.
  const nanos = /"timeNano":\s*(\d+)/.exec(line)?.[1];
  const [seconds, fraction] =
    nanos !== undefined && nanos.length > 9
      ? [nanos.slice(0, -9), nanos.slice(-9)]
      : [String(Math.trunc(parsed.time)), "000000000"];
  return {
    action: parsed.Action.split(": ", 1)[0]!,
    id: parsed.Actor.ID,
    attributes: parsed.Actor.Attributes,
    cursor: `${seconds}.${fraction}`,
  };
}

/** base64 for URLs, padded: without the padding the engine reads no credentials at all, and says nothing. */
export function registryAuthHeaders(auth: RegistryAuth | undefined): Record<string, string> {
  if (!auth) return {};
  const text = Buffer.from(JSON.stringify(auth)).toString("base64");
  return { "X-Registry-Auth": text.replaceAll("+", "-").replaceAll("/", "_") };
}

/** Reads the progress of a pull or a load to its end. @throws DockerError for an error inside the stream */
export async function readProgress(
  chunks: AsyncIterable<Uint8Array> | null,
  operation: string,
  onLine: (line: ProgressLine) => void,
): Promise<void> {
  for await (const text of jsonLines(chunks)) {
    const line = parseAs(ProgressLineSchema, text, operation);
    const problem = line.errorDetail?.message || line.error;
    if (problem) throw new DockerError(line.errorDetail?.code || 500, operation, problem);
    onLine(line);
  }
}

/** `fromImage` and `tag` of a pull. Without a tag the engine would fetch every tag there is, so `latest` is meant. */
export function pullQuery(reference: string): { fromImage: string; tag: string } {
  const at = reference.indexOf("@");
  if (at >= 0) {
    // With both a tag and a digest the digest decides; the engine does not take the two together.
    return { fromImage: withoutTag(reference.slice(0, at)), tag: reference.slice(at + 1) };
  }
  const fromImage = withoutTag(reference);
  return { fromImage, tag: reference.slice(fromImage.length + 1) || "latest" };
}

/** The image of a load's `Loaded image: x:1` and `Loaded image ID: sha256:…`. */
export const loadedName = ({ stream }: ProgressLine) => /^Loaded image(?: ID)?: (\S+)/.exec(stream)?.[1];
