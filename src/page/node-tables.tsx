import { formatBytes, formatCores } from "./format.ts";
import { Ago, TableHead } from "./parts.tsx";
import { useRows } from "./use-rows.tsx";
import type { CgroupRow, ImageRow } from "./wire.ts";

export function CgroupTable({ cgroups }: { cgroups: readonly CgroupRow[] }) {
  const { shown, button } = useRows(cgroups);
  return (
    <section class="card">
      <h2>Control groups by memory</h2>
      <table>
        <TableHead columns={["Group", "CPU cores", "Memory", "Tasks"]} numbers={["CPU cores", "Memory", "Tasks"]} />
        <tbody>
          {shown.map(({ path, name, depth, cpuCores, memoryBytes, tasks }) => (
            <tr key={path}>
              <td class={`depth depth-${Math.min(depth, 5)}`} title={path}>
                <bdi>{name}</bdi>
              </td>
              <td class="number">{formatCores(cpuCores)}</td>
              <td class="number">{formatBytes(memoryBytes)}</td>
              <td class="number">{tasks ?? "-"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {button}
    </section>
  );
}

export function ImageTable({ images, now }: { images: readonly ImageRow[]; now: number }) {
  const { shown, button } = useRows(images);
  return (
    <section class="card">
      <h2>Images</h2>
      <table>
        <TableHead columns={["Image", "Last use by a pod", "Size"]} numbers={["Size"]} />
        <tbody>
          {shown.map(({ id, names, isInUse, lastUse, sizeBytes }) => (
            <tr key={id}>
              <td class="source" title={id}>
                <bdi>{names.at(-1) ?? id.slice(0, 19)}</bdi>
              </td>
              <td>{isInUse ? "in use" : lastUse > 0 ? <Ago at={lastUse} now={now} /> : "unknown"}</td>
              <td class="number">{formatBytes(sizeBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {button}
    </section>
  );
}
