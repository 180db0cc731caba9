/** The tree of these scripts: its folder, packages and binary. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "./run-command.mjs";
import { CannotContinue, sayDuration, step } from "./say.mjs";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
export const BINARY = join(ROOT, "dist", "kubelet-ts");
const BIN = join(ROOT, "node_modules", ".bin");

/** The environment with the programs of node_modules first, as npm sets it. */
export const toolEnv = () => ({ ...process.env, PATH: `${BIN}:${process.env.PATH ?? ""}` });

/** Whether node_modules matches package-lock.json. @param {{ build: boolean }} only */
function packagesAreInstalled({ build }) {
  const installedLock = join(ROOT, "node_modules", ".package-lock.json");
  if (!existsSync(installedLock) || !existsSync(join(BIN, "bun"))) return false;
  const wanted = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(installedLock, "utf8")).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional, dev }]) =>
      path === "" || optional || (build && dev) || installed[path]?.version === version,
  );
}

/**
 * `npm ci` when packages are missing or older than the lock file. Prints one line.
 * @param {{ build: boolean }} only `build`: without what only tests, lint and benchmarks use
 */
export async function ensurePackages(only = { build: false }) {
  const started = performance.now();
  if (packagesAreInstalled(only)) {
    step("packages", "there already");
    return;
  }
  const args = ["ci", "--no-audit", "--no-fund", ...(only.build ? ["--omit=dev"] : [])];
  step("packages", `npm ${args.join(" ")}`);
  const { code, stdout, stderr } = await runCommand("npm", args, { cwd: ROOT });
  if (code !== 0) {
    throw new CannotContinue("npm ci failed:", `${stdout}\n${stderr}`.trim().split("\n").slice(-15));
  }
  await finishBun();
  step("packages", `installed in ${sayDuration(performance.now() - started)}`);
}

/** Installs Bun's program where npm does not run the install scripts of packages. */
async function finishBun() {
  if ((await runCommand(join(BIN, "bun"), ["--version"])).code === 0) return;
  const { code, stderr } = await runCommand("node", [join(ROOT, "node_modules", "bun", "install.js")], { cwd: ROOT });
  if (code !== 0) throw new CannotContinue("Cannot install Bun:", stderr.trim().split("\n"));
}

/** Builds dist/kubelet-ts from the present sources. Prints one line. */
export async function buildBinary() {
  const started = performance.now();
  const { code, stdout, stderr } = await runCommand("npm", ["run", "--silent", "build"], { cwd: ROOT });
  if (code !== 0) throw new CannotContinue("npm run build failed:", `${stdout}\n${stderr}`.trim().split("\n"));
  const megabytes = Math.round(statSync(BINARY).size / 1e6);
  step("binary", `dist/kubelet-ts (${megabytes} MB), built in ${sayDuration(performance.now() - started)}`);
}
