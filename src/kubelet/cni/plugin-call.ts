import type { Pod } from "../../base/api/pod.ts";
import { parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import { computeHostPorts } from "../../plan/host-ports.ts";
import type { NetworkConfig, PluginConfig } from "./network-config.ts";

/** Limits of a pod's traffic in bits per second, a quantity; for plugins with the capability `bandwidth`. */
const BANDWIDTH_ANNOTATIONS = {
  ingress: "kubernetes.io/ingress-bandwidth",
  egress: "kubernetes.io/egress-bandwidth",
} as const;

export type CniCommand = "ADD" | "CHECK" | "DEL";

/** Name of the interface in the pod. Source: dockershim. */
const INTERFACE_NAME = "eth0";

/** One sandbox, as it is described to the plugins. */
export interface Attachment {
  sandboxId: string;
  /** Path of the network namespace; "" when it is gone. */
  netns: string;
  pod: { name: string; namespace: string };
  /** Values by the capability that takes them. */
  runtimeConfig: Readonly<Record<string, unknown>>;
}

/** The variables of one call. Source: CNI specification, and the kubelet's `buildCNIRuntimeConf` for CNI_ARGS. */
export function toPluginEnvironment(
  command: CniCommand,
  { sandboxId, netns, pod }: Attachment,
  binDirs: readonly string[],
): Record<string, string> {
  const args = {
    IgnoreUnknown: "1",
    K8S_POD_NAMESPACE: pod.namespace,
    K8S_POD_NAME: pod.name,
    K8S_POD_INFRA_CONTAINER_ID: sandboxId,
  };
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: sandboxId,
    CNI_NETNS: netns,
    CNI_IFNAME: INTERFACE_NAME,
    CNI_PATH: binDirs.join(":"),
    CNI_ARGS: Object.entries(args)
      .map(([key, value]) => `${key}=${value}`)
      .join(";"),
  };
}

/** The standard input of one call: the plugin's own configuration with what the list and the runtime add. */
export function toPluginInput(
  list: NetworkConfig,
  plugin: PluginConfig,
  runtimeConfig: Readonly<Record<string, unknown>>,
  prevResult: unknown,
): string {
  const taken = Object.entries(runtimeConfig).filter(([name]) => plugin.capabilities?.[name]);
  const { capabilities: _, ...own } = plugin;
  return JSON.stringify({
    ...own,
    cniVersion: list.cniVersion,
    name: list.name,
    ...(taken.length > 0 && { runtimeConfig: Object.fromEntries(taken) }),
    ...(prevResult !== undefined && { prevResult }),
  });
}

/** Host ports and bandwidth of a pod, for plugins with the capability. */
export function toRuntimeConfig(pod: Pod): Record<string, unknown> {
  const portMappings = computeHostPorts(pod).map(({ hostPort, containerPort, protocol, hostIP }) => ({
    hostPort,
    containerPort,
    protocol: protocol.toLowerCase(),
    ...(hostIP && { hostIP }),
  }));
  const annotations = pod.metadata.annotations ?? {};
  const ingress = toBits(annotations[BANDWIDTH_ANNOTATIONS.ingress]);
  const egress = toBits(annotations[BANDWIDTH_ANNOTATIONS.egress]);
  const bandwidth = { ...rate("ingress", ingress), ...rate("egress", egress) };
  return { portMappings, ...(ingress || egress ? { bandwidth } : {}) };
}

/** Bits per second. The burst is without limit, as upstream. */
const rate = (direction: string, bits: number | undefined) =>
  bits ? { [`${direction}Rate`]: bits, [`${direction}Burst`]: 2 ** 31 - 1 } : {};

const toBits = (text: string | undefined): number | undefined =>
  text !== undefined && parseQuantity(text) ? quantityToWhole(text) : undefined;
