import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { aptInstall, isAptMachine, unpackPackages } from "./apt.mjs";
import { findProgram } from "./run-command.mjs";
import { step } from "./say.mjs";
import { ROOT } from "./workspace.mjs";

/** Programs that tests drive, and Debian's packages that have them. */
const INSTALLED = {
  chromium: "chromium",
  curl: "curl",
  fish: "fish",
  ip: "iproute2",
  openssl: "openssl",
  rsync: "rsync",
  vim: "vim",
  zsh: "zsh",
};

/** Python modules that tests drive, and Debian's packages that have them. */
const PYTHON_MODULES = { kubernetes: "python3-kubernetes" };

/** Those whose installation would start a service are only unpacked. */
const UNPACKED = { promtool: "prometheus" };

/** Unpacked in addition to what may be on PATH: the tests drive an old kubectl (SPDY) and, where there is one, a new one. */
const ALWAYS_UNPACKED = { kubectl: "kubernetes-client" };

const CACHE = join(ROOT, "node_modules", ".cache", "test-tools");

const missingModules = () =>
  Object.keys(PYTHON_MODULES).filter(
    (name) => spawnSync("/usr/bin/python3", ["-c", `import ${name}`], { stdio: "ignore" }).status !== 0,
  );

const missingOf = (tools) => Object.keys(tools).filter((program) => !findProgram(program));

const packagesOf = (tools, programs) => [...new Set(programs.map((program) => tools[program]))];

/**
 * Unpacks packages into node_modules/.cache, unless the files of them that are needed are there.
 * @param {readonly string[]} packages
 * @param {readonly string[]} files paths in the packages, relative to the root
 * @returns {Promise<string>} the folder they are unpacked into
 */
export async function ensureUnpacked(packages, files) {
  if (!files.every((file) => existsSync(join(CACHE, file)))) {
    step("tools", `unpacking what tests use into node_modules/.cache: ${packages.join(", ")}`);
    mkdirSync(CACHE, { recursive: true });
    await unpackPackages(packages, CACHE);
  }
  return CACHE;
}

/**
 * Provides the programs that some tests need in addition to the engine, on Debian and Ubuntu; elsewhere prints whose tests will be
 * skipped. Adds unpacked programs to the PATH.
 * @returns {Promise<boolean>} whether none is missing
 */
export async function ensureTestTools() {
  process.env.PATH = `${process.env.PATH ?? ""}:${join(CACHE, "usr", "bin")}`;
  const isRoot = process.getuid?.() === 0;
  const toInstall = [...packagesOf(INSTALLED, missingOf(INSTALLED)), ...packagesOf(PYTHON_MODULES, missingModules())];
  const notCached = Object.keys(ALWAYS_UNPACKED).filter((program) => !existsSync(join(CACHE, "usr", "bin", program)));
  const toUnpack = [...missingOf(UNPACKED), ...notCached];
  if (toInstall.length > 0 && isAptMachine() && isRoot) {
    step("tools", `installing what tests use (apt-get): ${toInstall.join(", ")}`);
    await aptInstall(toInstall);
  }
  if (toUnpack.length > 0 && isAptMachine()) {
    const packages = packagesOf({ ...UNPACKED, ...ALWAYS_UNPACKED }, toUnpack);
    step("tools", `unpacking what tests use into node_modules/.cache: ${packages.join(", ")}`);
    mkdirSync(CACHE, { recursive: true });
    await unpackPackages(packages, CACHE);
  }
  const programs = { ...INSTALLED, ...UNPACKED, ...ALWAYS_UNPACKED };
  const missing = [...missingOf(programs), ...packagesOf(PYTHON_MODULES, missingModules())];
  step("tools", missing.length === 0 ? "complete" : `missing, so their tests are skipped: ${missing.join(", ")}`);
  return missing.length === 0;
}
