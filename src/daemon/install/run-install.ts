import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { readTextIfExists, readTextIfReadable, replaceFile } from "../../base/files/whole-file.ts";
import { runProgram } from "../../base/host/run-program.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import { type InstallPaths, installPaths, isUnedited, MAX_UNIT_BYTES, type ServiceManager } from "./install-files.ts";
import { type InstallState, type InstallStep, renderService } from "./plan-install.ts";

/** Where to install. */
export interface InstallTarget {
  /** Put in front of every path; "" = this machine. With one, nothing is started. */
  destdir: string;
  isRoot: boolean;
  home: string;
  /** Name of the user. */
  user: string;
}

/** Pods that are stopped get their grace periods. */
const STEP_LIMIT_MS = 15 * 60_000;

/** Which service manager runs this machine; undefined when it is none that is known. */
export function detectManager({ destdir, isRoot }: InstallTarget): ServiceManager | undefined {
  const exists = (path: string) => fs.existsSync(within(destdir, path, true));
  if (!isRoot && destdir === "") return exists("/run/systemd/system") ? "systemd-user" : undefined;
  if (exists("/sbin/openrc-run") && !exists("/run/systemd/system")) return "openrc";
  return exists("/run/systemd/system") || destdir !== "" ? "systemd" : undefined;
}

/**
 * Reads the state of the machine; changes nothing.
 * @param settings of the service
 */
export async function readInstallState(
  target: InstallTarget,
  manager: ServiceManager,
  settings: Pick<InstallState, "rootDir" | "dockerEndpoint">,
): Promise<InstallState> {
  const paths = toDestination(installPaths(manager, target.home), target.destdir);
  return {
    manager,
    paths: installPaths(manager, target.home),
    ownHash: await hashOf(process.execPath),
    program: process.execPath,
    ...settings,
    installedHash: fs.existsSync(paths.binary) ? await hashOf(paths.binary) : undefined,
    unit: readTextIfExists(paths.unit, MAX_UNIT_BYTES),
    hasConfig: fs.existsSync(paths.config),
    hasManifestDir: fs.existsSync(paths.manifestDir),
    hasPrevious: fs.existsSync(paths.previousBinary),
    canStart: target.destdir === "",
    isLingering: fs.existsSync(join("/var/lib/systemd/linger", target.user)),
  };
}

const toDestination = (paths: InstallPaths, destdir: string): InstallPaths =>
  Object.fromEntries(
    Object.entries(paths).map(([name, path]) => [name, within(destdir, path, true)]),
  ) as unknown as InstallPaths;

const MAX_LINKS = 40;

/**
 * A path below another root, as a program with that root finds it: links in it lead nowhere outside. The last name is not
 * followed: a file is replaced, not what a link at its place leads to.
 * @param follows also a link at the last name
 */
export function within(destdir: string, path: string, follows = false): string {
  if (destdir === "") return path;
  let here = "/";
  const names = path.split("/").filter((name) => name !== "");
  for (let links = 0; names.length > 0; ) {
    const next = join(here, names.shift() ?? "");
    const target = names.length > 0 || follows ? unlessFailed(() => fs.readlinkSync(destdir + next)) : undefined;
    if (target === undefined) {
      here = next;
      continue;
    }
    if (++links > MAX_LINKS) throw new InstallError(`"${destdir}${path}" leads through too many links`);
    if (target.startsWith("/")) here = "/";
    names.unshift(...target.split("/").filter((name) => name !== "" && name !== "."));
  }
  return destdir + here;
}

/** A step failed; what was done before it stays and is done again by the next try. */
export class InstallError extends Error {}

/**
 * Carries out one step. Each may run twice.
 * @param show called with a program's output when it fails
 * @throws InstallError
 */
export async function runStep(step: InstallStep, destdir: string): Promise<void> {
  try {
    switch (step.kind) {
      case "directory":
        return void fs.mkdirSync(within(destdir, step.path, true), { recursive: true, mode: 0o755 });
      case "write":
        return replace(within(destdir, step.path), step.text, step.mode);
      case "copy-self":
        return replace(within(destdir, step.path), (path) => fs.copyFileSync(process.execPath, path), 0o755);
      case "move":
        return moveFile(within(destdir, step.from), within(destdir, step.to));
      case "keep":
        return replace(within(destdir, step.to), (path) => linkOrCopy(within(destdir, step.from, true), path), 0o755);
      case "remove":
        return fs.rmSync(within(destdir, step.path), { force: true });
      case "link": {
        const path = within(destdir, step.path);
        fs.rmSync(path, { force: true });
        return fs.symlinkSync(step.to, path);
      }
      case "run":
        return await runStepProgram(step.argv, step.mayFail ?? false);
      default:
        step satisfies never;
    }
  } catch (error) {
    if (error instanceof InstallError) throw error;
    throw new InstallError(explain(error as NodeJS.ErrnoException));
  }
}

const REFUSALS: Readonly<Record<string, string>> = {
  EROFS: "is on a read-only file system: mount it writable while kubelet-ts is installed",
  EACCES: "may not be written (permission denied): use sudo",
  EPERM: "may not be written (permission denied): use sudo",
  ENOSPC: "cannot be written: the disk is full",
  EEXIST: "cannot be made: a part of the path is not a directory",
  ENOTDIR: "cannot be made: a part of the path is not a directory",
};

function explain({ code = "", message, path = "", dest = path }: NodeJS.ErrnoException & { dest?: string }): string {
  const refusal = REFUSALS[code];
  // The new content is written next to the file.
  return refusal === undefined ? message : `"${dest.replace(/\.tmp$/, "")}" ${refusal}`;
}

/** The file is whole or absent at every moment, also after a power cut; a program that runs from it keeps running. */
const replace = (path: string, content: string | ((scratch: string) => void), mode: number): void =>
  replaceFile(path, content, { durable: true, mode });

/** A link takes no space; other file systems get a copy. */
function linkOrCopy(from: string, to: string): void {
  try {
    fs.linkSync(from, to);
  } catch {
    fs.copyFileSync(from, to);
  }
}

function moveFile(from: string, to: string): void {
  try {
    fs.renameSync(from, to);
  } catch (error) {
    // Another file system.
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    replace(to, (path) => fs.copyFileSync(from, path), 0o755);
    fs.rmSync(from);
  }
}

/** Removes what an installation that failed has left. */
export function removeScratch(paths: readonly string[], destdir: string): void {
  for (const path of paths) fs.rmSync(within(destdir, path), { force: true });
}

async function runStepProgram(argv: readonly string[], mayFail: boolean): Promise<void> {
  let outcome: { exitCode: number; output: string };
  try {
    const { exitCode, stdout, stderr } = await runProgram(argv, { timeoutMs: STEP_LIMIT_MS, maxBytes: 1024 * 1024 });
    outcome = { exitCode, output: (stdout + stderr).trim() };
  } catch (error) {
    outcome = { exitCode: 127, output: (error as Error).message };
  }
  if (outcome.exitCode === 0 || mayFail) return;
  throw new InstallError(
    `${argv.join(" ")} failed with exit code ${outcome.exitCode}: ${outcome.output.slice(0, 2000)}`,
  );
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of fs.createReadStream(file)) hash.update(piece as Uint8Array);
  return hash.digest("hex");
}

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
