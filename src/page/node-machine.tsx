import { Fact } from "./facts.tsx";
import { formatBytes, formatPercent } from "./format.ts";
import { Meter, TableHead } from "./parts.tsx";
import { useRows } from "./use-rows.tsx";
import type { CoreUse, InterfaceRow, MachineMemory } from "./wire.ts";

const whole = (percent: number) => `${Math.round(percent)} %`;
const busy = ({ user, system, stolen }: CoreUse) => user + system + stolen;

/** Waits and stolen time are named where there are some. */
function describeUse({ user, system, wait, stolen }: CoreUse): string {
  const parts = [`programs ${whole(user)}`, `kernel ${whole(system)}`];
  if (wait >= 0.5) parts.push(`waits for disks ${whole(wait)}`);
  if (stolen >= 0.5) parts.push(`taken by the host ${whole(stolen)}`);
  return parts.join(", ");
}

const mean = (cores: readonly CoreUse[], kind: keyof CoreUse): number =>
  cores.reduce((sum, core) => sum + core[kind], 0) / cores.length;

export function CoreMeters({ cores }: { cores: readonly CoreUse[] }) {
  const { shown, button } = useRows(cores);
  if (cores.length === 0) return null;
  const all = {
    user: mean(cores, "user"),
    system: mean(cores, "system"),
    wait: mean(cores, "wait"),
    stolen: mean(cores, "stolen"),
  };
  return (
    <section class="card">
      <h2>CPU cores</h2>
      <p class="note">All: {describeUse(all)}</p>
      <div class="pair">
        {shown.map((core, index) => (
          <Meter key={index} used={busy(core)} total={100} text={`core ${index}: ${describeUse(core)}`} />
        ))}
      </div>
      {button}
    </section>
  );
}

export const MemoryFacts = ({
  memory: { totalBytes, availableBytes, cachedBytes, swapBytes, swapUsedBytes },
}: {
  memory: MachineMemory;
}) => (
  <section class="card">
    <h2>Memory</h2>
    <dl>
      <Fact name="Available" value={`${formatBytes(availableBytes)} of ${formatBytes(totalBytes)}`} />
      <Fact name="Cache of files" value={formatBytes(cachedBytes)} />
      <Fact
        name="Swap"
        value={
          swapBytes === 0
            ? "none"
            : `${formatBytes(swapUsedBytes)} of ${formatBytes(swapBytes)} (${formatPercent(swapUsedBytes, swapBytes)})`
        }
      />
    </dl>
  </section>
);

export function InterfaceTable({ interfaces }: { interfaces: readonly InterfaceRow[] }) {
  const { shown, button } = useRows(interfaces);
  if (interfaces.length === 0) return null;
  const columns = ["Received", "Sent", "Errors", "Dropped"];
  return (
    <section class="card" tabIndex={0} aria-label="Network interfaces">
      <h2>Network interfaces</h2>
      <table>
        <TableHead columns={["Interface", ...columns]} numbers={columns} />
        <tbody>
          {shown.map(({ name, receivedBytes, sentBytes, errors, dropped }) => (
            <tr key={name}>
              <td>
                <bdi>{name}</bdi>
              </td>
              <td class="number">{formatBytes(receivedBytes)}</td>
              <td class="number">{formatBytes(sentBytes)}</td>
              <td class="number">{errors}</td>
              <td class="number">{dropped}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {button}
    </section>
  );
}
