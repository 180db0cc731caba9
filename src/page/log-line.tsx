import type { VNode } from "preact";
import type { ShownLine } from "./line-buffer.ts";
import { plainText, splitMatches, toLocalTime, toSpans } from "./log-text.ts";

/** How lines are shown. */
interface LineStyle {
  withContainer: boolean;
  withTime: boolean;
  /** Marks what it finds. */
  pattern: RegExp | undefined;
}

/** Lines that are shown, by line: one that is the same object as before is not rendered again. */
const rendered = new WeakMap<ShownLine, { key: string; node: VNode }>();

/** @param isCurrent the match that the reader has gone to */
export function renderLine(line: ShownLine, style: LineStyle, isCurrent: boolean): VNode {
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
export function isFound(line: ShownLine, pattern: RegExp): boolean {
  const text = plainTexts.get(line) ?? plainText(line.text);
  plainTexts.set(line, text);
  return text.search(pattern) >= 0;
}
