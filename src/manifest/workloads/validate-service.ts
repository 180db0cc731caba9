import type { Service, ServicePort } from "../../base/api/service.ts";
import type { FieldPath } from "../field-path.ts";
import type { SupportNote } from "../support/find-unsupported.ts";
import { FieldErrors } from "../validate/field-errors.ts";
import { validateMetadata } from "../validate/metadata.ts";
import {
  checkDnsSubdomain,
  checkIp,
  checkPortName,
  checkPortNumber,
  checkQualifiedName,
  validateLabels,
} from "../validate/names.ts";

const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const AFFINITIES = ["ClientIP", "None"];
const TRAFFIC_POLICIES = ["Cluster", "Local"];
const MAX_AFFINITY_SECONDS = 86_400;
const MAX_PORT_NAME = 63;

/** Source: core validation `ValidateService`. */
export function validateService({ metadata, spec }: Service, path: FieldPath): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const { name = "" } = metadata;
  if (name !== "" && (!DNS_1035.test(name) || name.length > 63)) {
    const message = "must begin with a letter and consist of at most 63 lower case letters, digits or '-'";
    errors.invalid(path.child("metadata").child("name"), name, message);
  }
  const specPath = path.child("spec");
  const { type, ports = [], externalName } = spec;
  if (!TYPES.includes(type)) errors.notSupported(specPath.child("type"), type, TYPES);
  validateLabels(spec.selector ?? {}, specPath.child("selector"), errors);
  const isHeadless = spec.clusterIP === "None";
  if (ports.length === 0 && !isHeadless && type !== "ExternalName") errors.required(specPath.child("ports"));
  if (type === "ExternalName") {
    if (externalName === undefined) errors.required(specPath.child("externalName"));
    else {
      const host = externalName.replace(/\.$/, "");
      errors.invalidAll(specPath.child("externalName"), externalName, checkDnsSubdomain(host));
    }
  } else if (isHeadless && (type === "LoadBalancer" || type === "NodePort")) {
    errors.invalid(specPath.child("clusterIP"), "None", `must not be None when type is ${type}`);
  }
  validateAddresses(spec, specPath, errors);
  validateAffinity(spec, specPath, errors);
  validateExposure(spec, specPath, errors);
  validatePorts(ports, specPath.child("ports"), errors);
  return errors;
}

function validateAddresses(spec: Service["spec"], path: FieldPath, errors: FieldErrors): void {
  const { type, clusterIP = "", externalIPs = [], loadBalancerSourceRanges = [] } = spec;
  if (clusterIP !== "") {
    const at = path.child("clusterIP");
    if (type === "ExternalName") errors.forbidden(at, "must be absent when type is ExternalName");
    else if (clusterIP !== "None") errors.invalidAll(at, clusterIP, checkIp(clusterIP));
  }
  for (const [index, address] of externalIPs.entries()) {
    errors.invalidAll(path.child("externalIPs").index(index), address, checkIp(address));
  }
  const rangesPath = path.child("loadBalancerSourceRanges");
  if (loadBalancerSourceRanges.length > 0 && type !== "LoadBalancer") {
    errors.forbidden(rangesPath, "must be absent unless type is LoadBalancer");
  }
  for (const [index, range] of loadBalancerSourceRanges.entries()) {
    const [address = "", length = ""] = range.trim().split("/");
    if (checkIp(address).length > 0 || !/^\d{1,3}$/.test(length)) {
      errors.invalid(rangesPath.index(index), range, "must be a range of addresses such as 10.240.0.0/24");
    }
  }
}

function validateAffinity(spec: Service["spec"], path: FieldPath, errors: FieldErrors): void {
  const { sessionAffinity = "", sessionAffinityConfig } = spec;
  const isSet = sessionAffinity !== "";
  if (isSet && !AFFINITIES.includes(sessionAffinity)) {
    errors.notSupported(path.child("sessionAffinity"), sessionAffinity, AFFINITIES);
  }
  const configPath = path.child("sessionAffinityConfig");
  if (sessionAffinityConfig && sessionAffinity === "None") {
    errors.forbidden(configPath, "must be absent when sessionAffinity is None");
  }
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (seconds !== undefined && (seconds < 1 || seconds > MAX_AFFINITY_SECONDS)) {
    const at = configPath.child("clientIP").child("timeoutSeconds");
    errors.invalid(at, seconds, `must be between 1 and ${MAX_AFFINITY_SECONDS}`);
  }
}

