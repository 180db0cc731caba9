import { closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Container, Pod } from "../api/pod.ts";
import type { Secret } from "../api/secret.ts";
import type { Clock } from "../model/clock.ts";
import type { ContainerLimits } from "../model/container-limits.ts";
import type { ObjectIndex } from "../model/desired-pod.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import type { Mount } from "../model/mount.ts";
import type { EngineInfo, NodeInfo } from "../model/node.ts";
import type { EventRecorder } from "../model/pod-event.ts";
import { type PodRequest, type PodServices, PodStepError, type StartContainerRequest } from "../model/pod-services.ts";
import type { ContainerId, ContainerSnapshot } from "../model/pod-snapshot.ts";
import { computeDnsConfig, type DnsConfig, formatResolvConf } from "../plan/dns-config.ts";
import type { NodeAllocatable } from "../plan/downward-api.ts";
import { expandCommand, resolveEnvironment } from "../plan/environment.ts";
import { remainingGraceSeconds } from "../plan/grace-period.ts";
import type { HostsFileNames } from "../plan/hosts-file.ts";
import { computePodHostname } from "../plan/pod-hostname.ts";
import { computeUserNetwork } from "../plan/pod-network.ts";
import type { ContainerRequest } from "../runtime/container-create-body.ts";
import type { DockerPods } from "../runtime/docker-pods.ts";
import type { ImageInfo } from "../runtime/image-info.ts";
import type { Owner } from "../runtime/labels.ts";
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import { FailedMounts } from "./failed-mounts.ts";

/** Volumes of pods on the host. Source of the contract: src/volumes/volume-manager.ts. */
export interface PodVolumes {
  /** @throws an Error with `failures` when a volume cannot be made ready */
  setUp(pod: Pod, facts: { objects: ObjectIndex }, signal: AbortSignal): Promise<void>;
  mountsFor(
    pod: Pod,
    container: Container,
    env: readonly { name: string; value: string }[],
    signal: AbortSignal,
  ): Promise<Mount[]>;
  /** Never throws for a volume: `failures` says which kept what they had. */
  refresh(pod: Pod, objects: ObjectIndex): Promise<{ changed: string[]; failures: { message: string }[] }>;
  readEnvFile(pod: Pod, volumeName: string, path: string): string | undefined;
  /** Volumes an edit took out of the pod. @throws when one is still in use */
  removeUnused(pod: Pod, signal: AbortSignal): Promise<void>;
  tearDown(uid: string, signal: AbortSignal): Promise<void>;
}

/** Images on the engine, as src/runtime/image-manager.ts has them. */
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
    target: { container: { id: string; name: string; ports: Container["ports"] }; pod: PodIdentity; podIp: string },
    signal: AbortSignal,
  ): Promise<void>;
}

export interface PodIdentity {
  uid: string;
  name: string;
  namespace: string;
}

/** Cgroups above the containers of a pod. */
export interface PodCgroups {
  /** @throws PodStepError when a bound of the pod as a whole cannot be put into force */
  ensure(pod: Pod): Promise<void>;
  remove(uid: string): void;
}

/** Symlinks where log shippers look. */
export interface ContainerLogLinks {
  create(pod: Pod, container: string, restartCount: number, id: ContainerId): void;
  removeContainer(container: ContainerSnapshot, pod: PodIdentity): void;
  removePod(pod: PodIdentity): void;
}

export interface PodLifecycleDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  options: KubeletOptions;
  owner: Owner;
  node: () => NodeInfo;
  /** What `resourceFieldRef` says where a container has no limit. */
  allocatable: NodeAllocatable;
  engine: () => EngineInfo;
  pods: DockerPods;
  images: PodImages;
  volumes: PodVolumes;
  hooks: PodHooks;
  cgroups: PodCgroups;
  logLinks: ContainerLogLinks;
  /** More at a time would only queue up inside the engine. */
  gate: ConcurrencyLimit;
  /** Id of the image of the sandboxes, loaded or pulled when it is not there. */
  ensurePauseImage: (signal: AbortSignal) => Promise<string>;
  /** Writes the pod's /etc/hosts and says where it is. */
  writeHostsFile: (pod: Pod, podIps: readonly string[], names: HostsFileNames) => string;
  /** The last bytes of a container's log, for its termination message. */
  readLogTail: (id: ContainerId, signal: AbortSignal) => Promise<string>;
  /** What of file and log becomes the message. */
  toTerminationMessage: (input: {
    policy: "File" | "FallbackToLogsOnError";
    exitCode: number;
    file: string | undefined;
    readLog: () => Promise<string>;
    containerCount: number;
  }) => Promise<string>;
}

