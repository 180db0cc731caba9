import { usesClaim } from "../base/model/claim-volume.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredObject, DesiredPod } from "../base/model/desired-state.ts";
import type { Logger } from "../base/model/logger.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { PodUID } from "../base/model/pod.ts";
import { type EventRecorder, nodeTarget } from "../base/model/pod-event.ts";
import { isHeldByCordon } from "../plan/admission.ts";

type TextMap = Readonly<Record<string, string>>;

/** As stored: the time is RFC 3339. Without a cordon the node takes pods; with one, those that it had before. */
export interface StoredSettings {
  cordon?: { since: string; assigned: readonly PodUID[] } | undefined;
  labels?: TextMap | undefined;
  annotations?: TextMap | undefined;
}

/** The part of a node that clients may write. */
export interface WrittenNode {
  metadata: { labels?: TextMap; annotations?: TextMap };
  spec?: { unschedulable?: boolean };
}

interface NodeSettingsDeps {
  clock: Pick<Clock, "now">;
  file: Persisted<StoredSettings>;
  recorder: EventRecorder;
  logger: Logger;
  nodeName: string;
  /** Labels of the machine and of --node-labels, which clients do not change. */
  fixedLabels: TextMap;
  /** Name of the source of submitted pods. */
  submittedSourceId: string;
}

/** `spec.unschedulable` of the node, its labels and annotations of clients: kept across restarts. */
export class NodeSettings {
  readonly #deps: NodeSettingsDeps;
  #stored: StoredSettings;
  #writing: unknown;

  constructor(deps: NodeSettingsDeps) {
    this.#deps = deps;
    this.#stored = deps.file.read() ?? {};
    for (const [key, value] of Object.entries(this.#stored.labels ?? {})) {
      const fixed = deps.fixedLabels[key];
      if (fixed !== undefined && fixed !== value)
        deps.logger.warn(
          `Label "${key}" of the node is "${fixed}" by --node-labels: "${value}" of a client is ignored`,
        );
    }
  }

  /** Since when the node takes no further pods; undefined: it does. */
  get since(): Date | undefined {
    const { cordon } = this.#stored;
    return cordon && new Date(cordon.since);
  }

  /** Resolves when the last change is stored, or could not be and is tried again. */
  async stored(): Promise<void> {
    await this.#writing;
  }

  /** All of them: those of flags come before those of clients. */
  get labels(): TextMap {
    return { ...this.#stored.labels, ...this.#deps.fixedLabels };
  }

  get annotations(): TextMap | undefined {
    return this.#stored.annotations;
  }

  /** Labels of flags and of the machine that have another value, or none, in what a client has written. */
  changedLabels({ metadata: { labels = {} } }: WrittenNode): string[] {
    return Object.entries(this.#deps.fixedLabels).flatMap(([key, value]) => (labels[key] === value ? [] : key));
  }

  /** @param assigned pods of the node at this time @returns whether anything changed */
  set({ metadata, spec = {} }: WrittenNode, assigned: Iterable<PodUID>): boolean {
    const { clock, file, recorder, nodeName: name, fixedLabels } = this.#deps;
    const { unschedulable = false } = spec;
    const before = this.#stored;
    const since = before.cordon ?? { since: clock.now().toISOString(), assigned: [...assigned] };
    const { annotations = {}, labels = {} } = metadata;
    const own = Object.entries(labels).filter(([key]) => !Object.hasOwn(fixedLabels, key));
    const next: StoredSettings = {
      ...(unschedulable && { cordon: since }),
      ...(own.length > 0 && { labels: Object.fromEntries(own) }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    };
    if (Bun.deepEquals(next, before)) return false;
    this.#writing = file.write(next);
    this.#stored = next;
    if (unschedulable === (before.cordon !== undefined)) return true;
    const reason = unschedulable ? "NodeNotSchedulable" : "NodeSchedulable";
    const message = `Node ${name} status is now: ${reason}`;
    recorder.record(nodeTarget(name), { type: "Normal", reason, message });
    return true;
  }

  /** Why a pod that is not assigned to the node must wait; undefined: it need not. Source of the text: the scheduler. */
  holdOf(desired: DesiredPod, objects: readonly DesiredObject[] = []): string | undefined {
    const { nodeName, submittedSourceId } = this.#deps;
    const { cordon } = this.#stored;
    if (cordon && isHeldByCordon(desired, desired.sourceId === submittedSourceId, cordon.assigned))
      return `0/1 nodes are available: 1 node(s) were unschedulable: node "${nodeName}" is cordoned; kubectl uncordon ${nodeName} lets it take pods`;
    const ending = objects.find(
      ({ kind, object: { metadata } }) =>
        kind === "PersistentVolumeClaim" && metadata.deletionTimestamp && usesClaim(desired, metadata),
    );
    return ending && `persistentvolumeclaim "${ending.object.metadata.name}" is being deleted`;
  }
}
