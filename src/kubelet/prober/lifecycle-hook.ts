import type { HTTPGetAction, LifecycleHandler } from "../../base/api/probe.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { CommandResult, ContainerAccess } from "../../base/model/container-access.ts";
import { PROBE_OUTPUT_LIMIT_BYTES, type ProbeTarget } from "../../base/model/prober.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { quoteGo } from "../../base/text/quote-go.ts";
import { HttpGetError, httpGet } from "./http-get.ts";
import { toHttpLocation } from "./http-probe.ts";
import { PortError } from "./resolve-port.ts";

/** The container whose hook runs. */
export interface HookTarget extends ProbeTarget {
  containerName: string;
  /** With the node suffix. */
  podName: string;
  namespace: string;
  podUid: string;
}

interface LifecycleHookDeps {
  exec: Pick<ContainerAccess, "run">;
  clock: Clock;
  /** e.g. `1.20`: httpGet hooks introduce themselves as `kube-lifecycle/<version>`. */
  version: string;
}

/** A hook that failed. `message` is that of upstream's FailedPostStartHook and FailedPreStopHook events. */
export class HookError extends Error {
  override name = "HookError";
  constructor(
    message: string,
    /** The cause without the surrounding text: `command 'false' exited with 1: `. */
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Runs one postStart or preStop handler to its end. It has no time limit of its own: `signal` bounds it.
 * Any HTTP response is success, as upstream. The URL is built like that of probes;
 * kubelet 1.20 put `http://ip:port/` before the path and so requested `//stop` for the path `/stop`.
 * Throws {@link HookError}, or the reason of an abort. Source: upstream's lifecycle `handlers.go`.
 */
export async function runLifecycleHook(
  handler: LifecycleHandler,
  target: HookTarget,
  deps: LifecycleHookDeps,
  signal: AbortSignal,
): Promise<void> {
  if (handler.exec) return runExec(handler.exec.command ?? [], target, deps.exec, signal);
  if (handler.httpGet) return runHttpGet(handler.httpGet, target, deps.version, signal);
  if (handler.sleep) return deps.clock.sleep(Math.max(0, handler.sleep.seconds) * 1000, signal);
  const kind = handler.tcpSocket ? "tcpSocket is not supported in lifecycle hooks" : "no handler given";
  throw new HookError(`Cannot run handler: invalid handler: ${kind}`, `invalid handler: ${kind}`);
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

function hookError(hook: string, target: HookTarget, detail: string, output: string, cause?: unknown): HookError {
  const pod = `${target.podName}_${target.namespace}(${target.podUid})`;
  const message =
    `${hook} for Container ${quoteGo(target.containerName)} in Pod ${quoteGo(pod)} failed` +
    ` - error: ${detail}, message: ${quoteGo(output)}`;
  return new HookError(message, detail, cause === undefined ? undefined : { cause });
}
