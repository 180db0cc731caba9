import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { toMs } from "./format.ts";
import type { ShownLine } from "./line-buffer.ts";
import { plainText, splitMatches, toLocalTime, toPattern, toSpans } from "./log-text.ts";
import { Button, ContainerChoice, Toggle } from "./parts.tsx";
import { type LogState, useLog } from "./use-log.ts";
import type { ContainerDetail } from "./wire.ts";

/** Lines in the document at first, and lines more with each step to older ones. */
const SHOWN_LINES = 1000;
/** Lines shown above a match that the reader goes to. */
const CONTEXT_LINES = 50;
/** Unit: CSS pixels. */
const END_MARGIN = 40;
const ALL = "";
/** Kept while the page is open. */
const choices = { isWrapped: true, withTimes: false };

/** Start of the running container, or of the last one that ended; 0 = unknown. */
export const startOf = ({ status }: ContainerDetail): number =>
  toMs((status?.state.running ?? status?.state.terminated)?.startedAt);

export function LogView({
  path,
  pod,
  containers,
  connects,
}: {
  path: string;
  pod: string;
  containers: readonly ContainerDetail[];
  connects: number;
}) {
  const [container, setContainer] = useState(containers.find(({ kind }) => kind === "main")?.spec.name ?? "");
  const [isPrevious, setPrevious] = useState(false);
  const [withTimes, setTimes] = useState(choices.withTimes);
  const [isWrapped, setWrapped] = useState(choices.isWrapped);
  const [isPaused, setPaused] = useState(false);
  const [search, setSearch] = useState("");
  const [onlyMatches, setOnlyMatches] = useState(true);
  Object.assign(choices, { isWrapped, withTimes });
  const names = container === ALL ? containers.map(({ spec }) => spec.name) : [container];
  // A container that was started again has a new log, and after a break of the page the log's connection may be dead.
  const generation = `${Math.max(connects, 1)} ${containers.map(startOf).join()}`;
  const box = useRef<HTMLDivElement>(null);
  const isSelecting = useSelection(box);
  const [follows, setFollows] = useState(true);
  const isHeld = isPaused || !follows || isSelecting;
  const { state, update } = useLog(path, { names, isPrevious }, generation, () => isHeld);
  useEffect(() => {
    if (!isHeld) update();
  }, [isHeld]);
  const { lines, waiting, problem } = state;
  const pattern = useMemo(() => toPattern(search), [search]);
  const matches = useMemo(() => (pattern ? lines.filter((line) => isFound(line, pattern)) : lines), [lines, pattern]);
  const listed = onlyMatches ? matches : lines;
  const scroll = useScroll(box, listed, isWrapped, follows, setFollows);
  const { shown, current } = scroll;
  const restart = () => {
    setFollows(true);
    scroll.reset();
  };
  const hasPrevious = containers.some(({ spec, status }) => status?.lastState.terminated && names.includes(spec.name));
  const query = new URLSearchParams({
    [container === ALL ? "containers" : "container"]: names.join(),
    previous: String(isPrevious),
    timestamps: String(withTimes),
  });
  const style = { withContainer: names.length > 1, withTime: withTimes, pattern };
  return (
    <section class="card">
      <div class="toolbar">
        <ContainerChoice
          value={container}
          options={[
            ...(containers.length > 1 ? [[ALL, "All containers"] as const] : []),
            ...containers.map(({ spec: { name } }) => [name, name] as const),
          ]}
          onChange={(name) => {
            setContainer(name);
            restart();
          }}
        />
        <input
          type="search"
          placeholder="Search"
          aria-label="Search in the log"
          value={search}
          onInput={(event) => {
            setSearch(event.currentTarget.value);
            scroll.goTo(undefined);
          }}
          onKeyDown={({ key, shiftKey }) => key === "Enter" && scroll.goTo(nextMatch(matches, current, shiftKey))}
        />
        {pattern && (
          <>
            {([true, false] as const).map((isBackward) => (
              <Button
                key={isBackward}
                text={isBackward ? "↑" : "↓"}
                label={isBackward ? "Previous match" : "Next match"}
                disabled={matches.length === 0}
                onClick={() => scroll.goTo(nextMatch(matches, current, isBackward))}
              />
            ))}
            <Toggle text="Only matches" value={onlyMatches} onChange={setOnlyMatches} />
          </>
        )}
        <Button text={isPaused ? "Continue" : "Pause"} isPressed={isPaused} onClick={() => setPaused(!isPaused)} />
        <Toggle text="Wrap" value={isWrapped} onChange={setWrapped} />
        <Toggle text="Times" value={withTimes} onChange={setTimes} />
        <Toggle
          text="Previous"
          value={isPrevious}
          onChange={(value) => {
            setPrevious(value);
            restart();
          }}
          disabled={!hasPrevious && !isPrevious}
        />
        <a
          class="button"
          href={`${path}/logs?${query}`}
          download={`${container === ALL ? pod : `${pod}-${container}`}${isPrevious ? "-previous" : ""}.log`}
        >
          Download
        </a>
      </div>
      <p class="note count-line">
        {describeCount(state, pattern && matches, current)}
        {(isPaused || isSelecting) &&
          `, ${isPaused ? "paused" : "held while text is selected"}${describeWaiting(waiting)}`}
      </p>
      <p class="problem" role="status">
        {problem}
      </p>
      <div class="log-frame">
        <div
          ref={box}
          class={isWrapped ? "log wrap" : "log"}
          tabIndex={0}
          role="log"
          aria-live="off"
          aria-label="Log"
          onScroll={scroll.onScroll}
        >
          {shown.length < listed.length && (
            <Button
              text={`Show older lines (${listed.length - shown.length})`}
              class="older"
              onClick={scroll.showOlder}
            />
          )}
          {shown.map((line) => renderLine(line, style, line === current))}
          {shown.length === 0 && (
            <p class="empty">{pattern && lines.length > 0 ? "No line matches." : "Nothing written yet."}</p>
          )}
        </div>
        {!follows && (
          <Button text={`↓ To the end${waiting > 0 ? ` (${waiting} new)` : ""}`} class="to-end" onClick={restart} />
        )}
      </div>
    </section>
  );
}

