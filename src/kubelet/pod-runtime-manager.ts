import type { Container, Pod } from "../base/api/pod.ts";
import { ConcurrencyLimit } from "../base/concurrency/concurrency-limit.ts";
import type { ContainerRequest, ImageInfo, PodEngine } from "../base/model/container-engine.ts";
import type { ImagePinRef, ObjectIndex } from "../base/model/desired-state.ts";
import type { Logger } from "../base/model/logger.ts";
import type { EngineInfo, NodeInfo } from "../base/model/node.ts";
import {
  containerFieldPath,
  findContainer,
  type PodUID,
  podFullName,
  podRefOf,
  podRefOfLabels,
} from "../base/model/pod.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { PodNetworks } from "../base/model/pod-networks.ts";
import type { ContainerId, ContainerLimits, ContainerSnapshot } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { NodeAllocatable } from "../plan/downward-api.ts";
import { type EnvironmentFacts, expandCommand, resolveEnvironment } from "../plan/environment.ts";
import { pinImage } from "../plan/image-updates.ts";
import { resolvePullSecrets } from "../plan/object-references.ts";
import { asksForEngineNetwork, computeUserNetworks } from "../plan/pod-network.ts";
import { remainingGraceSeconds } from "../plan/stop-pod.ts";
import { PodStepError, type WaitingReasonName } from "../plan/waiting-reasons.ts";
import type { ImageManager } from "./images/image-manager.ts";
import type { LogLinks } from "./log-links.ts";
import type { PodCgroupManager } from "./pod-cgroup-manager.ts";
import type { PodFiles } from "./pod-files.ts";
import type { KillContainerRequest, PodHookRunner } from "./pod-hook-runner.ts";
import type { VolumeManager } from "./volumes/volume-manager.ts";

/** More creates and starts at a time would only queue up inside the engine, and make each of them slower. */
const MAX_ENGINE_CALLS = 8;

/** The node, as the steps of all pods need it. */
interface RuntimeNode {
  recorder: EventRecorder;
  options: KubeletOptions;
  info: NodeInfo;
  /** Values of `resourceFieldRef` where a container has no limit. */
  allocatable: NodeAllocatable;
  engine: () => EngineInfo;
  /** Handler of the pod's RuntimeClass; absent: the class has the name of the runtime. Throws an `Error` for events. */
  runtimeHandlerOf?: ((pod: Pod) => Promise<string>) | undefined;
  /** Variables of Services; absent where there are none. Throws an `Error` while they are not known. */
  serviceEnvironmentOf?: ((pod: Pod) => ReadonlyMap<string, string>) | undefined;
}

interface RuntimeParts {
  pods: PodEngine;
  sandboxes: PodSandboxes;
  images: Pick<ImageManager, "ensureImage">;
  volumes: VolumeManager;
  files: PodFiles;
  hooks: PodHookRunner;
  cgroups: PodCgroupManager;
  logLinks: LogLinks;
}

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

/** The steps of a pod, as its worker and tests see them. */
export type PodServices = Pick<PodRuntimeManager, keyof PodRuntimeManager>;

/**
 * Performs each step of a pod with the engine, images, volumes, hooks and cgroups: each call is one of them, may be repeated, and
 * ends early when its signal aborts.
 */
export class PodRuntimeManager {
  readonly #node: RuntimeNode;
  readonly #parts: RuntimeParts;
  readonly #gate = new ConcurrencyLimit(MAX_ENGINE_CALLS);
  /** Between pullImage and startContainer of the same request. */
  readonly #pulled = new WeakMap<StartContainerRequest, ImageInfo>();
  /** Images of edits: pulled once, before the containers of the earlier revision stop. */
  readonly #pulledAhead = new WeakMap<Container, ImageInfo>();

  constructor(node: RuntimeNode, parts: RuntimeParts) {
    this.#node = node;
    this.#parts = parts;
  }

