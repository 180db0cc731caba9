import * as v from "valibot";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { ContainerCalls } from "./container-calls.ts";
import { type Filters, filtersText, jsonLines, PING, segment, segments } from "./docker-connection.ts";
import { DockerError, DockerProtocolError, DockerUnreachableError } from "./docker-error.ts";
import { endpointText } from "./endpoint.ts";
import {
  DiskUsageSchema,
  type Distribution,
  DistributionSchema,
  type DockerNetwork,
  type DockerVolume,
  type EngineInfoResponse,
  type ImageInspect,
  ImageInspectSchema,
  ImageRemovedSchema,
  type ImageSummary,
  ImageSummarySchema,
  InfoSchema,
  NetworkSchema,
  type ProgressLine,
  ProgressLineSchema,
  text,
  textMap,
  VolumeSchema,
  whole,
} from "./schemas.ts";
import type { CallOptions } from "./transport.ts";

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

/**
 * One Docker engine. Every call ends: with a response, at its deadline, or with the caller's signal (it then
 * rejects with the signal's reason). Responses pass a schema.
 *
 * Every call throws DockerError (the engine said no), DockerUnreachableError (no engine responded) or DockerProtocolError
 * (the response makes no sense). Bun repeats a GET or DELETE whose pooled connection died; a POST is not repeated, it fails
 * as `connection-lost` with `mayHaveBeenDone`: check first, then repeat.
 */
export class DockerClient extends ContainerCalls {
  // --- the engine ---

  /** Resolves or throws. Unversioned, so it works with any engine. */
  async ping(options: CallOptions = {}): Promise<void> {
    await this.transport.send({ timeoutMs: 10_000, ...options, ...PING });
  }

  info(options: CallOptions = {}): Promise<EngineInfoResponse> {
    return this.get("/info", InfoSchema, undefined, options);
  }