const describeWaiting = (waiting: number) =>
  waiting === 0 ? "" : `: ${waiting} new ${waiting === 1 ? "line waits" : "lines wait"}`;

function describeCount(
  { lines, dropped }: LogState,
  matches: readonly ShownLine[] | undefined,
  current: ShownLine | undefined,
): string {
  const total = `${lines.length} ${lines.length === 1 ? "line" : "lines"}`;
  const older = dropped > 0 ? `, ${dropped} older ones dropped` : "";
  if (!matches) return total + older;
  const at = current ? matches.indexOf(current) + 1 : 0;
  const found = `${matches.length} ${matches.length === 1 ? "match" : "matches"}`;
  return `${at > 0 ? `match ${at} of ${matches.length}` : found} in ${total}${older}`;
}

/** After the last match comes the first. */
function nextMatch(
  matches: readonly ShownLine[],
  current: ShownLine | undefined,
  isBackward: boolean,
): ShownLine | undefined {
  const at = current ? matches.indexOf(current) : -1;
  if (at < 0) return isBackward ? matches.at(-1) : matches[0];
  return matches[(at + (isBackward ? -1 : 1) + matches.length) % matches.length];
}

/** Whether text in the element is selected: a line that goes would take the selection with it. */
function useSelection(box: { current: HTMLElement | null }): boolean {
  const [isSelecting, setSelecting] = useState(false);
  useEffect(() => {
    const onChange = () => {
      const selection = document.getSelection();
      setSelecting(Boolean(selection && !selection.isCollapsed && box.current?.contains(selection.anchorNode)));
    };
    document.addEventListener("selectionchange", onChange);
    return () => document.removeEventListener("selectionchange", onChange);
  }, []);
  return isSelecting;
}

