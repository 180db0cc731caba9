import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatAge, formatTime, formatWholeTime, splitFact } from "./format.ts";
import { plainText } from "./log-text.ts";
import { type PodName, type PodTab, podAddress } from "./router.ts";
import type { ClusterState, Explanation } from "./wire.ts";

/** Text that a program may have written: without escapes, and without marks of direction, which would move what is around it. */
export const Plain = ({ text }: { text: string }) => <bdi>{plainText(text)}</bdi>;

/** Green, amber, red or grey, never by color alone: the text is next to it. */
export type Tone = "good" | "warn" | "bad" | "idle";

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** @param status of a pod, or the state of a container */
export function statusTone(status: string, isReady: boolean): Tone {
  if (/^(Completed|Succeeded)\b/.test(status)) return "idle";
  if (isReady && status !== "Terminating") return "good";
  if (/^(running|waiting|pending|containercreating|podinitializing|terminating|notready|init:\d)/i.test(status))
    return "warn";
  return "bad";
}

/** A time with a text such as its age; the time itself is shown on hover: see {@link titleTimesOnHover}. Nothing for 0. */
export const timeOf = (at: number, text: string) => at > 0 && <time dateTime={new Date(at).toISOString()}>{text}</time>;

export const Age = ({ at, now }: { at: number; now: number }) => timeOf(at, formatAge(at, now)) || <span>-</span>;

/** A time as the reader's clock shows it; a dash for 0. */
export const At = ({ at }: { at: number }) => timeOf(at, formatTime(at)) || <span>-</span>;

/** Gives each time of the page its title when the pointer comes to it: 200 of them in advance cost milliseconds. */
export function titleTimesOnHover(): void {
  addEventListener(
    "pointerover",
    ({ target }) => {
      const time = target instanceof Element && target.closest("time");
      if (time) time.title = formatWholeTime(Date.parse(time.dateTime));
    },
    { passive: true },
  );
}

export const Ago = ({ at, now }: { at: number; now: number }) => (
  <>
    <Age at={at} now={now} />
    {at > 0 && " ago"}
  </>
);

/** Share of a whole as a bar, with its text. Without a whole (0) there is only the text, at the same height. */
export function Meter({ used, total, text }: { used: number; total: number; text: string }) {
  const percent = total > 0 ? Math.min(100, (used / total) * 100) : 0;
  const tone: Tone = percent >= 90 ? "bad" : percent >= 75 ? "warn" : "good";
  return (
    <div class="meter">
      <div class="meter-text">{text}</div>
      <div class={total > 0 ? "meter-track" : "meter-track hidden-track"} aria-hidden="true">
        <svg viewBox="0 0 100 4" preserveAspectRatio="none">
          <rect class={tone} width={percent} height="4" />
        </svg>
      </div>
    </div>
  );
}

/** A question before something is destroyed. Escape and a click outside mean no. */
export function Question({
  text,
  details = "",
  action,
  onResponse,
}: {
  text: string;
  details?: string;
  /** undefined: there is nothing to decide, the text says why. */
  action: string | undefined;
  onResponse: (yes: boolean) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const answer = (yes: boolean) => {
    // Closed before it is removed: the focus returns to the button that opened it.
    dialog.current?.close();
    onResponse(yes);
  };
  /** Not every browser has `closedby`. */
  const onClick = ({ target, currentTarget, clientX, clientY }: TargetedMouseEvent<HTMLDialogElement>) => {
    if (target !== currentTarget) return;
    const { left, right, top, bottom } = currentTarget.getBoundingClientRect();
    const isInside = clientX >= left && clientX <= right && clientY >= top && clientY <= bottom;
    if (!isInside) answer(false);
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a dialog has Escape of its own.
    <dialog ref={dialog} aria-label={action ?? "Note"} onCancel={() => answer(false)} onClick={onClick}>
      <p>
        <bdi>{text}</bdi>
      </p>
      {details !== "" && (
        <pre class="details" tabIndex={0}>
          {details}
        </pre>
      )}
      <div class="buttons">
        {/* The safe answer has the focus. */}
        <button type="button" autoFocus onClick={() => answer(false)}>
          {action === undefined ? "Close" : "Cancel"}
        </button>
        {action !== undefined && <Button text={action} class="danger" onClick={() => answer(true)} />}
      </div>
    </dialog>
  );
}

interface TableColumn<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** `number` aligns to the right. */
  class?: string | ((row: T) => string);
  /** Text in front of the value on a phone. */
  label?: string;
  hover?: (row: T) => string;
  isHeading?: true;
}

