import { createHash } from "node:crypto";
import {
  copyFileSync,
  createReadStream,
  existsSync,
  linkSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { readTextIfExists, replaceFile } from "../../base/files/whole-file.ts";
import { runProgram } from "../../base/host/run-program.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import { type InstallPaths, installPaths, MAX_UNIT_BYTES, type ServiceManager } from "./install-files.ts";
import type { InstallState, InstallStep } from "./plan-install.ts";

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
  const exists = (path: string) => existsSync(within(destdir, path, true));
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
    installedHash: existsSync(paths.binary) ? await hashOf(paths.binary) : undefined,
    unit: readTextIfExists(paths.unit, MAX_UNIT_BYTES),
    hasConfig: existsSync(paths.config),
    hasManifestDir: existsSync(paths.manifestDir),
    hasPrevious: existsSync(paths.previousBinary),
    canStart: target.destdir === "",
    isLingering: existsSync(join("/var/lib/systemd/linger", target.user)),
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
    const target = names.length > 0 || follows ? unlessFailed(() => readlinkSync(destdir + next)) : undefined;
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
        return void mkdirSync(within(destdir, step.path, true), { recursive: true, mode: 0o755 });
      case "write":
        return replace(within(destdir, step.path), step.text, step.mode);
      case "copy-self":
        return replace(within(destdir, step.path), (path) => copyFileSync(process.execPath, path), 0o755);
      case "move":
        return moveFile(within(destdir, step.from), within(destdir, step.to));
      case "keep":
        return replace(within(destdir, step.to), (path) => linkOrCopy(within(destdir, step.from, true), path), 0o755);
      case "remove":
        return rmSync(within(destdir, step.path), { force: true });
      case "link": {
        const path = within(destdir, step.path);
        rmSync(path, { force: true });
        return symlinkSync(step.to, path);
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
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

function moveFile(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    // Another file system.
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    replace(to, (path) => copyFileSync(from, path), 0o755);
    rmSync(from);
  }
}

/** Removes what an installation that failed has left. */
export function removeScratch(paths: readonly string[], destdir: string): void {
  for (const path of paths) rmSync(within(destdir, path), { force: true });
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
  for await (const piece of createReadStream(file)) hash.update(piece as Uint8Array);
  return hash.digest("hex");
}
