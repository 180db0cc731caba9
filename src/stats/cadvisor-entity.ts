import type { InterfaceCounters } from "./proc.ts";
import { escapeLabelValue } from "./prometheus-text.ts";
import type { CgroupSample, ContainerSample, NodeSample } from "./sampler.ts";

/** One cgroup with its labels rendered, in the three pieces between which other labels stand in alphabetical order. */
export interface Entity {
  /** `{container="…",` */
  head: string;
  /** `id="…",image="…",` */
  middle: string;
  /** `name="…",namespace="…",pod="…"` */
  tail: string;
  cgroup: CgroupSample;
  startSeconds: number;
  /** undefined for a cgroup that is not a container. */
  container: ContainerSample | undefined;
  interfaces: readonly InterfaceCounters[];
  isRoot: boolean;
}

export interface Output {
  text: string;
  /** ` <time>` behind a value, or "". */
  stamp: string;
}

/** Writes the samples of one family for one cgroup. */
export type Write = (entity: Entity, output: Output, name: string) => void;

export interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge";
  /** Samples carry the time they were taken. */
  stamped: boolean;
  write: Write;
}

/** Takes the next family. `stamped` is true unless said otherwise. */
export type Add = (type: Family["type"], name: string, help: string, write: Write, stamped?: boolean) => void;

/** One sample without further labels; nothing when the value is not known. */
export function plain(value: (entity: Entity) => number | undefined): Write {
  return (entity, output, name) => {
    const number = value(entity);
    if (number === undefined) return;
    output.text += `${name}${entity.head}${entity.middle}${entity.tail}} ${number}${output.stamp}\n`;
  };
}

export const NANO = 1e9;
export const MICRO = 1e6;
export const inSeconds = (value: number | undefined, perSecond: number) =>
  value === undefined ? undefined : value / perSecond;

/** Every cgroup that is shown: the node, the groups, the pods, their sandboxes and containers. */
export function toEntities(sample: NodeSample): Entity[] {
  const entities: Entity[] = [];
  const add = (cgroup: CgroupSample, labels: EntityLabels, rest: Partial<Entity> = {}) =>
    entities.push({
      ...renderLabels(cgroup.path, labels),
      cgroup,
      startSeconds: cgroup.createdAt.getTime() / 1000,
      container: undefined,
      interfaces: [],
      isRoot: false,
      ...rest,
    });
  if (sample.root) add(sample.root, NO_LABELS, { isRoot: true, interfaces: sample.interfaces });
  for (const group of [sample.kubepods, ...sample.groups]) if (group) add(group, NO_LABELS);
  for (const pod of sample.pods) {
    const { name, namespace } = pod.facts;
    if (pod.cgroup) add(pod.cgroup, { ...NO_LABELS, namespace, pod: name });
    for (const container of [pod.sandbox, ...pod.containers]) {
      if (!container) continue;
      const { facts } = container;
      const isSandbox = container === pod.sandbox;
      const labels = { container: isSandbox ? "POD" : facts.name, image: facts.image, name: facts.dockerName };
      add(
        container.cgroup,
        { ...labels, namespace, pod: name },
        { container, startSeconds: facts.startedAt.getTime() / 1000, interfaces: isSandbox ? pod.interfaces : [] },
      );
    }
  }
  return entities;
}

interface EntityLabels {
  container: string;
  image: string;
  name: string;
  namespace: string;
  pod: string;
}

const NO_LABELS: EntityLabels = { container: "", image: "", name: "", namespace: "", pod: "" };

function renderLabels(id: string, labels: EntityLabels): Pick<Entity, "head" | "middle" | "tail"> {
  const escaped = (value: string) => escapeLabelValue(value);
  return {
    head: `{container="${escaped(labels.container)}",`,
    middle: `id="${escaped(id)}",image="${escaped(labels.image)}",`,
    tail: `name="${escaped(labels.name)}",namespace="${escaped(labels.namespace)}",pod="${escaped(labels.pod)}"`,
  };
}
