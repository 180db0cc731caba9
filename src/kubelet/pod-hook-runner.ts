import type { HTTPGetAction, LifecycleHandler } from "../base/api/container.ts";
import type { Container, Pod } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { CommandResult, ContainerAccess } from "../base/model/container-access.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { containerFieldPath, type PodRef, podRefOf, podRefOfLabels } from "../base/model/pod.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { ContainerId, ContainerSnapshot } from "../base/model/pod-snapshot.ts";
import { PROBE_OUTPUT_LIMIT_BYTES, type ProbeTarget } from "../base/model/prober.ts";
import { messageOf } from "../base/text/error-message.ts";
import { jsonIfValid } from "../base/text/json.ts";
import { quoteGo } from "../base/text/quote-go.ts";
import { HttpGetError, httpGet, PortError, toHttpLocation } from "./prober/port-requests.ts";

interface PodHookRunnerDeps {
  clock: Clock;
  recorder: EventRecorder;
  node: NodeInfo;
  exec: Pick<ContainerAccess, "run">;
  /** Resolves when Services do not lead to a pod with these addresses; absent where there are none. */
  left?: ((podIps: readonly string[]) => Promise<void>) | undefined;
  /** e.g. `1.20`: httpGet hooks introduce themselves as `kube-lifecycle/<version>`. */
  version: string;
}

/** The container whose hook runs. */
export interface HookTarget extends ProbeTarget {
  containerName: string;
  pod: PodRef;
}

export interface KillContainerRequest {
  container: ContainerSnapshot;
  /** Absent for a container without a manifest. */
  pod?: Pod;
  podIps: readonly string[];
  graceSeconds: number;
  /** All of the pod ends, and not to start again. */
  isPodEnd?: boolean;
}

/** Time after the end of its container in which a hook may still report its result. */
const HOOK_DIES_MS = 2_000;

/** Runs the hooks of containers and records their failures. */
export class PodHookRunner {
  readonly #deps: PodHookRunnerDeps;

  constructor(deps: PodHookRunnerDeps) {
    this.#deps = deps;
  }

  /** @throws when the hook failed; the event is recorded */
  async runPostStart(
    { pod, container, podIps }: { pod: Pod; container: Container; podIps: readonly string[] },
    containerId: ContainerId,
    signal: AbortSignal,
  ): Promise<void> {
    const handler = container.lifecycle?.postStart;
    if (!handler) return;
    const { name: containerName, ports = [] } = container;
    const target = { containerId, containerName, ports, pod: podRefOf(pod), podIp: this.#podIpOf(pod, podIps) };
    try {
      await runLifecycleHook(handler, target, this.#deps, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#recordFailure(target, pod, "FailedPostStartHook", error as Error);
      throw error;
    }
  }

  /**
   * Runs the preStop hook, if there is one, for as long as the grace period at most, then `stop`. A hook that failed is
   * recorded, and the container is stopped in any case. The hook is the one the container was created with: an edit, which
   * upstream makes a new pod, may have changed or dropped it.
   * @param spec as the manifest is now; absent for a container without one
   * @param stop gets the elapsed part of the time. Unit: milliseconds.
   */
  async runPreStopThen(
    request: KillContainerRequest,
    spec: Container | undefined,
    signal: AbortSignal,
    stop: (spentMs: number) => Promise<void>,
  ): Promise<void> {
    const { container, graceSeconds } = request;
    const { clock } = this.#deps;
    const startedAtMs = clock.monotonicMs();
    const handler = parseHandler(container) ?? spec?.lifecycle?.preStop;
    const giveUp = new AbortController();
    if (handler && graceSeconds > 0) {
      const limit = Promise.withResolvers<void>();
      const cancel = clock.schedule(graceSeconds * 1000, limit.resolve);
      const hook = this.#runPreStop(handler, request, spec, AbortSignal.any([signal, giveUp.signal]));
      // A hook that exceeds its time continues while the container is stopped; it ends with the container and reports that.
      await Promise.race([hook, limit.promise]);
      cancel();
      signal.throwIfAborted();
    }
    // A program that ends at once refuses connections that are still sent to it.
    if (request.isPodEnd && graceSeconds > 0) await this.#deps.left?.(request.podIps);
    await stop(clock.monotonicMs() - startedAtMs);
    if (handler) clock.schedule(HOOK_DIES_MS, () => giveUp.abort(new Error("the container is gone")));
  }

  /** Never rejects. */
  async #runPreStop(
    handler: LifecycleHandler,
    { container, pod, podIps }: KillContainerRequest,
    spec: Container | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const target = {
      containerId: container.id,
      containerName: container.name,
      ports: spec?.ports ?? [],
      pod: pod ? podRefOf(pod) : podRefOfLabels(container),
      podIp: this.#podIpOf(pod, podIps),
    };
    try {
      await runLifecycleHook(handler, target, this.#deps, signal);
    } catch (error) {
      if (!signal.aborted) this.#recordFailure(target, pod, "FailedPreStopHook", error as Error);
    }
  }

  #recordFailure(target: HookTarget, pod: Pod | undefined, reason: string, { message }: Error): void {
    const fieldPath = containerFieldPath(pod?.spec, target.containerName);
    this.#deps.recorder.record(target.pod, { type: "Warning", reason, message, fieldPath });
  }

  #podIpOf(pod: Pod | undefined, podIps: readonly string[]): string {
    return pod?.spec.hostNetwork ? this.#deps.node.ip : (podIps[0] ?? "");
  }
}