/** Fields that only types which publish on the node have. */
function validateExposure(spec: Service["spec"], path: FieldPath, errors: FieldErrors): void {
  const { type, externalTrafficPolicy = "", healthCheckNodePort = 0, ports = [] } = spec;
  const isPublished = type === "NodePort" || type === "LoadBalancer";
  if (externalTrafficPolicy !== "") {
    const at = path.child("externalTrafficPolicy");
    if (!TRAFFIC_POLICIES.includes(externalTrafficPolicy)) {
      errors.notSupported(at, externalTrafficPolicy, TRAFFIC_POLICIES);
    } else if (!isPublished) {
      errors.invalid(at, externalTrafficPolicy, "must be absent unless type is NodePort or LoadBalancer");
    }
  }
  const hasHealthCheck = type === "LoadBalancer" && externalTrafficPolicy === "Local";
  if (healthCheckNodePort < 0 || (healthCheckNodePort > 0 && !hasHealthCheck)) {
    const message = "must be absent unless type is LoadBalancer and externalTrafficPolicy is Local";
    errors.invalid(path.child("healthCheckNodePort"), healthCheckNodePort, message);
  }
  const taken = new Set<string>();
  for (const [index, { nodePort = 0, protocol }] of ports.entries()) {
    if (nodePort === 0) continue;
    const at = path.child("ports").index(index).child("nodePort");
    if (!isPublished) errors.forbidden(at, `must be absent when type is ${type}: set type: NodePort`);
    else if (taken.has(`${protocol}/${nodePort}`)) errors.duplicate(at, nodePort);
    taken.add(`${protocol}/${nodePort}`);
  }
}

function validatePorts(ports: readonly ServicePort[], path: FieldPath, errors: FieldErrors): void {
  const names = new Set<string>();
  const numbers = new Set<string>();
  for (const [index, { name, port, protocol, targetPort, nodePort, appProtocol }] of ports.entries()) {
    const portPath = path.index(index);
    if (name === undefined) {
      if (ports.length > 1) errors.required(portPath.child("name"), "is required when there are several ports");
    } else if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name) || name.length > MAX_PORT_NAME) {
      errors.invalid(portPath.child("name"), name, "must consist of lower case letters, digits or '-' (a DNS label)");
    } else if (names.has(name)) errors.duplicate(portPath.child("name"), name);
    else names.add(name);
    errors.invalidAll(portPath.child("port"), port, checkPortNumber(port));
    if (!PROTOCOLS.includes(protocol)) errors.notSupported(portPath.child("protocol"), protocol, PROTOCOLS);
    if (appProtocol !== undefined) {
      errors.invalidAll(portPath.child("appProtocol"), appProtocol, checkQualifiedName(appProtocol));
    }
    // 0 and "" are the default: the value of `port`.
    if (typeof targetPort === "number" && targetPort !== 0) {
      errors.invalidAll(portPath.child("targetPort"), targetPort, checkPortNumber(targetPort));
    } else if (typeof targetPort === "string" && targetPort !== "") {
      errors.invalidAll(portPath.child("targetPort"), targetPort, checkPortName(targetPort));
    }
    if (nodePort !== undefined) errors.invalidAll(portPath.child("nodePort"), nodePort, checkPortNumber(nodePort));
    const number = `${protocol}/${port}`;
    if (numbers.has(number)) errors.duplicate(portPath, { protocol, port });
    numbers.add(number);
  }
}

/** Parts of a Service that have no effect, or another one, where names lead to the pods themselves. */
export function findServiceNotes({ metadata, spec }: Service, path: FieldPath): SupportNote[] {
  const specPath = path.child("spec");
  const notes: SupportNote[] = [];
  const note = (at: FieldPath, message: string) => notes.push({ code: "ignored", path: at, message });
  if (spec.type === "ExternalName") {
    if (checkIp(spec.externalName ?? "").length === 0) {
      note(specPath.child("externalName"), "is an address: in a cluster the name would lead nowhere");
    }
    return notes;
  }
  if (!spec.selector) note(specPath, "has no selector, and so no pods: Endpoints objects are not read");
  const isPublished = spec.type === "NodePort" || spec.type === "LoadBalancer";
  for (const [index, { port, targetPort = port }] of (spec.ports ?? []).entries()) {
    if (targetPort === port || spec.clusterIP === "None") continue;
    const target =
      typeof targetPort === "number" ? `port ${targetPort}` : `the port that the container calls ${targetPort}`;
    const published = isPublished ? " inside pods" : "";
    const message = `the name ${metadata.name} leads to the pods themselves:${published} use ${target} instead of ${port}`;
    note(specPath.child("ports").index(index).child("targetPort"), message);
  }
  for (const name of ["externalIPs", "loadBalancerIP", "loadBalancerSourceRanges"] as const) {
    if (spec[name]) note(specPath.child(name), "has no effect here: there is no proxy; bind an address with hostIP");
  }
  if (spec.sessionAffinity === "ClientIP")
    note(specPath.child("sessionAffinity"), "has no effect here: there is no proxy");
  return notes;
}
