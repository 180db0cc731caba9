import { formatBytes, formatCores } from "./format.ts";
import { Age } from "./parts.tsx";
import { useRows } from "./use-rows.tsx";
import type { CgroupRow, ImageRow } from "./wire.ts";

export function CgroupTable({ cgroups }: { cgroups: readonly CgroupRow[] }) {
  const { shown, button } = useRows(cgroups);
  return (
    <section class="card">
      <h2>Control groups by memory</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Group</th>
            <th scope="col" class="number">
              CPU
            </th>
            <th scope="col" class="number">
              Memory
            </th>
            <th scope="col" class="number">
              Tasks
            </th>
          </tr>
        </thead>
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
        <thead>
          <tr>
            <th scope="col">Image</th>
            <th scope="col">Last use by a pod</th>
            <th scope="col" class="number">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ id, names, isInUse, lastUse, sizeBytes }) => (
            <tr key={id}>
              <td class="source" title={id}>
                <bdi>{names.at(-1) ?? id.slice(0, 19)}</bdi>
              </td>
              <td>{isInUse ? "in use" : lastUse > 0 ? <LastUse at={lastUse} now={now} /> : "-"}</td>
              <td class="number">{formatBytes(sizeBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {button}
    </section>
  );
}

const LastUse = ({ at, now }: { at: number; now: number }) => (
  <>
    <Age at={at} now={now} /> ago
  </>
);