/** So long after its container ended a hook may still say how it came out. */
const HOOK_DIES_MS = 2_000;

/** What becomes of each step of a pod's life, put together from engine, images, volumes, hooks and cgroups. */
export class PodLifecycle implements PodServices {
  readonly #deps: PodLifecycleDeps;
  /** The pod object whose volumes are ready, by uid: an edit makes another object. */
  readonly #volumesReady = new Map<string, Pod>();
  readonly #volumeTurns = new Map<string, Promise<unknown>>();
  /** Between pullImage and startContainer of the same request. */
  readonly #pulled = new WeakMap<StartContainerRequest, ImageInfo>();

  readonly #failedMounts: FailedMounts;

  constructor(deps: PodLifecycleDeps) {
    this.#deps = deps;
    this.#failedMounts = new FailedMounts(deps);
  }

  async createSandbox(request: PodRequest, attempt: number, signal: AbortSignal): Promise<ContainerId> {
    const { pods, cgroups, gate, engine, owner, options, recorder } = this.#deps;
    const { pod, objects, sandboxHash } = request;
    await this.#setUpVolumes(pod, objects, signal);
    await cgroups.ensure(pod);
    const image = await this.#deps.ensurePauseImage(signal);
    const { dns, warnings } = this.#dnsOf(pod);
    for (const warning of warnings) recorder.record(identityOf(pod), warning);
    // In a network of the user's own the engine answers the names of other pods, and asks these servers for the rest.
    const hasEngineDns = computeUserNetwork(pod) !== undefined;
    const sandboxRequest = {
      pod,
      attempt,
      image,
      hash: sandboxHash,
      engine: engine(),
      owner,
      settings: options,
      ...(hasEngineDns && { dns }),
    };
    const sandbox = await gate.run(signal, () => pods.startSandbox(sandboxRequest, signal));
    if (!hasEngineDns) this.#writeResolvConf(pod, sandbox.resolvConfPath, dns);
    return sandbox.id;
  }

  async stopSandbox(id: ContainerId, graceSeconds: number, signal: AbortSignal): Promise<void> {
    await this.#deps.pods.stop(id, graceSeconds, undefined, signal);
  }

  async pullImage(request: StartContainerRequest, signal: AbortSignal): Promise<void> {
    const { pod, container, objects } = request;
    const names = (pod.spec.imagePullSecrets ?? []).map(({ name }) => `${pod.metadata.namespace}/${name}`);
    const pullSecrets = names.map((name) => objects.secrets.get(name)).filter((secret) => secret !== undefined);
    this.#pulled.set(request, await this.#deps.images.ensureImage(pod, container, { pullSecrets }, signal));
  }

  async startContainer(
    request: StartContainerRequest,
    onCreated: (id: ContainerId) => void,
    signal: AbortSignal,
  ): Promise<ContainerId> {
    const { pods, gate, recorder, logLinks } = this.#deps;
    const { pod, container, restartCount } = request;
    const fieldPath = `spec.${request.isInit ? "initContainers" : "containers"}{${container.name}}`;
    const image = this.#pulled.get(request);
    if (!image) throw new PodStepError("CreateContainerError", `the image of "${container.name}" was not looked for`);
    await this.#setUpVolumes(pod, request.objects, signal);
    const body = await this.#toContainerRequest(request, image, signal);
    return gate.run(signal, async () => {
      const id = await pods.createContainer(body, signal).catch((error: unknown) => {
        // Whatever the reason: an image that was removed meanwhile must be looked for again.
        this.#deps.images.forget(container.image ?? "");
        throw error;
      });
      onCreated(id);
      const tell = (reason: string, message: string) =>
        recorder.record(identityOf(pod), { type: "Normal", reason, message, fieldPath });
      tell("Created", `Created container ${container.name}`);
      await pods.startContainer(id, signal);
      tell("Started", `Started container ${container.name}`);
      logLinks.create(pod, container.name, restartCount, id);
      return id;
    });
  }

