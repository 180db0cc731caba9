import { type MeasuredCgroup, measuredCgroups } from "../measured-cgroup.ts";
import { escapeLabelValue } from "../metrics/prometheus-text.ts";
import type { NodeSample } from "../node-sample.ts";

/**
 * Labels of one cgroup in three pieces. A family puts its own labels between them, so that all are in the order of their
 * names, as Prometheus' libraries write them.
 */
interface LabelPieces {
  /** `{container="…",` */
  head: string;
  /** `id="…",image="…",` */
  middle: string;
  /** `name="…",namespace="…",pod="…"` */
  tail: string;
  /** `}` */
  end: string;
  /** All four. */
  whole: string;
}

/** Labels that a family or a device adds, each with its comma. */
export interface OwnLabels {
  /** After `head`: `device="/dev/vda",` */
  head?: string;
  /** After `middle`: `interface="eth0",` */
  middle?: string;
  /** After `tail`: `,scope="container"` */
  tail?: string;
}

/** For a sample without labels. */
export const WITHOUT_LABELS: LabelPieces = { head: "", middle: "", tail: "", end: "", whole: "" };

/** One cgroup with its labels rendered. */
export interface Entity extends MeasuredCgroup {
  labels: LabelPieces;
  startSeconds: number;
}

/** Adds a sample to the current family. */
export type AddSample = (labels: LabelPieces, value: number, own?: OwnLabels) => void;

/** Adds the samples of one family for one cgroup. */
export type Write = (entity: Entity, add: AddSample) => void;

export interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge";
  /** Samples carry the time they were taken. */
  hasTimestamp: boolean;
  write: Write;
}

/** Declares the next family. `hasTimestamp` is true by default. */
export type Add = (type: Family["type"], name: string, help: string, write: Write, hasTimestamp?: boolean) => void;

/** One sample without further labels; none when the value is undefined. */
export function plain(value: (entity: Entity) => number | undefined): Write {
  return (entity, add) => {
    const number = value(entity);
    if (number !== undefined) add(entity.labels, number);
  };
}

export const NANO = 1e9;
export const MICRO = 1e6;
export const inSeconds = (value: number | undefined, perSecond: number) =>
  value === undefined ? undefined : value / perSecond;

export const toEntities = (sample: NodeSample): Entity[] =>
  measuredCgroups(sample).map((measured) => ({
    ...measured,
    labels: toLabels(measured),
    startSeconds: (measured.container?.facts.startedAt ?? measured.cgroup.createdAt).getTime() / 1000,
  }));

function toLabels({ cgroup, container, isSandbox, pod }: MeasuredCgroup): LabelPieces {
  const name = container ? (isSandbox ? "POD" : container.facts.name) : "";
  const label = (key: string, value = "") => `${key}="${escapeLabelValue(value)}"`;
  const head = `{${label("container", name)},`;
  const middle = `${label("id", cgroup.path)},${label("image", container?.facts.image)},`;
  const tail = [
    label("name", container?.facts.dockerName),
    label("namespace", pod?.facts.namespace),
    label("pod", pod?.facts.name),
  ].join(",");
  return { head, middle, tail, end: "}", whole: `${head}${middle}${tail}}` };
}

/** The labels of a sample as text. */
export function labelsText(labels: LabelPieces, own: OwnLabels | undefined): string {
  if (!own) return labels.whole;
  const { head, middle, tail, end } = labels;
  return `${head}${own.head ?? ""}${middle}${own.middle ?? ""}${tail}${own.tail ?? ""}${end}`;
}
