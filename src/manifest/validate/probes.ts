import type { Lifecycle, LifecycleHandler, PodSpec, Probe } from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "./field-errors.ts";
import { checkHttpHeaderName, checkPortName, checkPortNumber } from "./names.ts";

/** Properties of the pod that handlers depend on. */
export interface HandlerContext {
  gracePeriodSeconds: number;
  os: PodSpec["os"];
}

/** @param kind liveness and startup probes succeed at once; readiness probes never kill. */
export function validateProbe(
  probe: Probe | undefined,
  kind: "liveness" | "readiness" | "startup",
  context: HandlerContext,
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (!probe) return;
  validateHandler(probe, context, path, errors);
  const numbers = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  ] as const;
  for (const name of numbers) {
    const value = probe[name] ?? 0;
    if (value < 0) errors.invalid(path.child(name), value, "must be 0 or more");
  }
  const grace = probe.terminationGracePeriodSeconds;
  if (grace !== undefined && grace <= 0)
    errors.invalid(path.child("terminationGracePeriodSeconds"), grace, "must be greater than 0");
  if (kind === "readiness") {
    if (grace !== undefined)
      errors.invalid(path.child("terminationGracePeriodSeconds"), grace, "must be absent in a readinessProbe");
  } else if (probe.successThreshold !== 1) {
    errors.invalid(path.child("successThreshold"), probe.successThreshold, `must be 1 in a ${kind}Probe`);
  }
}

export function validateLifecycle(
  lifecycle: Lifecycle,
  context: HandlerContext,
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (lifecycle.postStart) validateHandler(lifecycle.postStart, context, path.child("postStart"), errors);
  if (lifecycle.preStop) validateHandler(lifecycle.preStop, context, path.child("preStop"), errors);
  if (lifecycle.stopSignal === undefined) return;
  const signalPath = path.child("stopSignal");
  if (!context.os) errors.forbidden(signalPath, "may be set only when spec.os.name is set");
  else if (context.os.name === "windows" && !["SIGTERM", "SIGKILL"].includes(lifecycle.stopSignal)) {
    errors.notSupported(signalPath, lifecycle.stopSignal, ["SIGTERM", "SIGKILL"]);
  } else if (!SIGNALS.has(lifecycle.stopSignal)) {
    errors.notSupported(signalPath, lifecycle.stopSignal, ["SIGTERM", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGRTMIN+3"]);
  }
}

const NAMED_SIGNALS =
  "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX";
const SIGNALS = new Set(NAMED_SIGNALS.split(" ").map((name) => `SIG${name}`));
for (let i = 1; i <= 15; i++) SIGNALS.add(`SIGRTMIN+${i}`);
for (let i = 1; i <= 14; i++) SIGNALS.add(`SIGRTMAX-${i}`);

const HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;

/** Requires exactly one handler; upstream validates only the first. */
function validateHandler(
  handler: Probe | LifecycleHandler,
  context: HandlerContext,
  path: FieldPath,
  errors: FieldErrors,
): void {
  const given = HANDLERS.filter((name) => name in handler && handler[name as "exec"] !== undefined);
  if (given.length === 0) errors.required(path, "must have a handler: exec, httpGet, tcpSocket, grpc or sleep");
  for (const extra of given.slice(1))
    errors.forbidden(path.child(extra), `must be absent: there is ${given[0]} already`);
  switch (given[0]) {
    case "exec":
      if (!handler.exec!.command) errors.required(path.child("exec").child("command"));
      break;
    case "httpGet":
      validateHttpGet(handler.httpGet!, path.child("httpGet"), errors);
      break;
    case "tcpSocket":
      validatePort(handler.tcpSocket!.port, path.child("tcpSocket").child("port"), errors);
      break;
    case "grpc":
      validatePort((handler as Probe).grpc!.port, path.child("grpc").child("port"), errors);
      break;
    case "sleep": {
      const { seconds } = (handler as LifecycleHandler).sleep!;
      if (seconds < 0 || seconds > context.gracePeriodSeconds) {
        const limit = `must be between 0 and terminationGracePeriodSeconds (${context.gracePeriodSeconds})`;
        errors.invalid(path.child("sleep"), seconds, limit, { at: path.child("sleep").child("seconds") });
      }
    }
  }
}

function validateHttpGet(action: NonNullable<Probe["httpGet"]>, path: FieldPath, errors: FieldErrors): void {
  validatePort(action.port, path.child("port"), errors);
  if (action.scheme !== "HTTP" && action.scheme !== "HTTPS") {
    errors.notSupported(path.child("scheme"), action.scheme, ["HTTP", "HTTPS"]);
  }
  const headersPath = path.child("httpHeaders");
  for (const [index, header] of (action.httpHeaders ?? []).entries()) {
    const position = { at: headersPath.index(index).child("name") };
    errors.invalidAll(headersPath, header.name, checkHttpHeaderName(header.name), position);
  }
}

function validatePort(port: number | string, path: FieldPath, errors: FieldErrors): void {
  errors.invalidAll(path, port, typeof port === "number" ? checkPortNumber(port) : checkPortName(port));
}
