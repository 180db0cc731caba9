import { byContainer, LineSplitter } from "./log-text.ts";
import { type Reconnect, sleep } from "./reconnect.ts";
import { untilShown } from "./tab-visibility.ts";
import { withConnection } from "./with-connection.ts";

const TAIL_LINES = 500;
const RECONNECT_MS = 2000;
const TOO_MANY = "Too many windows of this browser show this node: the log follows when one of them is closed.";

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
    const read = async () => {
      const response = await fetch(`${path}/logs?${query}`, { signal: connection });
      if (!response.ok || !response.body) {
        onProblem(`${only}: ${(await response.text()).slice(0, 300)}`);
        return;
      }
      onProblem("");
      const splitter = new LineSplitter();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        lastMs = performance.now();
        const lines = splitter.push(piece.value);
        if (names.length > 1) for (const [name, own] of byContainer(lines)) onLines(name, own);
        else onLines(only, lines);
      }
    };
    try {
      await withConnection(connection, () => onProblem(TOO_MANY), read);
    } catch {
      if (connection.aborted) continue;
      onProblem("The kubelet does not answer; trying again.");
    }
    if (isPrevious) return;
    await sleep(RECONNECT_MS, connection);
  }
}