  async runPostStart(request: StartContainerRequest, id: ContainerId, signal: AbortSignal): Promise<void> {
    const { pod, container } = request;
    const handler = container.lifecycle?.postStart;
    if (!handler) return;
    const target = { id, name: container.name, ports: container.ports };
    try {
      await this.#runHook(handler, target, identityOf(pod), this.#podIpOf(pod, request.podIps), signal);
    } catch (error) {
      signal.throwIfAborted();
      const fieldPath = `spec.${request.isInit ? "initContainers" : "containers"}{${container.name}}`;
      const message = (error as Error).message;
      this.#deps.recorder.record(identityOf(pod), {
        type: "Warning",
        reason: "FailedPostStartHook",
        message,
        fieldPath,
      });
      throw error;
    }
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
    const { clock, pods } = this.#deps;
    const startedAtMs = clock.monotonicMs();
    const spec = pod && findContainer(pod, container.name);
    const handler = spec ? spec.lifecycle?.preStop : parseHandler(container);
    const giveUp = new AbortController();
    if (handler && graceSeconds > 0) {
      const hook = this.#runPreStop(handler, container, spec, pod, podIps, AbortSignal.any([signal, giveUp.signal]));
      // A hook that takes all the time it has goes on while the container is stopped: it dies with it, and says so.
      await this.#firstOf(hook, graceSeconds * 1000, signal);
    }
    const spentMs = clock.monotonicMs() - startedAtMs;
    await pods.stop(container.id, remainingGraceSeconds(graceSeconds, spentMs), spec?.lifecycle?.stopSignal, signal);
    if (handler) clock.schedule(HOOK_DIES_MS, () => giveUp.abort(new Error("the container is gone")));
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
    this.#deps.logLinks.removeContainer(container, refOfLabels(container));
  }

  async removeSandbox(id: ContainerId, signal: AbortSignal): Promise<void> {
    await this.#deps.pods.remove(id, signal);
  }

  async refreshVolumes({ pod, objects }: PodRequest, signal: AbortSignal): Promise<void> {
    const { volumes, logger, cgroups } = this.#deps;
    // Resources of the pod itself stand in its cgroup alone: no container changes when they are edited (M14).
    if (pod.spec.resources) await cgroups.ensure(pod);
    const { changed, failures } = await this.#inVolumeTurn(pod, () => volumes.refresh(pod, objects));
    signal.throwIfAborted();
    for (const volume of changed) {
      logger.info(`Volume "${volume}" of pod "${pod.metadata.namespace}/${pod.metadata.name}" was brought up to date`);
    }
    const [first, ...others] = failures;
    for (const { message } of others) {
      this.#deps.recorder.record(identityOf(pod), { type: "Warning", reason: "FailedMount", message });
    }
    if (first) throw new PodStepError("FailedMount", first.message);
  }

  async removeUnusedVolumes({ pod }: PodRequest, signal: AbortSignal): Promise<void> {
    await this.#inVolumeTurn(pod, () => this.#deps.volumes.removeUnused(pod, signal));
  }

  async readTerminationMessage(
    container: ContainerSnapshot,
    pod: Pod | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const spec = pod && findContainer(pod, container.name);
    const policy = container.labels["annotation.io.kubernetes.container.terminationMessagePolicy"];
    const uid = container.labels["io.kubernetes.pod.uid"] ?? "";
    return this.#deps.toTerminationMessage({
      policy: (spec?.terminationMessagePolicy ?? policy) === "FallbackToLogsOnError" ? "FallbackToLogsOnError" : "File",
      exitCode: container.exitCode,
      file: readEndIfThere(this.#terminationLogPath(uid, container.name, container.restartCount)),
      readLog: () => this.#deps.readLogTail(container.id, signal),
      containerCount: pod ? pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0) : 1,
    });
  }

  async tearDown(uid: string, ref: { name: string; namespace: string }, signal: AbortSignal): Promise<void> {
    this.#volumesReady.delete(uid);
    this.#failedMounts.settled(uid);
    await this.#volumeTurns.get(uid);
    this.#volumeTurns.delete(uid);
    await this.#deps.volumes.tearDown(uid, signal);
    this.#deps.cgroups.remove(uid);
    this.#deps.logLinks.removePod({ uid, ...ref });
  }

  async #setUpVolumes(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const uid = pod.metadata.uid ?? "";
    if (this.#volumesReady.get(uid) === pod) return;
    await this.#asFailedMount(pod, () =>
      this.#inVolumeTurn(pod, () => this.#deps.volumes.setUp(pod, { objects }, signal)),
    );
    this.#volumesReady.set(uid, pod);
    this.#failedMounts.settled(uid);
  }

  /** Work on the volumes of one pod never overlaps. */
  #inVolumeTurn<T>(pod: Pod, work: () => Promise<T>): Promise<T> {
    const uid = pod.metadata.uid ?? "";
    const result = (this.#volumeTurns.get(uid) ?? Promise.resolve()).then(work);
    this.#volumeTurns.set(
      uid,
      result.catch(() => {}),
    );
    return result;
  }

  /** Of several volumes that failed each gets its event; the pod waits for the first. */
  async #asFailedMount(pod: Pod, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const failures = (error as { failures?: readonly { volume: string; message: string }[] }).failures ?? [];
      if (failures.length > 0) {
        this.#failedMounts.failed(
          pod,
          failures.map(({ volume }) => volume),
        );
      }
      for (const { message } of failures.slice(1)) {
        this.#deps.recorder.record(identityOf(pod), { type: "Warning", reason: "FailedMount", message });
      }
      throw new PodStepError("FailedMount", (error as Error).message, { cause: error });
    }
  }

  async #toContainerRequest(
    request: StartContainerRequest,
    image: ImageInfo,
    signal: AbortSignal,
  ): Promise<ContainerRequest> {
    const { options, volumes, owner } = this.#deps;
    const { pod, container, objects } = request;
    const node = this.#deps.node();
    const podIps = pod.spec.hostNetwork ? [node.ip] : request.podIps;
    const resolved = resolveEnvironment(pod, container, {
      objects,
      podIps,
      hostIp: node.ip,
      node,
      allocatable: this.#deps.allocatable,
      readEnvFile: (volumeName, path) => volumes.readEnvFile(pod, volumeName, path),
    });
    if (resolved.missing) throw new PodStepError(resolved.missing.reason, resolved.missing.message);
    for (const warning of resolved.warnings) this.#deps.recorder.record(identityOf(pod), warning);
    const { command, args } = expandCommand(container, resolved.env);
    let mounts: Mount[];
    try {
      mounts = await this.#inVolumeTurn(pod, () => volumes.mountsFor(pod, container, resolved.env, signal));
    } catch (error) {
      const { reason = "CreateContainerConfigError" } = error as { reason?: string };
      throw new PodStepError(reason, (error as Error).message, { cause: error });
    }
    const hostsFile = this.#writeHostsFile(pod, request.podIps);
    const terminationLogFile = this.#makeTerminationLog(pod, container, request.restartCount);
    return {
      pod,
      container,
      restartCount: request.restartCount,
      sandboxId: request.sandboxId,
      hash: request.hash,
      image,
      env: resolved.env,
      command,
      args,
      mounts,
      node,
      engine: this.#deps.engine(),
      owner,
      paths: {
        ...(hostsFile && { hostsFile }),
        ...(terminationLogFile && { terminationLogFile }),
        seccompRoot: join(options.rootDir, "seccomp"),
        podLogsDir: options.podLogsDir,
      },
      settings: options,
      readFile: (path) => readFileSync(path, "utf8"),
    };
  }

  /** Never rejects: a hook that failed is told, and the container is stopped all the same. */
  async #runPreStop(
    handler: Parameters<PodHooks["run"]>[0],
    container: ContainerSnapshot,
    spec: Container | undefined,
    pod: Pod | undefined,
    podIps: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const identity = pod ? identityOf(pod) : refOfLabels(container);
    const target = { id: container.id, name: container.name, ports: spec?.ports };
    try {
      const podIp = pod ? this.#podIpOf(pod, podIps) : (podIps[0] ?? "");
      await this.#runHook(handler, target, identity, podIp, signal);
    } catch (error) {
      if (signal.aborted) return;
      const message = (error as Error).message;
      const fieldPath = `spec.containers{${container.name}}`;
      this.#deps.recorder.record(identity, { type: "Warning", reason: "FailedPreStopHook", message, fieldPath });
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

  #runHook(
    handler: Parameters<PodHooks["run"]>[0],
    container: { id: string; name: string; ports: Container["ports"] },
    pod: PodIdentity,
    podIp: string,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#deps.hooks.run(handler, { container, pod, podIp }, signal);
  }

  #podIpOf(pod: Pod, podIps: readonly string[]): string {
    return pod.spec.hostNetwork ? this.#deps.node().ip : (podIps[0] ?? "");
  }

  #dnsOf(pod: Pod): ReturnType<typeof computeDnsConfig> {
    const { clusterDns, clusterDomain, resolvConf } = this.#deps.options;
    const hostResolvConf = resolvConf ? (readIfThere(resolvConf) ?? "") : undefined;
    return computeDnsConfig(pod, { clusterDns, clusterDomain, hostResolvConf, nodeIp: this.#deps.node().ip });
  }

  /** The engine's file of the sandbox is what its containers get to see. Source: dockershim's rewriteResolvFile. */
  #writeResolvConf(pod: Pod, path: string, dns: DnsConfig): void {
    if (!path) return;
    try {
      writeFileSync(path, formatResolvConf(dns));
    } catch (error) {
      const who = `${pod.metadata.namespace}/${pod.metadata.name}`;
      const why = (error as Error).message;
      this.#deps.logger.warn(`Pod "${who}" keeps the engine's DNS settings: cannot write ${path}: ${why}`);
    }
  }

  #writeHostsFile(pod: Pod, podIps: readonly string[]): string | undefined {
    const names = computePodHostname(pod, this.#deps.options.clusterDomain);
    if ("problem" in names || (!pod.spec.hostNetwork && podIps.length === 0)) return undefined;
    return this.#deps.writeHostsFile(pod, podIps, names);
  }

  #makeTerminationLog(pod: Pod, container: Container, restartCount: number): string | undefined {
    if (!container.terminationMessagePath) return undefined;
    const path = this.#terminationLogPath(pod.metadata.uid ?? "", container.name, restartCount);
    mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
    const umask = process.umask(0);
    try {
      // Any user of the container may write its last words.
      writeFileSync(path, "", { mode: 0o666 });
    } finally {
      process.umask(umask);
    }
    return path;
  }

  #terminationLogPath(uid: string, container: string, restartCount: number): string {
    return join(this.#podDir(uid), "containers", container, String(restartCount));
  }

  #podDir(uid: string): string {
    return join(this.#deps.options.rootDir, "pods", uid);
  }
}

const identityOf = ({ metadata }: Pod): PodIdentity => ({
  uid: metadata.uid ?? "",
  name: metadata.name ?? "",
  namespace: metadata.namespace ?? "default",
});

const refOfLabels = ({ labels }: ContainerSnapshot): PodIdentity => ({
  uid: labels["io.kubernetes.pod.uid"] ?? "",
  name: labels["io.kubernetes.pod.name"] ?? "",
  namespace: labels["io.kubernetes.pod.namespace"] ?? "",
});

const findContainer = (pod: Pod, name: string): Container | undefined =>
  [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find((container) => container.name === name);

/** The hook as the manifest had it when the container was made, for one whose manifest is gone. */
function parseHandler({ labels }: ContainerSnapshot): Parameters<PodHooks["run"]>[0] | undefined {
  const text = labels["annotation.io.kubernetes.container.preStopHandler"];
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** The last 4 KiB, which is all that counts: what a container writes there has no bounds. */
function readEndIfThere(path: string): string | undefined {
  const limitBytes = 4096;
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, limitBytes));
    return bytes.toString("utf8", 0, readSync(file, bytes, 0, bytes.length, Math.max(0, size - limitBytes)));
  } finally {
    closeSync(file);
  }
}
