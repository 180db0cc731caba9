import type { PodUID } from "../base/model/pod.ts";
import type { EngineContainer } from "../base/model/pod-snapshot.ts";

/** Facts of one container that runs or has just ended, for the statistics. Without a pid it is left out of every response. */
export interface ContainerFacts extends Omit<EngineContainer, "imageId" | "startedAt"> {
  /** `spec.containers[].name`; `POD` for a sandbox. */
  name: string;
  /** As the engine names it: an image id (`sha256:…`) or a reference. */
  image: string;
  startedAt: Date;
}

/** One volume of a pod on the host. */
export interface VolumeFacts {
  /** `spec.volumes[].name`. */
  name: string;
  /** Host directory, e.g. `<root-dir>/pods/<uid>/volumes/kubernetes.io~empty-dir/cache`. */
  path: string;
  /** Its bytes count as the pod's ephemeral storage: emptyDir on disk, configMap, secret, downwardAPI, projected. */
  ephemeral: boolean;
  /** Its figures are those of its file system: emptyDir with medium Memory, PersistentVolume of a directory. */
  isFileSystem: boolean;
  /** Claim behind it, when it is a persistentVolumeClaim. */
  pvcName?: string;
}

/** Facts of one pod with a live sandbox, for the statistics. */
export interface PodFacts {
  uid: PodUID;
  /** With the node suffix. */
  name: string;
  namespace: string;
  startTime: Date;
  /** true: its network is the node's and is not reported for the pod. */
  hostNetwork: boolean;
  /** As given to the engine: `/kubepods/burstable/pod<uid>`, or the slice's name with the systemd driver. */
  cgroupParent: string;
  sandbox: ContainerFacts;
  /** Running ones; init containers and sidecars too. */
  containers: readonly ContainerFacts[];
  volumes: readonly VolumeFacts[];
}