  /** Volumes, pod cgroup, sandbox with its network and files. @returns the id of the running sandbox. @throws PodStepError */
  async createSandbox(request: PodRequest, attempt: number, signal: AbortSignal): Promise<ContainerId> {
    const { pods, sandboxes, volumes, files, cgroups } = this.#parts;
    const { engine, options, recorder } = this.#node;
    const { pod, objects, sandboxHash, initHash } = request;
    const usesNetworkPlugin = await sandboxes.usesPlugin(pod);
    await sandboxes.detachRemoved(pod.metadata.uid ?? "", signal);
    await volumes.setUp(pod, objects, signal);
    await cgroups.ensure(pod);
    const runtimeHandler = await this.#findRuntimeHandler(pod, "FailedCreatePodSandBox");
    const image = await sandboxes.ensurePauseImage(signal);
    const { dns, warnings } = await files.computeDns(pod);
    for (const warning of warnings) recorder.record(podRefOf(pod), warning);
    // In a network of the user's own the engine answers the names of other pods, and asks these servers for the rest.
    // Files that the engine has made are those of root.
    const hasEngineDns = computeUserNetworks(pod).length > 0 || process.getuid?.() !== 0;
    const sandboxRequest = {
      pod,
      attempt,
      image,
      hash: sandboxHash,
      initHash,
      engine: engine(),
      settings: options,
      usesNetworkPlugin,
      ...(runtimeHandler !== undefined && { runtimeHandler }),
      ...(hasEngineDns && { dns }),
    };
    const sandbox = await this.#gate.run(signal, () => pods.startSandbox(sandboxRequest, signal));
    if (usesNetworkPlugin) await sandboxes.attach(sandbox, pod, signal);
    if (!hasEngineDns) await files.writeResolvConf(pod, sandbox.resolvConfPath, dns);
    return sandbox.id;
  }

