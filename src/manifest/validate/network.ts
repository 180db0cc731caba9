import type { HostAlias, PodSpec } from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "./field-errors.ts";
import { byteLength, checkDnsSubdomain, checkIp, checkSearchDomain } from "./names.ts";

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;

/** Source: core validation `validatePodDNSConfig`. */
export function validateDnsConfig(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
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

export function validateHostAliases(aliases: readonly HostAlias[], path: FieldPath, errors: FieldErrors): void {
  for (const [index, alias] of aliases.entries()) {
    const aliasPath = path.index(index);
    errors.invalidAll(aliasPath.child("ip"), alias.ip ?? "", checkIp(alias.ip ?? ""));
    for (const [nameIndex, name] of (alias.hostnames ?? []).entries()) {
      errors.invalidAll(aliasPath.child("hostnames").index(nameIndex), name, checkDnsSubdomain(name));
    }
  }
}

/** With hostNetwork ports are not mapped: the host port is the container port. */
export function validateHostNetworkPorts(spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  if (!spec.hostNetwork) return;
  for (const [index, container] of spec.containers.entries()) {
    for (const [portIndex, port] of (container.ports ?? []).entries()) {
      if ((port.hostPort ?? 0) === port.containerPort) continue;
      const portPath = path.index(index).child("ports").index(portIndex).child("hostPort");
      errors.invalid(portPath, port.hostPort, "must be the containerPort when hostNetwork is true");
    }
  }
}
