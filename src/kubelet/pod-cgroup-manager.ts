import type { Pod, QOSClass } from "../base/api/pod.ts";
import type { CgroupPlan } from "../base/model/cgroup-plan.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import type { EngineInfo, NodeInfo } from "../base/model/node.ts";
import { containersOf, type PodUID } from "../base/model/pod.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { computeKubepodsBounds } from "../plan/admission.ts";
import {
  type CgroupLimits,
  type CgroupName,
  computePodCgroupLimits,
  computeQosCgroups,
  toCgroupPlan,
  toPodCgroupName,
  toQosCgroupName,
} from "../plan/pod-cgroup.ts";
import { computeQosClass, hugePageNamesOf } from "../plan/pod-resources.ts";
import { PodStepError } from "../plan/waiting-reasons.ts";

/** Cgroups of the host, as src/base/host/pod-cgroups.ts has them. */
export interface CgroupWriter {
  /** @throws Error when a bound cannot be set. */
  ensure(plan: CgroupPlan): Promise<void>;
  /** false while something is still inside. */
  remove(path: string): Promise<boolean>;
  /** Kills every process in it, and in those below it. */
  kill(path: string): void;
}

interface PodCgroupManagerDeps {
  clock: Clock;
  cgroups: CgroupWriter;
  engine: () => EngineInfo;
  node: () => NodeInfo;
  /** Every desired pod: together they determine the weights of the QoS classes. */
  pods: () => readonly Pod[];
  /** Whether this kubelet sets the cgroups of the QoS classes, and no other one of the machine. */
  ownsQosCgroups: () => Promise<boolean>;
  options: Pick<
    KubeletOptions,
    | "kubeReserved"
    | "systemReserved"
    | "cgroupRoot"
    | "cgroupsPerQos"
    | "cpuCfsQuota"
    | "cpuCfsQuotaPeriodMs"
    | "podPidsLimit"
    | "memorySwap"
  >;
  logger: Logger;
}

/** The engine empties the cgroup of a removed container shortly after the removal returned. */
const REMOVAL_PAUSES_MS = [50, 200, 750] as const;
/** A process left behind by a container may live for any time. */
const SWEEP_PERIOD_MS = 60_000;

const QOS_CLASSES: readonly QOSClass[] = ["Guaranteed", "Burstable", "BestEffort"];

/** Keeps the cgroups above the containers: one per pod, and those of the QoS classes. */
export class PodCgroupManager {
  readonly #deps: PodCgroupManagerDeps;
  readonly #onNodeBounded: (() => void) | undefined;
  /** Limits last set on the cgroups of the QoS classes, as JSON by path. */
  readonly #qosLimits = new Map<string, string>();
  /** Limits last set on the cgroups of pods, as JSON by path. */
  readonly #podLimits = new Map<string, string>();
  /** Paths that something was still inside when they were to go. */
  readonly #leftovers = new Set<string>();
  #warned = false;
  #isNodeBounded = false;
  #isSweepDue = false;

  /** @param onNodeBounded called once, when the cgroup of all pods has the bounds that reserved resources leave */
  constructor(deps: PodCgroupManagerDeps, onNodeBounded?: () => void) {
    this.#deps = deps;
    this.#onNodeBounded = onNodeBounded;
  }

