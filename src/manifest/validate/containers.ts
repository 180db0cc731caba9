import type { Container, PodSpec } from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import { validateEnv, validateEnvFrom } from "./environment.ts";
import type { FieldErrors } from "./field-errors.ts";
import { checkDnsLabel, checkPortName, checkPortNumber, hasSpaceAround } from "./names.ts";
import { type HandlerContext, validateLifecycle, validateProbe } from "./probes.ts";
import { validateResources } from "./resources.ts";
import { validateSecurityContext } from "./security-context.ts";
import { type KnownVolumes, validateMounts } from "./volumes.ts";

/** Properties of the pod that containers are validated against. */
export interface ContainerContext extends HandlerContext {
  spec: PodSpec;
  volumes: KnownVolumes;
  claimNames: ReadonlySet<string>;
  allowPrivileged: boolean;
}

/** Source: core validation `validateContainers`. */
export function validateContainers(context: ContainerContext, path: FieldPath, errors: FieldErrors): void {
  const { containers } = context.spec;
  if (containers.length === 0) return errors.required(path, "must have at least one container");
  const names = new Set<string>();
  const hostPorts = new Set<string>();
  for (const [index, container] of containers.entries()) {
    const itemPath = path.index(index);
    validateContainer(container, context, itemPath, errors);
    if (names.has(container.name)) errors.duplicate(itemPath.child("name"), container.name);
    names.add(container.name);
    validateSupervision(container, context, itemPath, errors);
    validateRestart(container, itemPath, errors);
    claimHostPorts(container, hostPorts, itemPath, itemPath, errors);
  }
}

/** Source: core validation `validateInitContainers`. */
export function validateInitContainers(context: ContainerContext, path: FieldPath, errors: FieldErrors): void {
  const names = new Set(context.spec.containers.map((container) => container.name));
  for (const [index, container] of (context.spec.initContainers ?? []).entries()) {
    const itemPath = path.index(index);
    validateContainer(container, context, itemPath, errors);
    validateRestart(container, itemPath, errors);
    if (names.has(container.name)) errors.duplicate(itemPath.child("name"), container.name);
    else if (container.name !== "") names.add(container.name);
    // Init containers run one after the other; upstream reports all of them at the first.
    claimHostPorts(container, new Set(), path.index(0), itemPath, errors);
    if (container.restartPolicy === "Always") validateSupervision(container, context, itemPath, errors);
    else {
      for (const name of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const) {
        if (!container[name]) continue;
        const message = "must be absent: only init containers with restartPolicy Always have it";
        errors.forbidden(itemPath.child(name), message, { at: itemPath.child(name), atKey: true });
      }
    }
  }
}

const EPHEMERAL_FIELDS = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "ports"] as const;

/** Source: core validation `validateEphemeralContainers`. */
export function validateEphemeralContainers(context: ContainerContext, path: FieldPath, errors: FieldErrors): void {
  const { spec } = context;
  const others = new Set([...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.name));
  const names = new Set(others);
  for (const [index, container] of (spec.ephemeralContainers ?? []).entries()) {
    const itemPath = path.index(index);
    const denied = "cannot be set for an ephemeral container";
    validateContainer(container, context, itemPath, errors);
    if (names.has(container.name)) errors.duplicate(itemPath.child("name"), container.name);
    names.add(container.name);
    const target = container.targetContainerName;
    if (target !== undefined && !others.has(target)) {
      errors.notFound(itemPath.child("targetContainerName"), target, "must be the name of a container");
    }
    for (const name of EPHEMERAL_FIELDS) if (container[name]) errors.forbidden(itemPath.child(name), denied);
    const { limits, requests, claims } = container.resources;
    if (limits || requests || claims) errors.forbidden(itemPath.child("resources"), denied);
    for (const [mountIndex, mount] of (container.volumeMounts ?? []).entries()) {
      const mountPath = itemPath.child("volumeMounts").index(mountIndex);
      if (mount.subPath) errors.forbidden(mountPath.child("subPath"), denied);
      if (mount.subPathExpr) errors.forbidden(mountPath.child("subPathExpr"), denied);
    }
  }
}

