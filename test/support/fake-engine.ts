import type { Pod } from "../../src/base/api/pod.ts";
import type {
  ContainerRequest,
  Listed,
  Observed,
  PodEngine,
  SandboxRequest,
  StartedSandbox,
  WatchOptions,
} from "../../src/base/model/container-engine.ts";
import type { PodRef } from "../../src/base/model/pod.ts";
import type { ContainerLimits, ContainerSnapshot } from "../../src/base/model/pod-snapshot.ts";
import type {
  EditRequest,
  PodRequest,
  PodServices,
  StartContainerRequest,
} from "../../src/kubelet/pod-runtime-manager.ts";
import { pinImage } from "../../src/plan/image-updates.ts";
import type { PodStepError } from "../../src/plan/waiting-reasons.ts";
import { aRunning, aSandbox } from "./builders.ts";
import type { FakeClock } from "./fake-clock.ts";

const refOf = ({ metadata }: Pod): PodRef => ({
  uid: metadata.uid!,
  name: metadata.name!,
  namespace: metadata.namespace ?? "default",
});

/**
 * An engine and everything around it, in memory: keeps containers, emits events, notes every call as a word in `calls`.
 * A container ends only by `exit` or when it is killed, after `stopTakesMs`.
 */
export class FakeEngine implements PodEngine, PodServices {
  readonly calls: string[] = [];
  /** Containers that are known to be no more. */
  readonly gone: string[] = [];
  readonly requests: StartContainerRequest[] = [];
  readonly containers = new Map<string, Observed>();
  /** Step errors to throw, by `pull app`, `start app`, `sandbox`, `postStart app`; removed when used up (count). */
  readonly failures = new Map<string, { error: PodStepError | Error; times: number }>();
  /** How long a step takes, by its name as in {@link failures}. */
  readonly takesMs = new Map<string, number>();
  stopTakesMs = 10;
  /** How long after the end of a container the call that asked for it returns. */
  stopResponsesAfterMs = 0;
  /** How containers end that are stopped: 137 = they had to be killed. */
  stopExitCode = 137;
  isDown = false;
  /** Drop events: the net must catch what happens. */
  isDeaf = false;
  readonly #clock: FakeClock;
  #watch: WatchOptions | undefined;
  #next = 0;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  // --- for tests ---

  /** Names of running containers, sandboxes as POD, e.g. `web-node1/app`. */
  running(): string[] {
    return [...this.containers.values()]
      .filter((it) => (it.kind === "sandbox" ? it.sandbox.state === "ready" : it.container.state === "running"))
      .map((it) => `${it.pod.name}/${it.kind === "sandbox" ? "POD" : it.container.name}`)
      .sort();
  }

  find(podName: string, container: string): Observed | undefined {
    return [...this.containers.values()]
      .reverse()
      .find((it) => it.pod.name === podName && (it.kind === "sandbox" ? "POD" : it.container.name) === container);
  }

  idOf(podName: string, container: string): string {
    const it = this.find(podName, container);
    if (!it) throw new Error(`no container ${podName}/${container}`);
    return it.kind === "sandbox" ? it.sandbox.id : it.container.id;
  }

