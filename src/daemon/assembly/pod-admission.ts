import type { Pod } from "../../base/api/pod.ts";
import type { DesiredPod, DesiredState } from "../../base/model/desired-pod.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { DockerEngine } from "../../docker/docker-engine.ts";
import { findPodRefusal } from "../../docker/pod-refusal.ts";
import type { PodRules } from "../../kubelet/blocked-pods.ts";
import { type PodRevision, toPodRevision } from "../../kubelet/edit-rules.ts";
import type { NodeCordon } from "../../kubelet/node-cordon.ts";
import { type Admission, NodeAdmission, type Rejection } from "../../plan/admission.ts";
import { computeMaxPods } from "../../plan/node-allocatable.ts";
import { conflictOverPorts } from "../../plan/pod-network.ts";
import { type NodeContext, nodeLabelsOf } from "./node-context.ts";
import { openStateFile } from "./state-files.ts";

/** Returns why the node takes no such pod at present, or undefined. Asked for pods that do not run yet. */
type PodAdmitHandler = (pod: Pod) => Rejection | undefined;

/** Decides which pods the node takes: features of the engine, admit handlers, resources, in this order. */
export class PodAdmission implements PodRules {
  readonly #context: NodeContext;
  readonly #engine: DockerEngine;
  readonly #cordon: NodeCordon | undefined;
  readonly #node: NodeAdmission;
  readonly #handlers: PodAdmitHandler[] = [];

  /** @param cordon absent for a node whose pods something else assigns */
  constructor(context: NodeContext, engine: DockerEngine, cordon: NodeCordon | undefined) {
    const { node, options, allocatable } = context;
    this.#context = context;
    this.#engine = engine;
    this.#cordon = cordon;
    const { ephemeralStorageBytes, ...others } = allocatable;
    const offer = {
      name: node.name,
      labels: nodeLabelsOf(context),
      comparesAllLabels: options.validate === "strict",
      maxPods: computeMaxPods(options, node.cpuCount),
      ...others,
      // 0: the size of the disk is not known.
      ...(ephemeralStorageBytes > 0 && { ephemeralStorageBytes }),
      ...(node.hugePageBytes && { hugePageBytes: node.hugePageBytes }),
    };
    this.#node = new NodeAdmission(offer, openStateFile(context, "allocations"));
  }

  /** Eviction and node shutdown refuse new pods this way. */
  addHandler(handler: PodAdmitHandler): void {
    this.#handlers.push(handler);
  }

  /** The Node of the API has these labels. */
  setNodeLabels(labels: Readonly<Record<string, string>>): void {
    this.#node.setLabels(labels);
  }

  toPodRevision(desired: DesiredPod, state: DesiredState): PodRevision {
    return toPodRevision(desired, state, this.#context.options, this.#context.node);
  }

  holdOf(desired: DesiredPod): string | undefined {
    return this.#cordon?.holdOf(desired);
  }

  conflict(a: Pod, b: Pod): boolean {
    return conflictOverPorts(a, b);
  }

  admit(pods: readonly DesiredPod[], running: ReadonlySet<PodUID>, isComplete: boolean): Admission {
    const refusals = new Map<PodUID, Rejection>();
    for (const { pod } of pods) {
      const uid = pod.metadata.uid ?? "";
      const refusal = this.#findRefusal(pod, !running.has(uid));
      if (refusal) refusals.set(uid, refusal);
    }
    // Refused pods take no resources from others.
    const others = pods.filter(({ pod }) => !refusals.has(pod.metadata.uid ?? ""));
    const { rejections, resizes } = this.#node.admit(others, running, isComplete);
    return { rejections: new Map([...rejections, ...refusals]), resizes };
  }

  #findRefusal(pod: Pod, isNew: boolean): Rejection | undefined {
    const unsupported = findPodRefusal({ pod, engine: this.#engine.info(), settings: this.#context.options });
    if (unsupported || !isNew) return unsupported;
    for (const handler of this.#handlers) {
      const refusal = handler(pod);
      if (refusal) return refusal;
    }
    return undefined;
  }
}
