/** The tree these scripts stand in: its folder, its packages, its binary. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "./run-command.mjs";
import { CannotGoOn, sayDuration, step } from "./say.mjs";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
export const BINARY = join(ROOT, "dist", "kubelet-ts");
const BIN = join(ROOT, "node_modules", ".bin");

/** Our environment with the programs of node_modules found first, as npm has it. */
export const toolEnv = () => ({ ...process.env, PATH: `${BIN}:${process.env.PATH ?? ""}` });

/** Whether what package-lock.json asks for is what lies in node_modules. */
function packagesAreInstalled() {
  const installedLock = join(ROOT, "node_modules", ".package-lock.json");
  if (!existsSync(installedLock) || !existsSync(join(BIN, "bun"))) return false;
  const wanted = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(installedLock, "utf8")).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) => path === "" || optional || installed[path]?.version === version,
  );
}

/** `npm ci` when packages are missing or older than the lock file. Says one line. */
export async function ensurePackages() {
  const started = performance.now();
  if (packagesAreInstalled()) {
    step("packages", "there already");
    return;
  }
  step("packages", "npm ci");
  const { code, stdout, stderr } = await runCommand("npm", ["ci", "--no-audit", "--no-fund"], { cwd: ROOT });
  if (code !== 0) {
    throw new CannotGoOn("npm ci failed:", `${stdout}\n${stderr}`.trim().split("\n").slice(-15));
  }
  await finishBun();
  step("packages", `installed in ${sayDuration(performance.now() - started)}`);
}

/** Where npm is set up not to run scripts of packages, Bun has not put its program in place yet. */
async function finishBun() {
  if ((await runCommand(join(BIN, "bun"), ["--version"])).code === 0) return;
  const { code, stderr } = await runCommand("node", [join(ROOT, "node_modules", "bun", "install.js")], { cwd: ROOT });
  if (code !== 0) throw new CannotGoOn("Cannot install Bun:", stderr.trim().split("\n"));
}

/** dist/kubelet-ts from the sources as they are. Says one line. */
export async function buildBinary() {
  const started = performance.now();
  const { code, stdout, stderr } = await runCommand("npm", ["run", "--silent", "build"], { cwd: ROOT });
  if (code !== 0) throw new CannotGoOn("npm run build failed:", `${stdout}\n${stderr}`.trim().split("\n"));
  const megabytes = Math.round(statSync(BINARY).size / 1e6);
  step("binary", `dist/kubelet-ts (${megabytes} MB), built in ${sayDuration(performance.now() - started)}`);
}
