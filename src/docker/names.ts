import type { Pod } from "../base/api/pod.ts";

/** Name of the sandbox among the containers of its pod. */
export const SANDBOX_CONTAINER_NAME = "POD";

const PREFIX = "k8s";

// A fixed metadata.uid is free text upstream; Docker allows only these in a name. The label has it unchanged.
const dockerSafe = (part: string) => part.replace(/[^a-zA-Z0-9.-]/g, "-");

function toDockerName(pod: Pod, containerName: string, attempt: number): string {
  const { name = "", namespace = "default", uid = "" } = pod.metadata;
  return [PREFIX, containerName, name, namespace, dockerSafe(uid), attempt].join("_");
}

/** `k8s_<container>_<pod>_<namespace>_<uid>_<attempt>`. Source: dockershim. */
export const toContainerName = (pod: Pod, containerName: string, restartCount: number) =>
  toDockerName(pod, containerName, restartCount);

/** `k8s_POD_<pod>_<namespace>_<uid>_<attempt>`. */
export const toSandboxName = (pod: Pod, attempt: number) => toDockerName(pod, SANDBOX_CONTAINER_NAME, attempt);

/**
 * The name to take when the engine says that `name` is in use by something we cannot remove: `<name>_<8 hex>`.
 * @param random In [0, 1).
 */
export function toConflictFreeName(name: string, random: () => number): string {
  const suffix = Math.floor(random() * 2 ** 32);
  return `${name}_${suffix.toString(16).padStart(8, "0")}`;
}
