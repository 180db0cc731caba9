import { type EndpointSlice, type Endpoints, SERVICE_NAME_LABEL } from "../../base/api/endpoints.ts";
import { FIRST_NODE_PORT, NODE_PORTS, type Service, type ServicePort } from "../../base/api/service.ts";
import { canonicalIp } from "../../base/text/ip-range.ts";
import type { Field, SupportNote } from "../field.ts";
import {
  checkDnsLabel,
  checkDnsSubdomain,
  checkIp,
  checkPort,
  checkPortNumber,
  checkQualifiedName,
  validateLabels,
  validateMetadata,
} from "../validate/names.ts";

const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const TRAFFIC_POLICIES = ["Cluster", "Local"];
const DISTRIBUTIONS = ["PreferClose", "PreferSameNode", "PreferSameZone"];
const OF_LOAD_BALANCER = ["allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges"] as const;
const MAX_AFFINITY_SECONDS = 86_400;
const MAX_PORT_NAME = 63;

/** Source: core validation `ValidateService`. */
export function validateService(service: Field<Service>): void {
  validateMetadata(service.field("metadata"));
  const { metadata, spec: value } = service.value;
  const { name = "" } = metadata;
  if (name !== "" && (!DNS_1035.test(name) || name.length > 63)) {
    const message = "must begin with a letter and consist of at most 63 lower case letters, digits or '-'";
    service.field("metadata").field("name").invalid(message);
  }
  const spec = service.field("spec");
  const { type, ports = [], clusterIP } = value;
  spec.field("type").oneOf(["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
  validateLabels(spec.field("selector"));
  if (type === "ExternalName") {
    const host = spec.field("externalName");
    if (host.value === undefined) host.required();
    else host.format((text) => checkDnsSubdomain(text.replace(/\.$/, "")));
  } else if (ports.length === 0 && clusterIP !== "None") spec.field("ports").required();
  else if (clusterIP === "None" && (type === "LoadBalancer" || type === "NodePort")) {
    spec.field("clusterIP").invalid(`must not be None when type is ${type}`);
  }
  validateAddresses(spec);
  validateAffinity(spec);
  validateExposure(spec);
  validatePorts(spec.field("ports"));
}

function validateAddresses(spec: Field<Service["spec"]>): void {
  const { type, clusterIP = "" } = spec.value;
  if (clusterIP !== "") {
    if (type === "ExternalName") spec.field("clusterIP").forbidden("must be absent when type is ExternalName");
    else if (clusterIP !== "None") spec.field("clusterIP").format(checkIp);
  }
  for (const address of spec.field("externalIPs").items()) address.format(checkEndpointIp);
  validateFamilies(spec);
  for (const range of spec.field("loadBalancerSourceRanges").items()) {
    const [, address = "", length = ""] = /^([^/]*)\/(\d{1,3})$/.exec(range.value.trim()) ?? [];
    if (checkIp(address).length > 0 || Number(length) > (address.includes(":") ? 128 : 32)) {
      range.invalid("must be a range of addresses such as 10.240.0.0/24");
    }
  }
}

/** Source: core validation `ValidateServiceClusterIPsRelatedFields`. */
function validateFamilies(spec: Field<Service["spec"]>): void {
  const { clusterIP = "", clusterIPs = [], ipFamilyPolicy } = spec.value;
  if (ipFamilyPolicy !== undefined) {
    spec.field("ipFamilyPolicy").oneOf(["PreferDualStack", "RequireDualStack", "SingleStack"]);
  }
  const seen = new Set<string>();
  for (const family of spec.field("ipFamilies").items()) {
    family.oneOf(["IPv4", "IPv6"]);
    if (seen.has(family.value)) family.duplicate();
    seen.add(family.value);
  }
  const addresses = spec.field("clusterIPs");
  if (clusterIPs[0] === "None") return;
  for (const address of addresses.items()) address.format(checkIp);
  const families = new Set(clusterIPs.map((ip) => ip.includes(":")));
  if (families.size < clusterIPs.length) addresses.invalid("may have one address of each family");
  if (clusterIP !== "" && clusterIPs.length > 0 && clusterIPs[0] !== clusterIP) {
    addresses.items()[0]!.invalid("must be that of clusterIP");
  }
}

function validateAffinity(spec: Field<Service["spec"]>): void {
  const { sessionAffinity = "" } = spec.value;
  if (sessionAffinity !== "") spec.field("sessionAffinity").oneOf(["ClientIP", "None"]);
  spec.field("sessionAffinityConfig").field("clientIP").field("timeoutSeconds").between(1, MAX_AFFINITY_SECONDS);
}

/** Where connections may come from and go to: fields that not every type has. Source: its `ExternallyAccessible`. */
function validateExposure(spec: Field<Service["spec"]>): void {
  const { type, externalIPs = [], externalTrafficPolicy = "", healthCheckNodePort = 0 } = spec.value;
  const isPublished = type === "NodePort" || type === "LoadBalancer";
  const policy = spec.field("externalTrafficPolicy");
  if (externalTrafficPolicy !== "") policy.oneOf(TRAFFIC_POLICIES);
  if (TRAFFIC_POLICIES.includes(externalTrafficPolicy) && !isPublished && externalIPs.length === 0)
    policy.invalid("must be absent unless type is NodePort or LoadBalancer, or there are externalIPs");
  spec.field("internalTrafficPolicy").oneOf(TRAFFIC_POLICIES);
  spec.field("trafficDistribution").oneOf(DISTRIBUTIONS);
  spec.field("loadBalancerClass").format(checkQualifiedName);
  for (const field of type === "LoadBalancer" ? [] : OF_LOAD_BALANCER.map((name) => spec.field(name)))
    if (`${field.value ?? ""}` !== "") field.forbidden("must be absent unless type is LoadBalancer");
  const hasHealthCheck = type === "LoadBalancer" && externalTrafficPolicy === "Local";
  if (healthCheckNodePort < 0 || (healthCheckNodePort > 0 && !hasHealthCheck)) {
    const message = "must be absent unless type is LoadBalancer and externalTrafficPolicy is Local";
    spec.field("healthCheckNodePort").invalid(message);
  }
  const taken = new Set<string>();
  for (const port of spec.field("ports").items()) {
    const { nodePort = 0, protocol } = port.value;
    if (nodePort === 0) continue;
    const field = port.field("nodePort");
    if (!isPublished) field.forbidden(`must be absent when type is ${type}: set type: NodePort`);
    else if (taken.has(`${protocol}/${nodePort}`)) field.duplicate();
    taken.add(`${protocol}/${nodePort}`);
  }
}

function validatePorts(ports: Field<readonly ServicePort[] | undefined>): void {
  const names = new Set<string>();
  const numbers = new Set<string>();
  const list = ports.items();
  for (const item of list) {
    const { port, protocol, targetPort } = item.value;
    const name = item.field("name");
    if (name.value === undefined) {
      if (list.length > 1) name.required("is required when there are several ports");
    } else if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name.value) || name.value.length > MAX_PORT_NAME) {
      name.invalid("must consist of lower case letters, digits or '-' (a DNS label)");
    } else if (names.has(name.value)) name.duplicate();
    else names.add(name.value);
    if (!item.value.port) item.field("port").absent("is required: a number from 1 to 65535");
    else item.field("port").format(checkPortNumber);
    item.field("protocol").oneOf(["SCTP", "TCP", "UDP"]);
    item.field("appProtocol").format(checkQualifiedName);
    // 0 and "" are the default: the value of `port`.
    if (targetPort !== 0 && targetPort !== "") item.field("targetPort").format(checkPort);
    item.field("nodePort").format(checkPortNumber);
    const number = `${protocol}/${port}`;
    if (numbers.has(number)) item.with({ protocol, port }).duplicate();
    numbers.add(number);
  }
}

