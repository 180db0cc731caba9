import type { Clock } from "../base/model/clock.ts";
import type { DesiredPod } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { type EventRecorder, nodeTarget } from "../base/model/pod-event.ts";
import { type Cordon, isHeldByCordon } from "../plan/cordon.ts";

/** As stored: the time is RFC 3339. undefined: the node takes pods. */
export interface StoredCordon {
  cordon?: { since: string; assigned: readonly PodUID[] } | undefined;
}

interface NodeCordonDeps {
  clock: Pick<Clock, "now">;
  file: Persisted<StoredCordon>;
  recorder: EventRecorder;
  nodeName: string;
  /** Name of the source of submitted pods. */
  submittedSourceId: string;
}

/** `spec.unschedulable` of the node: kept across restarts. */
export class NodeCordon {
  readonly #deps: NodeCordonDeps;
  #cordon: Cordon | undefined;

  constructor(deps: NodeCordonDeps) {
    this.#deps = deps;
    const { cordon } = deps.file.read() ?? {};
    this.#cordon = cordon && { since: new Date(cordon.since), assigned: new Set(cordon.assigned) };
  }

  /** Since when the node takes no further pods; undefined: it does. */
  get since(): Date | undefined {
    return this.#cordon?.since;
  }

  /** @param assigned pods of the node at this time @returns whether anything changed */
  set(isUnschedulable: boolean, assigned: Iterable<PodUID>): boolean {
    if (isUnschedulable === (this.#cordon !== undefined)) return false;
    const { clock, file, recorder, nodeName: name } = this.#deps;
    this.#cordon = isUnschedulable ? { since: clock.now(), assigned: new Set(assigned) } : undefined;
    const cordon = this.#cordon && { since: this.#cordon.since.toISOString(), assigned: [...this.#cordon.assigned] };
    file.write({ ...(cordon && { cordon }) });
    const reason = isUnschedulable ? "NodeNotSchedulable" : "NodeSchedulable";
    const message = `Node ${name} status is now: ${reason}`;
    recorder.record(nodeTarget(name), { type: "Normal", reason, message });
    return true;
  }

  /** Why a pod that is not assigned to the node must wait; undefined: it need not. Source of the text: the scheduler. */
  holdOf(desired: DesiredPod): string | undefined {
    const { nodeName, submittedSourceId } = this.#deps;
    if (!this.#cordon || !isHeldByCordon(desired, desired.sourceId === submittedSourceId, this.#cordon))
      return undefined;
    return `0/1 nodes are available: 1 node(s) were unschedulable: node "${nodeName}" is cordoned; kubectl uncordon ${nodeName} lets it take pods`;
  }
}
