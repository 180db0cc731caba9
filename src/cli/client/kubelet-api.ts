import type { NodeObject } from "../../apiserver/printers/node-row.ts";
import type { CoreEvent, CoreEventList } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import { readBoundedStream } from "../../base/files/bounded-stream.ts";
import { httpFetch } from "../../base/host/http-fetch.ts";
import { CommandError } from "../sub-command.ts";

/** The kubelet did not answer, or not as it should; the message is for users. */
export class KubeletApiError extends CommandError {}

/** The first answer may have to wait for two samples of every container. */
const ANSWER_LIMIT_MS = 15_000;
const MAX_ANSWER_BYTES = 256 * 2 ** 20;

/** Codes of fetch and of the kernel. */
const WHY: Readonly<Record<string, string>> = {
  ConnectionRefused: "nothing listens there",
  ECONNREFUSED: "nothing listens there",
  ENOENT: "it has ended",
  EACCES: "only the user it runs as may ask there",
  EPERM: "only the user it runs as may ask there",
  FailedToOpenSocket: "it cannot be reached",
  ECONNRESET: "it closed the connection",
  ConnectionClosed: "it closed the connection",
  ENOTFOUND: "there is no such host",
};

/** The read-only port of one kubelet, or its socket. Every call throws KubeletApiError. */
export class KubeletApi {
  readonly #url: string;
  readonly #socketPath: string | undefined;
  /** For users. */
  readonly #address: string;
  /** The last answer of each path, to ask again with its ETag. */
  readonly #answers = new Map<string, { etag: string; value: unknown }>();
  /** As that of the engine's reader. */
  readonly note = undefined;

  constructor({ url, socketPath }: { url: string; socketPath?: string }) {
    this.#url = url;
    this.#socketPath = socketPath;
    this.#address = socketPath ?? url;
  }

  async pods(): Promise<readonly Pod[]> {
    return (await this.#get<{ items: Pod[] | null }>("/pods")).items ?? [];
  }

  /** Oldest last occurrence first. */
  async events(): Promise<readonly CoreEvent[]> {
    return (await this.#get<CoreEventList>("/api/v1/events")).items;
  }

  /** Errors in manifests that are refused at present. */
  async refusedManifests(): Promise<RefusedText[]> {
    const response = await this.#fetch("/healthz?verbose", undefined);
    return parseRefusedManifests(await readBoundedStream(response.body, MAX_ANSWER_BYTES));
  }

  node(): Promise<NodeObject> {
    return this.#get("/node");
  }

  /** CPU and memory of node, pods and containers. */
  usage(): Promise<Summary> {
    return this.#get("/stats/summary?only_cpu_and_memory=true");
  }

  async #get<T>(path: string): Promise<T> {
    const known = this.#answers.get(path);
    const response = await this.#fetch(path, known?.etag);
    if (known && response.status === 304) return known.value as T;
    const text = await readBoundedStream(response.body, MAX_ANSWER_BYTES);
    if (response.status !== 200) {
      throw new KubeletApiError(
        `${this.#address}${path} answered ${response.status}: ${text.trim().slice(0, 200)}. Is it the read-only port of a kubelet-ts?`,
      );
    }
    try {
      const value = JSON.parse(text) as T;
      const etag = response.headers.get("ETag");
      if (etag) this.#answers.set(path, { etag, value });
      return value;
    } catch {
      throw new KubeletApiError(
        `${this.#address}${path} did not answer in JSON. Is it the read-only port of a kubelet-ts?`,
      );
    }
  }

  async #fetch(path: string, etag: string | undefined): Promise<Response> {
    try {
      return await httpFetch(`${this.#url}${path}`, {
        headers: { Accept: "application/json", "User-Agent": "kubelet-ts", ...(etag && { "If-None-Match": etag }) },
        signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
        ...(this.#socketPath !== undefined && { unix: this.#socketPath }),
      });
    } catch (error) {
      const { name, message, code } = error as Error & { code?: string };
      const why =
        name === "TimeoutError" ? `no answer within ${ANSWER_LIMIT_MS / 1000} s` : (WHY[code ?? ""] ?? message);
      throw new KubeletApiError(`no kubelet answers at ${this.#address}: ${why}`);
    }
  }
}

/** Reads the checks of refused manifests from `/healthz?verbose`. */
export const parseRefusedManifests = (text: string): RefusedText[] =>
  Array.from(text.matchAll(/^\[[+-]\]manifest (.*?) refused \((.*)\)(?: ok| failed.*)?$/gm), ([, file, message]) => ({
    file: file!,
    message: message!,
  }));

/** One error in a manifest. */
export interface RefusedText {
  /** Path or masked URL. */
  file: string;
  /** File, line, column and the error. */
  message: string;
}
