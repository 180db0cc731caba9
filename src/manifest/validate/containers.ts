import type { Container, Lifecycle, LifecycleHandler, PodSpec, Probe } from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import { validateEnv, validateEnvFrom } from "./environment.ts";
import {
  checkDescendingPath,
  checkDnsLabel,
  checkHttpHeaderName,
  checkPort,
  checkPortName,
  checkPortNumber,
  hasBacksteps,
  hasSpaceAround,
} from "./names.ts";
import { validateResources } from "./resources.ts";
import { validateSecurityContext } from "./security-context.ts";
import type { KnownVolumes } from "./volumes.ts";

/** Properties of the pod that containers are validated against. */
interface ContainerContext {
  spec: PodSpec;
  volumes: KnownVolumes;
  claimNames: ReadonlySet<string>;
  allowPrivileged: boolean;
}

/** Source: core validation `validateContainers`. */
export function validateContainers(containers: Field<readonly Container[]>, context: ContainerContext): void {
  if (containers.value.length === 0) return containers.required("must have at least one container");
  const names = new Set<string>();
  const hostPorts = new Set<string>();
  for (const container of containers.items()) {
    const { name } = container.value;
    validateContainer(container, context);
    if (names.has(name)) container.field("name").duplicate();
    names.add(name);
    validateSupervision(container, context.spec);
    validateRestart(container);
    claimHostPorts(container, hostPorts);
  }
}

const SUPERVISION = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const;

/** Source: core validation `validateInitContainers`. */
export function validateInitContainers(containers: Field<PodSpec["initContainers"]>, context: ContainerContext): void {
  const names = new Set(context.spec.containers.map(({ name }) => name));
  for (const container of containers.items()) {
    const { name, restartPolicy } = container.value;
    validateContainer(container, context);
    validateRestart(container);
    if (names.has(name)) container.field("name").duplicate();
    else if (name !== "") names.add(name);
    // Init containers run one after the other; upstream reports all of them at the first.
    claimHostPorts(container.as(containers.path.index(0)), new Set());
    if (restartPolicy === "Always") validateSupervision(container, context.spec);
    else {
      for (const field of SUPERVISION) {
        const message = "must be absent: only init containers with restartPolicy Always have it";
        if (container.value[field]) container.field(field).key(field).forbidden(message);
      }
    }
  }
}

/** Source: core validation `validateEphemeralContainers`. */
export function validateEphemeralContainers(
  containers: Field<PodSpec["ephemeralContainers"]>,
  context: ContainerContext,
): void {
  const { spec } = context;
  const others = new Set([...spec.containers, ...(spec.initContainers ?? [])].map(({ name }) => name));
  const names = new Set(others);
  const denied = "cannot be set for an ephemeral container";
  for (const container of containers.items()) {
    const { name, targetContainerName, resources } = container.value;
    validateContainer(container, context);
    if (names.has(name)) container.field("name").duplicate();
    names.add(name);
    if (targetContainerName !== undefined && !others.has(targetContainerName)) {
      container.field("targetContainerName").notFound("must be the name of a container");
    }
    for (const field of [...SUPERVISION, "ports"] as const) {
      if (container.value[field]) container.field(field).forbidden(denied);
    }
    const { limits, requests, claims } = resources;
    if (limits || requests || claims) container.field("resources").forbidden(denied);
    for (const mount of container.field("volumeMounts").items()) {
      if (mount.value.subPath) mount.field("subPath").forbidden(denied);
      if (mount.value.subPathExpr) mount.field("subPathExpr").forbidden(denied);
    }
  }
}

/** Rules common to all kinds of containers. */
function validateContainer(container: Field<Container>, context: ContainerContext): void {
  container.field("name").requiredFormat(checkDnsLabel);
  const image = container.field("image");
  if ((image.value ?? "") === "") image.required();
  else if (hasSpaceAround(image.value!)) image.invalid("must not have white space around it");
  container.field("terminationMessagePolicy").oneOf(["File", "FallbackToLogsOnError"]);
  validatePorts(container.field("ports"));
  validateEnv(container.field("env"));
  validateEnvFrom(container.field("envFrom"));
  validateFileKeyVolumes(container, context.volumes);
  validateMounts(container, context.volumes);
  container.field("imagePullPolicy").oneOf(["Always", "IfNotPresent", "Never"]);
  validateResources(container.field("resources"), context.claimNames);
  validateResizePolicy(container, context.spec);
  validateSecurityContext(container.field("securityContext"), context.allowPrivileged);
}