  exit(id: string, exitCode = 0): void {
    const it = this.containers.get(id);
    if (it?.kind === "sandbox")
      this.#put(id, { ...it, sandbox: { ...it.sandbox, state: "notready", ips: [], pid: 0 } });
    else if (it) {
      const ended = { state: "exited" as const, exitCode, finishedAt: this.#clock.now(), pid: 0 };
      this.#put(id, { ...it, container: { ...it.container, ...ended } });
    }
    this.#emit(id, "die");
  }

  /** The engine reports that memory is exhausted; which process is killed is set separately. */
  oom(id: string): void {
    this.#emit(id, "oom");
  }

  /** As `docker stop`, or the first half of `docker restart`: SIGTERM, and it ends. */
  stopByHand(id: string): void {
    if (!this.isDown && !this.isDeaf) this.#watch?.onEvent({ id, action: "kill", signal: "15" });
    this.exit(id, 0);
  }

  startByHand(id: string): void {
    const it = this.containers.get(id);
    const startedAt = this.#clock.now();
    if (it?.kind === "sandbox") this.#put(id, { ...it, sandbox: { ...it.sandbox, state: "ready", startedAt } });
    if (it?.kind === "container") {
      const { finishedAt: _, ...container } = it.container;
      this.#put(id, { ...it, container: { ...container, state: "running", startedAt } });
    }
    this.#emit(id, "start");
  }

  /** As `docker rm -f` of something that runs: it ends, with its removal begun. `destroy` is its end. */
  beginRemoval(id: string): void {
    const it = this.containers.get(id);
    if (it) this.containers.set(id, { ...it, isBeingRemoved: true });
    this.exit(id, 137);
  }

  destroy(id: string): void {
    this.containers.delete(id);
    this.#emit(id, "destroy");
  }

  /** The event stream breaks; `back` opens it again. */
  lose(message = "The Docker engine does not answer"): void {
    this.isDown = true;
    this.#watch?.onLost(new Error(message));
  }

  back(): void {
    this.isDown = false;
    this.#watch?.onOpen();
  }

  // --- PodEngine ---

  async list(): Promise<Listed[]> {
    this.#check();
    return [...this.containers].map(([id, it]) => ({
      id,
      state: it.kind === "sandbox" ? (it.sandbox.state === "ready" ? "running" : "exited") : it.container.state,
    }));
  }

  /** Ids of the containers that were inspected, in order. */
  readonly inspected: string[] = [];

  async inspect(id: string): Promise<Observed | undefined> {
    this.inspected.push(id);
    this.#check();
    return this.containers.get(id);
  }

  async watch(options: WatchOptions): Promise<void> {
    this.#watch = options;
    options.onOpen();
  }

  async startSandbox({ pod, attempt, hash, initHash }: Pick<SandboxRequest, "pod" | "attempt" | "hash" | "initHash">) {
    const id = `sandbox-${this.#next++}`;
    const started: StartedSandbox = { id, pid: 1000 + this.#next, resolvConfPath: "", ips: [`172.17.0.${this.#next}`] };
    const { ips, pid } = started;
    const now = this.#clock.now();
    const sandbox = aSandbox({
      id,
      attempt,
      hash,
      createdAt: now,
      startedAt: now,
      ips,
      pid,
      ...(initHash && { initHash }),
    });
    this.#put(id, { kind: "sandbox", pod: refOf(pod), sandbox });
    this.#emit(id, "start");
    return started;
  }

  async createContainer(
    request: Pick<ContainerRequest, "pod" | "container" | "sandboxId" | "restartCount" | "hash" | "backOffMs"> &
      Pick<PodRequest, "imagePins">,
  ): Promise<string> {
    const { pod, container: spec, sandboxId, restartCount, hash, backOffMs } = request;
    const id = `${spec.name}-${this.#next++}`;
    const { startedAt: _, ...container } = aRunning(spec.name, {
      id,
      sandboxId,
      state: "created",
      restartCount,
      hash,
      ...(backOffMs !== undefined && { backOffMs }),
      image: pinImage(spec, request.imagePins).image ?? "",
      imageId: "sha256:image",
      createdAt: this.#clock.now(),
      pid: 0,
      labels: { "annotation.io.kubernetes.pod.terminationGracePeriod": String(pod.spec.terminationGracePeriodSeconds) },
    });
    this.#put(id, { kind: "container", pod: refOf(pod), container });
    return id;
  }

  async start(id: string): Promise<void> {
    const it = this.containers.get(id);
    if (it?.kind !== "container") throw new Error(`no container ${id}`);
    const startedAt = this.#clock.now();
    this.#put(id, { ...it, container: { ...it.container, state: "running", startedAt, pid: 2000 + this.#next } });
    this.#emit(id, "start");
  }

  async stop(id: string, graceSeconds: number): Promise<void> {
    const it = this.containers.get(id);
    if (!it || (await this.pidOf(id)) === 0) return;
    if (it.kind === "container") await this.#clock.sleep(Math.min(this.stopTakesMs, graceSeconds * 1000));
    this.exit(id, this.stopExitCode);
  }

  async pidOf(id: string): Promise<number | undefined> {
    const it = this.containers.get(id);
    return it?.kind === "container" ? it.container.pid : it?.sandbox.pid;
  }

  async resize(id: string, update: Partial<ContainerLimits>): Promise<void> {
    const it = this.containers.get(id);
    if (it?.kind !== "container") return;
    this.#put(id, { ...it, container: { ...it.container, limits: { ...it.container.limits, ...update } } });
    this.#emit(id, "update");
  }

  async remove(id: string): Promise<void> {
    if (this.containers.has(id)) this.destroy(id);
  }

  // --- PodServices ---

  async createSandbox({ pod, sandboxHash: hash, initHash }: PodRequest, attempt: number): Promise<string> {
    this.calls.push(`sandbox#${attempt} ${pod.metadata.name}`);
    await this.#work("sandbox");
    return (await this.startSandbox({ pod, attempt, hash, initHash })).id;
  }

  async stopSandbox(id: string): Promise<void> {
    this.calls.push(`stop-sandbox ${id}`);
    await this.#work("stop");
    this.exit(id);
  }

  async prepareEdit({ containers }: EditRequest): Promise<void> {
    for (const { name } of containers) await this.#work(`prepare ${name}`);
  }

  async checkNetworks(): Promise<void> {}

  checkContainer(): void {}

  async pullImage({ container }: StartContainerRequest): Promise<void> {
    await this.#work(`pull ${container.name}`);
  }

  async startContainer(request: StartContainerRequest, onCreated: (id: string) => void): Promise<string> {
    const { container: spec, pod, restartCount } = request;
    this.requests.push(request);
    this.calls.push(`start ${spec.name}#${restartCount} ${pod.metadata.name}`);
    await this.#work(`create ${spec.name}`);
    const id = await this.createContainer(request);
    onCreated(id);
    try {
      await this.#work(`start ${spec.name}`);
    } catch (error) {
      const it = this.containers.get(id);
      if (it?.kind === "container") {
        const { message } = error as Error;
        // Not the container's own error.
        const exitCode = message.startsWith("No such container") ? 0 : 127;
        this.#put(id, { ...it, container: { ...it.container, exitCode, error: message } });
      }
      throw error;
    }
    await this.start(id);
    return id;
  }

  async runPostStart({ container }: StartContainerRequest): Promise<void> {
    this.calls.push(`postStart ${container.name}`);
    await this.#work(`postStart ${container.name}`);
  }

  async killContainer(request: { container: ContainerSnapshot; graceSeconds: number }): Promise<void> {
    const { container, graceSeconds } = request;
    this.calls.push(`kill ${container.name} ${graceSeconds}s`);
    await this.#work("kill");
    await this.#clock.sleep(Math.min(this.stopTakesMs, graceSeconds * 1000));
    this.exit(container.id, this.stopExitCode);
    await this.#clock.sleep(this.stopResponsesAfterMs);
  }

  async resizeContainer({ container, update }: Parameters<PodServices["resizeContainer"]>[0]): Promise<void> {
    this.calls.push(`resize ${container.name}`);
    await this.#work("resize");
    await this.resize(container.id, update);
  }

  async removeContainer({ id, name }: ContainerSnapshot): Promise<void> {
    this.calls.push(`remove ${name}`);
    this.#check();
    this.destroy(id);
  }

  containerGone({ id }: ContainerSnapshot): void {
    this.gone.push(id);
  }

  async removeSandbox(id: string): Promise<void> {
    this.calls.push(`remove-sandbox ${id}`);
    this.#check();
    this.destroy(id);
  }

  async refreshVolumes({ pod }: PodRequest): Promise<void> {
    this.calls.push(`refresh ${pod.metadata.name}`);
    await this.#work("refresh");
  }

  /** Pods whose dropped volumes were removed, in order. */
  readonly sweeps: string[] = [];

  async removeUnusedVolumes({ pod }: PodRequest): Promise<void> {
    this.sweeps.push(pod.metadata.name!);
    await this.#work("sweep");
  }

  /** Pods whose volumes went with their end, in order. */
  readonly releases: string[] = [];

  async releaseVolumes({ pod }: PodRequest): Promise<void> {
    this.releases.push(pod.metadata.name!);
    await this.#work("release");
  }

  async readTerminationMessage(): Promise<string> {
    return "";
  }

  async tearDown(_uid: string, { name }: { name: string }): Promise<void> {
    this.calls.push(`tear-down ${name}`);
    await this.#work("tear-down");
  }

  #put(id: string, observed: Observed): void {
    this.containers.set(id, observed);
  }

  #emit(id: string, action: string): void {
    if (!this.isDown && !this.isDeaf) this.#watch?.onEvent({ id, action });
  }

  #check(): void {
    if (this.isDown) throw new Error("The Docker engine does not answer");
  }

  async #work(step: string): Promise<void> {
    this.#check();
    const ms = this.takesMs.get(step);
    if (ms !== undefined) await this.#clock.sleep(ms);
    const failure = this.failures.get(step);
    if (!failure || failure.times <= 0) return;
    failure.times--;
    throw failure.error;
  }
}
