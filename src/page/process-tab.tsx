import { fetchJson } from "./connection.ts";
import { formatBytes } from "./format.ts";
import { Plain, TableHead } from "./parts.tsx";
import { useLoaded } from "./use-loaded.ts";
import type { ProcessRow } from "./wire.ts";

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

/** Processes of the containers of a pod. */
export function ProcessTab({ path, now }: { path: string; now: number }) {
  const { value, error } = useLoaded(path, Math.floor(now / REFRESH_MS), (signal) =>
    fetchJson<ProcessRow[]>(`${path}/processes`, signal),
  );
  if (error) return <p class="banner warn">{error}</p>;
  if (!value) return <p class="empty">Loading…</p>;
  if (value.length === 0) return <p class="empty">No processes are running.</p>;
  return (
    <section class="card" tabIndex={0} aria-label="Processes">
      <table class="stacked">
        <TableHead
          columns={["Container", "PID", "User", "State", "CPU time", "Memory", "Command"]}
          numbers={["PID", "User", "CPU time", "Memory"]}
        />
        <tbody>
          {value.map(({ container, pid, user, state, cpuSeconds, memoryBytes, command }) => (
            <tr key={pid}>
              <td>
                <bdi>{container}</bdi>
              </td>
              <td class="number" data-title="Process">
                {pid}
              </td>
              <td class="number" data-title="User">
                {user}
              </td>
              <td class="fixed">{STATES[state] ?? state}</td>
              <td class="number" data-title="CPU time">
                {cpuSeconds.toFixed(2)} s
              </td>
              <td class="number" data-title="Memory">
                {formatBytes(memoryBytes)}
              </td>
              <td class="command">
                <code>
                  <Plain text={command} />
                </code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
