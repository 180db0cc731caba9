import type {
  AppArmorProfile,
  PodSecurityContext,
  PodSpec,
  SeccompProfile,
  SecurityContext,
} from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "./field-errors.ts";
import { byteLength, checkDnsSubdomain, checkId, hasSpaceAround, validateDescendingPath } from "./names.ts";

const PROFILE_TYPES = ["Localhost", "RuntimeDefault", "Unconfined"];
const MAX_SYSCTL_LENGTH = 253;
const MAX_PROFILE_LENGTH = 4095;
const MAX_GMSA_BYTES = 64 * 1024;
const SYSCTL = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;

export function validateSecurityContext(
  context: SecurityContext | undefined,
  options: { allowPrivileged: boolean },
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (!context) return;
  if (context.privileged && !options.allowPrivileged) {
    errors.forbidden(
      path.child("privileged"),
      "privileged containers are not allowed on this node: --allow-privileged=true permits them",
    );
  }
  validateIds(context, path, errors);
  if (context.procMount !== undefined && !["Default", "Unmasked"].includes(context.procMount)) {
    errors.notSupported(path.child("procMount"), context.procMount, ["Default", "Unmasked"]);
  }
  validateSeccomp(context.seccompProfile, path.child("seccompProfile"), errors);
  validateAppArmor(context.appArmorProfile, path.child("appArmorProfile"), errors);
  if (context.allowPrivilegeEscalation === false) {
    const position = { at: path.child("allowPrivilegeEscalation") };
    if (context.privileged) {
      errors.invalid(path, false, "allowPrivilegeEscalation cannot be false when privileged is true", position);
    }
    if (context.capabilities?.add?.includes("CAP_SYS_ADMIN")) {
      errors.invalid(path, false, "allowPrivilegeEscalation cannot be false when CAP_SYS_ADMIN is added", position);
    }
  }
  validateWindowsOptions(context.windowsOptions, path.child("windowsOptions"), errors);
}

export function validatePodSecurityContext(
  context: PodSecurityContext,
  spec: PodSpec,
  specPath: FieldPath,
  errors: FieldErrors,
): void {
  const path = specPath.child("securityContext");
  validateIds(context, path, errors);
  if (context.fsGroup !== undefined)
    errors.invalidAll(path.child("fsGroup"), context.fsGroup, checkId(context.fsGroup));
  for (const [index, group] of (context.supplementalGroups ?? []).entries()) {
    errors.invalidAll(path.child("supplementalGroups").index(index), group, checkId(group));
  }
  if (spec.shareProcessNamespace && spec.hostPID) {
    const position = { at: specPath.child("shareProcessNamespace") };
    errors.invalid(path.child("shareProcessNamespace"), true, "cannot be true together with hostPID", position);
  }
  validateSysctls(context, spec, path.child("sysctls"), errors);
  const choices = [
    ["fsGroupChangePolicy", ["OnRootMismatch", "Always"]],
    ["supplementalGroupsPolicy", ["Merge", "Strict"]],
    ["seLinuxChangePolicy", ["MountOption", "Recursive"]],
  ] as const;
  for (const [name, values] of choices) {
    const value: string | undefined = context[name];
    if (value !== undefined && !(values as readonly string[]).includes(value)) {
      errors.notSupported(path.child(name), value, values);
    }
  }
  validateSeccomp(context.seccompProfile, path.child("seccompProfile"), errors);
  validateAppArmor(context.appArmorProfile, path.child("appArmorProfile"), errors);
  validateWindowsOptions(context.windowsOptions, path.child("windowsOptions"), errors);
}

function validateIds(
  context: { runAsUser?: number | undefined; runAsGroup?: number | undefined },
  path: FieldPath,
  errors: FieldErrors,
): void {
  for (const name of ["runAsUser", "runAsGroup"] as const) {
    const id = context[name];
    if (id !== undefined) errors.invalidAll(path.child(name), id, checkId(id));
  }
}

function validateSysctls(context: PodSecurityContext, spec: PodSpec, path: FieldPath, errors: FieldErrors): void {
  const seen = new Set<string>();
  for (const [index, { name }] of (context.sysctls ?? []).entries()) {
    const namePath = path.index(index).child("name");
    if (name === "") errors.required(namePath);
    else if (byteLength(name) > MAX_SYSCTL_LENGTH || !SYSCTL.test(name)) {
      const format = `must have at most ${MAX_SYSCTL_LENGTH} characters, and dots or slashes between its parts`;
      errors.invalid(namePath, name, format);
    } else if (seen.has(name)) errors.duplicate(namePath, name);
    seen.add(name);
    const namespace = sysctlNamespace(name);
    if (namespace === "net" && spec.hostNetwork)
      errors.invalid(namePath, name, "must be absent when hostNetwork is true");
    if (namespace === "ipc" && spec.hostIPC) errors.invalid(namePath, name, "must be absent when hostIPC is true");
  }
}

