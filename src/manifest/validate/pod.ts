import type { HostAlias, Pod, PodSpec } from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import { validatePodAnnotations, validateProfileAnnotations } from "./annotations.ts";
import {
  type ContainerContext,
  validateContainers,
  validateEphemeralContainers,
  validateInitContainers,
} from "./containers.ts";
import { FieldErrors } from "./field-errors.ts";
import { validateAnnotations, validateMetadata } from "./metadata.ts";
import {
  byteLength,
  checkDnsLabel,
  checkDnsSubdomain,
  checkIp,
  checkQualifiedName,
  checkSearchDomain,
  validateLabels,
} from "./names.ts";
import { validateOverhead, validatePodResources } from "./resources.ts";
import { validateAffinity, validateTolerations, validateTopologySpread } from "./scheduling.ts";
import { validatePodSecurityContext } from "./security-context.ts";
import { validateVolumes } from "./volumes.ts";

const MAX_DEADLINE_SECONDS = 2147483647;

interface PodValidationOptions {
  allowPrivileged: boolean;
  /** Whether ephemeral containers are allowed, as in a running pod. Default false: a manifest has none. */
  allowEphemeralContainers?: boolean;
}

/**
 * Validates a defaulted static pod by the rules and field paths of Kubernetes; where versions differ, by the newest.
 * Source: core validation `ValidatePodCreate`.
 * @param path of the pod in its document
 */
export function validatePod(pod: Pod, path: FieldPath, options: PodValidationOptions): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(pod.metadata, path.child("metadata"), errors, `-${pod.spec.nodeName ?? ""}`);
  validatePodAnnotations(pod, path.child("metadata").child("annotations"), errors);
  validatePodSpec(pod, path, options, errors);
  return errors;
}

/**
 * A pod template of a workload: as {@link validatePod}, but the metadata holds labels and annotations only.
 * Source: core validation `ValidatePodTemplateSpec`.
 * @param pod the template, its `spec.nodeName` as written
 * @param path of the template in its document
 */
export function validatePodTemplate(
  pod: Pod,
  path: FieldPath,
  options: PodValidationOptions,
  errors: FieldErrors,
): void {
  const { labels = {}, annotations = {} } = pod.metadata;
  const annotationsPath = path.child("metadata").child("annotations");
  validateLabels(labels, path.child("metadata").child("labels"), errors);
  validateAnnotations(annotations, annotationsPath, errors);
  validatePodAnnotations(pod, annotationsPath, errors);
  validatePodSpec(pod, path, options, errors);
}

function validatePodSpec(pod: Pod, path: FieldPath, options: PodValidationOptions, errors: FieldErrors): void {
  const specPath = path.child("spec");
  const { spec } = pod;
  const context: ContainerContext = {
    spec,
    volumes: validateVolumes(spec, pod.metadata.name ?? "", specPath.child("volumes"), errors),
    claimNames: validateResourceClaims(spec, specPath.child("resourceClaims"), errors),
    gracePeriodSeconds: spec.terminationGracePeriodSeconds,
    os: spec.os,
    allowPrivileged: options.allowPrivileged,
  };
  validateContainers(context, specPath.child("containers"), errors);
  validateInitContainers(context, specPath.child("initContainers"), errors);
  validateEphemeralContainers(context, specPath.child("ephemeralContainers"), errors);
  if (spec.ephemeralContainers && !options.allowEphemeralContainers) {
    errors.forbidden(specPath.child("ephemeralContainers"), "ephemeral containers cannot be part of a manifest");
  }
  validatePodResources(spec, specPath, errors);
  validateHostNetworkPorts(spec, specPath.child("containers"), errors);
  validateChoices(spec, specPath, errors);
  validateLabels(spec.nodeSelector ?? {}, specPath.child("nodeSelector"), errors);
  validatePodSecurityContext(spec.securityContext, spec, specPath, errors);
  if (spec.affinity) validateAffinity(spec.affinity, specPath.child("affinity"), errors);
  validateDnsConfig(spec, specPath.child("dnsConfig"), errors);
  for (const [index, gate] of (spec.readinessGates ?? []).entries()) {
    const gatePath = specPath.child("readinessGates").index(index).child("conditionType");
    errors.invalidAll(gatePath, gate.conditionType, checkQualifiedName(gate.conditionType));
  }
  validateTopologySpread(spec.topologySpreadConstraints ?? [], specPath.child("topologySpreadConstraints"), errors);
  validateNames(spec, specPath, errors);
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > MAX_DEADLINE_SECONDS)) {
    const range = `must be between 1 and ${MAX_DEADLINE_SECONDS}`;
    errors.invalid(specPath.child("activeDeadlineSeconds"), deadline, range);
  }
  validateTolerations(spec.tolerations ?? [], specPath.child("tolerations"), errors);
  validateHostAliases(spec.hostAliases ?? [], specPath.child("hostAliases"), errors);
  if (spec.overhead) validateOverhead(spec.overhead, specPath.child("overhead"), errors);
  validateTokenProjections(spec, specPath.child("volumes"), errors);
  validateProfileAnnotations(pod, specPath, errors);
  validateNewerRules(spec, specPath, errors);
}

