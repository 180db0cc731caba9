import { join } from "node:path";
import type { Pod } from "../base/api/pod.ts";
import type { ConcurrencyLimit } from "../base/concurrency/concurrency-limit.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ContainerLimits } from "../base/model/container-limits.ts";
import type { KubeletOptions } from "../base/model/kubelet-options.ts";
import type { Logger } from "../base/model/logger.ts";
import type { EngineInfo, NodeInfo } from "../base/model/node.ts";
import { containerFieldPath, findContainer } from "../base/model/pod-containers.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { PodNetworks } from "../base/model/pod-networks.ts";
import { podRefOf, podRefOfLabels } from "../base/model/pod-ref.ts";
import {
  type PodRequest,
  type PodServices,
  PodStepError,
  type StartContainerRequest,
} from "../base/model/pod-services.ts";
import type { ContainerId, ContainerSnapshot } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { ContainerRequest } from "../docker/container-create-body.ts";
import type { DockerPods } from "../docker/docker-pods.ts";
import type { ImageInfo } from "../docker/image-info.ts";
import type { Owner } from "../docker/labels.ts";
import type { NodeAllocatable } from "../plan/downward-api.ts";
import { expandCommand, resolveEnvironment } from "../plan/environment.ts";
import type { HostsFileNames } from "../plan/hosts-file.ts";
import { pinImage } from "../plan/image-updates.ts";
import { resolvePullSecrets } from "../plan/object-references.ts";
import { computeUserNetwork } from "../plan/pod-network.ts";
import { remainingGraceSeconds } from "../plan/stop-pod.ts";
import type { ContainerLogLinks, PodCgroups, PodHooks, PodImages, PodVolumes } from "./pod-effects.ts";
import { PodFiles, readContainerInputs } from "./pod-files.ts";
import { PodHookRunner } from "./pod-hook-runner.ts";
import { PodVolumeQueue } from "./pod-volume-queue.ts";
import { SandboxNetworks } from "./sandbox-networks.ts";
import type { HostFiles } from "./volumes/host-files.ts";

interface PodRuntimeManagerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  options: KubeletOptions;
  owner: Owner;
  node: () => NodeInfo;
  /** Values of `resourceFieldRef` where a container has no limit. */
  allocatable: NodeAllocatable;
  engine: () => EngineInfo;
  /** Files that the engine has made are those of root. */
  mayWriteEngineFiles: boolean;
  pods: DockerPods;
  images: PodImages;
  volumes: PodVolumes;
  hooks: PodHooks;
  cgroups: PodCgroups;
  logLinks: ContainerLogLinks;
  networks: PodNetworks;
  /** Handler of the pod's RuntimeClass; absent: the class has the name of the runtime. Throws an `Error` for events. */
  runtimeHandlerOf?: (pod: Pod) => Promise<string>;
  /** Variables of Services; absent where there are none. Throws an `Error` while they are not known. */
  serviceEnvironmentOf?: (pod: Pod) => ReadonlyMap<string, string>;
  /** More at a time would only queue up inside the engine. */
  gate: ConcurrencyLimit;
  /** Id of the image of the sandboxes, loaded or pulled when it is not there. */
  ensurePauseImage: (signal: AbortSignal) => Promise<string>;
  files: HostFiles;
  /** Writes the pod's /etc/hosts and returns its path. */
  writeHostsFile: (pod: Pod, podIps: readonly string[], names: HostsFileNames) => Promise<string>;
  /** The last bytes of a container's log, for its termination message. */
  readLogTail: (id: ContainerId, signal: AbortSignal) => Promise<string>;
  /** Selects the termination message from file and log. */
  toTerminationMessage: (input: {
    policy: "File" | "FallbackToLogsOnError";
    exitCode: number;
    file: string | undefined;
    readLog: () => Promise<string>;
    containerCount: number;
  }) => Promise<string>;
}

/** Performs each step of a pod with the engine, images, volumes, hooks and cgroups. */
export class PodRuntimeManager implements PodServices {
  readonly #deps: PodRuntimeManagerDeps;
  readonly #volumes: PodVolumeQueue;
  readonly #files: PodFiles;
  readonly #hooks: PodHookRunner;
  readonly #networks: SandboxNetworks;
  /** Between pullImage and startContainer of the same request. */
  readonly #pulled = new WeakMap<StartContainerRequest, ImageInfo>();

  constructor(deps: PodRuntimeManagerDeps) {
    this.#deps = deps;
    this.#volumes = new PodVolumeQueue(deps);
    this.#files = new PodFiles(deps);
    this.#hooks = new PodHookRunner(deps);
    this.#networks = new SandboxNetworks(deps);
  }