  /**
   * The runtime that a RuntimeClass names; undefined where the class has the runtime's name, or there is none.
   * @throws PodStepError with `reason` while there is no such RuntimeClass
   */
  async #findRuntimeHandler(pod: Pod, reason: WaitingReasonName): Promise<string | undefined> {
    if (!pod.spec.runtimeClassName) return undefined;
    try {
      return await this.#node.runtimeHandlerOf?.(pod);
    } catch (error) {
      throw new PodStepError(reason, `failed to get the runtime: ${messageOf(error)}`, { cause: error });
    }
  }

  async stopSandbox(id: ContainerId, graceSeconds: number, signal: AbortSignal): Promise<void> {
    await this.#parts.sandboxes.stop(id, graceSeconds, signal);
  }

  /**
   * Pulls the images of an edit, and finds what would keep it from starting, while the pod runs as before. Changes nothing of
   * what runs. @throws PodStepError
   */
  async prepareEdit({ isNewSandbox, containers, ...request }: EditRequest, signal: AbortSignal): Promise<void> {
    const { sandboxes, pods, volumes, files } = this.#parts;
    const { pod } = request;
    if (isNewSandbox && !(await sandboxes.usesPlugin(pod))) await pods.checkNetworks(pod, signal);
    await this.#findRuntimeHandler(pod, "CreateContainerError");
    await volumes.check(pod, request.objects, signal);
    for (const container of containers) {
      const inputs = await files.readContainerInputs(pod, container, volumes);
      // A file of another container of the pod is made when that one runs.
      const variables = container.env?.filter(({ valueFrom }) => !valueFrom?.fileKeyRef);
      const { env } = this.#resolveEnvironment({ ...request, container: { ...container, env: variables } });
      const image = await this.#ensureImage(request, container, signal).catch((error: unknown) => {
        if (!(error instanceof PodStepError)) throw error;
        const { reason, message, retryAfterMs } = error;
        const text = `image ${JSON.stringify(container.image)} of container ${container.name}: ${message}`;
        throw new PodStepError(reason, text, { retryAfterMs, cause: error });
      });
      const start = { ...request, container, restartCount: 0, hash: "", sandboxId: "" };
      pods.checkContainer(this.#withoutMounts(start, image, env, inputs.readProfile));
      this.#pulledAhead.set(container, image);
    }
  }

  /** Makes sure the image is there: the slow part of a start, which needs no turn. @throws PodStepError */
  async pullImage(request: StartContainerRequest, signal: AbortSignal): Promise<void> {
    const { container } = request;
    const ahead = this.#pulledAhead.get(container);
    this.#pulledAhead.delete(container);
    this.#pulled.set(request, ahead ?? (await this.#ensureImage(request, container, signal)));
  }

  #ensureImage({ pod, objects, imagePins }: PodRequest, container: Container, signal: AbortSignal) {
    const pullSecrets = resolvePullSecrets(pod, objects);
    return this.#parts.images.ensureImage(pod, pinImage(container, imagePins), { pullSecrets }, signal);
  }

  #resolveEnvironment(
    { pod, container, objects, podIps }: Pick<StartContainerRequest, "pod" | "container" | "objects" | "podIps">,
    readEnvFile?: EnvironmentFacts["readEnvFile"],
  ) {
    const { serviceEnvironmentOf, info: node, allocatable } = this.#node;
    return resolveEnvironment(pod, container, {
      objects,
      podIps: pod.spec.hostNetwork ? [node.ip] : podIps,
      hostIp: node.ip,
      node,
      allocatable,
      ...(serviceEnvironmentOf && { readServiceEnvironment: () => serviceEnvironmentOf(pod) }),
      ...(readEnvFile && { readEnvFile }),
    });
  }

  /** Creates and starts. The id is reported as soon as there is one. @throws PodStepError */
  async startContainer(
    request: StartContainerRequest,
    onCreated: (id: ContainerId) => void,
    signal: AbortSignal,
  ): Promise<ContainerId> {
    const { pods, logLinks, volumes, cgroups } = this.#parts;
    const { recorder } = this.#node;
    const { pod, container, restartCount } = request;
    const fieldPath = containerFieldPath(pod.spec, container.name);
    const image = this.#pulled.get(request);
    if (!image) throw new PodStepError("CreateContainerError", `the image of "${container.name}" was not pulled`);
    await volumes.setUp(pod, request.objects, signal);
    await cgroups.ensureChanged(pod);
    const body = await this.#toContainerRequest(request, image, signal);
    const start = async () => {
      const id = await pods.createContainer(body, signal);
      onCreated(id);
      const record = (reason: string, message: string) =>
        recorder.record(podRefOf(pod), { type: "Normal", reason, message, fieldPath });
      record("Created", `Created container ${container.name}`);
      await pods.start(id, signal);
      record("Started", `Started container ${container.name}`);
      logLinks.create(pod, container.name, restartCount, id);
      return id;
    };
    // Before the sandboxes that wait: among many new pods the first ones run early, instead of all of them at the end.
    return this.#gate.run(signal, start, true);
  }

  /** Runs the postStart hook to its end. @throws when the hook failed (the event is already recorded) */
  async runPostStart(request: StartContainerRequest, id: ContainerId, signal: AbortSignal): Promise<void> {
    await this.#parts.hooks.runPostStart(request, id, signal);
  }

  /** preStop hook and stop, together within the grace period. */
  async killContainer(request: KillContainerRequest, signal: AbortSignal): Promise<void> {
    const { container, pod, graceSeconds } = request;
    const spec = pod && findContainer(pod.spec, container.name);
    await this.#parts.hooks.runPreStopThen(request, spec, signal, async (spentMs) => {
      const { stopSignal } = spec?.lifecycle ?? {};
      await this.#parts.pods.stop(container.id, remainingGraceSeconds(graceSeconds, spentMs), stopSignal, signal);
    });
  }

  /** Changes the limits of a running container, and those of its pod's cgroup with them. */
  async resizeContainer(
    { pod, container, update }: { pod: Pod; container: ContainerSnapshot; update: Partial<ContainerLimits> },
    signal: AbortSignal,
  ): Promise<void> {
    const { cgroups, pods } = this.#parts;
    // The pod's bound must never be below that of its containers: raised before, lowered after.
    const grows =
      (update.memoryBytes ?? 0) > container.limits.memoryBytes ||
      (update.cpuQuotaUs ?? 0) > container.limits.cpuQuotaUs;
    if (grows) await cgroups.ensure(pod);
    await pods.resize(container.id, update, signal);
    if (!grows) await cgroups.ensure(pod);
  }

  async removeContainer(container: ContainerSnapshot, signal: AbortSignal): Promise<void> {
    const { uid } = podRefOfLabels(container);
    await this.#parts.pods.remove(container.id, uid, signal);
    // The container is gone either way; the directory goes with the pod.
    await this.#parts.files.removeTerminationLog(container).catch(() => {});
  }

  /** After a container was removed by anyone: removes its log links. */
  containerGone(container: ContainerSnapshot): void {
    this.#parts.logLinks.removeContainer(container, podRefOfLabels(container));
  }

  async removeSandbox(id: ContainerId, uid: PodUID, signal: AbortSignal): Promise<void> {
    await this.#parts.sandboxes.remove(id, uid, signal);
  }

  /** Brings files made from ConfigMaps, Secrets and the pod's own metadata up to date. @throws PodStepError */
  async refreshVolumes({ pod, objects }: PodRequest, signal: AbortSignal): Promise<void> {
    // Resources of the pod itself apply to its cgroup only: no container changes when they are edited.
    if (pod.spec.resources) await this.#parts.cgroups.ensure(pod);
    await this.#parts.volumes.refresh(pod, objects, signal);
  }

  /** Unmounts and removes the volumes of a pod that has come to its end, unless they are to be kept. @throws when one is still in use */
  async releaseVolumes({ pod }: PodRequest, signal: AbortSignal): Promise<void> {
    const { keepTerminatedPodVolumes, runOnce } = this.#node.options;
    // --runonce keeps the volumes for inspection.
    if (!keepTerminatedPodVolumes && !runOnce) await this.#parts.volumes.release(pod, signal);
  }

  /** Removes volumes that an edit took out; no container of an earlier revision may run. @throws when one is in use */
  async removeUnusedVolumes({ pod }: PodRequest, signal: AbortSignal): Promise<void> {
    await this.#parts.volumes.removeUnused(pod, signal);
  }

  /** Termination message of a dead container, "" when it has none. */
  async readTerminationMessage(...dead: Parameters<PodFiles["readTerminationMessage"]>): Promise<string> {
    return this.#parts.files.readTerminationMessage(...dead);
  }

  /** After the last container is gone: volumes, directories, cgroup, log links. */
  async tearDown(uid: string, ref: { name: string; namespace: string }, signal: AbortSignal): Promise<void> {
    await this.#parts.sandboxes.detachRemoved(uid, signal);
    await this.#parts.volumes.tearDown(uid, signal);
    await this.#parts.cgroups.remove(uid, signal);
    this.#parts.logLinks.removePod({ uid, ...ref });
  }

  async #toContainerRequest(
    request: StartContainerRequest,
    image: ImageInfo,
    signal: AbortSignal,
  ): Promise<ContainerRequest> {
    const { files, volumes } = this.#parts;
    const { pod, container } = request;
    const inputs = await files.readContainerInputs(pod, container, volumes);
    const resolved = this.#resolveEnvironment(request, inputs.readEnvFile);
    for (const warning of resolved.warnings) this.#node.recorder.record(podRefOf(pod), warning);
    const bare = this.#withoutMounts(request, image, resolved.env, inputs.readProfile);
    const mounts = await volumes.mountsFor(pod, container, resolved.env, signal);
    const hostsFile = await files.writeHostsFile(pod, request.podIps);
    const terminationLogFile = await files.makeTerminationLog(pod, container, request.restartCount);
    const runtimeHandler = await this.#findRuntimeHandler(pod, "CreateContainerError");
    return {
      ...bare,
      mounts,
      ...(runtimeHandler !== undefined && { runtimeHandler }),
      paths: { ...bare.paths, ...(hostsFile && { hostsFile }), ...(terminationLogFile && { terminationLogFile }) },
    };
  }

  /** The request without mounts and files of the pod. @throws PodStepError CreateContainerConfigError for a command that becomes too long */
  #withoutMounts(
    { pod, container, restartCount, sandboxId, targetId, hash, backOffMs }: StartContainerRequest,
    image: ImageInfo,
    env: ContainerRequest["env"],
    readFile: ContainerRequest["readFile"],
  ): ContainerRequest {
    const { options, info: node, engine } = this.#node;
    return {
      pod,
      container,
      restartCount,
      sandboxId,
      targetId,
      hash,
      backOffMs,
      image,
      env,
      ...expandCommand(container, env),
      mounts: [],
      node,
      engine: engine(),
      paths: { seccompRoot: this.#parts.files.seccompRoot, podLogsDir: options.podLogsDir },
      settings: options,
      readFile,
    };
  }
}

