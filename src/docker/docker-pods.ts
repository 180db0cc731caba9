import { randomBytes } from "node:crypto";
import { readSync } from "node:fs";
import type { Pod } from "../base/api/pod.ts";
import { timed } from "../base/concurrency/timed.ts";
import { parseMounts } from "../base/files/mount-points.ts";
import { openFile } from "../base/files/whole-file.ts";
import type { Clock } from "../base/model/clock.ts";
import type {
  ContainerRequest,
  Listed,
  Observed,
  Owner,
  PodEngine,
  SandboxRequest,
  StartedSandbox,
  WatchOptions,
} from "../base/model/container-engine.ts";
import type { PodUID } from "../base/model/pod.ts";
import type { PodNetworks } from "../base/model/pod-networks.ts";
import type { ContainerId, ContainerLimits } from "../base/model/pod-snapshot.ts";
import { messageOf, unlessFailed } from "../base/text/error-message.ts";
import { computeUserNetworks, describeNetwork } from "../plan/pod-network.ts";
import { PodStepError } from "../plan/waiting-reasons.ts";
import { checkCreateBody, toContainerCreateBody, toSandboxCreateBody, toUpdateBody } from "./create-bodies.ts";
import type { ContainerCreateBody } from "./engine/container-create-body.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { DockerError, isConflict, isNotFound, known } from "./engine/docker-error.ts";
import { isDisconnected, toIps, toObserved } from "./inspect-to-snapshot.ts";
import {
  computeRootHash,
  isOwned,
  LABEL,
  toContainerName,
  toOwnershipFilter,
  toSandboxName,
  toSandboxPattern,
} from "./labels.ts";
import { MappingError } from "./mapping-error.ts";

const PROC_BYTES = 16 * 1024;
/** Pauses between two tries to get the event stream back. */
const RECONNECT_MS = [50, 100, 250, 500, 1000, 2000];

/** Pause between two pings, and the time that the engine has for each. */
const PING_MS = 10_000;
/** An engine that has answered no ping for this time hangs. Source: the kubelet's `maxWaitForContainerRuntime`. */
const HANGING_AFTER_MS = 30_000;

export interface DockerPodsDeps {
  client: DockerClient;
  owner: Owner;
  clock: Clock;
  /** Addresses of the sandboxes that plugins attached. */
  networks?: Pick<PodNetworks, "ipsOf">;
  /** Called when an engine that was unreachable responds again, before anything else is asked. */
  onReconnect?: (signal: AbortSignal) => Promise<void>;
  /** Called after each call, with CRI's word for it: `run_podsandbox`, `create_container`, … */
  onOperation?: (operation: string, durationMs: number, failed: boolean) => void;
  /** Called when a container (not a sandbox) runs; the start is over when this has resolved, which it must. */
  onStarted?: (id: ContainerId, signal: AbortSignal) => Promise<void>;
  /** Called after a container or sandbox of a pod was removed. */
  onRemoved?: (uid: PodUID, id: ContainerId) => void;
}

/** Sandboxes and containers with our ownership labels on one Docker engine. */
export class DockerPods implements PodEngine {
  readonly #client: DockerClient;
  readonly #deps: DockerPodsDeps;

  constructor(deps: DockerPodsDeps) {
    this.#client = deps.client;
    this.#deps = deps;
  }

