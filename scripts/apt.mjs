import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram, runCommand } from "./run-command.mjs";
import { CannotContinue } from "./say.mjs";

const APT_ENV = { ...process.env, DEBIAN_FRONTEND: "noninteractive", NEEDRESTART_MODE: "l", LC_ALL: "C.UTF-8" };

/** Whether this is Debian, Ubuntu or a derivative. */
export function isAptMachine() {
  if (!existsSync("/etc/os-release") || !findProgram("apt-get")) return false;
  return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync("/etc/os-release", "utf8"));
}

async function apt(args, cwd) {
  return await runCommand("apt-get", ["-q", "-o", "Dpkg::Use-Pty=0", ...args], { env: APT_ENV, cwd });
}

/** Tries with the present package lists first: updating them takes a while. */
async function aptWithLists(args, cwd) {
  const first = await apt(args, cwd);
  if (first.code === 0) return first;
  await apt(["update"]);
  return await apt(args, cwd);
}

/**
 * Installs packages as root. Throws `CannotContinue` with apt's message.
 * @param {readonly string[]} packages
 */
export async function aptInstall(packages) {
  const { code, stdout, stderr } = await aptWithLists(["install", "-y", "--no-install-recommends", ...packages]);
  if (code === 0) return;
  const said = `${stdout}\n${stderr}`.split("\n").filter((line) => /^(E|Err|W):/.test(line));
  throw new CannotContinue(`Cannot install ${packages.join(" ")}:`, [
    ...(said.length > 0 ? said.slice(-6) : stderr.trim().split("\n").slice(-6)),
    "Is this machine online? Otherwise install them from a medium that has them, then run this again.",
  ]);
}

/**
 * Unpacks packages into `root` without installing them: nothing on the machine changes and no service is started.
 * @param {readonly string[]} packages
 * @param {string} root
 */
export async function unpackPackages(packages, root) {
  const folder = await mkdtemp(join(tmpdir(), "kubelet-ts-debs-"));
  try {
    // apt's own user cannot write into this folder, and would warn about every package.
    const { code, stderr } = await aptWithLists(["-o", "APT::Sandbox::User=root", "download", ...packages], folder);
    if (code !== 0)
      throw new CannotContinue(`Cannot download ${packages.join(" ")}:`, stderr.trim().split("\n").slice(-4));
    for (const file of await readdir(folder)) {
      const unpacked = await runCommand("dpkg-deb", ["-x", join(folder, file), root]);
      if (unpacked.code !== 0) throw new Error(`dpkg-deb -x ${file}: ${unpacked.stderr.trim()}`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The shared library packages that a package depends on, without libc.
 * @param {string} name
 * @returns {Promise<string[]>}
 */
export async function libraryPackagesOf(name) {
  const { stdout } = await runCommand("apt-cache", ["depends", "--no-recommends", "--no-suggests", name], {
    env: APT_ENV,
  });
  const needs = [...stdout.matchAll(/^\s*Depends: ([^<\s]+)$/gm)].map((match) => match[1]);
  return [...new Set(needs)].filter((need) => /^(lib|zlib)/.test(need) && !/^libc\d/.test(need));
}