function validateChoices(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  const choices = [
    ["restartPolicy", ["Always", "OnFailure", "Never"]],
    ["dnsPolicy", ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]],
  ] as const;
  for (const [name, values] of choices) {
    if (!(values as readonly string[]).includes(spec[name])) errors.notSupported(path.child(name), spec[name], values);
  }
  const preemption: string | undefined = spec.preemptionPolicy;
  const policies = ["PreemptLowerPriority", "Never"];
  if (preemption === "") errors.required(path.child("preemptionPolicy"));
  else if (preemption !== undefined && !policies.includes(preemption)) {
    errors.notSupported(path.child("preemptionPolicy"), preemption, policies);
  }
}

function validateNames(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  for (const name of ["serviceAccountName", "priorityClassName", "nodeName"] as const) {
    const value = spec[name];
    if (value !== undefined) errors.invalidAll(path.child(name), value, checkDnsSubdomain(value));
  }
  const runtimeClass = spec.runtimeClassName;
  if (runtimeClass !== undefined) {
    errors.invalidAll(path.child("runtimeClassName"), runtimeClass, checkDnsSubdomain(runtimeClass));
  }
  for (const name of ["hostname", "subdomain"] as const) {
    const value = spec[name];
    if (value !== undefined) errors.invalidAll(path.child(name), value, checkDnsLabel(value));
  }
}

function validateResourceClaims(spec: PodSpec, path: FieldPath, errors: FieldErrors): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [index, claim] of (spec.resourceClaims ?? []).entries()) {
    const claimPath = path.index(index);
    if (claim.name === "") errors.required(claimPath.child("name"));
    else if (names.has(claim.name)) errors.duplicate(claimPath.child("name"), claim.name);
    else errors.invalidAll(claimPath.child("name"), claim.name, checkDnsLabel(claim.name));
    names.add(claim.name);
    const { resourceClaimName, resourceClaimTemplateName } = claim;
    if ((resourceClaimName === undefined) === (resourceClaimTemplateName === undefined)) {
      errors.invalid(claimPath, claim, "must have exactly one of resourceClaimName and resourceClaimTemplateName");
    }
    for (const name of ["resourceClaimName", "resourceClaimTemplateName"] as const) {
      const value = claim[name];
      if (value !== undefined) errors.invalidAll(claimPath.child(name), value, checkDnsSubdomain(value));
    }
  }
  return names;
}

/** Tokens need a service account. */
function validateTokenProjections(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  if (spec.serviceAccountName !== undefined) return;
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    for (const [sourceIndex, source] of (volume.projected?.sources ?? []).entries()) {
      if (!source.serviceAccountToken) continue;
      const tokenPath = path.index(index).child("projected").child("sources").index(sourceIndex);
      errors.forbidden(tokenPath.child("serviceAccountToken"), "must be absent when serviceAccountName is not set");
    }
  }
}

