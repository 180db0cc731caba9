import { useEffect, useRef, useState } from "preact/hooks";
import { explainRefusal, onLongHidden, socketUrl, untilShown } from "./connection.ts";
import { LineBuffer, type LogLine, ResumePoint, type ShownLine } from "./line-buffer.ts";
import { byContainer, LineSplitter, splitStamp } from "./log-text.ts";
import { Reconnect, sleep } from "./reconnect.ts";

/** Between two renders of lines that arrive. */
const RENDER_MS = 100;
/** Between two renders of how many lines wait. */
const HELD_RENDER_MS = 500;

export interface LogState {
  lines: readonly ShownLine[];
  dropped: number;
  /** Lines that arrived since the log is held. */
  waiting: number;
  problem: string;
}

const EMPTY: LogState = { lines: [], dropped: 0, waiting: 0, problem: "" };

/** Follows the logs of containers. @param generation another one ends the present connection @param isHeld the lines stay as they are, asked at each render */
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
const NO_ANSWER = "The kubelet does not answer; trying again.";

interface LogChoice {
  names: readonly string[];
  isPrevious: boolean;
}

/** Reads the logs of containers until the signal aborts, across restarts of the containers and of the kubelet. */
async function followLogs(
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
    const splitter = new LineSplitter();
    const decoder = new TextDecoder();
    const onMessage = (message: string | ArrayBuffer) => {
      if (typeof message === "string") onProblem(message.trim().slice(0, 300));
      else add(splitter.push(decoder.decode(message, { stream: true })));
    };
    const end = await readMessages(`${path}/logs?${query}`, connection, () => onProblem(""), onMessage);
    if (connection.aborted) continue;
    add(splitter.end());
    if (end !== "ended") {
      query.set("follow", "false");
      query.set("tailLines", "0");
      onProblem((end === "refused" && (await explainRefusal(`${path}/logs?${query}`))) || NO_ANSWER);
      retryMs = FIRST_RETRY_MS;
    }
    if (isPrevious) return;
    // The log of a container that has ended stays as it is until the container is started again, which `reconnect` tells.
    await sleep(retryMs, connection);
    retryMs = connection.aborted ? FIRST_RETRY_MS : Math.min(retryMs * 2, LONGEST_RETRY_MS);
  }
}

/** Reads a WebSocket to its end: bytes of a log, each acknowledged with their number, or a text, why there is none. */
const readMessages = (
  path: string,
  signal: AbortSignal,
  onOpen: () => void,
  onMessage: (message: string | ArrayBuffer) => void,
): Promise<"ended" | "broken" | "refused"> =>
  new Promise((resolve) => {
    const socket = new WebSocket(socketUrl(path));
    socket.binaryType = "arraybuffer";
    let isOpen = false;
    socket.onopen = () => {
      isOpen = true;
      onOpen();
    };
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (signal.aborted) return;
      onMessage(data);
      if (typeof data !== "string") socket.send(String(data.byteLength));
    };
    socket.onclose = ({ wasClean }) => resolve(!isOpen ? "refused" : wasClean ? "ended" : "broken");
    signal.addEventListener("abort", () => {
      socket.close();
      resolve("broken");
    });
  });