/** Parts of a Service that have no effect, or another one than in a cluster. */
export function findServiceNotes(service: Field<Service>): SupportNote[] {
  const { type, externalName = "" } = service.value.spec;
  const spec = service.field("spec");
  if (type === "ExternalName") {
    if (checkIp(externalName).length > 0) return [];
    return [spec.field("externalName").note("is an address: in a cluster the name would lead nowhere")];
  }
  const last = FIRST_NODE_PORT + NODE_PORTS - 1;
  const foreign = spec
    .field("ports")
    .items()
    .map((port) => port.field("nodePort"));
  return [
    ...foreign
      .filter(({ value = 0 }) => value > 0 && (value < FIRST_NODE_PORT || value > last))
      .map((port) => port.note(`is open here; a cluster takes ${FIRST_NODE_PORT} to ${last} only`)),
    ...Object.entries(WITHOUT_EFFECT).flatMap(([name, why]) => {
      const field = spec.field(name as keyof typeof WITHOUT_EFFECT);
      return field.value ? [field.note(`has no effect here: ${why}`)] : [];
    }),
  ];
}

const WITHOUT_EFFECT = {
  loadBalancerIP: "the port is open on the machine's addresses",
  loadBalancerClass: "the port is open on the machine's addresses",
  healthCheckNodePort: "no balancer asks whether this node has pods of the Service, and nothing answers there",
} as const satisfies Partial<Record<keyof Service["spec"], string>>;

/** Ports of Endpoints and EndpointSlices are named as those of their Service. */
type EndpointPort = Pick<ServicePort, "name" | "appProtocol"> | NonNullable<EndpointSlice["ports"]>[number];