/** Rules common to all kinds of containers. */
function validateContainer(
  container: Container,
  context: ContainerContext,
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (container.name === "") errors.required(path.child("name"));
  else errors.invalidAll(path.child("name"), container.name, checkDnsLabel(container.name));
  validateImage(container.image ?? "", path.child("image"), errors);
  const policies = ["File", "FallbackToLogsOnError"];
  if (!policies.includes(container.terminationMessagePolicy)) {
    errors.notSupported(path.child("terminationMessagePolicy"), container.terminationMessagePolicy, policies);
  }
  validatePorts(container, path.child("ports"), errors);
  validateEnv(container.env ?? [], path.child("env"), errors);
  validateEnvFrom(container.envFrom ?? [], path.child("envFrom"), errors);
  validateFileKeyVolumes(container, context.volumes, path.child("env"), errors);
  validateMounts(container, context.volumes, path, errors);
  const pullPolicies = ["Always", "IfNotPresent", "Never"];
  if (container.imagePullPolicy === undefined || !pullPolicies.includes(container.imagePullPolicy)) {
    errors.notSupported(path.child("imagePullPolicy"), container.imagePullPolicy, pullPolicies);
  }
  validateResources(container.resources, context.claimNames, path.child("resources"), errors);
  validateResizePolicy(container, context.spec, path.child("resizePolicy"), errors);
  validateSecurityContext(container.securityContext, context, path.child("securityContext"), errors);
}

function validateImage(image: string, path: FieldPath, errors: FieldErrors): void {
  if (image === "") errors.required(path);
  else if (hasSpaceAround(image)) errors.invalid(path, image, "must not have white space around it");
}

function validatePorts(container: Container, path: FieldPath, errors: FieldErrors): void {
  const names = new Set<string>();
  const protocols = ["SCTP", "TCP", "UDP"];
  for (const [index, port] of (container.ports ?? []).entries()) {
    const portPath = path.index(index);
    if (port.name !== undefined) {
      const messages = checkPortName(port.name);
      errors.invalidAll(portPath.child("name"), port.name, messages);
      if (messages.length === 0 && names.has(port.name)) errors.duplicate(portPath.child("name"), port.name);
      names.add(port.name);
    }
    if (port.containerPort === 0) errors.required(portPath.child("containerPort"));
    else errors.invalidAll(portPath.child("containerPort"), port.containerPort, checkPortNumber(port.containerPort));
    if (port.hostPort !== undefined) {
      errors.invalidAll(portPath.child("hostPort"), port.hostPort, checkPortNumber(port.hostPort));
    }
    if (!protocols.includes(port.protocol)) errors.notSupported(portPath.child("protocol"), port.protocol, protocols);
  }
}

/** Reports host ports used twice. @param at path of the container in the text */
function claimHostPorts(
  container: Container,
  taken: Set<string>,
  path: FieldPath,
  at: FieldPath,
  errors: FieldErrors,
): void {
  for (const [index, port] of (container.ports ?? []).entries()) {
    if (port.hostPort === undefined) continue;
    const key = `${port.protocol}/${port.hostIP ?? ""}/${port.hostPort}`;
    const steps = (start: FieldPath) => start.child("ports").index(index).child("hostPort");
    if (taken.has(key)) errors.duplicate(steps(path), key, { at: steps(at) });
    taken.add(key);
  }
}

function validateSupervision(
  container: Container,
  context: ContainerContext,
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (container.lifecycle) validateLifecycle(container.lifecycle, context, path.child("lifecycle"), errors);
  for (const kind of ["liveness", "readiness", "startup"] as const) {
    validateProbe(container[`${kind}Probe`], kind, context, path.child(`${kind}Probe`), errors);
  }
}

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];
const MAX_RESTART_RULES = 20;
const MAX_EXIT_CODES = 255;