function validatePorts(ports: Field<Container["ports"]>): void {
  const names = new Set<string>();
  for (const port of ports.items()) {
    const name = port.field("name");
    name.format(checkPortName);
    if (name.value !== undefined) {
      if (names.has(name.value) && checkPortName(name.value).length === 0) name.duplicate();
      names.add(name.value);
    }
    const number = port.field("containerPort");
    if (number.value === 0) number.required();
    else number.format(checkPortNumber);
    port.field("hostPort").format(checkPortNumber);
    port.field("protocol").oneOf(["SCTP", "TCP", "UDP"]);
  }
}

/** Reports host ports used twice. */
function claimHostPorts(container: Field<Container>, taken: Set<string>): void {
  for (const port of container.field("ports").items()) {
    const { hostPort, hostIP = "", protocol } = port.value;
    if (hostPort === undefined) continue;
    const key = `${protocol}/${hostIP}/${hostPort}`;
    if (taken.has(key)) port.field("hostPort").with(key).duplicate();
    taken.add(key);
  }
}

function validateSupervision(container: Field<Container>, spec: PodSpec): void {
  validateLifecycle(container.field("lifecycle"), spec);
  for (const kind of ["liveness", "readiness", "startup"] as const) {
    validateProbe(container.field(`${kind}Probe`), kind, spec);
  }
}

const MAX_RESTART_RULES = 20;
const MAX_EXIT_CODES = 255;

/** Validates restart policy and rules of a container. Source: KEP-5307. */
function validateRestart(container: Field<Container>): void {
  const policy = container.field("restartPolicy");
  policy.oneOf(["Always", "OnFailure", "Never"]);
  const rules = container.field("restartPolicyRules");
  if (!rules.value) return;
  if (policy.value === undefined) policy.required("is required with restartPolicyRules");
  if (rules.value.length > MAX_RESTART_RULES) rules.tooLong(`${MAX_RESTART_RULES} rules`);
  for (const rule of rules.items()) {
    rule.field("action").oneOf(["Restart", "RestartAllContainers"]);
    const codes = rule.field("exitCodes");
    if (!codes.value) {
      codes.required();
      continue;
    }
    codes.field("operator").oneOf(["In", "NotIn"]);
    const values = codes.field("values");
    if (!values.value) values.required("must have at least one exit code");
    else if (values.value.length > MAX_EXIT_CODES) values.tooLong(`${MAX_EXIT_CODES} values`);
    const seen = new Set<number>();
    for (const value of values.items()) {
      if (seen.has(value.value)) value.duplicate();
      seen.add(value.value);
    }
  }
}

/** Upstream reports the policies without their index. */
function validateResizePolicy(container: Field<Container>, spec: PodSpec): void {
  const policies = container.field("resizePolicy");
  const seen = new Set<string>();
  for (const policy of policies.items()) {
    const { resourceName } = policy.value;
    const restart: string = policy.value.restartPolicy;
    if (seen.has(resourceName)) policy.with(resourceName).duplicate();
    seen.add(resourceName);
    const whole = policy.as(policies.path);
    if (resourceName === "") whole.required("resourceName is required");
    else policy.field("resourceName").as(policies.path).oneOf(["cpu", "memory"]);
    const restartPolicy = policy.field("restartPolicy").as(policies.path);
    if (restart === "") whole.required("restartPolicy is required");
    else restartPolicy.oneOf(["NotRequired", "RestartContainer"]);
    if (spec.restartPolicy === "Never" && restart !== "NotRequired") {
      restartPolicy.invalid("must be NotRequired when the pod's restartPolicy is Never");
    }
  }
}

/** Files with variables must be in an emptyDir. */
function validateFileKeyVolumes(container: Field<Container>, volumes: KnownVolumes): void {
  for (const variable of container.field("env").items()) {
    const name = variable.field("valueFrom").field("fileKeyRef").field("volumeName");
    if (name.value === undefined || name.value === "") continue;
    const volume = volumes.get(name.value);
    if (!volume) name.notFound("must be the name of a valid volume of the pod");
    else if (!volume.emptyDir) name.invalid("must be an emptyDir volume");
  }
}

