import * as v from "valibot";
import { flagPointer, int64, int64Pointer, oneOf, oneOfPointer, text, textList, textPointer } from "./scalar.ts";

/** Source: core/v1 `Capabilities`. */
export const CapabilitiesSchema = v.object({ add: v.optional(textList), drop: v.optional(textList) });
export type Capabilities = v.InferOutput<typeof CapabilitiesSchema>;

/** Source: core/v1 `SELinuxOptions`. */
export const SELinuxOptionsSchema = v.object({
  user: v.optional(text),
  role: v.optional(text),
  type: v.optional(text),
  level: v.optional(text),
});
export type SELinuxOptions = v.InferOutput<typeof SELinuxOptionsSchema>;

/** Source: core/v1 `WindowsSecurityContextOptions`. */
export const WindowsSecurityContextOptionsSchema = v.object({
  gmsaCredentialSpecName: v.optional(textPointer),
  gmsaCredentialSpec: v.optional(textPointer),
  runAsUserName: v.optional(textPointer),
  hostProcess: v.optional(flagPointer),
});

/** Source: core/v1 `SeccompProfile`. */
export const SeccompProfileSchema = v.object({
  type: oneOf(["Localhost", "RuntimeDefault", "Unconfined"]),
  /** Relative to the node's seccomp directory; only with `Localhost`. */
  localhostProfile: v.optional(textPointer),
});
export type SeccompProfile = v.InferOutput<typeof SeccompProfileSchema>;

/** Source: core/v1 `AppArmorProfile`. */
export const AppArmorProfileSchema = v.object({
  type: oneOf(["Localhost", "RuntimeDefault", "Unconfined"]),
  /** Name of a loaded profile; only with `Localhost`. */
  localhostProfile: v.optional(textPointer),
});
export type AppArmorProfile = v.InferOutput<typeof AppArmorProfileSchema>;

/** Source: core/v1 `SecurityContext`, of one container. */
export const SecurityContextSchema = v.object({
  capabilities: v.optional(CapabilitiesSchema),
  privileged: v.optional(flagPointer),
  seLinuxOptions: v.optional(SELinuxOptionsSchema),
  windowsOptions: v.optional(WindowsSecurityContextOptionsSchema),
  runAsUser: v.optional(int64Pointer),
  runAsGroup: v.optional(int64Pointer),
  runAsNonRoot: v.optional(flagPointer),
  readOnlyRootFilesystem: v.optional(flagPointer),
  allowPrivilegeEscalation: v.optional(flagPointer),
  procMount: v.optional(oneOfPointer(["Default", "Unmasked"])),
  seccompProfile: v.optional(SeccompProfileSchema),
  appArmorProfile: v.optional(AppArmorProfileSchema),
});
export type SecurityContext = v.InferOutput<typeof SecurityContextSchema>;

/** Source: core/v1 `Sysctl`. */
export const SysctlSchema = v.object({ name: text, value: text });
export type Sysctl = v.InferOutput<typeof SysctlSchema>;

/** Source: core/v1 `PodSecurityContext`. */
export const PodSecurityContextSchema = v.object({
  seLinuxOptions: v.optional(SELinuxOptionsSchema),
  windowsOptions: v.optional(WindowsSecurityContextOptionsSchema),
  runAsUser: v.optional(int64Pointer),
  runAsGroup: v.optional(int64Pointer),
  runAsNonRoot: v.optional(flagPointer),
  supplementalGroups: v.optional(v.array(int64)),
  supplementalGroupsPolicy: v.optional(oneOfPointer(["Merge", "Strict"])),
  fsGroup: v.optional(int64Pointer),
  sysctls: v.optional(v.array(SysctlSchema)),
  fsGroupChangePolicy: v.optional(oneOfPointer(["OnRootMismatch", "Always"])),
  seccompProfile: v.optional(SeccompProfileSchema),
  appArmorProfile: v.optional(AppArmorProfileSchema),
  seLinuxChangePolicy: v.optional(oneOfPointer(["Recursive", "MountOption"])),
});
export type PodSecurityContext = v.InferOutput<typeof PodSecurityContextSchema>;