/** A table with its header. @param isLong the first rows are shown, and a button for the rest */
export function Table<T>({
  rows,
  columns,
  keyOf,
  rowClass,
  class: name,
  isLong = false,
}: {
  rows: readonly T[];
  columns: readonly TableColumn<T>[];
  keyOf: (row: T) => string;
  rowClass?: (row: T) => string | undefined;
  class?: string;
  isLong?: boolean;
}) {
  const { shown, button } = useRows(rows);
  return (
    <>
      <table class={name}>
        <thead>
          <tr>
            {columns.map(({ title, class: of }) => (
              <th key={title} scope="col" class={of === "number" ? "number" : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(isLong ? shown : rows).map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row)}>
              {columns.map(({ title, class: of, label, hover, cell, isHeading }) => {
                const Cell = isHeading ? "th" : "td";
                return (
                  <Cell
                    key={title}
                    scope={isHeading && "row"}
                    class={typeof of === "function" ? of(row) : of}
                    data-title={label}
                    title={hover?.(row)}
                  >
                    {cell(row)}
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {isLong && button}
    </>
  );
}

export const Button = ({
  text,
  onClick,
  ...more
}: {
  text: ComponentChildren;
  onClick: () => unknown;
  class?: string;
  disabled?: boolean;
  label?: string;
  isPressed?: boolean;
}) => (
  <button
    type="button"
    class={more.class}
    aria-label={more.label}
    aria-pressed={more.isPressed}
    disabled={more.disabled ?? false}
    onClick={onClick}
  >
    {text}
  </button>
);

/** One of several containers. @param options its name, and what is shown for it */
export const ContainerChoice = ({
  value,
  options,
  onChange,
}: {
  value: string;
  options: readonly (readonly [name: string, text: string])[];
  onChange: (name: string) => void;
}) => (
  <select aria-label="Container" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
    {options.map(([name, text]) => (
      <option key={name} value={name}>
        {text}
      </option>
    ))}
  </select>
);

export const PodLink = ({ pod, tab, text = pod.name }: { pod: PodName; tab?: PodTab; text?: string }) => (
  <a href={podAddress(pod, tab)}>
    <bdi>{text}</bdi>
  </a>
);

export const Card = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section class="card">
    <h2>{title}</h2>
    {children}
  </section>
);

export const Toggle = ({
  text,
  value,
  onChange,
  disabled = false,
}: {
  text: string;
  value: boolean;
  onChange: (value: boolean) => void;
  disabled?: boolean;
}) => (
  <label class="toggle">
    <input
      type="checkbox"
      checked={value}
      disabled={disabled}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />{" "}
    {text}
  </label>
);

/** Shown in place of what only a session may see. @param what subject of the sentence */
export const NeedsSession = ({ what }: { what: string }) => (
  <p class="empty">
    {what} needs a session: run <code>kubelet-ts page</code> on the machine and open the link that it prints.
  </p>
);

const SHOWN_ROWS = 20;

export function useRows<T>(rows: readonly T[]) {
  const [isAll, setAll] = useState(false);
  const text = isAll ? `Show the first ${SHOWN_ROWS}` : `Show all ${rows.length}`;
  const button = rows.length > SHOWN_ROWS && <Button text={text} class="more" onClick={() => setAll(!isAll)} />;
  return { shown: isAll ? rows : rows.slice(0, SHOWN_ROWS), button };
}

/** Characters; a longer value has a line of its own. */
const LONG_FACT = 100;

/** A name with its value, in a list of such (`dl`). */
export const Fact = ({ name, value }: { name: string; value: ComponentChildren }) => (
  <div class={typeof value === "string" && value.length > LONG_FACT ? "long" : undefined}>
    <dt>
      <Plain text={name} />
    </dt>
    <dd>{typeof value === "string" ? <Plain text={value || "-"} /> : value}</dd>
  </div>
);

/** `name=value`, shortened; whole on hover. */
export const Labels = ({ name, labels = {} }: { name: string; labels: Record<string, string> | undefined }) =>
  Object.keys(labels).length > 0 && (
    <ul class="labels" aria-label={name}>
      <li class="labels-name" aria-hidden="true">
        {name}
      </li>
      {Object.entries(labels).map(([key, value]) => (
        <li key={key} title={`${key}=${value}`}>
          <Plain text={`${key}=${value}`} />
        </li>
      ))}
    </ul>
  );

/** Reasons of `kubelet-ts explain`. */
export const Explanations = ({ all }: { all: readonly Explanation[] }) =>
  all.map(({ problem, facts, fix }) => (
    <div key={problem} class="explanation">
      <Plain text={problem} />
      {facts.map((fact, index) => (
        <div key={index} class="note">
          <FactText text={fact} />
        </div>
      ))}
      {fix !== "" && (
        <div>
          → <Plain text={fix} />
        </div>
      )}
    </div>
  ));

/** A fact of `kubelet-ts explain`, which has its time in UTC: shown as all times of the page. Lines of a log stay as they are. */
const FactText = ({ text }: { text: string }) => {
  const { before, at, after } = splitFact(text);
  // A program's output must not move the kubelet's own words.
  return (
    <>
      <Plain text={before} />
      {at > 0 && <At at={at} />}
      {after !== "" && <Plain text={after} />}
    </>
  );
};

/** Why and since when the cluster is out of reach, and what works meanwhile. */
export function ClusterFailure({ cluster: { server, failure } }: { cluster: ClusterState }) {
  if (!failure) return null;
  return (
    <>
      The API server <bdi>{server}</bdi> {failure.isAnswering ? "has refused this node" : "has not answered"} since{" "}
      <At at={failure.since} />: <Plain text={failure.reason} />. Pods keep running as they were last received, and
      probes, restarts, logs and shells work. Changes from the cluster arrive when it{" "}
      {failure.isAnswering ? "accepts this node" : "answers"} again.
    </>
  );
}