  /**
   * Puts the pod's bounds into force, before its sandbox starts and after an edit of its resources.
   * @throws PodStepError FailedCreatePodContainer when a bound that only the pod's cgroup can hold does not hold.
   */
  async ensure(pod: Pod): Promise<void> {
    const { cgroups, options, logger } = this.#deps;
    if (!options.cgroupsPerQos) return;
    try {
      const refusals = await this.#boundQosClasses();
      const { path, ...plan } = this.#podPlanOf(pod);
      this.#leftovers.delete(path);
      this.#podLimits.delete(path);
      await cgroups.ensure({ path, ...plan });
      this.#podLimits.set(path, JSON.stringify(plan));
      for (const message of refusals) logger.debug(message);
    } catch (cause) {
      const message = (cause as Error).message;
      if (this.#dependsOnPodCgroup(pod)) {
        throw new PodStepError("FailedCreatePodContainer", `failed to bound the pod as a whole: ${message}`, { cause });
      }
      // Without bounds of the pod itself, those of its containers are enough: the engine holds them.
      if (!this.#warned)
        logger.warn("Cgroups of pods cannot be written; limits hold for each container", { why: message });
      this.#warned = true;
    }
  }

  /**
   * As `ensure`, where the bounds are not those that were set last: before a container starts in a sandbox that runs. An edit of
   * resources changes containers that run; one that is dead has nothing to change, and its pod would keep its bounds.
   */
  async ensureChanged(pod: Pod): Promise<void> {
    if (!this.#deps.options.cgroupsPerQos) return;
    const { path, ...plan } = this.#podPlanOf(pod);
    if (this.#podLimits.get(path) !== JSON.stringify(plan)) await this.ensure(pod);
  }

  #podPlanOf(pod: Pod): CgroupPlan {
    const name = toPodCgroupName(pod.metadata.uid ?? "", computeQosClass(pod));
    return this.#planOf(name, computePodCgroupLimits(pod, this.#deps.options));
  }

  /**
   * To be called after the engine has removed a container of a pod. An engine that was killed while it started the container takes
   * it for one that never ran, and leaves its processes. Source: the kubelet's podContainerManagerImpl.Destroy.
   */
  endContainer(uid: PodUID, id: ContainerId): void {
    const { options, cgroups, engine } = this.#deps;
    if (!options.cgroupsPerQos) return;
    const name = engine().cgroupDriver === "systemd" ? `docker-${id}.scope` : id;
    for (const qosClass of QOS_CLASSES) {
      cgroups.kill(`${this.#planOf(toPodCgroupName(uid, qosClass), {}).path}/${name}`);
    }
  }

  /** To be called after the last container of a pod was removed. A cgroup in use for more than a second is removed later. */
  async remove(uid: string, signal: AbortSignal): Promise<void> {
    const { options, clock } = this.#deps;
    if (!options.cgroupsPerQos) return;
    // Its QoS class may have changed since: an edit moves a pod from one parent to another.
    const paths = QOS_CLASSES.map((qosClass) => this.#planOf(toPodCgroupName(uid, qosClass), {}).path);
    for (const path of paths) {
      this.#leftovers.add(path);
      this.#podLimits.delete(path);
    }
    await this.#sweep();
    for (const pauseMs of REMOVAL_PAUSES_MS) {
      if (!paths.some((path) => this.#leftovers.has(path))) return;
      await clock.sleep(pauseMs, signal);
      await this.#sweep();
    }
    this.#sweepLater();
  }

  #sweepLater(): void {
    if (this.#leftovers.size === 0 || this.#isSweepDue) return;
    this.#isSweepDue = true;
    this.#deps.clock.schedule(SWEEP_PERIOD_MS, async () => {
      this.#isSweepDue = false;
      await this.#sweep();
      this.#sweepLater();
    });
  }

  async #sweep(): Promise<void> {
    await Promise.all(
      [...this.#leftovers].map(async (path) => {
        try {
          if (await this.#deps.cgroups.remove(path)) this.#leftovers.delete(path);
        } catch (error) {
          this.#leftovers.delete(path);
          this.#deps.logger.debug((error as Error).message);
        }
      }),
    );
  }

  /**
   * A bound that the kernel refuses, e.g. one below what is in use, does not keep a pod from starting.
   * @returns a message for each cgroup with such a bound
   */
  async #boundQosClasses(): Promise<string[]> {
    const { pods, node, options, cgroups, ownsQosCgroups } = this.#deps;
    if (!(await ownsQosCgroups())) return [];
    const refusals: string[] = [];
    for (const { name, limits } of computeQosCgroups(pods(), computeKubepodsBounds(node(), options))) {
      const plan = this.#planOf(name, limits);
      const wanted = JSON.stringify(limits);
      if (this.#qosLimits.get(plan.path) === wanted) continue;
      this.#qosLimits.set(plan.path, wanted);
      try {
        await cgroups.ensure(plan);
        if (this.#isNodeBounded || plan.path !== this.#planOf(toQosCgroupName("Guaranteed"), {}).path) continue;
        this.#isNodeBounded = true;
        this.#onNodeBounded?.();
      } catch (error) {
        refusals.push(`Cgroup "${plan.path}" has not all bounds: ${(error as Error).message}`);
      }
    }
    return refusals;
  }

  #planOf(name: CgroupName, limits: CgroupLimits): CgroupPlan {
    const { cgroupDriver: driver, cgroupVersion } = this.#deps.engine();
    return toCgroupPlan(name, limits, { driver, cgroupVersion, cgroupRoot: this.#deps.options.cgroupRoot });
  }

  #dependsOnPodCgroup({ spec }: Pod): boolean {
    const own = Object.keys(spec.resources?.limits ?? {}).length > 0;
    const everyone = containersOf(spec);
    const hugePages = everyone.some(({ resources }) => hugePageNamesOf(resources.limits).length > 0);
    return own || hugePages || this.#deps.options.podPidsLimit > 0;
  }
}
