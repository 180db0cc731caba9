import type { PodUID } from "../base/model/identity.ts";

/** Facts of one container that runs or has just ended, for the statistics. */
export interface ContainerFacts {
  /** `spec.containers[].name`; `POD` for a sandbox. */
  name: string;
  /** Docker's id, 64 hex digits. */
  id: string;
  /** Docker's name without the slash, `k8s_<container>_<pod>_<namespace>_<uid>_<attempt>`. */
  dockerName: string;
  /** Host pid of its main process; 0 when it does not run (it is then left out of every response). */
  pid: number;
  /** As the engine names it: an image id (`sha256:…`) or a reference. */
  image: string;
  createdAt: Date;
  startedAt: Date;
  labels: Readonly<Record<string, string>>;
  /** Files of the engine's json-file log, first the current one; the directory's usage counts. "" when it has no file. */
  logPath: string;
  /** Host directory of the writable layer; "" when the storage driver has none, or it is not known. */
  writableLayerPath: string;
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