  async checkNetworks(pod: Pod, signal: AbortSignal): Promise<void> {
    const wanted = computeUserNetworks(pod);
    if (wanted.length === 0) return;
    const names = new Set((await this.#client.listNetworks({ signal })).map(({ Name }) => Name));
    const missing = wanted.find((name) => !names.has(name));
    if (missing === undefined) return;
    const error = new DockerError(404, `GET /networks/${missing}`, `network ${missing} not found`);
    throw new PodStepError("FailedCreatePodSandBox", toSandboxFailure(pod, "failed to create a sandbox for", error));
  }

  startSandbox(request: SandboxRequest, signal: AbortSignal): Promise<StartedSandbox> {
    return this.#timed("run_podsandbox", () => this.#startSandbox(request, signal));
  }

  async #startSandbox(request: SandboxRequest, signal: AbortSignal): Promise<StartedSandbox> {
    let attempted = "failed to create a sandbox for";
    try {
      await this.#refuseOtherRoot(request.pod, signal);
      const name = toSandboxName(request.pod, request.attempt);
      const { NetworkingConfig, ...body } = toSandboxCreateBody(request, this.#deps.owner);
      const { NetworkMode = "" } = body.HostConfig;
      const { [NetworkMode]: first, ...others } = NetworkingConfig?.EndpointsConfig ?? {};
      const inFirst = first && { NetworkingConfig: { EndpointsConfig: { [NetworkMode]: first } } };
      const id = await this.#create(name, { ...body, ...inFirst }, signal);
      await this.#connect(id, others, signal);
      attempted = "failed to start sandbox container for";
      await this.#client.startContainer(id, { signal });
      const inspect = await this.#client.inspectContainer(id, { signal });
      return { id, pid: inspect.State.Pid, resolvConfPath: inspect.ResolvConfPath, ips: toIps(inspect) };
    } catch (error) {
      signal.throwIfAborted();
      throw new PodStepError("FailedCreatePodSandBox", toSandboxFailure(request.pod, attempted, error), {
        cause: error,
      });
    }
  }

  /** @throws Error when this pod, or one of its workload under another name, runs from another root directory of this node */
  async #refuseOtherRoot(pod: Pod, signal: AbortSignal): Promise<void> {
    const { nodeName, rootHash } = this.#deps.owner;
    const label = [LABEL.root, `${LABEL.node}=${nodeName}`];
    // Also one that the other kubelet is about to start.
    const filters = { name: [toSandboxPattern(pod)], label, status: ["created", "running", "paused"] };
    const found = await this.#client.listContainers({ filters }, { signal });
    const other = found.find(({ Labels }) => Labels[LABEL.root] !== rootHash)?.Labels;
    if (!other) return;
    // The sandbox mounts nothing of the root directory.
    const ofPod = { label: [`${LABEL.podUid}=${other[LABEL.podUid]}`] };
    const listed = await this.#client.listContainers({ all: true, filters: ofPod }, { signal });
    const inspected = await Promise.all(
      listed.map(({ Id }) => known(this.#client.inspectContainerRaw(Id, { signal }))),
    );
    const paths = Array.from(JSON.stringify(inspected).matchAll(/"(\/[^":]*)\/pods\//g), ([, path = ""]) => path);
    const path = paths.find((it) => computeRootHash(it) === other[LABEL.root]) ?? "DIRECTORY";
    throw new Error(`pod "${other[LABEL.podName]}" runs already, from the root directory ${path}`);
  }

  /** Engines before API 1.44 create a container in one network only. */
  async #connect(id: ContainerId, endpoints: Readonly<Record<string, object>>, signal: AbortSignal): Promise<void> {
    if (Object.keys(endpoints).length === 0) return;
    const { Networks } = (await this.#client.inspectContainer(id, { signal })).NetworkSettings;
    for (const [network, EndpointConfig] of Object.entries(endpoints)) {
      if (!Networks[network]) await this.#client.connectNetwork(network, { Container: id, EndpointConfig }, { signal });
    }
  }

  async createContainer(request: ContainerRequest, signal: AbortSignal): Promise<ContainerId> {
    try {
      const name = toContainerName(request.pod, request.container.name, request.restartCount);
      const body = toContainerCreateBody(request, this.#deps.owner);
      return await this.#timed("create_container", () => this.#create(name, body, signal));
    } catch (error) {
      signal.throwIfAborted();
      throw toCreateError(error);
    }
  }

  checkContainer(request: ContainerRequest): void {
    try {
      checkCreateBody(toContainerCreateBody(request, this.#deps.owner));
    } catch (error) {
      throw toCreateError(error);
    }
  }

  async start(id: ContainerId, signal: AbortSignal): Promise<void> {
    try {
      await this.#timed("start_container", () => this.#client.startContainer(id, { signal }));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof DockerError)) throw error;
      const why = `failed to start container "${id}": ${textOf(error)}`;
      // The engine mounts the volumes of its drivers, such as NFS, when a container starts.
      const eventReason = why.includes("error while mounting volume") ? "FailedMount" : undefined;
      throw new PodStepError("RunContainerError", why, { cause: error, eventReason });
    }
    await this.#deps.onStarted?.(id, signal);
  }

  async stop(
    id: ContainerId,
    graceSeconds: number,
    stopSignal: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const stop = { timeoutSeconds: graceSeconds, signal: stopSignal };
    await known(this.#timed("stop_container", () => this.#client.stopContainer(id, stop, { signal })));
  }

  async pidOf(id: ContainerId, signal: AbortSignal): Promise<number | undefined> {
    const found = await known(this.#client.inspectContainer(id, { signal }));
    return found && (found.State.Running ? found.State.Pid : 0);
  }

  async resize(id: ContainerId, update: Partial<ContainerLimits>, signal: AbortSignal): Promise<void> {
    await this.#timed("update_container", () => this.#client.updateContainer(id, toUpdateBody(update), { signal }));
  }

  async remove(id: ContainerId, uid: PodUID, signal: AbortSignal): Promise<void> {
    try {
      const how = { volumes: true, force: true };
      await this.#timed("remove_container", () => this.#client.removeContainer(id, how, { signal }));
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
    this.#deps.onRemoved?.(uid, id);
  }

  async list(signal?: AbortSignal): Promise<Listed[]> {
    const filters = { label: toOwnershipFilter(this.#deps.owner) };
    const containers = await this.#client.listContainers({ all: true, filters }, { signal });
    return containers.map(({ Id, State, Labels, NetworkSettings }) => {
      const isUnusable = Labels[LABEL.type] === "podsandbox" && isDisconnected({ NetworkSettings });
      return { id: Id, state: isUnusable ? "dead" : State };
    });
  }

  async inspect(id: ContainerId, signal?: AbortSignal): Promise<Observed | undefined> {
    const inspect = await known(this.#client.inspectContainer(id, { signal }));
    if (!inspect || !isOwned(inspect.Config.Labels, this.#deps.owner)) return undefined;
    const layer = inspect.GraphDriver.Data.UpperDir || readWritableLayerPath(inspect.State.Pid, inspect.Id);
    return toObserved(inspect, layer, this.#deps.networks?.ipsOf(id));
  }

  async watch({ onOpen, onEvent, onLost, signal }: WatchOptions): Promise<void> {
    let failures = 0;
    let cursor: string | undefined;
    const filters = { type: ["container"], label: toOwnershipFilter(this.#deps.owner) };
    while (!signal.aborted) {
      const cut = new AbortController();
      const stop = AbortSignal.any([signal, cut.signal]);
      try {
        // The engine may have been upgraded in between.
        if (failures > 0) {
          await this.#client.connect({ signal });
          await this.#deps.onReconnect?.(signal);
        }
        const opened = () => {
          failures = 0;
          onOpen();
          this.#untilHanging(stop).then(
            (error) => cut.abort(error),
            () => {},
          );
        };
        for await (const event of this.#client.events({ filters, since: cursor, signal: stop, onOpen: opened })) {
          cursor = event.cursor;
          const { signal: number } = event.attributes;
          onEvent({ id: event.id, action: event.action, ...(number !== undefined && { signal: number }) });
        }
        cut.signal.throwIfAborted();
      } catch (error) {
        if (signal.aborted) return;
        if (failures <= 1) onLost(error as Error);
      } finally {
        cut.abort();
      }
      if (signal.aborted) return;
      const pauseMs = RECONNECT_MS[Math.min(failures, RECONNECT_MS.length - 1)]!;
      failures++;
      await this.#deps.clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  /**
   * Resolves when the engine hangs, with the error of its last ping: the event stream of such an engine stays open.
   * @throws when the signal aborts
   */
  async #untilHanging(signal: AbortSignal): Promise<Error> {
    let answeredAtMs = this.#deps.clock.monotonicMs();
    for (;;) {
      await this.#deps.clock.sleep(PING_MS, signal);
      try {
        await this.#client.ping({ timeoutMs: PING_MS, signal });
        answeredAtMs = this.#deps.clock.monotonicMs();
      } catch (error) {
        signal.throwIfAborted();
        if (this.#deps.clock.monotonicMs() - answeredAtMs >= HANGING_AFTER_MS) return error as Error;
      }
    }
  }

  #timed<T>(operation: string, work: () => Promise<T>): Promise<T> {
    const { clock, onOperation } = this.#deps;
    return timed(clock, work, (durationMs, failed) => onOperation?.(operation, durationMs, failed));
  }

  /**
   * A name that is taken is that of our own container from an attempt that broke off, or of another program's: then the name
   * gets a suffix. Our own is removed, unless it was started by a call whose response was lost: a second one must not run
   * next to it, and its end counts as a crash once the next list of all containers shows it.
   */
  async #create(name: string, body: ContainerCreateBody, signal: AbortSignal): Promise<ContainerId> {
    const fields: Readonly<Record<string, unknown>> = { ...body };
    try {
      return (await this.#client.createContainer(name, fields, { signal })).Id;
    } catch (error) {
      if (!isConflict(error)) throw error;
      const holder = await known(this.#client.inspectContainer(name, { signal }));
      const isOurs = holder !== undefined && isOwned(holder.Config.Labels, this.#deps.owner);
      if (isOurs && holder.State.Status !== "created") {
        const isSame = Object.entries(body.Labels ?? {}).every(([key, value]) => holder.Config.Labels[key] === value);
        if (isSame && holder.State.Running) return holder.Id;
        throw error;
      }
      if (isOurs) await this.remove(holder.Id, holder.Config.Labels[LABEL.podUid] ?? "", signal);
      const nextName = holder && !isOurs ? `${name}_${randomBytes(4).toString("hex")}` : name;
      return (await this.#client.createContainer(nextName, fields, { signal })).Id;
    }
  }
}

function toCreateError(error: unknown): PodStepError {
  const reason = error instanceof MappingError ? error.reason : "CreateContainerError";
  return new PodStepError(reason, textOf(error), { cause: error });
}

/** Message for the pod's status: the engine's own text if it responded. */
function textOf(error: unknown): string {
  if (error instanceof DockerError) return `Error response from daemon: ${error.daemonMessage}`;
  return messageOf(error);
}

/** In the words of kubelet and dockershim; with the network, because the engine does not name the address that is taken. */
function toSandboxFailure(pod: Pod, attempted: string, error: unknown): string {
  if (!(error instanceof DockerError)) return `Failed to create pod sandbox: ${textOf(error)}`;
  const where = describeNetwork(pod);
  const what = `${attempted} pod ${JSON.stringify(pod.metadata.name ?? "")}${where && ` ${where}`}`;
  return `Failed to create pod sandbox: rpc error: code = Unknown desc = ${what}: ${textOf(error)}`;
}

/**
 * Directory of a writable layer that inspect does not name (images in containerd); "" when it is not an overlay of this
 * machine.
 */
export function readWritableLayerPath(pid: number, containerId: string): string {
  // One that has ended, or may not be read, fails.
  const read = (name: string) => (pid <= 1 ? undefined : unlessFailed(() => readStart(`/proc/${pid}/${name}`)));
  return read("cgroup")?.includes(containerId) ? parseUpperDir(read("mountinfo") ?? "") : "";
}

/** The start of a file of the kernel: a container may have made any number of mounts, its root is the first. */
function readStart(path: string): string {
  using file = openFile(path, "r");
  const buffer = Buffer.allocUnsafe(PROC_BYTES);
  let length = 0;
  // The kernel hands out a page at a time.
  for (let read = -1; read !== 0 && length < buffer.length; length += read) {
    read = readSync(file.descriptor, buffer, length, buffer.length - length, length);
  }
  return buffer.toString("utf8", 0, length);
}

/** `upperdir` of the overlay a process has for its root; "" when that is none. Source: proc(5), overlayfs's options. */
export function parseUpperDir(mountinfo: string): string {
  const root = parseMounts(mountinfo).findLast(({ mountPoint }) => mountPoint === "/");
  return root?.type === "overlay" ? (/(?:^|,)upperdir=([^,]*)/.exec(root.options)?.[1] ?? "") : "";
}