/** Kernel namespace a sysctl belongs to. With slashes first, `/` separates the parts. */
function sysctlNamespace(name: string): "net" | "ipc" | undefined {
  const dotted = /^[^./]*\//.test(name) ? name.replace(/[./]/g, (sign) => (sign === "/" ? "." : "/")) : name;
  if (dotted.startsWith("net.")) return "net";
  return /^(?:kernel\.shm|kernel\.msg|fs\.mqueue\.|kernel\.sem$)/.test(dotted) ? "ipc" : undefined;
}

function validateSeccomp(profile: SeccompProfile | undefined, path: FieldPath, errors: FieldErrors): void {
  if (!profile) return;
  validateProfileType(profile.type, path.child("type"), errors);
  const filePath = path.child("localhostProfile");
  const file = profile.localhostProfile;
  if (profile.type !== "Localhost") {
    if (file !== undefined) errors.invalid(filePath, file, "must be absent unless type is Localhost");
  } else if (file === undefined) errors.required(filePath, "is required when type is Localhost");
  else validateDescendingPath(file, filePath, errors);
}

function validateProfileType(type: string, path: FieldPath, errors: FieldErrors): void {
  if (type === "") errors.required(path);
  else if (!PROFILE_TYPES.includes(type)) errors.notSupported(path, type, PROFILE_TYPES);
}

function validateAppArmor(profile: AppArmorProfile | undefined, path: FieldPath, errors: FieldErrors): void {
  if (!profile) return;
  validateProfileType(profile.type, path.child("type"), errors);
  const namePath = path.child("localhostProfile");
  const name = profile.localhostProfile;
  if (profile.type !== "Localhost") {
    if (name !== undefined && PROFILE_TYPES.includes(profile.type)) {
      errors.invalid(namePath, name, "must be absent unless type is Localhost");
    }
  } else if (name === undefined || name === "") errors.required(namePath, "is required when type is Localhost");
  else {
    if (hasSpaceAround(name)) errors.invalid(namePath, name, "must not have white space around it");
    if (byteLength(name) > MAX_PROFILE_LENGTH) errors.tooLong(namePath, `${MAX_PROFILE_LENGTH} bytes`);
  }
}

const NETBIOS_DOMAIN = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DNS_DOMAIN = /^[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*$/;

function validateWindowsOptions(
  options: SecurityContext["windowsOptions"],
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (!options) return;
  const name = options.gmsaCredentialSpecName;
  if (name !== undefined) errors.invalidAll(path.child("gmsaCredentialSpecName"), name, checkDnsSubdomain(name));
  const spec = options.gmsaCredentialSpec;
  if (spec === "") errors.invalid(path.child("gmsaCredentialSpec"), "", "must not be empty");
  if (spec !== undefined && byteLength(spec) > MAX_GMSA_BYTES) {
    errors.invalid(path.child("gmsaCredentialSpec"), spec, "must be smaller than 64 KiB");
  }
  if (options.runAsUserName !== undefined) {
    validateWindowsUser(options.runAsUserName, path.child("runAsUserName"), errors);
  }
}

function validateWindowsUser(name: string, path: FieldPath, errors: FieldErrors): void {
  if (name === "") return errors.invalid(path, name, "must not be empty");
  if (/[\x00-\x1f\x7f]/.test(name)) errors.invalid(path, name, "must not hold control characters");
  const parts = name.split("\\");
  if (parts.length > 2) return errors.invalid(path, name, "must not hold more than one backslash");
  const user = parts.at(-1)!;
  if (parts.length === 2) {
    const domain = parts[0]!;
    if (byteLength(domain) >= 256) errors.invalid(path, name, "its domain must have fewer than 256 characters");
    if (!NETBIOS_DOMAIN.test(domain) && !DNS_DOMAIN.test(domain)) {
      errors.invalid(path, name, "its domain must be a NetBIOS or DNS name");
    }
  }
  if (user === "") errors.invalid(path, name, "its user must not be empty");
  else if (byteLength(user) > 104) errors.invalid(path, name, "its user must have at most 104 characters");
  if (/^[. ]+$/.test(user)) errors.invalid(path, name, "its user must not consist of dots and spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) errors.invalid(path, name, 'its user must not hold any of "/\\:;|=,+*?<>@[]');
}