  async createSandbox(request: PodRequest, attempt: number, signal: AbortSignal): Promise<ContainerId> {
    const { pods, cgroups, gate, engine, owner, options, recorder } = this.#deps;
    const { pod, objects, sandboxHash, initHash } = request;
    const usesNetworkPlugin = await this.#networks.usesPlugin(pod);
    await this.#networks.detachRemoved(pod.metadata.uid ?? "", signal);
    await this.#volumes.setUp(pod, objects, signal);
    await cgroups.ensure(pod);
    const runtimeHandler = await this.#findRuntimeHandler(pod, "FailedCreatePodSandBox");
    const image = await this.#deps.ensurePauseImage(signal);
    const { dns, warnings } = await this.#files.computeDns(pod);
    for (const warning of warnings) recorder.record(podRefOf(pod), warning);
    // In a network of the user's own the engine answers the names of other pods, and asks these servers for the rest.
    const hasEngineDns = computeUserNetwork(pod) !== undefined || !this.#deps.mayWriteEngineFiles;
    const sandboxRequest = {
      pod,
      attempt,
      image,
      hash: sandboxHash,
      initHash,
      engine: engine(),
      owner,
      settings: options,
      usesNetworkPlugin,
      ...(runtimeHandler !== undefined && { runtimeHandler }),
      ...(hasEngineDns && { dns }),
    };
    const sandbox = await gate.run(signal, () => pods.startSandbox(sandboxRequest, signal));
    if (usesNetworkPlugin) await this.#networks.attach(sandbox, pod, signal);
    if (!hasEngineDns) await this.#files.writeResolvConf(pod, sandbox.resolvConfPath, dns);
    return sandbox.id;
  }

