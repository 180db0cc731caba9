import * as v from "valibot";
import { PING } from "./api-version.ts";
import { ContainerCalls } from "./container-calls.ts";
import { IdSchema } from "./container-schema.ts";
import { type Filters, filtersText, segment, segments } from "./docker-connection.ts";
import { DockerUnreachableError } from "./docker-error.ts";
import type { CallOptions } from "./docker-request.ts";
import { type DockerEndpoint, endpointText, parseEndpoint } from "./endpoint.ts";
import { type DockerEvent, type EventsOptions, eventStreamEnded, parseEvent } from "./events.ts";
import {
  type Distribution,
  DistributionSchema,
  type ImageInspect,
  ImageInspectSchema,
  ImageRemovedSchema,
  type ImageSummary,
  ImageSummarySchema,
  type ProgressLine,
} from "./image-schema.ts";
import { loadedName, pullQuery, type RegistryAuth, readProgress, registryAuthHeader } from "./image-transfer.ts";
import { jsonLines } from "./stream-frames.ts";
import {
  type DiskUsage,
  DiskUsageSchema,
  type DockerNetwork,
  type DockerVolume,
  type EngineInfoResponse,
  type EngineVersion,
  InfoSchema,
  NetworkSchema,
  VersionSchema,
  VolumeListSchema,
  VolumeSchema,
} from "./system-schema.ts";

interface PullOptions {
  auth?: RegistryAuth | undefined;
  onProgress?: ((line: ProgressLine) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** The pull fails as `timeout` after this time without a line of progress. Default 60 s, 0 = never. */
  idleTimeoutMs?: number | undefined;
  /** e.g. `linux/arm64`; the engine's own when absent. */
  platform?: string | undefined;
}

/** Deadline of a call that moves much data or waits for the kernel. */
const LONG_CALL_MS = 10 * 60_000;
const PULL_IDLE_MS = 60_000;

/**
 * One Docker engine. Every call ends: with an answer, at its deadline, or with the caller's signal (it then
 * rejects with the signal's reason). Answers pass a schema.
 *
 * Every call throws DockerError (the engine said no), DockerUnreachableError (no engine answered) or DockerProtocolError
 * (the answer makes no sense). Bun repeats a GET or DELETE whose pooled connection died; a POST is not repeated, it fails
 * as `connection-lost` with `mayHaveBeenDone`: check first, then repeat.
 */
export class DockerClient extends ContainerCalls {
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
    await this.transport.send({ timeoutMs: 10_000, ...options, ...PING });
  }

  version(options: CallOptions = {}): Promise<EngineVersion> {
    return this.get("/version", VersionSchema, undefined, options);
  }

  info(options: CallOptions = {}): Promise<EngineInfoResponse> {
    return this.get("/info", InfoSchema, undefined, options);
  }

  /** Walks the whole store: seconds on a big one. @param only images alone are quick (from API 1.42, else ignored) */
  diskUsage({ only, ...options }: CallOptions & { only?: "image" } = {}): Promise<DiskUsage> {
    return this.get("/system/df", DiskUsageSchema, { type: only }, { timeoutMs: LONG_CALL_MS, ...options });
  }

  /**
   * Events of the engine, on a connection of its own, until the signal aborts (the generator then ends without an error).
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

  /** A `docker save` archive of images, as a stream. @throws DockerError 404 */
  async saveImages(references: readonly string[], signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const query = references.map((reference) => `names=${encodeURIComponent(reference)}`).join("&");
    const stream = await this.open({ method: "GET", path: `/images/get?${query}`, signal, timeoutMs: 0 });
    return stream.chunks;
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

  /**
   * Looks an image up in its registry: the engine asks, as for a pull, without pulling.
   * @throws DockerError 401, 403, 404, 500: everything a registry can do
   */
  async inspectDistribution(
    reference: string,
    { auth, signal, timeoutMs }: CallOptions & { auth?: RegistryAuth | undefined } = {},
  ): Promise<Distribution> {
    const path = `/distribution/${segments(reference)}/json`;
    const answer = await this.transport.send({
      signal,
      timeoutMs,
      method: "GET",
      path: await this.path(path, { signal }),
      ...(auth && { headers: { "X-Registry-Auth": registryAuthHeader(auth) } }),
    });
    return this.parse(DistributionSchema, answer.text, `GET ${path}`);
  }

  /** As the engine wrote it. @throws DockerError 404 */
  inspectImageRaw(reference: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.get(`/images/${segments(reference)}/json`, v.record(v.string(), v.unknown()), undefined, options);
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

  async disconnectNetwork(
    name: string,
    body: { Container: string; Force?: boolean },
    options: CallOptions = {},
  ): Promise<void> {
    await this.command(`/networks/${segment(name)}/disconnect`, {}, options, body);
  }
}
