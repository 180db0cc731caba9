import type { Pod } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ContainerLimits } from "../base/model/container-limits.ts";
import { PodStepError } from "../base/model/pod-services.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import { describeNetwork } from "../plan/pod-network.ts";
import { type ContainerRequest, toContainerCreateBody } from "./container-create-body.ts";
import type { ContainerCreateBody } from "./engine/container-create-body.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { DockerError, isConflict, isNotFound } from "./engine/docker-error.ts";
import { isOwned, type Owner } from "./labels.ts";
import { MappingError } from "./mapping-error.ts";
import { toConflictFreeName, toContainerName, toSandboxName } from "./names.ts";
import { type SandboxRequest, toSandboxCreateBody } from "./sandbox-create-body.ts";

interface DockerPodsDeps {
  client: DockerClient;
  owner: Owner;
  clock: Pick<Clock, "monotonicMs">;
  random: () => number;
  /** Called after each call, with CRI's word for it: `run_podsandbox`, `create_container`, … */
  onOperation?: (operation: string, durationMs: number, failed: boolean) => void;
  /** Called when a container (not a sandbox) runs; the start is over when this has resolved, which it must. */
  onStarted?: (id: ContainerId, signal: AbortSignal) => Promise<void>;
}

/** A sandbox that runs, and where the engine keeps what was made for it. */
interface StartedSandbox {
  id: ContainerId;
  /** Host pid of its process. */
  pid: number;
  /** On the engine's host; "" when the engine does not say. */
  resolvConfPath: string;
  /** IPv4 first; empty with host networking. */
  ips: string[];
}

/** Sandboxes and containers on the engine: one method, one step. Each may be repeated: "already so" is success. */
export class DockerPods {
  readonly #client: DockerClient;
  readonly #owner: Owner;
  readonly #random: () => number;

  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #onOperation: NonNullable<DockerPodsDeps["onOperation"]>;
  readonly #onStarted: NonNullable<DockerPodsDeps["onStarted"]>;

  constructor({ client, owner, clock, random, onOperation = () => {}, onStarted = async () => {} }: DockerPodsDeps) {
    this.#client = client;
    this.#owner = owner;
    this.#clock = clock;
    this.#random = random;
    this.#onOperation = onOperation;
    this.#onStarted = onStarted;
  }

  /** @throws PodStepError FailedCreatePodSandBox */
  startSandbox(request: SandboxRequest, signal: AbortSignal): Promise<StartedSandbox> {
    return this.#timed("run_podsandbox", () => this.#startSandbox(request, signal));
  }

  async #startSandbox(request: SandboxRequest, signal: AbortSignal): Promise<StartedSandbox> {
    let attempted = "failed to create a sandbox for";
    try {
      const name = toSandboxName(request.pod, request.attempt);
      const id = await this.#create(name, toSandboxCreateBody(request), signal);
      attempted = "failed to start sandbox container for";
      await this.#client.startContainer(id, { signal });
      const { ResolvConfPath, NetworkSettings, State } = await this.#client.inspectContainer(id, { signal });
      const networks = Object.values(NetworkSettings.Networks).filter((network) => network !== null);
      const ips = [...networks.map((it) => it.IPAddress), ...networks.map((it) => it.GlobalIPv6Address)];
      return { id, pid: State.Pid, resolvConfPath: ResolvConfPath, ips: ips.filter((ip) => ip !== "") };
    } catch (error) {
      signal.throwIfAborted();
      throw new PodStepError("FailedCreatePodSandBox", toSandboxFailure(request.pod, attempted, error), {
        cause: error,
      });
    }
  }

  /** @throws PodStepError with upstream's reasons: CreateContainerConfigError, CreateContainerError */
  async createContainer(request: ContainerRequest, signal: AbortSignal): Promise<ContainerId> {
    try {
      const name = toContainerName(request.pod, request.container.name, request.restartCount);
      const body = toContainerCreateBody(request);
      return await this.#timed("create_container", () => this.#create(name, body, signal));
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof MappingError ? error.reason : "CreateContainerError";
      throw new PodStepError(reason, textOf(error), { cause: error });
    }
  }

  /** @throws PodStepError RunContainerError: the container stays, with the engine's verdict in its state */
  async startContainer(id: ContainerId, signal: AbortSignal): Promise<void> {
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
    await this.#onStarted(id, signal);
  }

  /** SIGTERM (or the image's or the manifest's signal), then SIGKILL after the grace period. One that is gone is fine. */
  async stop(
    id: ContainerId,
    graceSeconds: number,
    stopSignal: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const stop = { timeoutSeconds: graceSeconds, signal: stopSignal };
      await this.#timed("stop_container", () => this.#client.stopContainer(id, stop, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Host pid of a container, 0 when it does not run; undefined when it does not exist. */
  async pidOf(id: ContainerId, signal: AbortSignal): Promise<number | undefined> {
    try {
      const { State } = await this.#client.inspectContainer(id, { signal });
      return State.Running ? State.Pid : 0;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** @throws what the engine answers, e.g. when more memory is in use than the new limit allows */
  async resize(id: ContainerId, update: Partial<ContainerLimits>, signal: AbortSignal): Promise<void> {
    await this.#timed("update_container", () => this.#client.updateContainer(id, { ...update }, { signal }));
  }

  /** Removes a container. One that is gone, or is being removed already, is not an error. */
  async remove(id: ContainerId, signal: AbortSignal): Promise<void> {
    try {
      const how = { volumes: true, force: true };
      await this.#timed("remove_container", () => this.#client.removeContainer(id, how, { signal }));
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  async #timed<T>(operation: string, work: () => Promise<T>): Promise<T> {
    const startedAtMs = this.#clock.monotonicMs();
    let failed = true;
    try {
      const result = await work();
      failed = false;
      return result;
    } finally {
      this.#onOperation(operation, this.#clock.monotonicMs() - startedAtMs, failed);
    }
  }

  /** A name that is taken is ours from an attempt that broke off (then that goes), or a stranger's (then we dodge). */
  async #create(name: string, body: ContainerCreateBody, signal: AbortSignal): Promise<ContainerId> {
    const fields: Readonly<Record<string, unknown>> = { ...body };
    try {
      return (await this.#client.createContainer(name, fields, { signal })).Id;
    } catch (error) {
      if (!isConflict(error)) throw error;
      const holder = await this.#client.inspectContainer(name, { signal }).catch((lookup: unknown) => {
        if (isNotFound(lookup)) return undefined;
        throw lookup;
      });
      const isLeftover = holder && isOwned(holder.Config.Labels, this.#owner) && !holder.State.Running;
      if (isLeftover) await this.remove(holder.Id, signal);
      const nextName = holder && !isLeftover ? toConflictFreeName(name, this.#random) : name;
      return (await this.#client.createContainer(nextName, fields, { signal })).Id;
    }
  }
}

/** Message for the pod's status: the engine's own text if it answered. */
function textOf(error: unknown): string {
  if (error instanceof DockerError) return `Error response from daemon: ${error.daemonMessage}`;
  return messageOf(error);
}

/** In the words of kubelet and dockershim [oracle A 05]; and where, for the engine does not say whose address is taken. */
function toSandboxFailure(pod: Pod, attempted: string, error: unknown): string {
  if (!(error instanceof DockerError)) return `Failed to create pod sandbox: ${textOf(error)}`;
  const where = describeNetwork(pod);
  const what = `${attempted} pod ${JSON.stringify(pod.metadata.name ?? "")}${where && ` ${where}`}`;
  return `Failed to create pod sandbox: rpc error: code = Unknown desc = ${what}: ${textOf(error)}`;
}
