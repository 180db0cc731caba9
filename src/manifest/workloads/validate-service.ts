import type { Service, ServicePort } from "../../api/service.ts";
import type { FieldPath } from "../field-path.ts";
import type { SupportNote } from "../support/find-unsupported.ts";
import { FieldErrors } from "../validate/field-errors.ts";
import { validateMetadata } from "../validate/metadata.ts";
import { checkDnsSubdomain, checkPortName, checkPortNumber, validateLabels } from "../validate/names.ts";

const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS = ["SCTP", "TCP", "UDP"];

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
  validatePorts(ports, specPath.child("ports"), errors);
  return errors;
}

function validatePorts(ports: readonly ServicePort[], path: FieldPath, errors: FieldErrors): void {
  const names = new Set<string>();
  const numbers = new Set<string>();
  for (const [index, { name, port, protocol, targetPort, nodePort }] of ports.entries()) {
    const portPath = path.index(index);
    if (name === undefined) {
      if (ports.length > 1) errors.required(portPath.child("name"), "is required when there are several ports");
    } else if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) {
      errors.invalid(portPath.child("name"), name, "must consist of lower case letters, digits or '-' (a DNS label)");
    } else if (names.has(name)) errors.duplicate(portPath.child("name"), name);
    else names.add(name);
    errors.invalidAll(portPath.child("port"), port, checkPortNumber(port));
    if (!PROTOCOLS.includes(protocol)) errors.notSupported(portPath.child("protocol"), protocol, PROTOCOLS);
    if (typeof targetPort === "number") {
      errors.invalidAll(portPath.child("targetPort"), targetPort, checkPortNumber(targetPort));
    } else if (targetPort !== undefined) {
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
    note(specPath.child("externalName"), `no name is served for it: let the pods use ${spec.externalName} itself`);
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
