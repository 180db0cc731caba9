import type { Lifecycle, LifecycleHandler, PodSpec, Probe } from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import { checkHttpHeaderName, checkPort } from "./names.ts";

const NUMBERS = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;

/** @param kind liveness and startup probes succeed at once; readiness probes never kill. */
export function validateProbe(
  probe: Field<Probe | undefined>,
  kind: "liveness" | "readiness" | "startup",
  pod: PodSpec,
): void {
  if (!probe.value) return;
  validateHandler(probe, pod);
  for (const name of NUMBERS) probe.field(name).nonNegative();
  const grace = probe.field("terminationGracePeriodSeconds");
  if (grace.value !== undefined && grace.value <= 0) grace.invalid("must be greater than 0");
  if (kind === "readiness") {
    if (grace.value !== undefined) grace.invalid("must be absent in a readinessProbe");
  } else if (probe.value.successThreshold !== 1) {
    probe.field("successThreshold").invalid(`must be 1 in a ${kind}Probe`);
  }
}

export function validateLifecycle(lifecycle: Field<Lifecycle | undefined>, pod: PodSpec): void {
  validateHandler(lifecycle.field("postStart"), pod);
  validateHandler(lifecycle.field("preStop"), pod);
  const signal = lifecycle.field("stopSignal");
  if (signal.value === undefined) return;
  if (!pod.os) signal.forbidden("may be set only when spec.os.name is set");
  else if (pod.os.name === "windows" && !["SIGTERM", "SIGKILL"].includes(signal.value)) {
    signal.notSupported(["SIGTERM", "SIGKILL"]);
  } else if (!SIGNALS.has(signal.value)) {
    signal.notSupported(["SIGTERM", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGRTMIN+3"]);
  }
}

const NAMED_SIGNALS =
  "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX";
const SIGNALS = new Set(NAMED_SIGNALS.split(" ").map((name) => `SIG${name}`));
for (let i = 1; i <= 15; i++) SIGNALS.add(`SIGRTMIN+${i}`);
for (let i = 1; i <= 14; i++) SIGNALS.add(`SIGRTMAX-${i}`);

const HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;

/** Requires exactly one handler; upstream validates only the first. */
function validateHandler(given: Field<Probe | LifecycleHandler | undefined>, pod: PodSpec): void {
  if (!given.value) return;
  const handler = given as unknown as Field<Partial<Probe & LifecycleHandler>>;
  const [first, ...others] = HANDLERS.filter((name) => handler.value[name] !== undefined);
  for (const extra of others) handler.field(extra).forbidden(`must be absent: there is ${first} already`);
  switch (first) {
    case undefined:
      return handler.required("must have a handler: exec, httpGet, tcpSocket, grpc or sleep");
    case "exec":
      if (!handler.value.exec?.command) handler.field("exec").field("command").required();
      return;
    case "httpGet": {
      const action = handler.field("httpGet");
      action.field("port").format(checkPort);
      action.field("scheme").oneOf(["HTTP", "HTTPS"]);
      const headers = action.field("httpHeaders");
      for (const header of headers.items()) header.field("name").as(headers.path).format(checkHttpHeaderName);
      return;
    }
    case "tcpSocket":
    case "grpc":
      return handler.field(first).field("port").format(checkPort);
    case "sleep": {
      const seconds = handler.field("sleep").field("seconds");
      const most = pod.terminationGracePeriodSeconds;
      if (seconds.value! >= 0 && seconds.value! <= most) return;
      const limit = `must be between 0 and terminationGracePeriodSeconds (${most})`;
      seconds.as(handler.field("sleep").path).invalid(limit);
    }
  }
}
