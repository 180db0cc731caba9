import type { Container, Pod } from "../base/api/pod.ts";
import type { EngineInfo } from "../base/model/node.ts";
import { containersOf, hasImageGroups } from "../base/model/pod.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { PodRefusal } from "../plan/pod-end-reasons.ts";
import { findNetworkMistake } from "../plan/pod-network.ts";
import { computeAppArmorProfile, findForbiddenSysctl } from "../plan/security-profiles.ts";
import { describeMissingRuntime } from "./create-bodies.ts";
import { hasSecurityOption, isApiAtLeast } from "./security.ts";

export interface RefusalInput {
  pod: Pod;
  engine: EngineInfo;
  settings: Pick<KubeletOptions, "allowPrivileged" | "allowedUnsafeSysctls" | "kubeconfig">;
}

const unsupported = (field: string, why: string): PodRefusal => ({
  reason: "Unsupported",
  message: `${field}: ${why}`,
});

/** Finds what this node may not or cannot do, before anything of the pod is created. undefined: the pod may run. */
export function findPodRefusal({ pod, engine, settings }: RefusalInput): PodRefusal | undefined {
  const { spec } = pod;
  const { uid = "" } = pod.metadata;
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(uid)) {
    return unsupported("metadata.uid", `${JSON.stringify(uid)} cannot name a directory and a container: remove it`);
  }
  const sysctl = findForbiddenSysctl(pod, settings.allowedUnsafeSysctls);
  if (sysctl) return { reason: "SysctlForbidden", message: `Pod ${sysctl}` };

  if (spec.securityContext.supplementalGroupsPolicy === "Strict" && hasImageGroups(spec)) {
    const why = "Strict: Docker adds the groups of the image's /etc/group where it is told no group: set runAsGroup";
    return unsupported("spec.securityContext.supplementalGroupsPolicy", why);
  }
  if (spec.hostUsers === false && !hasSecurityOption(engine, "userns")) {
    const why = "false: Docker maps users per engine, not per pod; start dockerd with --userns-remap";
    return unsupported("spec.hostUsers", why);
  }
  if (spec.os?.name === "windows") return unsupported("spec.os.name", "windows: this node runs Linux");
  // In a cluster a pod waits for its runtime (FailedCreatePodSandBox), as upstream.
  if (spec.runtimeClassName && settings.kubeconfig === "" && !engine.runtimes.includes(spec.runtimeClassName)) {
    const why = describeMissingRuntime(spec.runtimeClassName, engine);
    return unsupported("spec.runtimeClassName", why);
  }
  const network = findNetworkMistake(pod);
  if (network) return unsupported(`metadata.annotations["${network.annotation}"]`, network.why);
  for (const container of containersOf(spec)) {
    const refusal = findContainerRefusal(container, pod, engine, settings.allowPrivileged);
    if (refusal) return refusal;
  }
  return undefined;
}

const needsApi = (engine: EngineInfo, version: string) =>
  `needs an engine with API ${version} or newer, this one has ${engine.apiVersion}`;

function findContainerRefusal(
  container: Container,
  pod: Pod,
  engine: EngineInfo,
  allowPrivileged: boolean,
): PodRefusal | undefined {
  const field = `container "${container.name}"`;
  if (container.securityContext?.privileged && !allowPrivileged) {
    const message = `${field}: privileged containers are not allowed on this node; --allow-privileged=true permits them`;
    return { reason: "PrivilegedNotAllowed", message };
  }
  const appArmor = computeAppArmorProfile(pod, container);
  if (appArmor && appArmor.type !== "Unconfined" && !hasSecurityOption(engine, "apparmor")) {
    return { reason: "AppArmor", message: "Pod Cannot enforce AppArmor: AppArmor is not enabled on the host" };
  }
  if (container.volumeDevices?.length) {
    return unsupported(`${field}: volumeDevices`, "block volumes need a cluster; use a hostPath of type BlockDevice");
  }
  const forced = container.volumeMounts?.find(({ recursiveReadOnly }) => recursiveReadOnly === "Enabled");
  if (forced && !isApiAtLeast(engine, "1.44")) {
    return unsupported(`${field}: volumeMounts["${forced.mountPath}"].recursiveReadOnly`, needsApi(engine, "1.44"));
  }
  return undefined;
}
