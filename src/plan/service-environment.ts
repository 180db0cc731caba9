/** A Service as its environment variables need it. */
export interface ServiceAddress {
  name: string;
  namespace: string;
  clusterIP: string | undefined;
  ports: readonly { name?: string | undefined; port: number; protocol?: string | undefined }[];
}

/** The Service of the API server, which every pod gets. */
const MASTER_SERVICE = { namespace: "default", name: "kubernetes" };

const toVariableName = (text: string) => text.toUpperCase().replaceAll("-", "_");

/**
 * Variables of the Services of a namespace, and of the API server: `WEB_SERVICE_HOST`, `WEB_PORT_80_TCP_ADDR` and the like. Pure.
 * Source: the kubelet's getServiceEnvVarMap and envvars.FromServices.
 * @param hasLinks `enableServiceLinks` of the pod; without it only the API server's
 */
export function computeServiceEnvironment(
  services: Iterable<ServiceAddress>,
  namespace: string,
  hasLinks: boolean,
): Map<string, string> {
  const chosen = new Map<string, ServiceAddress>();
  for (const service of services) {
    const { name, clusterIP, ports } = service;
    if (!clusterIP || clusterIP === "None" || ports.length === 0) continue;
    const isMaster = name === MASTER_SERVICE.name && service.namespace === MASTER_SERVICE.namespace;
    // A Service of the pod's own namespace overrides the API server's of the same name.
    if (service.namespace === namespace && hasLinks) chosen.set(name, service);
    else if (isMaster && !chosen.has(name)) chosen.set(name, service);
  }
  const variables = new Map<string, string>();
  for (const service of chosen.values()) addService(service, variables);
  return variables;
}

function addService({ name, clusterIP = "", ports }: ServiceAddress, variables: Map<string, string>): void {
  const prefix = toVariableName(name);
  const host = clusterIP.includes(":") ? `[${clusterIP}]` : clusterIP;
  variables.set(`${prefix}_SERVICE_HOST`, clusterIP);
  variables.set(`${prefix}_SERVICE_PORT`, String(ports[0]!.port));
  for (const port of ports) {
    if (port.name) variables.set(`${prefix}_SERVICE_PORT_${toVariableName(port.name)}`, String(port.port));
  }
  for (const [index, { port, protocol = "TCP" }] of ports.entries()) {
    const url = `${protocol.toLowerCase()}://${host}:${port}`;
    const one = `${prefix}_PORT_${port}_${protocol}`;
    if (index === 0) variables.set(`${prefix}_PORT`, url);
    variables.set(one, url);
    variables.set(`${one}_PROTO`, protocol.toLowerCase());
    variables.set(`${one}_PORT`, String(port));
    variables.set(`${one}_ADDR`, clusterIP);
  }
}