/** How often the configuration directory of the network is read while it has no configuration. Source: dockershim. */
const NETWORK_RETRY_MS = 5_000;

const netnsOf = (pid: number) => `/proc/${pid}/ns/net`;

interface PodSandboxesDeps {
  logger: Logger;
  pods: PodEngine;
  networks: PodNetworks;
  /** Id of the image of the sandboxes, loaded or pulled when it is not there. */
  ensurePauseImage: (signal: AbortSignal) => Promise<string>;
}

/** Sandboxes on the engine, and their attachment to the networks of CNI plugins. */
export class PodSandboxes {
  /** Id of the image of the sandboxes. */
  readonly ensurePauseImage: PodSandboxesDeps["ensurePauseImage"];
  readonly #deps: PodSandboxesDeps;

  constructor(deps: PodSandboxesDeps) {
    this.#deps = deps;
    this.ensurePauseImage = deps.ensurePauseImage;
  }

  async stop(id: ContainerId, graceSeconds: number, signal: AbortSignal): Promise<void> {
    await this.#detach(id, signal);
    await this.#deps.pods.stop(id, graceSeconds, undefined, signal);
  }

  async remove(id: ContainerId, uid: PodUID, signal: AbortSignal): Promise<void> {
    await this.#detach(id, signal);
    await this.#deps.pods.remove(id, uid, signal);
  }

