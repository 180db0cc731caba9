import { isIP } from "node:net";
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

/** What of the two annotations cannot be: the field and why, for people. */
export function findNetworkMistake(pod: Pod): { field: string; why: string } | undefined {
  const { spec, metadata } = pod;
  const network = metadata.annotations?.[NETWORK_ANNOTATION];
  const ip = metadata.annotations?.[IP_ANNOTATION];
  const mistake = (annotation: string, why: string) => ({ field: `metadata.annotations["${annotation}"]`, why });
  if (network && spec.hostNetwork) {
    return mistake(
      NETWORK_ANNOTATION,
      `${network}: a pod with hostNetwork has no network of its own; drop one of both`,
    );
  }
  if (!ip) return undefined;
  if (isIP(ip) === 0) return mistake(IP_ANNOTATION, `${ip}: must be an IPv4 or IPv6 address`);
  if (computeUserNetwork(pod) !== undefined) return undefined;
  const why = `${ip}: Docker gives fixed addresses only in networks of your own (docker network create --subnet)`;
  return mistake(IP_ANNOTATION, `${why}; name one with ${NETWORK_ANNOTATION}`);
}

/** `in network "lan" with address 10.1.2.3`, or "" for a pod that asks for neither. */
export function describeNetwork(pod: Pod): string {
  const network = computeUserNetwork(pod);
  const ip = pod.metadata.annotations?.[IP_ANNOTATION];
  return network ? `in network ${JSON.stringify(network)}${ip ? ` with address ${ip}` : ""}` : "";
}
