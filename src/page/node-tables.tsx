import { formatBytes, formatCores } from "./format.ts";
import { Ago, Plain, TableHead } from "./parts.tsx";
import { podAddress } from "./router.ts";
import { useRows } from "./use-rows.tsx";
import type { CgroupRow, ImageRow } from "./wire.ts";

/** The cgroup tree by use; rows of pods lead to their processes. */
export function CgroupTable({ cgroups, privileged }: { cgroups: readonly CgroupRow[]; privileged: boolean }) {
  const { shown, button } = useRows(cgroups);
  return (
    <section class="card">
      <h2>Control groups by memory</h2>
      <table>
        <TableHead columns={["Group", "CPU cores", "Memory", "Tasks"]} numbers={["CPU cores", "Memory", "Tasks"]} />
        <tbody>
          {shown.map(({ path, name, pod, depth, cpuCores, memoryBytes, tasks }) => (
            <tr key={path}>
              <td class={`depth depth-${Math.min(depth, 5)}`} title={path}>
                {pod ? (
                  <a href={podAddress(pod, privileged ? "processes" : "overview")}>
                    <bdi>{name}</bdi>
                  </a>
                ) : (
                  <Plain text={name} />
                )}
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

const SHOWN_PODS = 3;

export function ImageTable({
  images,
  gcPercent,
  now,
}: {
  images: readonly ImageRow[];
  gcPercent: number;
  now: number;
}) {
  const { shown, button } = useRows(images);
  const removable = images.filter(({ isRemovable }) => isRemovable);
  const removableBytes = removable.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return (
    <section class="card">
      <h2>Images</h2>
      <p class="note">
        {images.length === 0 ? "Not known yet." : `${images.length} ${images.length === 1 ? "image" : "images"}. `}
        {removable.length > 0 &&
          `${removable.length} of them (${formatBytes(removableBytes)}) may be removed by the kubelet when their disk is ${gcPercent} % full.`}
      </p>
      <table class="stacked">
        <TableHead columns={["Image", "Used by", "Last use by a pod", "Age", "Size"]} numbers={["Size"]} />
        <tbody>
          {shown.map(({ id, names, isInUse, isRemovable, usedBy, lastUse, createdAt, sizeBytes }) => (
            <tr key={id}>
              <td class="source" title={[id, ...names].join("\n")}>
                <bdi>{names.at(-1) ?? id.slice(0, 19)}</bdi>
              </td>
              <td class="message">
                {usedBy.length > 0 && (
                  <ul class="plain">
                    {usedBy.slice(0, SHOWN_PODS).map((pod) => (
                      <li key={pod}>
                        <a href={podAddress(splitName(pod))}>
                          <bdi>{pod}</bdi>
                        </a>
                      </li>
                    ))}
                  </ul>
                )}
                {usedBy.length > SHOWN_PODS && `and ${usedBy.length - SHOWN_PODS} more`}
                {isRemovable && "removable"}
              </td>
              <td>{isInUse ? "in use" : lastUse > 0 ? <Ago at={lastUse} now={now} /> : "unknown"}</td>
              <td>{createdAt > 0 ? <>built {<Ago at={createdAt} now={now} />}</> : "-"}</td>
              <td class="number">{formatBytes(sizeBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {button}
    </section>
  );
}

function splitName(pod: string): { namespace: string; name: string } {
  const [namespace = "", name = ""] = pod.split("/");
  return { namespace, name };
}
