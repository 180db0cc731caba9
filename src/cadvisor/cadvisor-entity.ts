import type { LabelPieces, OwnLabels } from "../cgroups/line-table.ts";
import type { InterfaceCounters } from "../cgroups/proc.ts";
import { escapeLabelValue } from "../metrics/prometheus-text.ts";
import type { CgroupSample, ContainerSample, NodeSample } from "../stats/sampler.ts";

/** One cgroup with its labels rendered. */
export interface Entity {
  labels: LabelPieces;
  cgroup: CgroupSample;
  startSeconds: number;
  /** undefined for a cgroup that is not a container. */
  container: ContainerSample | undefined;
  interfaces: readonly InterfaceCounters[];
  isRoot: boolean;
}

/** Where samples of the present family go. */
export interface SampleSink {
  /** @param own further labels */
  sample(labels: LabelPieces, value: number, own?: OwnLabels): void;
}

/** Writes the samples of one family for one cgroup. */
export type Write = (entity: Entity, sink: SampleSink) => void;

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
  return (entity, sink) => {
    const number = value(entity);
    if (number !== undefined) sink.sample(entity.labels, number);
  };
}

export const NANO = 1e9;
export const MICRO = 1e6;
export const inSeconds = (value: number | undefined, perSecond: number) =>
  value === undefined ? undefined : value / perSecond;

/** Every cgroup that is shown: the node, the groups, the pods, their sandboxes and containers. */
export function toEntities(sample: NodeSample, labels: EntityLabels): Entity[] {
  const entities: Entity[] = [];
  const add = (cgroup: CgroupSample, texts: LabelTexts, rest: Partial<Entity> = {}) =>
    entities.push({
      labels: labels.of(cgroup.path, texts),
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
      const texts = { container: isSandbox ? "POD" : facts.name, image: facts.image, name: facts.dockerName };
      add(
        container.cgroup,
        { ...texts, namespace, pod: name },
        { container, startSeconds: facts.startedAt.getTime() / 1000, interfaces: isSandbox ? pod.interfaces : [] },
      );
    }
  }
  labels.forgetUnused();
  return entities;
}

interface LabelTexts {
  container: string;
  image: string;
  name: string;
  namespace: string;
  pod: string;
}

const NO_LABELS: LabelTexts = { container: "", image: "", name: "", namespace: "", pod: "" };

interface RenderedLabels {
  texts: LabelTexts;
  pieces: LabelPieces;
}

/** Labels by cgroup, each rendered once: what stays the same is the same object. */
export class EntityLabels {
  #known = new Map<string, RenderedLabels>();
  #used = new Map<string, RenderedLabels>();

  of(id: string, texts: LabelTexts): LabelPieces {
    let labels = this.#known.get(id);
    if (!labels || !isSame(labels.texts, texts)) labels = { texts, pieces: renderLabels(id, texts) };
    this.#used.set(id, labels);
    return labels.pieces;
  }

  /** Forgets what was not asked for since the last time. */
  forgetUnused(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }
}

const isSame = (a: LabelTexts, b: LabelTexts) =>
  a.container === b.container &&
  a.image === b.image &&
  a.name === b.name &&
  a.namespace === b.namespace &&
  a.pod === b.pod;

function renderLabels(id: string, texts: LabelTexts): LabelPieces {
  const escaped = (value: string) => escapeLabelValue(value);
  return {
    head: `{container="${escaped(texts.container)}",`,
    middle: `id="${escaped(id)}",image="${escaped(texts.image)}",`,
    tail: `name="${escaped(texts.name)}",namespace="${escaped(texts.namespace)}",pod="${escaped(texts.pod)}"`,
    end: "}",
  };
}
