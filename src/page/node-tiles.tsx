import type { ComponentChildren } from "preact";
import type { Condition } from "../base/api/meta.ts";
import { formatAge, formatBytes, formatPercent } from "./format.ts";
import { Badge, Meter, type Tone, timeOf } from "./parts.tsx";
import type { PageState } from "./store.ts";
import type { NodeState, NodeUsage } from "./wire.ts";

/** The node at a glance. The tiles keep their size while values arrive. */
export function NodeTiles({ state, now }: { state: PageState; now: number }) {
  const { node, nodeUsage: usage } = state;
  return (
    <section class="tiles" aria-label="Node">
      <Tile
        title="CPU"
        used={usage?.cpuCores}
        total={node?.cpuCount}
        text={(used, total) => `${used.toFixed(2)} of ${total} cores`}
        note={usage && `load ${usage.load.map((load) => load.toFixed(2)).join(" ")}`}
      />
      <Tile
        title="Memory"
        used={usage?.memoryBytes}
        total={node?.memoryBytes}
        note={
          usage?.pressure && (
            <span title="Share of the last ten seconds in which some task waited (PSI)">
              {describePressure(usage.pressure)}
            </span>
          )
        }
      />
      <Tile
        title="Disk"
        used={usage?.diskUsedBytes}
        total={usage?.diskBytes}
        note={usage && usage.imageDiskBytes > 0 && describeImages(usage)}
      />
      <div class="card">
        <h2>Node</h2>
        <div class="badges">
          {node?.conditions.filter(isShown).map((condition) => (
            <Badge key={condition.type} tone={conditionTone(condition)}>
              <span title={condition.message}>{conditionText(condition)}</span>
            </Badge>
          ))}
          {node?.cluster?.failure && (
            <Badge tone="bad">
              <span title={node.cluster.failure.reason}>
                {node.cluster.failure.isAnswering ? "Refused by the API server" : "API server away"}
              </span>
            </Badge>
          )}
          {!node && "\u00a0"}
        </div>
        <p class="note">
          {node ? (
            <>
              {hasPressure(node) ? "" : "no pressure, "}up {timeOf(node.bootTime, formatAge(node.bootTime, now))}
              <br />
              <span title={node.version}>{node.engine}</span>
            </>
          ) : (
            "\u00a0"
          )}
        </p>
      </div>
    </section>
  );
}

interface TileProps {
  title: string;
  used: number | undefined;
  total: number | undefined;
  text?: (used: number, total: number) => string;
  note: ComponentChildren;
}

const ofBytes = (used: number, total: number) => `${formatBytes(used)} of ${formatBytes(total)}`;

const Tile = ({ title, used, total, text = ofBytes, note }: TileProps) => (
  <div class="card">
    <h2>{title}</h2>
    <Meter
      used={used ?? 0}
      total={total ?? 0}
      text={used === undefined || total === undefined ? "measuring…" : text(used, total)}
    />
    <p class="note">{note || "\u00a0"}</p>
  </div>
);

const describePressure = ({ cpu, memory, io }: NonNullable<NodeUsage["pressure"]>) =>
  `waits: CPU ${Math.round(cpu)}, memory ${Math.round(memory)}, disk ${Math.round(io)}\u00a0%`;

/** Images may be on a disk of their own. */
function describeImages(usage: NodeUsage): string {
  const images = `images ${formatBytes(usage.imageUsedBytes)}`;
  if (usage.imageDiskBytes === usage.diskBytes) return images;
  return `${images}, their disk ${formatPercent(usage.imageDiskUsedBytes, usage.imageDiskBytes)} full`;
}

/** Pressures that are not there are summed up in two words. */
const isShown = (condition: Condition) => condition.type === "Ready" || !isGood(condition);

const hasPressure = ({ conditions }: NodeState) =>
  conditions.some((condition) => condition.type !== "Ready" && !isGood(condition));

const isGood = ({ type, status }: Condition) => (type === "Ready" ? status === "True" : status === "False");

export const conditionTone = (condition: Condition): Tone => (isGood(condition) ? "good" : "bad");

/** `Ready`, `Not ready`, `No disk pressure`. */
function conditionText(condition: Condition): string {
  if (condition.type === "Ready") return isGood(condition) ? "Ready" : "Not ready";
  const words = condition.type
    .replace(/(?<=[a-zD])(?=P)/g, " ")
    .toLowerCase()
    .replace("pid", "PID");
  return isGood(condition) ? `No ${words}` : words.replace(/^./, (first) => first.toUpperCase());
}
