import type { Pod } from "../base/api/pod.ts";

/** Sysctls any pod may set: they are namespaced and affect no other pod. Source: kubelet's safe list. */
export const SAFE_SYSCTLS: readonly string[] = [
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
  "net.ipv4.ip_local_reserved_ports",
  "net.ipv4.tcp_keepalive_time",
  "net.ipv4.tcp_fin_timeout",
  "net.ipv4.tcp_keepalive_intvl",
  "net.ipv4.tcp_keepalive_probes",
  "net.ipv4.tcp_rmem",
  "net.ipv4.tcp_wmem",
];

const IPC_PREFIXES = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."];

/** The namespace a sysctl counts in; undefined when it is the whole machine's. Source: kubelet. */
export function computeSysctlNamespace(name: string): "ipc" | "net" | undefined {
  if (name.startsWith("net.")) return "net";
  return IPC_PREFIXES.some((prefix) => name.startsWith(prefix)) ? "ipc" : undefined;
}

/** With `/` as first separator dots and slashes change places: `net/ipv4/conf/eth0.1/arp_filter`. Source: kubelet. */
export function toDottedSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  if (first !== "/") return name;
  return name.replace(/[./]/g, (separator) => (separator === "/" ? "." : "/"));
}

const matches = (pattern: string, name: string) =>
  pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;

/** The first sysctl that this pod may not set. @param allowedUnsafe names, or prefixes that end in `*` */
export function findForbiddenSysctl(pod: Pod, allowedUnsafe: readonly string[]): string | undefined {
  const allowed = [...SAFE_SYSCTLS, ...allowedUnsafe.map(toDottedSysctl)];
  for (const { name } of pod.spec.securityContext.sysctls ?? []) {
    const dotted = toDottedSysctl(name);
    const namespace = computeSysctlNamespace(dotted);
    const quoted = JSON.stringify(name);
    if (namespace === undefined || !allowed.some((pattern) => matches(pattern, dotted))) {
      return `forbidden sysctl: ${quoted} not whitelisted`;
    }
    if ((namespace === "net" && pod.spec.hostNetwork) || (namespace === "ipc" && pod.spec.hostIPC)) {
      return `forbidden sysctl: ${quoted} not allowed with host ${namespace} enabled`;
    }
  }
  return undefined;
}

/** Docker's `Sysctls`, of the sandbox: the containers share its namespaces. Of two with one name the last wins. */
export const computeSysctls = (pod: Pod): Record<string, string> =>
  Object.fromEntries((pod.spec.securityContext.sysctls ?? []).map(({ name, value }) => [toDottedSysctl(name), value]));
