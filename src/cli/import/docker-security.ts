import type { InspectedContainer, InspectedImage } from "./docker-inspect.ts";
import type { ImportNotes } from "./import-notes.ts";
import { some } from "./pod-parts.ts";

/** `--user`, capabilities, `--privileged`, `--read-only` and `--security-opt` as a container's securityContext. */
export function toContainerSecurity(
  { Config, HostConfig }: InspectedContainer,
  image: InspectedImage | undefined,
  path: string,
  notes: ImportNotes,
): object {
  const { CapAdd, CapDrop, Privileged, ReadonlyRootfs, SecurityOpt, PidMode, IpcMode } = HostConfig;
  const bare = (names: readonly string[]) => names.map((name) => name.replace(/^CAP_/, ""));
  // The engine adds label=disable to such containers.
  const isAdded = Privileged || PidMode === "host" || IpcMode === "host";
  if (Privileged) notes.add(`${path}: --privileged`, "start kubelet-ts with --allow-privileged");
  return {
    ...userOf(Config.User, image?.Config.User ?? "", path, notes),
    ...some("capabilities", { ...some("add", bare(CapAdd)), ...some("drop", bare(CapDrop)) }),
    ...(Privileged && { privileged: true }),
    ...(ReadonlyRootfs && { readOnlyRootFilesystem: true }),
    ...securityOptions(isAdded ? SecurityOpt.filter((it) => it !== "label=disable") : SecurityOpt, path, notes),
  };
}

function userOf(user: string, ofImage: string, path: string, notes: ImportNotes): object {
  if (user === ofImage || user === "") return {};
  const ids = /^(\d+)(?::(\d+))?$/.exec(user);
  if (!ids) {
    notes.add(`${path}: --user`, `${user} is not a number: set runAsUser and runAsGroup`);
    return {};
  }
  return { runAsUser: Number(ids[1]), ...(ids[2] !== undefined && { runAsGroup: Number(ids[2]) }) };
}

function securityOptions(options: readonly string[], path: string, notes: ImportNotes): object {
  const result: Record<string, unknown> = {};
  const labels: Record<string, string> = {};
  for (const option of options) {
    const [, name = "", value = ""] = /^([^=:]+)[=:]?(.*)$/s.exec(option) ?? [];
    const label = /^(user|role|type|level):(.*)$/.exec(value);
    if (name === "no-new-privileges") {
      if (value !== "false") result.allowPrivilegeEscalation = false;
    } else if (name === "apparmor") {
      result.appArmorProfile =
        value === "unconfined" ? { type: "Unconfined" } : { type: "Localhost", localhostProfile: value };
    } else if (name === "seccomp" && value === "unconfined") result.seccompProfile = { type: "Unconfined" };
    else if (name === "seccomp" && value === "builtin") result.seccompProfile = { type: "RuntimeDefault" };
    else if (name === "label" && label) labels[label[1]!] = label[2]!;
    else if (name === "seccomp") {
      notes.add(
        `${path}: --security-opt seccomp`,
        "put the profile below <root-dir>/seccomp and set seccompProfile.localhostProfile",
      );
    } else notes.add(`${path}: --security-opt ${name}`, "is not carried over");
  }
  if (Object.keys(labels).length > 0) result.seLinuxOptions = labels;
  return result;
}
