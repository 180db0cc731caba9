import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import { byteLength, checkDescendingPath, checkDnsSubdomain, checkId, hasSpaceAround } from "./names.ts";

const PROFILE_TYPES = ["Localhost", "RuntimeDefault", "Unconfined"];
const MAX_SYSCTL_LENGTH = 253;
const MAX_PROFILE_LENGTH = 4095;
const MAX_GMSA_BYTES = 64 * 1024;
const SYSCTL = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;

export function validateSecurityContext(context: Field<SecurityContext | undefined>, allowPrivileged: boolean): void {
  if (!context.value) return;
  const { privileged, allowPrivilegeEscalation, capabilities } = context.value;
  if (privileged && !allowPrivileged) {
    const message = "privileged containers are not allowed on this node: --allow-privileged=true permits them";
    context.field("privileged").forbidden(message);
  }
  for (const name of ["runAsUser", "runAsGroup"] as const) context.field(name).format(checkId);
  context.field("procMount").oneOf(["Default", "Unmasked"]);
  validateSeccomp(context.field("seccompProfile"));
  validateAppArmor(context.field("appArmorProfile"));
  if (allowPrivilegeEscalation === false) {
    const escalation = context.field("allowPrivilegeEscalation").as(context.path);
    if (privileged) escalation.invalid("allowPrivilegeEscalation cannot be false when privileged is true");
    if (capabilities?.add?.includes("CAP_SYS_ADMIN"))
      escalation.invalid("allowPrivilegeEscalation cannot be false when CAP_SYS_ADMIN is added");
  }
  validateWindowsOptions(context.field("windowsOptions"));
}

export function validatePodSecurityContext(spec: Field<PodSpec>): void {
  const context = spec.field("securityContext");
  for (const name of ["runAsUser", "runAsGroup", "fsGroup"] as const) context.field(name).format(checkId);
  for (const group of context.field("supplementalGroups").items()) group.format(checkId);
  if (spec.value.shareProcessNamespace && spec.value.hostPID) {
    const share = spec.field("shareProcessNamespace").as(context.path.child("shareProcessNamespace"));
    share.invalid("cannot be true together with hostPID");
  }
  validateSysctls(spec);
  context.field("fsGroupChangePolicy").oneOf(["OnRootMismatch", "Always"]);
  context.field("supplementalGroupsPolicy").oneOf(["Merge", "Strict"]);
  context.field("seLinuxChangePolicy").oneOf(["MountOption", "Recursive"]);
  validateSeccomp(context.field("seccompProfile"));
  validateAppArmor(context.field("appArmorProfile"));
  validateWindowsOptions(context.field("windowsOptions"));
}

function validateSysctls(spec: Field<PodSpec>): void {
  const { hostNetwork, hostIPC } = spec.value;
  const seen = new Set<string>();
  for (const sysctl of spec.field("securityContext").field("sysctls").items()) {
    const field = sysctl.field("name");
    const name = field.value;
    if (name === "") field.required();
    else if (byteLength(name) > MAX_SYSCTL_LENGTH || !SYSCTL.test(name)) {
      field.invalid(`must have at most ${MAX_SYSCTL_LENGTH} characters, and dots or slashes between its parts`);
    } else if (seen.has(name)) field.duplicate();
    seen.add(name);
    const namespace = sysctlNamespace(name);
    if (namespace === "net" && hostNetwork) field.invalid("must be absent when hostNetwork is true");
    if (namespace === "ipc" && hostIPC) field.invalid("must be absent when hostIPC is true");
  }
}

/** Kernel namespace a sysctl belongs to. With slashes first, `/` separates the parts. */
function sysctlNamespace(name: string): "net" | "ipc" | undefined {
  const dotted = /^[^./]*\//.test(name) ? name.replace(/[./]/g, (sign) => (sign === "/" ? "." : "/")) : name;
  if (dotted.startsWith("net.")) return "net";
  return /^(?:kernel\.shm|kernel\.msg|fs\.mqueue\.|kernel\.sem$)/.test(dotted) ? "ipc" : undefined;
}

function validateSeccomp(profile: Field<SeccompProfile | undefined>): void {
  if (!profile.value) return;
  profile.field("type").requiredOneOf(PROFILE_TYPES);
  const file = profile.field("localhostProfile");
  if (profile.value.type !== "Localhost") {
    if (file.value !== undefined) file.invalid("must be absent unless type is Localhost");
  } else if (file.value === undefined) file.required("is required when type is Localhost");
  else file.format(checkDescendingPath);
}

function validateAppArmor(profile: Field<AppArmorProfile | undefined>): void {
  if (!profile.value) return;
  profile.field("type").requiredOneOf(PROFILE_TYPES);
  const file = profile.field("localhostProfile");
  const name = file.value ?? "";
  if (profile.value.type !== "Localhost") {
    if (file.value !== undefined && PROFILE_TYPES.includes(profile.value.type)) {
      file.invalid("must be absent unless type is Localhost");
    }
  } else if (name === "") file.required("is required when type is Localhost");
  else if (hasSpaceAround(name)) file.invalid("must not have white space around it");
  if (profile.value.type === "Localhost" && byteLength(name) > MAX_PROFILE_LENGTH) {
    file.tooLong(`${MAX_PROFILE_LENGTH} bytes`);
  }
}

function validateWindowsOptions(options: Field<SecurityContext["windowsOptions"]>): void {
  options.field("gmsaCredentialSpecName").format(checkDnsSubdomain);
  const spec = options.field("gmsaCredentialSpec");
  if (spec.value === "") spec.invalid("must not be empty");
  if (byteLength(spec.value ?? "") > MAX_GMSA_BYTES) spec.invalid("must be smaller than 64 KiB");
  options.field("runAsUserName").format(checkWindowsUser);
}

const NETBIOS_DOMAIN = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DNS_DOMAIN = /^[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*$/;

function checkWindowsUser(name: string): string[] {
  if (name === "") return ["must not be empty"];
  const messages = /[\x00-\x1f\x7f]/.test(name) ? ["must not hold control characters"] : [];
  const parts = name.split("\\");
  if (parts.length > 2) return [...messages, "must not hold more than one backslash"];
  const user = parts.at(-1)!;
  if (parts.length === 2) {
    const domain = parts[0]!;
    if (byteLength(domain) >= 256) messages.push("its domain must have fewer than 256 characters");
    if (!NETBIOS_DOMAIN.test(domain) && !DNS_DOMAIN.test(domain)) {
      messages.push("its domain must be a NetBIOS or DNS name");
    }
  }
  if (user === "") messages.push("its user must not be empty");
  else if (byteLength(user) > 104) messages.push("its user must have at most 104 characters");
  if (/^[. ]+$/.test(user)) messages.push("its user must not consist of dots and spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) messages.push('its user must not hold any of "/\\:;|=,+*?<>@[]');
  return messages;
}
