import type { NodeObject } from "../../apiserver/printers/rows.ts";
import type { CoreEvent, CoreEventList } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import { readBoundedStream } from "../../base/files/bounded-stream.ts";
import { httpFetch } from "../../base/host/http-fetch.ts";
import type { InstanceInfo } from "../../base/host/root-directory.ts";
import { CommandError, type CommandRequest, terminalIo, UsageError } from "../sub-command.ts";
import type { EngineReader } from "./engine-reader.ts";
import { KubeletApiError, locateKubelet, removeProxies } from "./find-kubelet.ts";

/** The first response may have to wait for two samples of every container. */
const RESPONSE_TIMEOUT_MS = 15_000;
/** A longer wait for an answer is told. */
const SILENCE_MS = 10_000;
const MAX_RESPONSE_BYTES = 256 * 2 ** 20;

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
  readonly #at: { url: string; socketPath: string | undefined };
  /** As that of the engine's reader. */
  readonly note = undefined;

  constructor({ url, socketPath }: { url: string; socketPath?: string }) {
    this.#at = { url, socketPath };
  }

  async pods(): Promise<readonly Pod[]> {
    return (await this.#get<{ items: Pod[] | null }>("/pods")).items ?? [];
  }

  /** Oldest last occurrence first. */
  async events(): Promise<readonly CoreEvent[]> {
    return (await this.#get<CoreEventList>("/api/v1/events")).items;
  }

  /** Faults that pods do not show; none where it cannot be asked. */
  async health(): Promise<ReturnType<typeof parseHealth>> {
    const response = await this.#fetch("/healthz?verbose").catch(() => undefined);
    return parseHealth(response ? await readBoundedStream(response.body, MAX_RESPONSE_BYTES).catch(() => "") : "");
  }

  node(): Promise<NodeObject> {
    return this.#get("/node");
  }

  /** CPU and memory of node, pods and containers. */
  usage(): Promise<Summary> {
    return this.#get("/stats/summary?only_cpu_and_memory=true");
  }

  #fetch(path: string): Promise<Response> {
    return askKubelet(this.#at, path, { limitMs: RESPONSE_TIMEOUT_MS, headers: {} });
  }

  async #get<T>(path: string): Promise<T> {
    const isKubelet = "Is it the read-only port of a kubelet-ts?";
    const address = `${this.#at.socketPath ?? this.#at.url}${path}`;
    const response = await this.#fetch(path);
    const text = await readBoundedStream(response.body, MAX_RESPONSE_BYTES);
    if (response.status !== 200) {
      throw new KubeletApiError(`${address} answered ${response.status}: ${text.trim().slice(0, 200)}. ${isKubelet}`);
    }
    try {
      return JSON.parse(text) as T;
    } catch {
      throw new KubeletApiError(`${address} did not answer in JSON. ${isKubelet}`);
    }
  }
}

/**
 * One request to a kubelet, over its socket where it has one. A long wait is told on standard error.
 * @throws KubeletApiError when there is no answer within `limitMs`
 */
export async function askKubelet(
  { url, socketPath }: { url: string; socketPath: string | undefined },
  path: string,
  { limitMs, headers, ...init }: { limitMs: number; headers: object; method?: string; body?: string },
): Promise<Response> {
  const address = socketPath ?? url;
  const noAnswerYet = `kubelet-ts: no answer yet at ${address}: the kubelet is busy or hangs (see its log)\n`;
  const silence = setTimeout(() => terminalIo.stderr(noAnswerYet), SILENCE_MS);
  try {
    return await httpFetch(`${url}${path}`, {
      ...init,
      headers: { Accept: "application/json", "User-Agent": "kubelet-ts", ...headers },
      signal: AbortSignal.timeout(limitMs),
      ...(socketPath !== undefined && { unix: socketPath }),
    });
  } catch (error) {
    const { name, message, code } = error as Error & { code?: string };
    const why = name === "TimeoutError" ? `no answer within ${limitMs / 1000} s` : (WHY[code ?? ""] ?? message);
    throw new KubeletApiError(`no kubelet answers at ${address}: ${why}`);
  } finally {
    clearTimeout(silence);
  }
}

/** Reads the checks of `/healthz?verbose`: why the engine cannot be followed, if so, and errors in refused manifests. */
export function parseHealth(text: string): { engine: string | undefined; refused: RefusedText[] } {
  const refused = text.matchAll(/^\[[+-]\]manifest (.*?) refused \((.*)\)(?: ok| failed.*)?$/gm);
  return {
    engine: /^\[-\]syncloop failed: (.*)$/m.exec(text)?.[1],
    refused: Array.from(refused, ([, file, message]) => ({ file: file!, message: message! })),
  };
}

/** One error in a manifest. */
export interface RefusedText {
  /** Path or masked URL. */
  file: string;
  /** File, line, column and the error. */
  message: string;
}

/** The kubelet alone. @throws CommandError when none can be asked */
export async function openKubelet(request: CommandRequest): Promise<KubeletApi> {
  removeProxies();
  const kubelet = await locateKubelet(request);
  if ("problem" in kubelet) throw new CommandError(kubelet.problem);
  return new KubeletApi(kubelet);
}

/** The source of read commands: a kubelet, or the engine. */
export type PodReader = KubeletApi | EngineReader;

/**
 * The kubelet; where none runs, the engine and the checkpoints of the root directory.
 * @throws CommandError when neither can be asked
 */
export async function openReader(request: CommandRequest): Promise<PodReader> {
  removeProxies();
  const kubelet = await locateKubelet(request);
  if (!("problem" in kubelet)) return new KubeletApi(kubelet);
  if (!kubelet.isAbsent) throw new CommandError(kubelet.problem);
  return await openEngine(request, kubelet.problem);
}

const openEngine = async (request: CommandRequest, noKubelet: string, endpoint?: string) =>
  new (await import("./engine-reader.ts")).EngineReader(request, noKubelet, endpoint);

/**
 * Pods of the kubelet if one answers, else those of the engine; an address that was given must answer.
 * @returns also the kubelet of the pods, if one runs
 * @param mayGuess the engine may be asked although several kubelets run, or one of another user
 * @throws CommandError, UsageError
 */
export async function readKnownPods(
  request: CommandRequest,
  mayGuess: boolean,
): Promise<{ pods: readonly Pod[]; instance: InstanceInfo | undefined }> {
  removeProxies();
  const server = request.value("server");
  const kubelet = await locateKubelet(request);
  const { instance } = kubelet;
  const askEngine = async (why: string) => ({
    pods: await (await openEngine(request, why, instance?.dockerEndpoint)).pods(),
    instance: instance && { ...instance, isSilent: true as const },
  });
  if ("problem" in kubelet) {
    if (server !== undefined) throw new UsageError(kubelet.problem);
    if (!mayGuess && !kubelet.isAbsent && instance === undefined) throw new CommandError(kubelet.problem);
    return await askEngine(kubelet.problem);
  }
  try {
    return { pods: await new KubeletApi(kubelet).pods(), instance };
  } catch (error) {
    if (server !== undefined || !(error instanceof KubeletApiError)) throw error;
    return await askEngine(error.message);
  }
}
