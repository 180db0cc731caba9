import { isAbsolute, join, normalize } from "node:path";
import type { AppArmorProfile, Container, Pod, SeccompProfile } from "../base/api/pod.ts";

const SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_ANNOTATION_PREFIX = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR_ANNOTATION_PREFIX = "container.apparmor.security.beta.kubernetes.io/";

function parseProfileAnnotation(value: string | undefined): SeccompProfile | undefined {
  if (value === undefined) return undefined;
  if (value === "runtime/default" || value === "docker/default") return { type: "RuntimeDefault" };
  if (value === "unconfined") return { type: "Unconfined" };
  if (value.startsWith("localhost/")) return { type: "Localhost", localhostProfile: value.slice("localhost/".length) };
  return undefined;
}

/** Field before annotation, container before pod. Undefined: the manifest says nothing. Source: kubelet 1.20. */
export function computeSeccompProfile(pod: Pod, container: Container): SeccompProfile | undefined {
  const annotations = pod.metadata.annotations ?? {};
  return (
    container.securityContext?.seccompProfile ??
    parseProfileAnnotation(annotations[SECCOMP_CONTAINER_ANNOTATION_PREFIX + container.name]) ??
    pod.spec.securityContext.seccompProfile ??
    parseProfileAnnotation(annotations[SECCOMP_POD_ANNOTATION])
  );
}

/** Undefined: the manifest says nothing, and the engine applies its own default where the kernel has AppArmor. */
export function computeAppArmorProfile(pod: Pod, container: Container): AppArmorProfile | undefined {
  return (
    container.securityContext?.appArmorProfile ??
    pod.spec.securityContext.appArmorProfile ??
    parseProfileAnnotation(pod.metadata.annotations?.[APPARMOR_ANNOTATION_PREFIX + container.name])
  );
}

/** The file of a container's seccomp profile on the host; undefined when it has none, or one outside of `seccompRoot`. */
export function seccompProfilePath(pod: Pod, container: Container, seccompRoot: string): string | undefined {
  const profile = computeSeccompProfile(pod, container);
  if (profile?.type !== "Localhost") return undefined;
  const relative = normalize(profile.localhostProfile ?? "");
  return isBeneath(relative) ? join(seccompRoot, relative) : undefined;
}

/** Whether a normalized path stays below the directory that it counts from. */
export const isBeneath = (relative: string) => !isAbsolute(relative) && !relative.split("/").includes("..");

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
  if (/[./]/.exec(name)?.[0] !== "/") return name;
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