  /**
   * Whether a CNI plugin makes the network of this pod, rather than the engine.
   * @throws PodStepError NetworkNotReady
   */
  async usesPlugin(pod: Pod): Promise<boolean> {
    const { networks } = this.#deps;
    if (!networks.isEnabled || asksForEngineNetwork(pod)) return false;
    const problem = await networks.findProblem();
    if (problem === undefined) return true;
    throw new PodStepError("NetworkNotReady", `network is not ready: ${problem}`, { retryAfterMs: NETWORK_RETRY_MS });
  }

  /** @throws PodStepError FailedCreatePodSandBox after the sandbox was removed */
  async attach({ id, pid }: { id: ContainerId; pid: number }, pod: Pod, signal: AbortSignal): Promise<void> {
    const { networks, logger } = this.#deps;
    try {
      await networks.attach({ id, netns: netnsOf(pid) }, pod, signal);
    } catch (error) {
      signal.throwIfAborted();
      const name = podFullName(pod.metadata);
      await this.remove(id, pod.metadata.uid ?? "", signal).catch((cause: unknown) => {
        signal.throwIfAborted();
        logger.warn(`Cannot remove the sandbox of pod "${name}", whose network failed: ${messageOf(cause)}`);
      });
      const message = `failed to set up sandbox container "${id}" network for pod "${pod.metadata.name}": ${messageOf(error)}`;
      throw new PodStepError("FailedCreatePodSandBox", message, { cause: error });
    }
  }

  async #detach(id: ContainerId, signal: AbortSignal): Promise<void> {
    const { networks, pods } = this.#deps;
    if (!networks.holds(id)) return;
    const pid = await pods.pidOf(id, signal);
    await networks.detach(id, pid ? netnsOf(pid) : "", signal);
  }

  /** Detaches sandboxes that were removed manually: they still hold an address and host ports. */
  async detachRemoved(uid: PodUID, signal: AbortSignal): Promise<void> {
    const { networks, pods } = this.#deps;
    for (const id of networks.heldBy(uid)) {
      if ((await pods.pidOf(id, signal)) === undefined) await networks.detach(id, "", signal);
    }
  }
}