function validateEndpointPorts(ports: Field<readonly EndpointPort[] | undefined>, isSlice: boolean): void {
  const names = new Set<string>();
  for (const item of ports.items() as Field<{
    name?: string;
    port?: number;
    protocol: string;
    appProtocol?: string;
  }>[]) {
    const { name = "" } = item.value;
    if (name !== "") item.field("name").format(checkDnsLabel);
    else if (!isSlice && ports.items().length > 1) item.field("name").required();
    if (isSlice && names.has(name)) item.field("name").duplicate();
    names.add(name);
    item.field("port").format(checkPortNumber);
    item.field("protocol").oneOf(["SCTP", "TCP", "UDP"]);
    item.field("appProtocol").format(checkQualifiedName);
  }
}

/** Addresses of this machine alone, or of one link, are no endpoints. Source: core validation `ValidateNonSpecialIP`. */
const SPECIAL_IP = /^(?:0\.0\.0\.0$|127\.|169\.254\.|224\.0\.0\.|::$|::1$|fe[89ab]|ff[0-9a-f]?2:)/i;

function checkEndpointIp(ip: string): string[] {
  const problems = checkIp(ip);
  return problems.length === 0 && SPECIAL_IP.test(canonicalIp(ip) ?? "")
    ? ["may not be unspecified, of the loopback or of a link: name an address of the network"]
    : problems;
}

/** Source: core validation `ValidateEndpointsSpecificAnnotations` and `validateEndpointSubsets`. */
export function validateEndpoints(endpoints: Field<Endpoints>): void {
  validateMetadata(endpoints.field("metadata"));
  for (const subset of endpoints.field("subsets").items()) {
    const { addresses = [], notReadyAddresses = [] } = subset.value;
    if (addresses.length + notReadyAddresses.length === 0) subset.required("must have addresses or notReadyAddresses");
    for (const list of ["addresses", "notReadyAddresses"] as const) {
      for (const address of subset.field(list).items()) {
        address.field("ip").requiredFormat(checkEndpointIp);
        address.field("hostname").format(checkDnsLabel);
        address.field("nodeName").format(checkDnsSubdomain);
      }
    }
    validateEndpointPorts(subset.field("ports"), false);
  }
}

const MAX_ENDPOINTS = 1000;
const MAX_SLICE_PORTS = 100;
const MAX_ADDRESSES = 100;
const MAX_TOPOLOGY = 16;
const FQDN = "FQDN";

/** Source: discovery validation `ValidateEndpointSlice`. */
export function validateEndpointSlice(slice: Field<EndpointSlice>): void {
  validateMetadata(slice.field("metadata"));
  const { addressType } = slice.value;
  slice.field("addressType").requiredOneOf([FQDN, "IPv4", "IPv6"]);
  const endpoints = slice.field("endpoints");
  if (endpoints.items().length > MAX_ENDPOINTS) endpoints.tooLong(`${MAX_ENDPOINTS} items`);
  for (const endpoint of endpoints.items()) {
    const addresses = endpoint.field("addresses");
    if (addresses.items().length === 0) addresses.required("must contain at least 1 address");
    if (addresses.items().length > MAX_ADDRESSES) addresses.tooLong(`${MAX_ADDRESSES} items`);
    for (const address of addresses.items()) {
      if (addressType === FQDN) address.format(checkDnsSubdomain);
      else address.format(checkEndpointIp);
      const isOther = addressType !== FQDN && address.value.includes(":") !== (addressType === "IPv6");
      if (isOther && checkIp(address.value).length === 0) address.invalid(`must be an ${addressType} address`);
    }
    endpoint.field("hostname").format(checkDnsLabel);
    endpoint.field("nodeName").format(checkDnsSubdomain);
    const topology = endpoint.field("topology");
    validateLabels(topology);
    if (topology.entries().length > MAX_TOPOLOGY) topology.tooLong(`${MAX_TOPOLOGY} entries`);
  }
  if (slice.field("ports").items().length > MAX_SLICE_PORTS) slice.field("ports").tooLong(`${MAX_SLICE_PORTS} items`);
  validateEndpointPorts(slice.field("ports"), true);
}

/** Why no connection comes to the addresses of a slice here. */
export function findSliceNotes(slice: Field<EndpointSlice>): SupportNote[] {
  const { addressType, metadata } = slice.value;
  if (addressType === FQDN) {
    return [slice.field("addressType").note("names have no effect, as with kube-proxy: write the addresses")];
  }
  if (metadata.labels?.[SERVICE_NAME_LABEL] !== undefined) return [];
  const missing = `has no label ${SERVICE_NAME_LABEL}, and so no Service leads to it: add it with the Service's name`;
  return [slice.field("metadata").note(missing)];
}