/** Keeps the end in view until the reader scrolls up, and chooses which lines are in the document. */
function useScroll(
  box: { current: HTMLElement | null },
  listed: readonly ShownLine[],
  isWrapped: boolean,
  follows: boolean,
  setFollows: (follows: boolean) => void,
) {
  const [limit, setLimit] = useState(SHOWN_LINES);
  const [current, setCurrent] = useState<ShownLine>();
  const shown = useMemo(() => (listed.length > limit ? listed.slice(-limit) : listed), [listed, limit]);
  /** The last known position: the reader did not cause a scroll event that leads there. */
  const top = useRef(0);
  /** Distance to the end that is kept when older lines are put in front. */
  const fromEnd = useRef<number | undefined>(undefined);
  const scrollTo = (position: number) => {
    if (!box.current) return;
    box.current.scrollTop = position;
    top.current = box.current.scrollTop;
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (follows) scrollTo(element.scrollHeight);
    else if (fromEnd.current !== undefined) scrollTo(element.scrollHeight - fromEnd.current);
    fromEnd.current = undefined;
  }, [shown, isWrapped, follows]);
  useLayoutEffect(() => {
    const line = current && box.current?.querySelector<HTMLElement>(".current");
    if (line && !follows) scrollTo(line.offsetTop - (box.current?.clientHeight ?? 0) / 2);
  }, [current, shown, isWrapped]);
  return {
    shown,
    current,
    reset: () => {
      setLimit(SHOWN_LINES);
      setCurrent(undefined);
    },
    /** @param line undefined: there is no such line */
    goTo: (line: ShownLine | undefined) => {
      setCurrent(line);
      if (!line) return;
      setFollows(false);
      setLimit(Math.max(limit, listed.length - listed.indexOf(line) + CONTEXT_LINES));
    },
    showOlder: () => {
      setFollows(false);
      if (box.current) fromEnd.current = box.current.scrollHeight - box.current.scrollTop;
      setLimit(shown.length + SHOWN_LINES);
    },
    onScroll: () => {
      const element = box.current;
      if (!element) return;
      const { scrollTop, scrollHeight, clientHeight } = element;
      const moved = scrollTop - top.current;
      if (Math.abs(moved) < 1) return;
      top.current = scrollTop;
      const left = scrollHeight - scrollTop - clientHeight;
      if (moved < 0 && left > 1) setFollows(false);
      else if (left < END_MARGIN && !follows) {
        setLimit(SHOWN_LINES);
        setFollows(true);
      }
    },
  };
}

/** Lines that are shown, by line: one that is the same object as before is not rendered again. */
const rendered = new WeakMap<ShownLine, { key: string; node: VNode }>();

function renderLine(
  line: ShownLine,
  style: { withContainer: boolean; withTime: boolean; pattern: RegExp | undefined },
  isCurrent: boolean,
): VNode {
  const { withContainer, withTime, pattern } = style;
  const key = `${withContainer} ${withTime} ${isCurrent} ${pattern?.source}`;
  const before = rendered.get(line);
  if (before?.key === key) return before.node;
  const spans = toSpans(line.text);
  const pieces = splitMatches(spans, pattern);
  const node = (
    <div class={isCurrent ? "line current" : "line"} dir="ltr" key={line.id}>
      {withContainer && <span class="prefix">{line.container} </span>}
      {withTime && line.stamp !== "" && <span class="stamp">{toLocalTime(line.stamp)} </span>}
      {spans.map(({ color, bold }, index) => (
        <bdi key={index} class={color > 0 || bold ? `c${color}${bold ? " bold" : ""}` : undefined}>
          {pieces[index]?.map(({ text, isMatch }, at) => (isMatch ? <mark key={at}>{text}</mark> : text))}
        </bdi>
      ))}
    </div>
  );
  rendered.set(line, { key, node });
  return node;
}

const plainTexts = new WeakMap<ShownLine, string>();

/** Whether the search finds something in what a reader sees of a line. */
function isFound(line: ShownLine, pattern: RegExp): boolean {
  const text = plainTexts.get(line) ?? plainText(line.text);
  plainTexts.set(line, text);
  return text.search(pattern) >= 0;
}