/** The hook as the manifest had it when the container was made: its label. */
function parseHandler({ labels }: ContainerSnapshot): LifecycleHandler | undefined {
  return jsonIfValid(labels["annotation.io.kubernetes.container.preStopHandler"] ?? "") as LifecycleHandler | undefined;
}

/**
 * Runs one postStart or preStop handler to its end. It has no time limit of its own: `signal` bounds it.
 * Any HTTP response is success, as upstream. The URL is built like that of probes;
 * kubelet 1.20 put `http://ip:port/` before the path and so requested `//stop` for the path `/stop`.
 * Throws an Error with the message of upstream's FailedPostStartHook and FailedPreStopHook events, or the reason of an
 * abort. Source: upstream's lifecycle `handlers.go`.
 */
export async function runLifecycleHook(
  handler: LifecycleHandler,
  target: HookTarget,
  deps: Pick<PodHookRunnerDeps, "exec" | "clock" | "version">,
  signal: AbortSignal,
): Promise<void> {
  if (handler.exec) return runExec(handler.exec.command ?? [], target, deps.exec, signal);
  if (handler.httpGet) return runHttpGet(handler.httpGet, target, deps.version, signal);
  if (handler.sleep) return deps.clock.sleep(Math.max(0, handler.sleep.seconds) * 1000, signal);
  const kind = handler.tcpSocket ? "tcpSocket is not supported in lifecycle hooks" : "no handler given";
  throw new Error(`Cannot run handler: invalid handler: ${kind}`);
}

async function runExec(
  argv: readonly string[],
  target: HookTarget,
  exec: Pick<ContainerAccess, "run">,
  signal: AbortSignal,
): Promise<void> {
  const hook = `Exec lifecycle hook ([${argv.join(" ")}])`;
  let ended: CommandResult;
  try {
    ended = await exec.run(target.containerId, argv, { maxOutputBytes: PROBE_OUTPUT_LIMIT_BYTES, signal });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw hookError(hook, target, messageOf(error), "", error);
  }
  if (ended.exitCode === 0) return;
  const detail = `command '${argv.join(" ")}' exited with ${ended.exitCode}: ${ended.stderr}`;
  throw hookError(hook, target, detail, ended.output);
}

async function runHttpGet(
  action: HTTPGetAction,
  target: HookTarget,
  version: string,
  signal: AbortSignal,
): Promise<void> {
  const hook = `Http lifecycle hook (${action.path})`;
  if (!action.host && target.podIp === "") throw hookError(hook, target, "the pod has no IP address", "");
  const options = {
    headers: action.httpHeaders ?? [],
    userAgent: `kube-lifecycle/${version}`,
    // The response does not matter, only that there is one.
    bodyLimitBytes: 0,
    signal,
  };
  try {
    const location = toHttpLocation(action, target);
    try {
      await httpGet(location, options);
    } catch (error) {
      // Kubelets up to 1.24 ignored the scheme, so HTTPS before a plain server worked and must keep working.
      if (!(error instanceof HttpGetError && error.kind === "plain-http")) throw error;
      await httpGet({ ...location, scheme: "http" }, options);
    }
  } catch (error) {
    if (!(error instanceof HttpGetError || error instanceof PortError)) throw error;
    throw hookError(hook, target, error.message, "", error);
  }
}

function hookError(hook: string, target: HookTarget, detail: string, output: string, cause?: unknown): Error {
  const { name, namespace, uid } = target.pod;
  const pod = `${name}_${namespace}(${uid})`;
  const message =
    `${hook} for Container ${quoteGo(target.containerName)} in Pod ${quoteGo(pod)} failed` +
    ` - error: ${detail}, message: ${quoteGo(output)}`;
  return new Error(message, cause === undefined ? undefined : { cause });
}
