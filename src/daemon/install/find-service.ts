import { homedir } from "node:os";
import { readTextIfReadable } from "../../base/files/whole-file.ts";
import { runProgram } from "../../base/host/run-program.ts";
import { type InstallPaths, installPaths, isUnedited, MAX_UNIT_BYTES, type ServiceManager } from "./install-files.ts";
import { renderService } from "./plan-install.ts";

/** The service of an installation on this machine. */
interface InstalledService {
  manager: ServiceManager;
  paths: InstallPaths;
  /** Its unit, or script of OpenRC. */
  unit: string;
}

/** The service of this user; without one, that of the machine. */
export function findService(): InstalledService | undefined {
  const managers: ServiceManager[] = ["systemd", "openrc"];
  if (process.getuid?.() !== 0) managers.unshift("systemd-user");
  for (const manager of managers) {
    const paths = installPaths(manager, homedir());
    const unit = readTextIfReadable(paths.unit, MAX_UNIT_BYTES);
    if (unit !== undefined) return { manager, paths, unit };
  }
  return undefined;
}

/** The variables of a service that concern the engine. Pure. */
export function serviceEnvironment(
  manager: ServiceManager,
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const endpoint = manager === "systemd-user" ? `unix://${own.XDG_RUNTIME_DIR ?? ""}/docker.sock` : undefined;
  return { ...own, DOCKER_HOST: endpoint };
}

/** State of a service, for a check. */
interface ServiceFacts {
  path: string;
  /** The unit is as this version writes it. */
  isCurrent: boolean;
  isEdited: boolean;
  /** Command that installs this version. */
  install: string;
  /** The reason why it does not run, or does not start with the machine, and the command that corrects it. */
  problem?: { text: string; fix: string; isFailure: boolean };
}

/** Finds an installed service; changes nothing. */
export async function examineService({ manager, paths, unit }: InstalledService): Promise<ServiceFacts> {
  const problem = manager === "openrc" ? undefined : explainState(manager, await readState(manager));
  return {
    path: paths.unit,
    isCurrent: unit === renderService(manager, paths),
    isEdited: !isUnedited(unit),
    install: manager === "systemd-user" ? "kubelet-ts install" : "sudo kubelet-ts install",
    ...(problem && { problem }),
  };
}

/** Properties of the unit; empty where systemd does not answer. */
async function readState(manager: ServiceManager): Promise<Record<string, string>> {
  const argv = ["show", "-p", "ActiveState,UnitFileState,ExecMainStatus", "kubelet-ts.service"];
  const command = manager === "systemd-user" ? ["systemctl", "--user", ...argv] : ["systemctl", ...argv];
  const outcome = await runProgram(command, { timeoutMs: 5000, maxBytes: 65_536 }).catch(() => undefined);
  const lines = outcome?.stdout.split("\n") ?? [];
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

/** Explains the fault of a unit in this state; undefined when it has none. Pure. */
export function explainState(
  manager: ServiceManager,
  state: Readonly<Record<string, string>>,
): ServiceFacts["problem"] {
  const user = manager === "systemd-user" ? " --user" : "";
  const { ActiveState, UnitFileState, ExecMainStatus } = state;
  if (ActiveState === "failed") {
    const text = `has failed with exit code ${ExecMainStatus}${ExecMainStatus === "2" ? " (invalid settings)" : ""}`;
    const fix = `journalctl${user} -u kubelet-ts -n 50; then systemctl${user} restart kubelet-ts`;
    return { text, fix, isFailure: true };
  }
  if (UnitFileState === "disabled" || UnitFileState === "masked") {
    const fix = `systemctl${user} ${UnitFileState === "masked" ? "unmask" : "enable"} kubelet-ts`;
    return { text: `does not start with the machine: it is ${UnitFileState}`, fix, isFailure: false };
  }
  if (ActiveState === "inactive") {
    return { text: "is stopped: nothing restarts pods", fix: `systemctl${user} start kubelet-ts`, isFailure: false };
  }
  return undefined;
}