/** Rules added after 1.20: os, scheduling gates, user namespaces, hostnameOverride. */
function validateNewerRules(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  const systems = ["linux", "windows"];
  const osName: string | undefined = spec.os?.name;
  if (osName === "") errors.required(path.child("os").child("name"));
  else if (osName !== undefined && !systems.includes(osName)) {
    errors.notSupported(path.child("os"), osName, systems, { at: path.child("os").child("name") });
  }
  if (osName === "linux") refuseWindowsOptions(spec, path, errors);
  const gates = spec.schedulingGates ?? [];
  const gatesPath = path.child("schedulingGates");
  const gateNames = new Set<string>();
  for (const [index, gate] of gates.entries()) {
    errors.invalidAll(gatesPath.index(index), gate.name, checkQualifiedName(gate.name));
    if (gateNames.has(gate.name)) errors.duplicate(gatesPath.index(index), gate.name);
    gateNames.add(gate.name);
  }
  if (gates.length > 0) {
    const message = "a static pod is bound to its node: schedulingGates must be empty";
    errors.forbidden(path.child("nodeName"), message, { at: gatesPath });
  }
  if (spec.hostUsers === false) {
    for (const [name, upstream] of [
      ["hostNetwork", "hostNetwork"],
      ["hostPID", "HostPID"],
      ["hostIPC", "HostIPC"],
    ] as const) {
      if (spec[name])
        errors.forbidden(path.child(upstream), "must be absent when hostUsers is false", { at: path.child(name) });
    }
  }
  const override = spec.hostnameOverride;
  if (override === undefined) return;
  const overridePath = path.child("hostnameOverride");
  errors.invalidAll(overridePath, override, checkDnsSubdomain(override));
  if (override.length > 64) errors.tooLong(overridePath, "64 characters");
  if (spec.setHostnameAsFQDN) errors.forbidden(overridePath, "must be absent when setHostnameAsFQDN is true");
  if (spec.hostNetwork) errors.forbidden(overridePath, "must be absent when hostNetwork is true");
}

function refuseWindowsOptions(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  const message = "must be absent in a pod for Linux";
  const optionsOf = (owner: FieldPath) => owner.child("securityContext").child("windowsOptions");
  if (spec.securityContext.windowsOptions) errors.forbidden(optionsOf(path), message);
  for (const list of ["initContainers", "containers"] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      if (container.securityContext?.windowsOptions)
        errors.forbidden(optionsOf(path.child(list).index(index)), message);
    }
  }
}

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;

/** Source: core validation `validatePodDNSConfig`. */
function validateDnsConfig(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  const { dnsConfig } = spec;
  const nameservers = dnsConfig?.nameservers ?? [];
  const nameserversPath = path.child("nameservers");
  if (spec.dnsPolicy === "None") {
    if (!dnsConfig) return errors.required(path, "is required when dnsPolicy is None");
    if (nameservers.length === 0) return errors.required(nameserversPath, "is required when dnsPolicy is None");
  }
  if (!dnsConfig) return;
  if (nameservers.length > MAX_NAMESERVERS) {
    errors.invalid(nameserversPath, nameservers, `must be at most ${MAX_NAMESERVERS}`);
  }
  for (const [index, server] of nameservers.entries()) {
    errors.invalidAll(nameserversPath.index(index), server, checkIp(server));
  }
  const searches = dnsConfig.searches ?? [];
  const searchesPath = path.child("searches");
  if (searches.length > MAX_SEARCHES) errors.invalid(searchesPath, searches, `must be at most ${MAX_SEARCHES}`);
  if (byteLength(searches.join(" ")) > MAX_SEARCH_CHARACTERS) {
    errors.invalid(searchesPath, searches, `must have at most ${MAX_SEARCH_CHARACTERS} characters together`);
  }
  for (const [index, search] of searches.entries()) {
    if (search === ".") continue;
    errors.invalidAll(searchesPath.index(index), search, checkSearchDomain(search.replace(/\.$/, "")));
  }
  for (const [index, option] of (dnsConfig.options ?? []).entries()) {
    if (option.name === undefined) errors.required(path.child("options").index(index), "name must not be empty");
  }
}

function validateHostAliases(aliases: readonly HostAlias[], path: FieldPath, errors: FieldErrors): void {
  for (const [index, alias] of aliases.entries()) {
    const aliasPath = path.index(index);
    errors.invalidAll(aliasPath.child("ip"), alias.ip ?? "", checkIp(alias.ip ?? ""));
    for (const [nameIndex, name] of (alias.hostnames ?? []).entries()) {
      errors.invalidAll(aliasPath.child("hostnames").index(nameIndex), name, checkDnsSubdomain(name));
    }
  }
}

/** With hostNetwork ports are not mapped: the host port is the container port. */
function validateHostNetworkPorts(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  if (!spec.hostNetwork) return;
  for (const [index, container] of spec.containers.entries()) {
    for (const [portIndex, port] of (container.ports ?? []).entries()) {
      if ((port.hostPort ?? 0) === port.containerPort) continue;
      const portPath = path.index(index).child("ports").index(portIndex).child("hostPort");
      errors.invalid(portPath, port.hostPort, "must be the containerPort when hostNetwork is true");
    }
  }
}
