import type { CoreEvent } from "../base/api/event.ts";
import type { Condition } from "../base/api/meta.ts";
import { fetchJson, useLoaded } from "./connection.ts";
import { formatBytes, toMs } from "./format.ts";
import { Age, Badge, Card, Plain, Table, type Tone } from "./parts.tsx";
import type { ProcessRow } from "./wire.ts";

/** Conditions of the node or of a pod. @param toneOf whether a condition is as it should be */
export const ConditionTable = ({
  conditions,
  toneOf,
  now,
}: {
  conditions: readonly Condition[];
  toneOf: (condition: Condition) => Tone;
  now: number;
}) => (
  <Card title="Conditions">
    <Table
      class="stacked"
      rows={conditions}
      keyOf={({ type }) => type}
      columns={[
        { title: "Type", isHeading: true, cell: ({ type }) => <bdi>{type}</bdi> },
        { title: "Status", class: "fixed", cell: (it) => <Badge tone={toneOf(it)}>{it.status}</Badge> },
        { title: "Since", class: "fixed", cell: (it) => <Age at={toMs(it.lastTransitionTime)} now={now} /> },
        { title: "Reason", class: "fixed", cell: ({ reason }) => <bdi>{reason}</bdi> },
        { title: "Message", class: "message", cell: ({ message = "" }) => <Plain text={message} /> },
      ]}
    />
  </Card>
);

/** A condition of a pod: `DisruptionTarget` is the one that is good when it is not true. Pure. */
export function podConditionTone({ type, status, reason }: Condition): Tone {
  if (reason === "PodCompleted") return "idle";
  return (status === "True") === (type !== "DisruptionTarget") ? "good" : "warn";
}

/** `default/web` for a pod, `Node edge`, `Deployment default/shop`. */
function objectOf({ involvedObject: { kind, namespace, name } }: CoreEvent): string {
  if (kind === "Node") return `Node ${name}`;
  return kind === "Pod" ? `${namespace}/${name}` : `${kind} ${namespace}/${name}`;
}

/** Newest first. */
export function EventTable(props: { events: readonly CoreEvent[]; now: number; withObject?: boolean }) {
  const { events, now, withObject } = props;
  if (events.length === 0) return <p class="empty">No events.</p>;
  const object = { title: "Object", class: "object", cell: (event: CoreEvent) => <bdi>{objectOf(event)}</bdi> };
  return (
    <Table
      class="stacked"
      rows={events.toSorted((a, b) => toMs(b.lastTimestamp) - toMs(a.lastTimestamp))}
      isLong
      keyOf={({ metadata }) => metadata.uid}
      rowClass={({ type }) => (type === "Warning" ? "warning" : undefined)}
      columns={[
        {
          title: "Last seen",
          cell: ({ lastTimestamp, firstTimestamp, count }) => (
            <>
              <Age at={toMs(lastTimestamp)} now={now} />
              {count > 1 && (
                <span class="ago">
                  {" "}
                  ×{count} in <Age at={toMs(firstTimestamp)} now={now} />
                </span>
              )}
            </>
          ),
        },
        { title: "Type", class: "fixed", cell: ({ type }) => type },
        { title: "Reason", class: "fixed", cell: ({ reason }) => <bdi>{reason}</bdi> },
        ...(withObject ? [object] : []),
        { title: "Message", class: "message", cell: ({ message }) => <Plain text={message} /> },
      ]}
    />
  );
}

const REFRESH_MS = 5000;
/** As the kernel names them. Source: proc_pid_status(5). */
const STATES: Readonly<Record<string, string>> = {
  R: "running",
  S: "sleeping",
  I: "idle",
  D: "disk sleep",
  T: "stopped",
  t: "tracing stop",
  Z: "zombie",
};

export function ProcessTab({ path, now }: { path: string; now: number }) {
  const { value, error } = useLoaded(path, Math.floor(now / REFRESH_MS), (signal) =>
    fetchJson<ProcessRow[]>(`${path}/processes`, signal),
  );
  if (error) return <p class="banner warn">{error}</p>;
  if (!value) return <p class="empty">Loading…</p>;
  if (value.length === 0) return <p class="empty">No processes are running.</p>;
  return (
    <section class="card" tabIndex={0} aria-label="Processes">
      <Table
        class="stacked"
        rows={value}
        keyOf={({ pid }) => String(pid)}
        columns={[
          { title: "Container", cell: ({ container }) => <bdi>{container}</bdi> },
          { title: "PID", class: "number", label: "Process", cell: ({ pid }) => pid },
          { title: "User", class: "number", label: "User", cell: ({ user }) => user },
          { title: "State", class: "fixed", cell: ({ state }) => STATES[state] ?? state },
          { title: "CPU time", class: "number", label: "CPU time", cell: (it) => `${it.cpuSeconds.toFixed(2)} s` },
          { title: "Memory", class: "number", label: "Memory", cell: (it) => formatBytes(it.memoryBytes) },
          {
            title: "Command",
            class: "command",
            cell: ({ command }) => (
              <code>
                <Plain text={command} />
              </code>
            ),
          },
        ]}
      />
    </section>
  );
}
