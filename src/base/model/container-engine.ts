import type { Container, Pod } from "../api/pod.ts";
import type { ContainerAccess } from "./container-access.ts";
import type { EngineInfo, NodeInfo } from "./node.ts";
import type { PodRef, PodUID } from "./pod.ts";
import type {
  ContainerId,
  ContainerLimits,
  ContainerSnapshot,
  EngineContainer,
  ImageHealthcheck,
  SandboxSnapshot,
} from "./pod-snapshot.ts";
import type { RegistryAuth } from "./registry-auth.ts";

/**
 * The port of a container engine. Another engine is another folder whose class passes test/support/engine-contract.ts.
 */
export interface ContainerEngine {
  readonly pods: PodEngine;
  /** Logs, commands and streams. */
  readonly containers: ContainerAccess;
  readonly images: ImageEngine;
  readonly volumes: VolumeEngine;
  /** Its features. @throws Error before `connect` has resolved once */
  readonly info: () => EngineInfo;
  /** One attempt to reach it; to be repeated until it succeeds once. */
  connect(signal: AbortSignal): Promise<void>;
}

/** The owner of a container: two kubelet-ts processes on one engine differ in at least one field. */
export interface Owner {
  nodeName: string;
  /** Digest of the root directory. */
  rootHash: string;
}

/** One of our containers as inspect shows it. `isBeingRemoved`: it will be gone in a moment unless the engine fails. */
export type Observed = { pod: PodRef; isBeingRemoved?: boolean } & (
  | { kind: "sandbox"; sandbox: SandboxSnapshot }
  | { kind: "container"; container: ContainerSnapshot }
);

/** A running container that is not ours, for the statistics. Its labels and environment are not kept: they may hold secrets. */
export interface OtherContainer extends Pick<EngineContainer, "id" | "dockerName" | "createdAt" | "pid"> {
  /** As its creator named it. */
  image: string;
  startedAt: Date;
  /** false with the network of the host or of another container. */
  hasOwnNetwork: boolean;
}

/** One line of the labeled list: enough to decide whether inspect would have a new result. */
export interface Listed {
  id: ContainerId;
  /** Docker's word: created, running, paused, restarting, removing, exited, dead (also a sandbox without a network). */
  state: string;
}

/** An event of one of our containers. */
export interface RuntimeEvent {
  id: ContainerId;
  /** `create`, `start`, `die`, `oom`, `destroy`, `pause`, `unpause`, `rename`, `update`, … */
  action: string;
  /** Number of the signal of a `kill`. */
  signal?: string;
}

export interface WatchOptions {
  /** The subscription is active: list existing containers now. Called again after each reconnection. */
  onOpen: () => void;
  onEvent: (event: RuntimeEvent) => void;
  /** The stream was lost, or did not open again at once; it reconnects on its own. */
  onLost: (error: Error) => void;
  signal: AbortSignal;
}

/** Settings of the node that become settings of a container. */
interface ContainerSettings {
  cgroupRoot: string;
  cgroupsPerQos: boolean;
  clusterDomain: string;
  containerLogMaxFiles: number;
  containerLogMaxSizeBytes: number;
  cpuCfsQuota: boolean;
  cpuCfsQuotaPeriodMs: number;
  memorySwap: "NoSwap" | "LimitedSwap";
  podPidsLimit: number;
  seccompDefault: boolean;
}

export interface SandboxRequest {
  pod: Pod;
  /** 0 for the first sandbox of the pod. */
  attempt: number;
  /** Reference or id of the pause image. */
  image: string;
  /** Revision of what only a new sandbox can change. */
  hash: string;
  /** Revision of the init containers. */
  initHash?: string | undefined;
  /** Handler of the pod's RuntimeClass, as the API server has it; "" = the default runtime. */
  runtimeHandler?: string;
  /** Plugins attach the sandbox once it runs; the engine gives it a namespace without a network. */
  usesNetworkPlugin?: boolean;
  /** DNS servers and options for the engine's resolv.conf; absent where kubelet-ts replaces that file afterwards. */
  dns?: { nameservers: string[]; searches: string[]; options: string[] };
  engine: EngineInfo;
  settings: Pick<
    ContainerSettings,
    "cgroupRoot" | "cgroupsPerQos" | "clusterDomain" | "containerLogMaxFiles" | "containerLogMaxSizeBytes"
  >;
}

/** A sandbox that runs, and where the engine keeps what was made for it. */
export interface StartedSandbox {
  id: ContainerId;
  /** Host pid of its process. */
  pid: number;
  /** On the engine's host; "" when the engine does not say. */
  resolvConfPath: string;
  /** IPv4 first; empty with host networking. */
  ips: string[];
}