  /**
   * The runtime that a RuntimeClass names; undefined where the class has the runtime's name, or there is none.
   * @throws PodStepError with `reason` while there is no such RuntimeClass
   */
  async #findRuntimeHandler(pod: Pod, reason: string): Promise<string | undefined> {
    if (!pod.spec.runtimeClassName) return undefined;
    try {
      return await this.#deps.runtimeHandlerOf?.(pod);
    } catch (error) {
      throw new PodStepError(reason, `failed to get the runtime: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Brings the hosts file of a running pod up to date. */
  async rewriteHostsFile(pod: Pod, podIps: readonly string[]): Promise<void> {
    await this.#files.rewriteHostsFile(pod, podIps);
  }

  async stopSandbox(id: ContainerId, graceSeconds: number, signal: AbortSignal): Promise<void> {
    await this.#networks.detach(id, signal);
    await this.#deps.pods.stop(id, graceSeconds, undefined, signal);
  }

  async pullImage(request: StartContainerRequest, signal: AbortSignal): Promise<void> {
    const { pod, objects, imagePins } = request;
    const pullSecrets = resolvePullSecrets(pod, objects);
    const container = pinImage(request.container, imagePins);
    this.#pulled.set(request, await this.#deps.images.ensureImage(pod, container, { pullSecrets }, signal));
  }

  async startContainer(
    request: StartContainerRequest,
    onCreated: (id: ContainerId) => void,
    signal: AbortSignal,
  ): Promise<ContainerId> {
    const { pods, gate, recorder, logLinks } = this.#deps;
    const { pod, container, restartCount } = request;
    const fieldPath = containerFieldPath(pod.spec, container.name);
    const image = this.#pulled.get(request);
    if (!image) throw new PodStepError("CreateContainerError", `the image of "${container.name}" was not pulled`);
    await this.#volumes.setUp(pod, request.objects, signal);
    const body = await this.#toContainerRequest(request, image, signal);
    const start = async () => {
      const id = await pods.createContainer(body, signal).catch((error: unknown) => {
        // The image may have been removed since it was pulled: check it again next time.
        this.#deps.images.forget(pinImage(container, request.imagePins).image ?? "");
        throw error;
      });
      onCreated(id);
      const record = (reason: string, message: string) =>
        recorder.record(podRefOf(pod), { type: "Normal", reason, message, fieldPath });
      record("Created", `Created container ${container.name}`);
      await pods.startContainer(id, signal);
      record("Started", `Started container ${container.name}`);
      logLinks.create(pod, container.name, restartCount, id);
      return id;
    };
    // Before the sandboxes that wait: among many new pods the first ones run early, instead of all of them at the end.
    return gate.run(signal, start, true);
  }

  async runPostStart(request: StartContainerRequest, id: ContainerId, signal: AbortSignal): Promise<void> {
    await this.#hooks.runPostStart(request, id, signal);
  }

  async killContainer(
    {
      container,
      pod,
      podIps,
      graceSeconds,
    }: { container: ContainerSnapshot; pod?: Pod; podIps: readonly string[]; graceSeconds: number },
    signal: AbortSignal,
  ): Promise<void> {
    const spec = pod && findContainer(pod.spec, container.name);
    await this.#hooks.runPreStopThen({ container, spec, pod, podIps, graceSeconds }, signal, async (spentMs) => {
      const { stopSignal } = spec?.lifecycle ?? {};
      await this.#deps.pods.stop(container.id, remainingGraceSeconds(graceSeconds, spentMs), stopSignal, signal);
    });
  }

  async resizeContainer(
    { pod, container, update }: { pod: Pod; container: ContainerSnapshot; update: Partial<ContainerLimits> },
    signal: AbortSignal,
  ): Promise<void> {
    const { cgroups, pods } = this.#deps;
    // The pod's bound must never be below that of its containers: raised before, lowered after.
    const grows = (update.Memory ?? 0) > container.limits.Memory || (update.CpuQuota ?? 0) > container.limits.CpuQuota;
    if (grows) await cgroups.ensure(pod);
    await pods.resize(container.id, update, signal);
    if (!grows) await cgroups.ensure(pod);
  }

  async removeContainer(container: ContainerSnapshot, signal: AbortSignal): Promise<void> {
    await this.#deps.pods.remove(container.id, signal);
    const ref = podRefOfLabels(container);
    this.#deps.logLinks.removeContainer(container, ref);
    // The container is gone either way; the directory goes with the pod.
    await this.#files.removeTerminationLog(ref.uid, container.name, container.restartCount).catch(() => {});
  }

  async removeSandbox(id: ContainerId, signal: AbortSignal): Promise<void> {
    await this.#networks.detach(id, signal);
    await this.#deps.pods.remove(id, signal);
  }

  async refreshVolumes({ pod, objects }: PodRequest, signal: AbortSignal): Promise<void> {
    // Resources of the pod itself apply to its cgroup only: no container changes when they are edited.
    if (pod.spec.resources) await this.#deps.cgroups.ensure(pod);
    await this.#volumes.refresh(pod, objects, signal);
  }

  async releaseVolumes({ pod }: PodRequest, signal: AbortSignal): Promise<void> {
    const { keepTerminatedPodVolumes, runOnce } = this.#deps.options;
    // --runonce keeps the volumes for inspection.
    if (!keepTerminatedPodVolumes && !runOnce) await this.#volumes.release(pod, signal);
  }

  async removeUnusedVolumes({ pod }: PodRequest, signal: AbortSignal): Promise<void> {
    await this.#volumes.removeUnused(pod, signal);
  }

  async readTerminationMessage(
    container: ContainerSnapshot,
    pod: Pod | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const spec = pod && findContainer(pod.spec, container.name);
    const policy = container.labels["annotation.io.kubernetes.container.terminationMessagePolicy"];
    const uid = container.labels["io.kubernetes.pod.uid"] ?? "";
    return this.#deps.toTerminationMessage({
      policy: (spec?.terminationMessagePolicy ?? policy) === "FallbackToLogsOnError" ? "FallbackToLogsOnError" : "File",
      exitCode: container.exitCode,
      file: await this.#files.readTerminationLog(uid, container.name, container.restartCount),
      readLog: () => this.#deps.readLogTail(container.id, signal),
      containerCount: pod ? pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0) : 1,
    });
  }

  async tearDown(uid: string, ref: { name: string; namespace: string }, signal: AbortSignal): Promise<void> {
    await this.#networks.detachRemoved(uid, signal);
    await this.#volumes.tearDown(uid, signal);
    await this.#deps.cgroups.remove(uid, signal);
    this.#deps.logLinks.removePod({ uid, ...ref });
  }

  async #toContainerRequest(
    request: StartContainerRequest,
    image: ImageInfo,
    signal: AbortSignal,
  ): Promise<ContainerRequest> {
    const { options, owner, serviceEnvironmentOf } = this.#deps;
    const { pod, container, objects } = request;
    const node = this.#deps.node();
    const podIps = pod.spec.hostNetwork ? [node.ip] : request.podIps;
    const seccompRoot = join(options.rootDir, "seccomp");
    const inputs = await readContainerInputs(pod, container, seccompRoot, this.#deps);
    const resolved = resolveEnvironment(pod, container, {
      objects,
      podIps,
      hostIp: node.ip,
      node,
      allocatable: this.#deps.allocatable,
      ...(serviceEnvironmentOf && { readServiceEnvironment: () => serviceEnvironmentOf(pod) }),
      readEnvFile: inputs.readEnvFile,
    });
    if (resolved.missing) throw new PodStepError(resolved.missing.reason, resolved.missing.message);
    for (const warning of resolved.warnings) this.#deps.recorder.record(podRefOf(pod), warning);
    const { command, args } = expandCommand(container, resolved.env);
    const mounts = await this.#volumes.mountsFor(pod, container, resolved.env, signal);
    const hostsFile = await this.#files.writeHostsFile(pod, request.podIps);
    const terminationLogFile = await this.#files.makeTerminationLog(pod, container, request.restartCount);
    const runtimeHandler = await this.#findRuntimeHandler(pod, "CreateContainerError");
    return {
      pod,
      container,
      restartCount: request.restartCount,
      sandboxId: request.sandboxId,
      targetId: request.targetId,
      hash: request.hash,
      backOffMs: request.backOffMs,
      image,
      env: resolved.env,
      command,
      args,
      mounts,
      ...(runtimeHandler !== undefined && { runtimeHandler }),
      node,
      engine: this.#deps.engine(),
      owner,
      paths: {
        ...(hostsFile && { hostsFile }),
        ...(terminationLogFile && { terminationLogFile }),
        seccompRoot,
        podLogsDir: options.podLogsDir,
      },
      settings: options,
      readFile: inputs.readProfile,
    };
  }
}
