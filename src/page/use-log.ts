import { useEffect, useRef, useState } from "preact/hooks";
import { followLogs, type LogChoice } from "./follow-logs.ts";
import { LineBuffer, type LogLine, type ShownLine } from "./line-buffer.ts";
import { Reconnect } from "./reconnect.ts";
import { onLongHidden } from "./tab-visibility.ts";

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
