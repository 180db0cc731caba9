import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatAge, formatTime } from "./format.ts";

/** Green, amber, red or grey, never by colour alone: the text is next to it. */
export type Tone = "good" | "warn" | "bad" | "idle";

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function statusTone(status: string, isReady: boolean): Tone {
  if (isReady) return "good";
  if (status === "Completed" || status === "Succeeded") return "idle";
  if (/^(Running|Pending|ContainerCreating|PodInitializing|Terminating|NotReady|Init:\d)/.test(status)) return "warn";
  return "bad";
}

/** Relative, with the absolute time on hover. */
export function Age({ at, now }: { at: number; now: number }) {
  if (at === 0) return <span>-</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
      {formatAge(at, now)}
    </time>
  );
}

/** `12m ago`, with the absolute time on hover. */
export const Ago = ({ at, now }: { at: number; now: number }) => (
  <>
    <Age at={at} now={now} />
    {at > 0 && " ago"}
  </>
);

/** A line without axes. Draws nothing but a path, so that a hundred of them cost little. */
export function SparkLine({ values, label }: { values: readonly (number | null)[]; label: string }) {
  // Tenths of a pixel: whole numbers are quick to write.
  const width = 800;
  const height = 200;
  let max = 0;
  for (const value of values) if (value !== null && value > max) max = value;
  const step = width / Math.max(values.length - 1, 1);
  let path = "";
  let isDown = false;
  values.forEach((value, index) => {
    if (value === null) {
      isDown = false;
      return;
    }
    const x = Math.round(index * step);
    const y = Math.round(height - 10 - (max === 0 ? 0 : (value / max) * (height - 20)));
    path += `${isDown ? "L" : "M"}${x} ${y}`;
    isDown = true;
  });
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">
      <path d={path} />
    </svg>
  );
}

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
  action,
  onAnswer,
}: {
  text: string;
  action: string;
  onAnswer: (yes: boolean) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={action} onCancel={() => onAnswer(false)}>
      <p>{text}</p>
      <div class="buttons">
        {/* The safe answer has the focus. */}
        <button type="button" autoFocus onClick={() => onAnswer(false)}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={() => onAnswer(true)}>
          {action}
        </button>
      </div>
    </dialog>
  );
}

/** The header row of a table. @param numbers columns of numbers, which are aligned to the right */
export function TableHead({ columns, numbers = [] }: { columns: readonly string[]; numbers?: readonly string[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column) => (
          <th key={column} scope="col" class={numbers.includes(column) ? "number" : undefined}>
            {column}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** A check box with its name. */
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