export interface ContainerRequest extends Pick<SandboxRequest, "pod" | "runtimeHandler" | "engine"> {
  container: Container;
  /** 0 for the first container of that name. */
  restartCount: number;
  sandboxId: string;
  /** Id of the container whose process namespace it joins, unless the pod shares one. */
  targetId?: string | undefined;
  /** Revision of everything that goes into it. */
  hash: string;
  /** Kept as a label: crash-loop back-off after its next end. */
  backOffMs?: number | undefined;
  /** The image that was pulled or found; its tag may have moved since. */
  image: Pick<ImageInfo, "id" | "user" | "healthcheck">;
  /** Complete and expanded, in order. */
  env: readonly { name: string; value: string }[];
  /** Expanded; absent or empty: what the image says. */
  command?: readonly string[];
  args?: readonly string[];
  /** In the order of volumeMounts. */
  mounts: readonly Mount[];
  node: NodeInfo;
  paths: {
    /** The pod's managed /etc/hosts; absent when there is none. */
    hostsFile?: string;
    /** File on the host for the termination message; absent when the manifest has no path for it. */
    terminationLogFile?: string;
    /** `<root-dir>/seccomp`. */
    seccompRoot: string;
    /** `--pod-logs-dir`; "" when there are no log links. */
    podLogsDir: string;
  };
  settings: Omit<ContainerSettings, "clusterDomain">;
  /** Reads a seccomp profile; throws as `readFileSync` does. */
  readFile(path: string): string;
}

/** The engine as the sync loop sees it: only containers that carry our ownership labels. */
export interface ObservedRuntime {
  /** All containers and sandboxes of this node and root, in any state. */
  list(signal?: AbortSignal): Promise<Listed[]>;
  /** undefined when it does not exist (or is not ours). */
  inspect(id: ContainerId, signal?: AbortSignal): Promise<Observed | undefined>;
  /** Runs until the signal aborts; reconnects with a pause that grows to some seconds. */
  watch(options: WatchOptions): Promise<void>;
}

/** Sandboxes and containers: one method, one step. Each may be repeated: "already so" is success. */
export interface PodEngine extends ObservedRuntime {
  /** @throws PodStepError FailedCreatePodSandBox while a network that the pod asks for does not exist */
  checkNetworks(pod: Pod, signal: AbortSignal): Promise<void>;
  /** @throws PodStepError FailedCreatePodSandBox */
  startSandbox(request: SandboxRequest, signal: AbortSignal): Promise<StartedSandbox>;
  /** @throws PodStepError with upstream's reasons: CreateContainerConfigError, CreateContainerError */
  createContainer(request: ContainerRequest, signal: AbortSignal): Promise<ContainerId>;
  /** Finds what {@link createContainer} would refuse without a question to the engine. @throws PodStepError as it does */
  checkContainer(request: ContainerRequest): void;
  /** @throws PodStepError RunContainerError: the container stays, with the engine's verdict in its state */
  start(id: ContainerId, signal: AbortSignal): Promise<void>;
  /** SIGTERM (or the image's or the manifest's signal), then SIGKILL; resolves when it has ended or is gone. */
  stop(id: ContainerId, graceSeconds: number, stopSignal: string | undefined, signal: AbortSignal): Promise<void>;
  /** Host pid of a container, 0 when it does not run; undefined when it does not exist. */
  pidOf(id: ContainerId, signal: AbortSignal): Promise<number | undefined>;
  /** @throws what the engine responds, e.g. when more memory is in use than the new limit allows */
  resize(id: ContainerId, update: Partial<ContainerLimits>, signal: AbortSignal): Promise<void>;
  /** Removes a container, also one that runs. One that is gone, or is being removed already, is not an error. */
  remove(id: ContainerId, uid: PodUID, signal: AbortSignal): Promise<void>;
}

/** The properties of an image that a container created from it needs. */
export interface ImageInfo {
  /** The engine's, `sha256:…`: what containers are created from. */
  id: string;
  /** As the manifest names it, with `:latest` where it had neither tag nor digest. */
  ref: string;
  /** `repository@sha256:…`, empty for an image that was never pulled or pushed. */
  repoDigests: readonly string[];
  repoTags: readonly string[];
  /** `USER`: name, uid, or either with group; "" = root. */
  user: string;
  /** `KEY=value`. */
  env: readonly string[];
  entrypoint: readonly string[];
  cmd: readonly string[];
  /** "" = /. */
  workingDir: string;
  /** Container paths of `VOLUME`. */
  volumes: readonly string[];
  /** e.g. `SIGQUIT`; "" = SIGTERM. */
  stopSignal: string;
  /** Its own HEALTHCHECK, which the engine does not run in a pod; undefined = none. */
  healthcheck: ImageHealthcheck | undefined;
  labels: Readonly<Record<string, string>>;
  /** As Go names it. */
  architecture: string;
  sizeBytes: number;
}

