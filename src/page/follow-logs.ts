import { byContainer, LineSplitter } from "./log-text.ts";
import { untilShown } from "./tab-visibility.ts";

const TAIL_LINES = 500;
const RECONNECT_MS = 2000;

/** Ends the present connection of a log, or the pause before the next. */
export class Reconnect {
  #end = () => {};

  /** @returns aborted by the next call of `now`, and with the signal */
  begin(signal: AbortSignal): AbortSignal {
    const controller = new AbortController();
    this.#end = () => controller.abort();
    return AbortSignal.any([signal, controller.signal]);
  }

  now(): void {
    this.#end();
  }
}

/** Which logs, and how. */
export interface LogChoice {
  names: readonly string[];
  isPrevious: boolean;
  withTimes: boolean;
}

/** Reads the logs of containers until the signal aborts, across restarts of the containers and of the kubelet. */
export async function followLogs(
  path: string,
  { names, isPrevious, withTimes }: LogChoice,
  signal: AbortSignal,
  reconnect: Reconnect,
  onLines: (container: string, lines: readonly string[]) => void,
  onProblem: (text: string) => void,
): Promise<void> {
  const [only = ""] = names;
  /** When the last piece arrived. Lines after it are asked for by their age: the clocks may differ. */
  let lastMs: number | undefined;
  while (!signal.aborted) {
    await untilShown(signal);
    const connection = reconnect.begin(signal);
    const query = new URLSearchParams({
      ...(names.length > 1 ? { containers: names.join() } : { container: only }),
      follow: String(!isPrevious),
      ...(lastMs === undefined
        ? { tailLines: String(TAIL_LINES) }
        : { sinceSeconds: ((performance.now() - lastMs) / 1000).toFixed(3) }),
      previous: String(isPrevious),
      timestamps: String(withTimes),
    });
    try {
      const response = await fetch(`${path}/logs?${query}`, { signal: connection });
      if (!response.ok || !response.body) {
        onProblem(`${only}: ${(await response.text()).slice(0, 300)}`);
      } else {
        onProblem("");
        const splitter = new LineSplitter();
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
          lastMs = performance.now();
          const lines = splitter.push(piece.value);
          if (names.length > 1) for (const [name, own] of byContainer(lines)) onLines(name, own);
          else onLines(only, lines);
        }
      }
    } catch {
      if (connection.aborted) continue;
      onProblem("The kubelet does not answer; trying again.");
    }
    if (isPrevious) return;
    await sleep(RECONNECT_MS, connection);
  }
}

/** Resolves early when the signal aborts. */
const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
