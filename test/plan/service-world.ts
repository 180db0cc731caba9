import type { Service } from "../../src/base/api/service.ts";
import type { ServiceAddresses } from "../../src/plan/service-addresses.ts";

export const service = (name: string, spec: object = {}): Service =>
  ({
    metadata: { name, namespace: "default" },
    spec: { type: "ClusterIP", ports: [{ port: 80, protocol: "TCP" }], ...spec },
  }) as Service;

/** Addresses of a node that has given none yet. */
export const NEW: ServiceAddresses = { range: "10.96.0.0/16", clusterIps: {}, ports: {}, nodePorts: {} };

/** Addresses of a node with both families. */
export const DUAL: ServiceAddresses = { ...NEW, range: "10.96.0.0/16,fd00:96::/112" };

/** Nothing holds a port of the machine. */
export const free = () => undefined;
