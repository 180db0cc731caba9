/** Ports of a pod worker and its pod runtime manager: probes, volumes, images, hooks, cgroups and log links. */
import type { Container, Pod } from "../base/api/pod.ts";
import type { Secret } from "../base/api/secret.ts";
import type { ObjectIndex } from "../base/model/desired-pod.ts";
import type { Mount } from "../base/model/mount.ts";
import type { PodRef } from "../base/model/pod-ref.ts";
import type { ContainerId, ContainerSnapshot, PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { ImageInfo } from "../docker/image-info.ts";
import type { ContainerProbeState } from "../plan/pod-plan.ts";

/** The probe manager as a worker sees it. */
export interface PodProbes {
  /** @param heldBack containers whose postStart hook has not ended: they are not probed yet */
  update(pod: Pod, snapshot: PodSnapshot, heldBack: ReadonlySet<string>): void;
  remove(uid: string): void;
  states(uid: string): ReadonlyMap<string, ContainerProbeState>;
}

/** Volumes of pods on the host. Source of the contract: src/kubelet/volumes/volume-manager.ts. */
export interface PodVolumes {
  /** @throws an Error with `failures` when a volume cannot be made ready */
  setUp(pod: Pod, facts: { objects: ObjectIndex }, signal: AbortSignal): Promise<void>;
  mountsFor(
    pod: Pod,
    container: Container,
    env: readonly { name: string; value: string }[],
    signal: AbortSignal,
  ): Promise<Mount[]>;
  /** Never throws for a volume: `failures` lists volumes that keep their former contents. */
  refresh(pod: Pod, objects: ObjectIndex): Promise<{ changed: string[]; failures: { message: string }[] }>;
  /** undefined when there is no such file. @throws Error with a message for users */
  readEnvFile(pod: Pod, volumeName: string, path: string): Promise<string | undefined>;
  /** Volumes an edit took out of the pod. @throws when one is still in use */
  removeUnused(pod: Pod, signal: AbortSignal): Promise<void>;
  tearDown(uid: string, signal: AbortSignal): Promise<void>;
}

/** Images on the engine, as src/docker/image-manager.ts has them. */
export interface PodImages {
  ensureImage(
    pod: Pod,
    container: Container,
    options: { pullSecrets: readonly Secret[] },
    signal: AbortSignal,
  ): Promise<ImageInfo>;
  forget(image: string): void;
}

/** Hooks of a container; rejects with a message for an event. */
export interface PodHooks {
  run(
    handler: NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>,
    target: { container: { id: string; name: string; ports: Container["ports"] }; pod: PodRef; podIp: string },
    signal: AbortSignal,
  ): Promise<void>;
}

/** Cgroups above the containers of a pod. */
export interface PodCgroups {
  /** @throws PodStepError when a bound of the pod as a whole cannot be put into force */
  ensure(pod: Pod): Promise<void>;
  /** Waits up to a second for a cgroup in use; one that stays in use is removed later. */
  remove(uid: string, signal: AbortSignal): Promise<void>;
}

/** Symlinks for log shippers. */
export interface ContainerLogLinks {
  create(pod: Pod, container: string, restartCount: number, id: ContainerId): void;
  removeContainer(container: ContainerSnapshot, pod: PodRef): void;
  removePod(pod: PodRef): void;
}