/** Validates mounts and devices of a container. Source: core validation `ValidateVolumeMounts`, `ValidateVolumeDevices`. */
function validateMounts(container: Field<Container>, volumes: KnownVolumes): void {
  validateVolumeMounts(container, volumes);
  const { volumeMounts: mounts = [] } = container.value;
  const mountNames = new Set(mounts.map(({ name }) => name));
  const mountPaths = lastByName(mounts, "mountPath");
  const devicePaths = new Set<string>();
  const deviceNames = new Set<string>();
  for (const device of container.field("volumeDevices").items()) {
    const name = device.field("name");
    const volume = volumes.get(name.value);
    if (name.value === "") name.required();
    if (deviceNames.has(name.value)) name.invalid("must be unique in the container");
    if (!volume) name.notFound("must be the name of a valid volume of the pod");
    else if (!volume.persistentVolumeClaim && !volume.ephemeral) {
      name.invalid("must be a persistentVolumeClaim or an ephemeral volume");
    }
    const path = device.field("devicePath");
    if (path.value === "") path.required();
    if (devicePaths.has(path.value)) path.invalid("must be unique in the container");
    if (hasBacksteps(path.value)) path.invalid("must not contain '..'");
    else devicePaths.add(path.value);
    if (mountNames.has(name.value)) name.invalid("is mounted already");
    if (mountPaths.has(path.value)) path.invalid("is the path of a mount already");
    if (name.value !== "") deviceNames.add(name.value);
  }
}

/** Upstream keeps the last path per name. */
function lastByName<K extends string>(items: readonly ({ name: string } & Record<K, string>)[], key: K): Set<string> {
  return new Set(new Map(items.map((item) => [item.name, item[key]])).values());
}

function validateVolumeMounts(container: Field<Container>, volumes: KnownVolumes): void {
  const taken = new Set<string>();
  const { volumeDevices: devices = [], securityContext } = container.value;
  const deviceNames = new Set(devices.map((device) => device.name));
  const devicePaths = lastByName(devices, "devicePath");
  const mounts = container.field("volumeMounts");
  const listed = volumes.size > 0 ? `such as ${[...volumes.keys()].slice(0, 5).join(", ")}` : "below spec.volumes";
  for (const mount of mounts.items()) {
    const name = mount.field("name");
    const path = mount.field("mountPath");
    if (name.value === "") name.required();
    if (!volumes.has(name.value)) name.notFound(`must be the name of a valid volume of the pod, ${listed}`);
    if (path.value === "") path.required();
    if (taken.has(path.value)) path.invalid("must be unique in the container");
    taken.add(path.value);
    if (deviceNames.has(name.value)) name.invalid("is a device already");
    if (devicePaths.has(path.value)) path.invalid("is the path of a device already");
    for (const field of ["subPath", "subPathExpr"] as const) {
      mount.as(mounts.path).field(field).format(checkDescendingPath);
    }
    if (mount.value.subPath !== undefined && mount.value.subPathExpr !== undefined) {
      mount.field("subPathExpr").invalid("must be absent when subPath is set");
    }
    validatePropagation(mount.as(mounts.path), securityContext?.privileged ?? false);
  }
}

type Mount = NonNullable<Container["volumeMounts"]>[number];

/** @param mount with the path of the list: upstream reports these without the index */
function validatePropagation(mount: Field<Mount>, isPrivileged: boolean): void {
  const propagation = mount.field("mountPropagation");
  propagation.oneOf(["Bidirectional", "HostToContainer", "None"]);
  if (propagation.value === "Bidirectional" && !isPrivileged) {
    propagation.forbidden("Bidirectional is for privileged containers only");
  }
  const recursive = mount.field("recursiveReadOnly");
  recursive.oneOf(["Disabled", "Enabled", "IfPossible"]);
  if (recursive.value !== "Enabled" && recursive.value !== "IfPossible") return;
  if (!mount.value.readOnly) recursive.forbidden("may be set only when readOnly is true");
  if (propagation.value !== undefined && propagation.value !== "None") {
    recursive.forbidden("may be set only when mountPropagation is None");
  }
}

const NUMBERS = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;

/** @param kind liveness and startup probes succeed at once; readiness probes never kill. */
function validateProbe(
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

function validateLifecycle(lifecycle: Field<Lifecycle | undefined>, pod: PodSpec): void {
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

function validatePort(port: Field<number | string | undefined>): void {
  if (port.value === 0) port.absent("is required: a number from 1 to 65535, or the name of a port of the container");
  else port.format((value) => checkPort(value as number | string));
}

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
      validatePort(action.field("port"));
      action.field("scheme").oneOf(["HTTP", "HTTPS"]);
      const headers = action.field("httpHeaders");
      for (const header of headers.items()) header.field("name").as(headers.path).format(checkHttpHeaderName);
      return;
    }
    case "tcpSocket":
    case "grpc":
      return validatePort(handler.field(first).field("port"));
    case "sleep": {
      const seconds = handler.field("sleep").field("seconds");
      const most = pod.terminationGracePeriodSeconds;
      if (seconds.value! >= 0 && seconds.value! <= most) return;
      const limit = `must be between 0 and terminationGracePeriodSeconds (${most})`;
      seconds.as(handler.field("sleep").path).invalid(limit);
    }
  }
}
