import { join, normalize } from "node:path";
import type { AppArmorProfile, Container, Pod, SecurityContext } from "../base/api/pod.ts";
import type { ContainerRequest } from "../base/model/container-engine.ts";
import type { EngineInfo } from "../base/model/node.ts";
import { apiAtLeast } from "../base/text/api-version.ts";
import { computeAppArmorProfile, computeSeccompProfile, isBeneath } from "../plan/security-profiles.ts";
import { MappingError, unsupported } from "./mapping-error.ts";

/** `name_namespace(uid)`, as upstream's messages name a pod. */
const describePod = ({ metadata: { name = "", namespace = "default", uid = "" } }: Pod) =>
  `${name}_${namespace}(${uid})`;

/** true when /info's SecurityOptions have it; they read `name=seccomp,profile=default` or just `seccomp`. */
export const hasSecurityOption = (engine: EngineInfo, option: "seccomp" | "apparmor" | "selinux" | "userns") =>
  engine.securityOptions.some((text) => text.split(",").some((part) => part === option || part === `name=${option}`));

/** The container's security context with what it inherits from the pod. */
export function computeSecurityContext(pod: Pod, container: Container): SecurityContext {
  const fromPod = pod.spec.securityContext;
  const own = container.securityContext ?? {};
  return {
    ...own,
    seLinuxOptions: own.seLinuxOptions ?? fromPod.seLinuxOptions,
    runAsUser: own.runAsUser ?? fromPod.runAsUser,
    runAsGroup: own.runAsGroup ?? fromPod.runAsGroup,
    runAsNonRoot: own.runAsNonRoot ?? fromPod.runAsNonRoot,
  };
}

/** `uid`, `uid:gid`, `name`, `name:group` or "" of an image: only the first part counts. "" is root. */
function parseImageUser(imageUser: string): { uid: number } | { name: string } {
  const user = imageUser.split(":", 1)[0] ?? "";
  if (user === "") return { uid: 0 };
  return /^\d+$/.test(user) ? { uid: Number(user) } : { name: user };
}

/** Docker's `User`. The image's own group is not kept, as upstream. @throws MappingError when runAsNonRoot is broken */
export function computeUser(pod: Pod, container: Container, imageUser: string): string {
  const { runAsUser, runAsGroup, runAsNonRoot } = computeSecurityContext(pod, container);
  const image = parseImageUser(imageUser);
  if (runAsNonRoot) {
    const refuse = (problem: string): never => {
      const where = `(pod: ${JSON.stringify(describePod(pod))}, container: ${container.name})`;
      throw new MappingError("CreateContainerConfigError", `${problem} ${where}`);
    };
    if (runAsUser === 0) refuse("container's runAsUser breaks non-root policy");
    if (runAsUser === undefined) {
      if ("name" in image) {
        refuse(
          `container has runAsNonRoot and image has non-numeric user (${image.name}), cannot verify user is non-root`,
        );
      } else if (image.uid === 0) refuse("container has runAsNonRoot and image will run as root");
    }
  }
  const user = runAsUser ?? ("name" in image ? image.name : image.uid);
  return runAsGroup === undefined ? String(user) : `${user}:${runAsGroup}`;
}

/** Docker's `User` of the sandbox: undefined unless the pod fixes one. Without a user the group has no effect there. */
export function computeSandboxUser(pod: Pod): string | undefined {
  const { runAsUser, runAsGroup } = pod.spec.securityContext;
  if (runAsUser === undefined) return undefined;
  return runAsGroup === undefined ? String(runAsUser) : `${runAsUser}:${runAsGroup}`;
}

/** Docker's `GroupAdd`: fsGroup first, then the supplemental groups. */
export function computeGroupAdd(pod: Pod): string[] {
  const { fsGroup, supplementalGroups = [] } = pod.spec.securityContext;
  return [...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups].map(String);
}

export interface SecurityOptInput extends Pick<ContainerRequest, "pod" | "container" | "engine" | "readFile"> {
  /** `<root-dir>/seccomp`. */
  seccompRoot: string;
  /** true: RuntimeDefault where the manifest says nothing; false: Unconfined (kubelet 1.20). */
  seccompDefault: boolean;
}

function toSeLinuxOptions(options: SecurityContext["seLinuxOptions"]): string[] {
  const { user, role, type, level } = options ?? {};
  return Object.entries({ user, role, type, level }).flatMap(([key, value]) =>
    value ? [`label=${key}:${value}`] : [],
  );
}

