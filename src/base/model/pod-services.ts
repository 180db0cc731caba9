import type { Container, Pod } from "../api/pod.ts";
import type { ImagePinRef, ObjectIndex } from "./desired-pod.ts";
import type { PodUID } from "./identity.ts";
import type { ContainerId, ContainerLimits, ContainerSnapshot } from "./pod-snapshot.ts";

/** A pod as a step of its worker gets it: the spec of one revision and the objects that it may refer to. */
export interface PodRequest {
  pod: Pod;
  objects: ObjectIndex;
  /** Label value by which this revision is recognized later. */
  sandboxHash: string;
  /** Revision of the init containers. */
  initHash?: string;
  /** Images in place of those of the manifest. */
  imagePins?: ReadonlyMap<string, ImagePinRef>;
}

export interface StartContainerRequest extends PodRequest {
  container: Container;
  restartCount: number;
  hash: string;
  /** Crash-loop back-off after its next exit, for a later process; absent when there is none yet. */
  backOffMs?: number;
  sandboxId: ContainerId;
  /** Running container whose process namespace an ephemeral container joins. */
  targetId?: ContainerId;
  /** IPs of the sandbox, IPv4 first; empty with host networking. */
  podIps: readonly string[];
}

/** A revision that is to replace the one that runs. */
export interface EditRequest extends PodRequest {
  /** Those that stop, and start again. */
  containers: readonly Container[];
  isNewSandbox: boolean;
  /** IPs of the sandbox that runs. */
  podIps: readonly string[];
}

export interface KillContainerRequest {
  container: ContainerSnapshot;
  /** Absent for a container without a manifest. */
  pod?: Pod;
  podIps: readonly string[];
  graceSeconds: number;
}

/** The steps of a pod worker: each call is one of them, may be repeated, and ends early when `signal` aborts. */
export interface PodServices {
  /** Volumes, pod cgroup, sandbox with its network and files. @returns the id of the running sandbox. @throws PodStepError */
  createSandbox(request: PodRequest, attempt: number, signal: AbortSignal): Promise<ContainerId>;
  stopSandbox(id: ContainerId, graceSeconds: number, signal: AbortSignal): Promise<void>;
  /**
   * Pulls the images of an edit, and finds what would keep it from starting, while the pod runs as before. Changes nothing of
   * what runs. @throws PodStepError
   */
  prepareEdit(request: EditRequest, signal: AbortSignal): Promise<void>;
  /** Makes sure the image is there: the slow part of a start, which needs no turn. @throws PodStepError */
  pullImage(request: StartContainerRequest, signal: AbortSignal): Promise<void>;
  /** Creates and starts. The id is reported as soon as there is one. @throws PodStepError */
  startContainer(
    request: StartContainerRequest,
    onCreated: (id: ContainerId) => void,
    signal: AbortSignal,
  ): Promise<ContainerId>;
  /** Runs the postStart hook to its end. @throws when the hook failed (the event is already recorded) */
  runPostStart(request: StartContainerRequest, id: ContainerId, signal: AbortSignal): Promise<void>;
  /** preStop hook and stop, together within the grace period. */
  killContainer(request: KillContainerRequest, signal: AbortSignal): Promise<void>;
  /** Changes the limits of a running container, and those of its pod's cgroup with them. */
  resizeContainer(
    request: { pod: Pod; container: ContainerSnapshot; update: Partial<ContainerLimits> },
    signal: AbortSignal,
  ): Promise<void>;
  removeContainer(container: ContainerSnapshot, signal: AbortSignal): Promise<void>;
  /** After a container was removed by anyone: removes its log links. */
  containerGone(container: ContainerSnapshot): void;
  removeSandbox(id: ContainerId, uid: PodUID, signal: AbortSignal): Promise<void>;
  /** Brings files made from ConfigMaps, Secrets and the pod's own metadata up to date. @throws PodStepError */
  refreshVolumes(request: PodRequest, signal: AbortSignal): Promise<void>;
  /** Removes volumes that an edit took out; no container of an earlier revision may run. @throws when one is in use */
  removeUnusedVolumes(request: PodRequest, signal: AbortSignal): Promise<void>;
  /** Unmounts and removes the volumes of a pod that has come to its end, unless they are to be kept. @throws when one is still in use */
  releaseVolumes(request: PodRequest, signal: AbortSignal): Promise<void>;
  /** Termination message of a dead container, "" when it has none. */
  readTerminationMessage(container: ContainerSnapshot, pod: Pod | undefined, signal: AbortSignal): Promise<string>;
  /** After the last container is gone: volumes, directories, cgroup, log links. */
  tearDown(uid: PodUID, ref: { name: string; namespace: string }, signal: AbortSignal): Promise<void>;
}
