import type { Pod } from "../api/pod.ts";

/** Annotation: the Docker network of the pod (P21). On one of the user's own, other pods reach it by name. */
export const NETWORK_ANNOTATION = "kubelet-ts.io/network";
/** Annotation: a fixed IPv4 or IPv6 address in that network. */
export const IP_ANNOTATION = "kubelet-ts.io/ip";

/** Networks every engine has, which have no DNS of their own. */
const BUILT_IN_NETWORKS = new Set(["default", "bridge", "none", "host"]);

/** The network of the user's own that a pod asks for, where the engine answers the names of other pods (P21). */
export function computeUserNetwork({ spec, metadata }: Pod): string | undefined {
  const network = metadata.annotations?.[NETWORK_ANNOTATION];
  return network && !spec.hostNetwork && !BUILT_IN_NETWORKS.has(network) ? network : undefined;
}