  /** Bytes of all image layers. Before API 1.42 the engine measures every container and volume too: seconds on a big store. */
  async imagesBytes(options: CallOptions = {}): Promise<number> {
    const usage = await this.get("/system/df", DiskUsageSchema, { type: "image" }, options);
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
      if (options.signal?.aborted) return;
      throw error;
    }
    if (options.signal?.aborted) return;
    // An engine that ends the stream is going away: for the reader that is a lost connection, not an end.
    const why = `The Docker engine at ${endpointText(this.endpoint)} ended the event stream; it may be restarting`;
    throw new DockerUnreachableError("connection-lost", "GET /events", why);
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
        ...(options.auth ? { headers: { "X-Registry-Auth": registryAuthHeader(options.auth) } } : {}),
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
    const response = await this.transport.send({
      timeoutMs: LONG_CALL_MS,
      ...options,
      method: "POST",
      path: await this.path("/images/load", options),
      query: { quiet: true },
      body: archive,
    });
    const loaded: string[] = [];
    const chunks = async function* () {
      yield new TextEncoder().encode(response.text);
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

  /** Looks an image up in its registry through the engine, without pulling. @throws DockerError 401, 403, 404, 500 */
  async inspectDistribution(
    reference: string,
    { auth, signal, timeoutMs }: CallOptions & { auth?: RegistryAuth | undefined } = {},
  ): Promise<Distribution> {
    const path = `/distribution/${segments(reference)}/json`;
    const response = await this.transport.send({
      signal,
      timeoutMs,
      method: "GET",
      path: await this.path(path, { signal }),
      ...(auth && { headers: { "X-Registry-Auth": registryAuthHeader(auth) } }),
    });
    return this.parse(DistributionSchema, response.text, `GET ${path}`);
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

  /** @returns ids and names that went @throws DockerError 404; 409 a container uses it */
  async removeImage(reference: string, remove: { force?: boolean } = {}, options: CallOptions = {}): Promise<string[]> {
    const path = `/images/${segments(reference)}`;
    const response = await this.delete(path, { force: remove.force }, options);
    return this.parse(ImageRemovedSchema, response, `DELETE ${path}`).map((step) => step.Deleted || step.Untagged);
  }

  // --- volumes and networks ---

  /** Creates it, or returns the one there is with that name. */
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

  async removeVolume(name: string, options: CallOptions = {}): Promise<void> {
    await this.delete(`/volumes/${segment(name)}`, {}, options);
  }

  listNetworks(options: CallOptions = {}): Promise<DockerNetwork[]> {
    return this.get("/networks", v.array(NetworkSchema), undefined, options);
  }
}

/** Both wire shapes: up to API 1.51 with `status`, `id` and `from` in addition, from 1.52 without. */
const EventLineSchema = v.object({
  Type: text,
  Action: text,
  Actor: v.nullish(v.object({ ID: text, Attributes: textMap }), { ID: "", Attributes: {} }),
  /** Unix seconds. */
  time: whole,
});

/** Something happened at the engine. */
export interface DockerEvent {
  /** container, image, network, volume, daemon, … */
  type: string;
  /** `create`, `start`, `die`, `oom`, `destroy`, `health_status`, `exec_start`, … without its detail. */
  action: string;
  /** The text after the colon of an action: `healthy`, an exec's command line; else "". */
  detail: string;
  /** Container id, image reference, network id, … */
  id: string;
  /** Labels of a container, and `name`, `image`, `exitCode`, `signal`, `container`, … */
  attributes: Readonly<Record<string, string>>;
  /** Unix milliseconds by the engine's clock. */
  timeMs: number;
  /** As `since` of the next request it resumes the stream here; the event itself may be repeated. Unit: seconds, nine decimals. */
  cursor: string;
}

interface EventsOptions {
  /** A `cursor`, or Unix seconds. Events since then are sent first, then those to come. */
  since?: string | undefined;
  /** e.g. `{ type: ["container"], label: ["kubelet-ts.io/node=a"] }`. */
  filters?: Readonly<Record<string, readonly string[]>> | undefined;
  signal?: AbortSignal | undefined;
  /** The engine has responded: all later events will be delivered. List existing objects now. */
  onOpen?: (() => void) | undefined;
}

/** One line of `/events`. @throws DockerProtocolError */
export function parseEvent(line: string): DockerEvent {
  let parsed: v.InferOutput<typeof EventLineSchema>;
  try {
    parsed = v.parse(EventLineSchema, JSON.parse(line));
  } catch (cause) {
    throw new DockerProtocolError("GET /events", `no event: ${line.slice(0, 200)}`, { cause });
  }
  // Nanoseconds exceed what a JavaScript number holds exactly: they are read from the text.
  const nanos = /"timeNano":\s*(\d+)/.exec(line)?.[1];
  const [seconds, fraction] =
    nanos !== undefined && nanos.length > 9
      ? [nanos.slice(0, -9), nanos.slice(-9)]
      : [String(Math.trunc(parsed.time)), "000000000"];
  const colon = parsed.Action.indexOf(": ");
  return {
    type: parsed.Type,
    action: colon < 0 ? parsed.Action : parsed.Action.slice(0, colon),
    detail: colon < 0 ? "" : parsed.Action.slice(colon + 2),
    id: parsed.Actor.ID,
    attributes: parsed.Actor.Attributes,
    timeMs: Number(seconds) * 1000 + Number(fraction.slice(0, 3)),
    cursor: `${seconds}.${fraction}`,
  };
}

/** base64 for URLs, padded: without the padding the engine reads no credentials at all, and says nothing. */
export const registryAuthHeader = (auth: RegistryAuth): string =>
  Buffer.from(JSON.stringify(auth)).toString("base64").replaceAll("+", "-").replaceAll("/", "_");

/** Reads the progress of a pull or a load to its end. @throws DockerError for an error inside the stream */
export async function readProgress(
  chunks: AsyncIterable<Uint8Array>,
  operation: string,
  onLine: (line: ProgressLine) => void,
): Promise<void> {
  for await (const text of jsonLines(chunks)) {
    let line: ProgressLine;
    try {
      line = v.parse(ProgressLineSchema, JSON.parse(text));
    } catch (cause) {
      throw new DockerProtocolError(operation, `no progress: ${text.slice(0, 200)}`, { cause });
    }
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
    const name = reference.slice(0, at);
    return { fromImage: withoutTag(name), tag: reference.slice(at + 1) };
  }
  const fromImage = withoutTag(reference);
  return { fromImage, tag: reference.slice(fromImage.length + 1) || "latest" };
}

function withoutTag(name: string): string {
  const colon = name.indexOf(":", name.lastIndexOf("/") + 1);
  return colon < 0 ? name : name.slice(0, colon);
}

/** The image of a load's `Loaded image: x:1` and `Loaded image ID: sha256:…`. */
export const loadedName = ({ stream }: ProgressLine) => /^Loaded image(?: ID)?: (\S+)/.exec(stream)?.[1];
