import { useEffect, useRef, useState } from "preact/hooks";
import { onLongHidden, untilShown, withConnection } from "./connection.ts";
import { LineBuffer, type LogLine, ResumePoint, type ShownLine } from "./line-buffer.ts";
import { byContainer, LineSplitter, splitStamp } from "./log-text.ts";
import { Reconnect, sleep } from "./reconnect.ts";

/** Between two renders of lines that arrive. */
const RENDER_MS = 100;
/** Between two renders of how many lines wait. */
const HELD_RENDER_MS = 500;

export interface LogState {
  lines: readonly ShownLine[];
  /** Lines that are not kept any more. */
  dropped: number;
  /** Lines that arrived since the log is held. */
  waiting: number;
  /** Why nothing can be read; "" when it can. */
  problem: string;
}

const EMPTY: LogState = { lines: [], dropped: 0, waiting: 0, problem: "" };

/**
 * Follows the logs of containers. At most ten renders a second, however fast lines arrive.
 * @param generation another one ends the present connection
 * @param isHeld the lines stay as they are, and others wait; asked at each render
 */
export function useLog(
  path: string,
  { names, isPrevious }: LogChoice,
  generation: string,
  isHeld: () => boolean,
): { state: LogState; update: () => void } {
  const reconnect = useRef(new Reconnect());
  const [state, setState] = useState(EMPTY);
  const held = useRef(isHeld);
  held.current = isHeld;
  const publishNow = useRef(() => {});
  useEffect(() => {
    const controller = new AbortController();
    const buffer = new LineBuffer(names.length > 1);
    let problem = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    const render = () => {
      timer = undefined;
      if (!held.current()) buffer.release();
      setState({ lines: buffer.lines, dropped: buffer.dropped, waiting: buffer.waiting, problem });
    };
    const publish = () => {
      timer ??= setTimeout(render, held.current() ? HELD_RENDER_MS : RENDER_MS);
    };
    publishNow.current = () => {
      clearTimeout(timer);
      render();
    };
    setState(EMPTY);
    const onLines = (added: readonly LogLine[]) => {
      buffer.add(added);
      publish();
    };
    void followLogs(path, { names, isPrevious }, controller.signal, reconnect.current, onLines, (text) => {
      problem = text;
      publish();
    });
    return () => {
      controller.abort();
      clearTimeout(timer);
      publishNow.current = () => {};
    };
  }, [`${path} ${names.join()} ${isPrevious}`]);
  useEffect(() => reconnect.current.now(), [generation]);
  useEffect(() => {
    const gone = new AbortController();
    onLongHidden(() => reconnect.current.now(), gone.signal);
    return () => gone.abort();
  }, []);
  return { state, update: () => publishNow.current() };
}

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
