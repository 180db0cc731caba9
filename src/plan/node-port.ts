import type { Service, ServicePort } from "../base/api/service.ts";
import { hex32 } from "../base/text/canonical-json.ts";

/** Upstream's range of node ports. */
const FIRST_NODE_PORT = 30000;
const NODE_PORTS = 2768;

/** Port of the node under which a port of a Service is published; undefined when it is not. */
export function nodePortOf({ metadata, spec }: Service, { port, nodePort }: ServicePort): number | undefined {
  if (spec.type === "LoadBalancer") return port;
  if (spec.type !== "NodePort") return undefined;
  if (nodePort !== undefined) return nodePort;
  const digits = hex32(`${metadata.namespace ?? "default"}/${metadata.name} ${port}`).slice(0, 8);
  return FIRST_NODE_PORT + (Number.parseInt(digits, 16) % NODE_PORTS);
}
