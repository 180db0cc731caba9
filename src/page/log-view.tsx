import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { followLogs, type LogChoice } from "./follow-logs.ts";
import { plainText, toSpans, withLocalTime } from "./log-text.ts";
import { Toggle } from "./parts.tsx";
import { Reconnect } from "./reconnect.ts";
import { onLongHidden } from "./tab-visibility.ts";
import type { ContainerDetail } from "./wire.ts";

const MAX_LINES = 5000;
/** Lines in the document; older ones are reached by the search and the download. */
const SHOWN_LINES = 1000;
/** Characters kept of all lines together. */
const MAX_CHARACTERS = 8_000_000;
/** Between two renders of lines that arrive. */
const RENDER_MS = 100;
const ALL = "";

interface Line {
  id: number;
  container: string;
  text: string;
}

export function LogView({
  path,
  pod,
  containers,
  connects,
}: {
  path: string;
  pod: string;
  containers: readonly ContainerDetail[];
  /** How often the page was connected. */
  connects: number;
}) {
  const [container, setContainer] = useState(containers.find(({ kind }) => kind === "main")?.name ?? "");
  const [isPrevious, setPrevious] = useState(false);
  const [withTimes, setTimes] = useState(false);
  const [isWrapped, setWrapped] = useState(true);
  const [isPaused, setPaused] = useState(false);
  const [search, setSearch] = useState("");
  const names = container === ALL ? containers.map(({ name }) => name) : [container];
  // A container that was started again has a new log, and after a break of the page the log's connection may be dead.
  const generation = `${Math.max(connects, 1)} ${containers.map(({ startedAt }) => startedAt).join()}`;
  const { lines, dropped, problem } = useLog(path, { names, isPrevious, withTimes }, generation, isPaused);
  const matches = useMemo(() => {
    const needle = search.toLowerCase();
    return needle === "" ? lines : lines.filter(({ text }) => plainText(text).toLowerCase().includes(needle));
  }, [lines, search]);
  const shown = matches.length > SHOWN_LINES ? matches.slice(-SHOWN_LINES) : matches;
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown]);
  const hasPrevious = containers.some(({ name, hasPrevious: has }) => has && names.includes(name));
  const query = new URLSearchParams({
    [container === ALL ? "containers" : "container"]: names.join(),
    previous: String(isPrevious),
    timestamps: String(withTimes),
  });
  return (
    <section class="card">
      <div class="toolbar">
        <select aria-label="Container" value={container} onChange={(event) => setContainer(event.currentTarget.value)}>
          {containers.length > 1 && <option value={ALL}>All containers</option>}
          {containers.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <input
          type="search"
          placeholder="Search"
          aria-label="Search in the log"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Continue" : "Pause"}
        </button>
        <Toggle text="Wrap" value={isWrapped} onChange={setWrapped} />
        <Toggle text="Times" value={withTimes} onChange={setTimes} />
        <Toggle text="Previous" value={isPrevious} onChange={setPrevious} disabled={!hasPrevious && !isPrevious} />
        <a
          class="button"
          href={`${path}/logs?${query}`}
          download={`${container === ALL ? pod : `${pod}-${container}`}.log`}
        >
          Download
        </a>
      </div>
      {/* The number of lines is no status: it would be read out ten times a second. */}
      <p class="note">
        <span role="status">{problem}</span>
        {problem === "" &&
          `${matches.length} ${matches.length === 1 ? "line" : "lines"}${dropped > 0 ? `, ${dropped} older ones dropped` : ""}${isPaused ? ", paused" : ""}`}
      </p>
      <div
        ref={box}
        class={isWrapped ? "log wrap" : "log"}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Log"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          follows.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {shown.map((line) => renderLine(line, names.length > 1))}
        {shown.length === 0 && <p class="empty">{search === "" ? "Nothing written yet." : "No line matches."}</p>}
      </div>
    </section>
  );
}

/** Lines that are shown, by line: one that is the same object as before is not rendered again. */
const renderedLines = new WeakMap<Line, VNode>();

/** @param withContainer named before the line; the lines of a log are all rendered with it or without */
function renderLine(line: Line, withContainer: boolean): VNode {
  const rendered = renderedLines.get(line) ?? (
    <div class="line" dir="ltr" key={line.id}>
      {withContainer && <span class="prefix">{line.container} </span>}
      {toSpans(line.text).map((span, index) => (
        <bdi key={index} class={span.color > 0 || span.bold ? `c${span.color}${span.bold ? " bold" : ""}` : undefined}>
          {span.text}
        </bdi>
      ))}
    </div>
  );
  renderedLines.set(line, rendered);
  return rendered;
}

/** As many of the newest lines as are kept. */
function newestLines(lines: Line[]): Line[] {
  let from = lines.length;
  for (let characters = 0; from > 0 && lines.length - from < MAX_LINES; from--) {
    characters += lines[from - 1]?.text.length ?? 0;
    if (characters > MAX_CHARACTERS) break;
  }
  return from === 0 ? lines : lines.slice(from);
}

/** Follows the logs of containers. At most ten renders a second, however fast lines arrive. */
function useLog(path: string, { names, isPrevious, withTimes }: LogChoice, generation: string, isPaused: boolean) {
  const reconnect = useRef(new Reconnect());
  const [state, setState] = useState<{ lines: Line[]; dropped: number; problem: string }>({
    lines: [],
    dropped: 0,
    problem: "",
  });
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const publishNow = useRef(() => {});
  useEffect(() => {
    if (!isPaused) publishNow.current();
  }, [isPaused]);
  const key = `${path} ${names.join()} ${isPrevious} ${withTimes}`;
  useEffect(() => {
    const controller = new AbortController();
    let lines: Line[] = [];
    /** Arrived since the last render. */
    const pending: Line[] = [];
    let dropped = 0;
    let problem = "";
    let nextId = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const publish = () => {
      if (timer !== undefined || paused.current) return;
      timer = setTimeout(() => {
        timer = undefined;
        // The pause may have begun since.
        if (paused.current) return;
        const all = pending.length > 0 ? [...lines, ...pending.splice(0)] : lines;
        lines = newestLines(all);
        dropped += all.length - lines.length;
        setState({ lines, dropped, problem });
      }, RENDER_MS);
    };
    publishNow.current = publish;
    const add = (container: string, added: readonly string[]) => {
      if (added.length === 0) return;
      const toLine = (text: string) => ({ id: nextId++, container, text: withTimes ? withLocalTime(text) : text });
      pending.push(...added.slice(-MAX_LINES).map(toLine));
      dropped += Math.max(0, added.length - MAX_LINES);
      if (pending.length > MAX_LINES) {
        const kept = newestLines(pending);
        dropped += pending.length - kept.length;
        pending.splice(0, pending.length, ...kept);
      }
      publish();
    };
    setState({ lines: [], dropped: 0, problem: "" });
    const selection = { names, isPrevious, withTimes };
    void followLogs(path, selection, controller.signal, reconnect.current, add, (text) => {
      problem = text;
      publish();
    });
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [key]);
  useEffect(() => reconnect.current.now(), [generation]);
  useEffect(() => {
    const gone = new AbortController();
    onLongHidden(() => reconnect.current.now(), gone.signal);
    return () => gone.abort();
  }, []);
  return state;
}
