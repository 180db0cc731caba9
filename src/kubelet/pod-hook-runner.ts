import type { Container, Pod } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ContainerAccess } from "../base/model/container-access.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { containerFieldPath } from "../base/model/pod-containers.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import { type PodRef, podRefOf, podRefOfLabels } from "../base/model/pod-ref.ts";
import type { ContainerId, ContainerSnapshot } from "../base/model/pod-snapshot.ts";
import { type HookTarget, runLifecycleHook } from "./prober/lifecycle-hook.ts";

interface PodHookRunnerDeps {
  clock: Clock;
  recorder: EventRecorder;
  node: NodeInfo;
  exec: Pick<ContainerAccess, "run">;
  /** e.g. `1.20`: httpGet hooks introduce themselves as `kube-lifecycle/<version>`. */
  version: string;
}

type Handler = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>;

/** Time after the end of its container in which a hook may still report its result. */
const HOOK_DIES_MS = 2_000;

/** Runs the hooks of containers and records their failures. */
export class PodHookRunner {
  readonly #deps: PodHookRunnerDeps;

  constructor(deps: PodHookRunnerDeps) {
    this.#deps = deps;
  }

  /** @throws when the hook failed; the event is recorded */
  async runPostStart(
    { pod, container, isInit, podIps }: { pod: Pod; container: Container; isInit: boolean; podIps: readonly string[] },
    id: ContainerId,
    signal: AbortSignal,
  ): Promise<void> {
    const handler = container.lifecycle?.postStart;
    if (!handler) return;
    const target = { id, name: container.name, ports: container.ports };
    try {
      await this.#run(handler, target, podRefOf(pod), this.#podIpOf(pod, podIps), signal);
    } catch (error) {
      signal.throwIfAborted();
      const fieldPath = `spec.${isInit ? "initContainers" : "containers"}{${container.name}}`;
      this.#recordFailure(podRefOf(pod), "FailedPostStartHook", error as Error, fieldPath);
      throw error;
    }
  }

  /**
   * Runs the preStop hook, if there is one, for as long as the grace period at most, then `stop`. A hook that failed is
   * recorded, and the container is stopped in any case.
   * @param spec absent for a container without a manifest: its label has the hook it was created with
   * @param stop gets the elapsed part of the time. Unit: milliseconds.
   */
  async runPreStopThen(
    {
      container,
      spec,
      pod,
      podIps,
      graceSeconds,
    }: {
      container: ContainerSnapshot;
      spec: Container | undefined;
      pod: Pod | undefined;
      podIps: readonly string[];
      graceSeconds: number;
    },
    signal: AbortSignal,
    stop: (spentMs: number) => Promise<void>,
  ): Promise<void> {
    const { clock } = this.#deps;
    const startedAtMs = clock.monotonicMs();
    const handler = spec ? spec.lifecycle?.preStop : parseHandler(container);
    const giveUp = new AbortController();
    if (handler && graceSeconds > 0) {
      const hook = this.#runPreStop(handler, container, spec, pod, podIps, AbortSignal.any([signal, giveUp.signal]));
      // A hook that exceeds its time continues while the container is stopped; it ends with the container and reports that.
      await this.#firstOf(hook, graceSeconds * 1000, signal);
    }
    await stop(clock.monotonicMs() - startedAtMs);
    if (handler) clock.schedule(HOOK_DIES_MS, () => giveUp.abort(new Error("the container is gone")));
  }

  /** Never rejects. */
  async #runPreStop(
    handler: Handler,
    container: ContainerSnapshot,
    spec: Container | undefined,
    pod: Pod | undefined,
    podIps: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const identity = pod ? podRefOf(pod) : podRefOfLabels(container);
    const fieldPath = containerFieldPath(pod?.spec, container.name);
    const target = { id: container.id, name: container.name, ports: spec?.ports };
    try {
      const podIp = pod ? this.#podIpOf(pod, podIps) : (podIps[0] ?? "");
      await this.#run(handler, target, identity, podIp, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#recordFailure(identity, "FailedPreStopHook", error as Error, fieldPath);
    }
  }

  /** Waits for `work`, but no longer than that. @throws the signal's reason */
  async #firstOf(work: Promise<void>, limitMs: number, signal: AbortSignal): Promise<void> {
    const limit = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.schedule(limitMs, limit.resolve);
    try {
      await Promise.race([work, limit.promise]);
      signal.throwIfAborted();
    } finally {
      cancel();
    }
  }

  #run(
    handler: Handler,
    container: { id: string; name: string; ports: Container["ports"] },
    pod: PodRef,
    podIp: string,
    signal: AbortSignal,
  ): Promise<void> {
    const target: HookTarget = {
      containerId: container.id,
      containerName: container.name,
      ports: container.ports ?? [],
      podIp,
      podName: pod.name,
      podUid: pod.uid,
      namespace: pod.namespace,
    };
    return runLifecycleHook(handler, target, this.#deps, signal);
  }

  #recordFailure(pod: PodRef, reason: string, { message }: Error, fieldPath: string): void {
    this.#deps.recorder.record(pod, { type: "Warning", reason, message, fieldPath });
  }

  #podIpOf(pod: Pod, podIps: readonly string[]): string {
    return pod.spec.hostNetwork ? this.#deps.node.ip : (podIps[0] ?? "");
  }
}

/** The hook as the manifest had it when the container was made, for one whose manifest is gone. */
function parseHandler({ labels }: ContainerSnapshot): Handler | undefined {
  const text = labels["annotation.io.kubernetes.container.preStopHandler"];
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