/** Validates restart policy and rules of a container. Source: KEP-5307. */
function validateRestart(container: Container, path: FieldPath, errors: FieldErrors): void {
  const { restartPolicy, restartPolicyRules: rules } = container;
  if (restartPolicy !== undefined && !RESTART_POLICIES.includes(restartPolicy)) {
    errors.notSupported(path.child("restartPolicy"), restartPolicy, RESTART_POLICIES);
  }
  if (!rules) return;
  const rulesPath = path.child("restartPolicyRules");
  if (restartPolicy === undefined) errors.required(path.child("restartPolicy"), "is required with restartPolicyRules");
  if (rules.length > MAX_RESTART_RULES) errors.tooLong(rulesPath, `${MAX_RESTART_RULES} rules`);
  for (const [index, rule] of rules.entries()) {
    const rulePath = rulesPath.index(index);
    const actions = ["Restart", "RestartAllContainers"];
    if (!actions.includes(rule.action)) errors.notSupported(rulePath.child("action"), rule.action, actions);
    const codesPath = rulePath.child("exitCodes");
    if (!rule.exitCodes) {
      errors.required(codesPath);
      continue;
    }
    const { operator, values } = rule.exitCodes;
    if (operator !== "In" && operator !== "NotIn")
      errors.notSupported(codesPath.child("operator"), operator, ["In", "NotIn"]);
    if (!values) errors.required(codesPath.child("values"), "must have at least one exit code");
    else if (values.length > MAX_EXIT_CODES) errors.tooLong(codesPath.child("values"), `${MAX_EXIT_CODES} values`);
    const seen = new Set<number>();
    for (const [valueIndex, value] of (values ?? []).entries()) {
      if (seen.has(value)) errors.duplicate(codesPath.child("values").index(valueIndex), value);
      seen.add(value);
    }
  }
}

function validateResizePolicy(container: Container, spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  const seen = new Set<string>();
  for (const [index, policy] of (container.resizePolicy ?? []).entries()) {
    const at = path.index(index);
    if (seen.has(policy.resourceName)) errors.duplicate(at, policy.resourceName);
    seen.add(policy.resourceName);
    if (policy.resourceName === "") errors.required(path, "resourceName is required", { at });
    else if (policy.resourceName !== "cpu" && policy.resourceName !== "memory") {
      errors.notSupported(path, policy.resourceName, ["cpu", "memory"], { at: at.child("resourceName") });
    }
    const restart: string = policy.restartPolicy;
    if (restart === "") errors.required(path, "restartPolicy is required", { at });
    else if (restart !== "NotRequired" && restart !== "RestartContainer") {
      errors.notSupported(path, restart, ["NotRequired", "RestartContainer"], { at: at.child("restartPolicy") });
    }
    if (spec.restartPolicy === "Never" && restart !== "NotRequired") {
      errors.invalid(path, restart, "must be NotRequired when the pod's restartPolicy is Never", {
        at: at.child("restartPolicy"),
      });
    }
  }
}

/** Files with variables must be in an emptyDir. */
function validateFileKeyVolumes(
  container: Container,
  volumes: KnownVolumes,
  path: FieldPath,
  errors: FieldErrors,
): void {
  for (const [index, variable] of (container.env ?? []).entries()) {
    const name = variable.valueFrom?.fileKeyRef?.volumeName;
    if (name === undefined || name === "") continue;
    const namePath = path.index(index).child("valueFrom").child("fileKeyRef").child("volumeName");
    const volume = volumes.get(name);
    if (!volume) errors.notFound(namePath, name, "must be the name of a valid volume of the pod");
    else if (!volume.emptyDir) errors.invalid(namePath, name, "must be an emptyDir volume");
  }
}