function toAppArmorOptions(profile: AppArmorProfile | undefined): string[] {
  if (profile?.type === "Unconfined") return ["apparmor=unconfined"];
  return profile?.type === "Localhost" ? [`apparmor=${profile.localhostProfile ?? ""}`] : [];
}

function loadSeccompProfile(input: SecurityOptInput, localhostProfile: string): string {
  const fail = (problem: string, cause?: unknown): never => {
    const intro = `failed to generate security options for container ${JSON.stringify(input.container.name)}`;
    const message = `${intro}: failed to generate seccomp security options for container: ${problem}`;
    throw new MappingError("CreateContainerError", message, { cause });
  };
  const relative = normalize(localhostProfile);
  if (!isBeneath(relative)) {
    fail(`seccomp profile ${JSON.stringify(localhostProfile)} is not inside ${input.seccompRoot}`);
  }
  const path = join(input.seccompRoot, relative);
  let text = "";
  try {
    text = input.readFile(path);
  } catch (error) {
    const code = (error as { code?: unknown } | undefined)?.code;
    const detail = code === "ENOENT" ? `open ${path}: no such file or directory` : String(error);
    fail(`cannot load seccomp profile ${JSON.stringify(path)}: ${detail}`, error);
  }
  try {
    JSON.parse(text);
  } catch (error) {
    fail(`cannot load seccomp profile ${JSON.stringify(path)}: not JSON: ${(error as Error).message}`, error);
  }
  // Passed on as written: a number such as 18446744073709551615 would not survive being parsed and printed again.
  return text.trim();
}

function toSeccompOptions(input: SecurityOptInput): string[] {
  const profile = computeSeccompProfile(input.pod, input.container);
  if (profile === undefined) return input.seccompDefault ? [] : ["seccomp=unconfined"];
  if (profile.type === "Unconfined") return ["seccomp=unconfined"];
  if (!hasSecurityOption(input.engine, "seccomp")) {
    // The engine itself would only log this and run the container without any filter.
    throw unsupported("securityContext.seccompProfile", `the engine has no seccomp: cannot apply ${profile.type}`);
  }
  if (profile.type === "RuntimeDefault") return [];
  return [`seccomp=${loadSeccompProfile(input, profile.localhostProfile ?? "")}`];
}

/** Docker's `SecurityOpt`, in dockershim's order. @throws MappingError when a seccomp profile cannot be had */
export function computeSecurityOpt(input: SecurityOptInput): string[] {
  const context = computeSecurityContext(input.pod, input.container);
  return [
    ...toSeLinuxOptions(context.seLinuxOptions),
    ...toAppArmorOptions(computeAppArmorProfile(input.pod, input.container)),
    ...(context.allowPrivilegeEscalation === false ? ["no-new-privileges"] : []),
    ...toSeccompOptions(input),
  ];
}

/** Docker's `SecurityOpt` of the sandbox: pause needs no privileges; seccomp stays the engine's default. */
export const computeSandboxSecurityOpt = (pod: Pod) => [
  ...toSeLinuxOptions(pod.spec.securityContext.seLinuxOptions),
  "no-new-privileges",
];

const MASKED_PATHS = [
  "/proc/acpi",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
];

/** Paths that newer engines mask in addition to the kubelet's list; our list replaces theirs, so it must include them. */
const MASKED_PATHS_SINCE_1_44 = ["/proc/interrupts", "/sys/devices/virtual/powercap"];

const READONLY_PATHS = ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** Default hides the kubelet's list, Unmasked nothing. For a privileged container both are left out. */
export function computeProcPaths(
  { privileged, procMount }: SecurityContext,
  engine: EngineInfo,
): { MaskedPaths?: string[]; ReadonlyPaths?: string[] } {
  if (privileged) return {};
  if (procMount === "Unmasked") return { MaskedPaths: [], ReadonlyPaths: [] };
  const newer = isApiAtLeast(engine, "1.44") ? MASKED_PATHS_SINCE_1_44 : [];
  return { MaskedPaths: [...MASKED_PATHS, ...newer], ReadonlyPaths: READONLY_PATHS };
}

export const isApiAtLeast = (engine: EngineInfo, version: `${number}.${number}`): boolean =>
  apiAtLeast(engine.apiVersion, version);
