import { type LogLine, ResumePoint } from "./line-buffer.ts";
import { byContainer, LineSplitter, splitStamp } from "./log-text.ts";
import { type Reconnect, sleep } from "./reconnect.ts";
import { untilShown } from "./tab-visibility.ts";
import { withConnection } from "./with-connection.ts";

const TAIL_LINES = 500;
const FIRST_RETRY_MS = 2000;
const LONGEST_RETRY_MS = 10_000;
const TOO_MANY = "Too many windows of this browser show this node: the log follows when one of them is closed.";

/** Which logs. */
export interface LogChoice {
  names: readonly string[];
  isPrevious: boolean;
}

/** Reads the logs of containers until the signal aborts, across restarts of the containers and of the kubelet. */
export async function followLogs(
  path: string,
  { names, isPrevious }: LogChoice,
  signal: AbortSignal,
  reconnect: Reconnect,
  onLines: (lines: readonly LogLine[]) => void,
  onProblem: (text: string) => void,
): Promise<void> {
  const [only = ""] = names;
  const resume = new ResumePoint();
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    await untilShown(signal);
    const connection = reconnect.begin(signal);
    const since = resume.begin(names.length);
    const query = new URLSearchParams({
      ...(names.length > 1 ? { containers: names.join() } : { container: only }),
      follow: String(!isPrevious),
      ...(since === "" ? { tailLines: String(TAIL_LINES) } : { since }),
      previous: String(isPrevious),
      timestamps: "true",
    });
    const add = (lines: readonly string[]) => {
      const runs: [string, string[]][] = names.length > 1 ? byContainer(lines) : [[only, [...lines]]];
      const added = runs.flatMap(([container, own]) => own.map((line) => ({ container, ...splitStamp(line) })));
      const isNew = resume.take(added);
      if (isNew.length === 0) return;
      retryMs = FIRST_RETRY_MS;
      onLines(isNew);
    };
    const read = async () => {
      const response = await fetch(`${path}/logs?${query}`, { signal: connection });
      if (!response.ok || !response.body) {
        onProblem((await response.text()).trim().slice(0, 300));
        return;
      }
      onProblem("");
      const splitter = new LineSplitter();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) add(splitter.push(piece.value));
      add(splitter.end());
    };
    try {
      await withConnection(connection, () => onProblem(TOO_MANY), read);
    } catch {
      if (connection.aborted) continue;
      onProblem("The kubelet does not answer; trying again.");
      retryMs = FIRST_RETRY_MS;
    }
    if (isPrevious) return;
    // The log of a container that has ended stays as it is until the container is started again, which `reconnect` tells.
    await sleep(retryMs, connection);
    retryMs = connection.aborted ? FIRST_RETRY_MS : Math.min(retryMs * 2, LONGEST_RETRY_MS);
  }
}
