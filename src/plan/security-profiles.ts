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
