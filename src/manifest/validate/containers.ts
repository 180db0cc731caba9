import type { Container, PodSpec } from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import { validateEnv, validateEnvFrom } from "./environment.ts";
import { checkDnsLabel, checkPortName, checkPortNumber, hasSpaceAround } from "./names.ts";
import { validateLifecycle, validateProbe } from "./probes.ts";
import { validateResources } from "./resources.ts";
import { validateSecurityContext } from "./security-context.ts";
import { validateMounts } from "./volume-mounts.ts";
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