/** One image as the clean-up sees it. */
export interface EngineImage {
  /** The engine's, `sha256:…`. */
  id: string;
  /** As the engine writes them. */
  tags: readonly string[];
  /** The same, as `toImageKey` writes them. */
  keys: readonly string[];
  sizeBytes: number;
  /** A container was created from it, by any program and in any state. */
  isInUse: boolean;
  /** `toImageKey` of the names by which our containers use it now; undefined when none does. */
  usedByUsAs: readonly string[] | undefined;
  isPause: boolean;
}

/** How far a pull has come. */
export interface ImageProgress {
  /** As the manifest names the image. */
  image: string;
  layers: number;
  /** Unpacked, or there already. */
  layersDone: number;
  /** Totals over the layers whose size is known so far; both grow as layers start. Unit: bytes. */
  downloadedBytes: number;
  totalBytes: number;
}

/**
 * The kind of a registry failure, for hints and for `--runonce`: `unknown` no such image, `denied` wrong or no
 * credentials, `unreachable` no response, `tls` no trust, `stalled` no progress, `other` the rest.
 */
export type RegistryProblem = "unknown" | "denied" | "unreachable" | "tls" | "stalled" | "other";

/** The engine refuses an image or cannot get it, in its own words. */
export class ImageRefusal extends Error {
  constructor(
    /** `unavailable`: reported by a gateway before the registry. */
    readonly kind: "bad-name" | "unavailable" | "failed",
    message: string,
    readonly problem: RegistryProblem,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface PullRequest {
  /** As the manifest names the image. */
  image: string;
  /** Tried one after the other; none: without credentials. */
  auths: readonly RegistryAuth[];
  /** A pull without progress for this time fails; 0 = never. */
  progressDeadlineMs: number;
  onProgress?: ((progress: ImageProgress) => void) | undefined;
}

/** The images of an engine. What the engine is asked while it is gone throws errors of its own. */
export interface ImageEngine {
  /**
   * Properties of an image, or undefined when the engine does not have it.
   * @param image as a manifest names it, or an id
   * @throws ImageRefusal
   */
  imageStatus(image: string, signal?: AbortSignal): Promise<ImageInfo | undefined>;
  /** @param ref with tag or digest @throws ImageRefusal; the signal's reason */
  pull(ref: string, request: PullRequest, signal: AbortSignal): Promise<ImageInfo>;
  list(signal: AbortSignal): Promise<EngineImage[]>;
  /**
   * Removes an image with all its names. Never by force: the engine refuses while any container uses it.
   * @returns false when it is used after all
   */
  remove(image: EngineImage, signal: AbortSignal): Promise<boolean>;
}

/** A named volume as the engine knows it. */
export interface EngineVolume {
  name: string;
  driver: string;
  /** Path on the engine's host; "" where the driver has none. */
  mountpoint: string;
  /** Driver options, e.g. `{ type: "nfs", device: ":/export" }`; empty for a plain directory. */
  options: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
}

export type NewVolume = Omit<EngineVolume, "mountpoint">;

/** The little that volumes need of the engine. Every call throws when the engine refuses or cannot be reached. */
export interface VolumeEngine {
  /** Negotiated, e.g. `1.41`. */
  apiVersion(): string;
  /** One that exists with the same driver is success. */
  createVolume(volume: NewVolume, signal: AbortSignal): Promise<void>;
  inspectVolume(name: string, signal: AbortSignal): Promise<EngineVolume | undefined>;
  /** A missing one is success. */
  removeVolume(name: string, signal: AbortSignal): Promise<void>;
  /** The image's whole file system as a tar stream. */
  exportImage(imageId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/**
 * One mount, ready for the engine. `bind`: a host path that exists. `volume`: a named volume. `image`: from API 1.48.
 */
export interface Mount {
  type: "bind" | "volume" | "image";
  /** Host path, Docker volume name, or image reference. */
  source: string;
  /** `mountPath` in the container. */
  target: string;
  readOnly: boolean;
  /** Kubernetes' `mountPropagation`; absent = None. */
  propagation?: "HostToContainer" | "Bidirectional";
  /** Kubernetes' `recursiveReadOnly`; absent = Disabled. */
  recursiveReadOnly?: "IfPossible" | "Enabled";
  /** Files of the pod's own, which get its SELinux label where the engine separates by labels; never a hostPath's. */
  relabel?: true;
  /** An empty named volume gets the files that the image has at its target. */
  isFilled?: true;
  /** Path inside a named volume or an image. */
  subPath?: string;
}
