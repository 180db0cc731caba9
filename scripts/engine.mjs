/**
 * Makes sure that a Docker engine answers.
 *
 *   node scripts/engine.mjs          use the engine there is; on Debian or Ubuntu as root install and start one
 *   node scripts/engine.mjs status   say which engine answers
 *   node scripts/engine.mjs down     stop the dockerd that this script started, if it did
 */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { aptInstall, isAptMachine } from "./apt.mjs";
import { callEngine, parseEndpoint } from "./engine-api.mjs";
import { findProgram, runCommand } from "./run-command.mjs";
import { CannotContinue, runMain, step } from "./say.mjs";

const PID_FILE = "/run/kubelet-ts-dockerd.pid";
const LOG_FILE = "/var/log/kubelet-ts-dockerd.log";
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 60_000;

/**
 * @typedef {{ endpoint: import("./engine-api.mjs").Endpoint, version: string, startedHere: boolean }} Engine
 * `startedHere`: this call started the dockerd, so the caller may stop it.
 */

/** @returns {Promise<{ version: string } | { code: string, detail: string }>} */
async function probe(endpoint) {
  try {
    const { status, text } = await callEngine(endpoint, "GET", "/version", { timeoutMs: 5_000 });
    const version = status === 200 ? JSON.parse(text).Version : undefined;
    return typeof version === "string" ? { version } : { code: "NOTDOCKER", detail: `it answered ${status}` };
  } catch (error) {
    return { code: error.code ?? "NOTDOCKER", detail: error.message };
  }
}

async function waitUntilAnswers(endpoint, limitMs, isHopeless = () => false) {
  const end = performance.now() + limitMs;
  while (performance.now() < end && !isHopeless()) {
    const seen = await probe(endpoint);
    if ("version" in seen) return seen.version;
    await sleep(200);
  }
  return undefined;
}

/** The dockerd that wrote this file and still runs. @returns {number | undefined} its pid */
function dockerdOf(pidFile) {
  try {
    const pid = Number(readFileSync(pidFile, "utf8").trim());
    // A pid may have been given to another program since; a zombie (Z) has not been reaped.
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    if (/^Name:\s+dockerd$/m.test(status) && !/^State:\s+[ZX]/m.test(status)) return pid;
  } catch {
    // No such file, or no process with that pid.
  }
  return undefined;
}

async function startDockerd(endpoint, program) {
  const socket = endpoint.connect.socketPath;
  step("engine", `starting dockerd (log: ${LOG_FILE}; stop it with: npm run demo -- --down)`);
  const log = openSync(LOG_FILE, "a");
  const child = spawn(program, ["--pidfile", PID_FILE, "--host", `unix://${socket}`], {
    detached: true,
    stdio: ["ignore", log, log],
    cwd: "/",
  });
  closeSync(log);
  let ended = false;
  child.on("error", () => {
    ended = true;
  });
  child.on("exit", () => {
    ended = true;
  });
  child.unref();
  const version = await waitUntilAnswers(endpoint, START_LIMIT_MS, () => ended);
  if (version !== undefined) return version;
  if (!ended) await stopOwnEngine();
  const tail = readFileSync(LOG_FILE, "utf8").trim().split("\n").slice(-12);
  throw new CannotContinue(`dockerd ${ended ? "ended at once" : "does not answer"}. The end of ${LOG_FILE}:`, [
    ...tail,
    "",
    "Start a Docker engine, or point DOCKER_HOST at one, then run this again.",
  ]);
}

function explainNoEngine(endpoint, seen) {
  const isRoot = process.getuid?.() === 0;
  if (process.env.DOCKER_HOST) {
    return new CannotContinue(`No Docker engine answers on DOCKER_HOST=${process.env.DOCKER_HOST} (${seen.detail}).`, [
      "Start that engine, or unset DOCKER_HOST to use /var/run/docker.sock.",
    ]);
  }
  if (seen.code === "EACCES" || seen.code === "EPERM") {
    return new CannotContinue(`You may not use the Docker engine on ${endpoint.name}.`, [
      "Join its group and log in again:  sudo usermod -aG docker $USER",
      "or run this as root.",
    ]);
  }
  if (seen.code !== "ENOENT" && seen.code !== "ECONNREFUSED") {
    return new CannotContinue(`${endpoint.name} does not answer like a Docker engine (${seen.detail}).`, [
      "Restart Docker, or point DOCKER_HOST at another engine.",
    ]);
  }
  if (process.platform !== "linux") {
    return new CannotContinue("No Docker engine is running.", [
      "Start Docker Desktop (or colima), then run this again.",
    ]);
  }
  if (findProgram("dockerd")) {
    return new CannotContinue(`Docker is installed, but nothing listens on ${endpoint.name}.`, [
      isRoot ? "Start it:  systemctl start docker" : "Start it:  sudo systemctl start docker",
      "then run this again.",
    ]);
  }
  return new CannotContinue("There is no Docker engine on this machine.", [
    isAptMachine()
      ? "Run this once as root, which installs Docker, or do it yourself:  sudo apt-get install docker.io"
      : "Install Docker (https://docs.docker.com/engine/install/) and start it,",
    "or set DOCKER_HOST to an engine elsewhere; then run this again.",
  ]);
}

/**
 * The engine that answers. Without one, as root on Debian or Ubuntu: installs docker.io and starts dockerd, with a
 * message. Throws `CannotContinue` with what to do otherwise.
 * @returns {Promise<Engine>}
 */
export async function ensureEngine() {
  const endpoint = parseEndpoint();
  const seen = await probe(endpoint);
  if ("version" in seen) {
    step("engine", `Docker ${seen.version} answers on ${endpoint.name}`);
    return { endpoint, version: seen.version, startedHere: false };
  }
  const absent = seen.code === "ENOENT" || seen.code === "ECONNREFUSED";
  const mayStart = absent && !process.env.DOCKER_HOST && process.platform === "linux" && process.getuid?.() === 0;
  if (!mayStart) throw explainNoEngine(endpoint, seen);

  if (!findProgram("dockerd")) {
    if (!isAptMachine()) throw explainNoEngine(endpoint, seen);
    step("engine", "none on this machine: installing Debian's docker.io (apt-get)");
    // Without the apparmor tools the engine cannot start a container on a kernel with AppArmor.
    await aptInstall(["docker.io", "apparmor", "ca-certificates"]);
    if (!findProgram("dockerd"))
      throw new CannotContinue("docker.io is installed, but there is no dockerd on the PATH.");
  }
  const startedHere = !(await startedByTheSystem());
  const version = startedHere
    ? await startDockerd(endpoint, findProgram("dockerd"))
    : await waitUntilAnswers(endpoint, START_LIMIT_MS);
  if (version === undefined) throw explainNoEngine(endpoint, await probe(endpoint));
  step("engine", `Docker ${version} answers on ${endpoint.name}`);
  return { endpoint, version, startedHere };
}

/**
 * Whether the machine runs Docker as a service, which these scripts never stop. A second dockerd would take over its
 * socket.
 */
async function startedByTheSystem() {
  if (dockerdOf("/run/docker.pid") !== undefined) return true;
  if (!existsSync("/run/systemd/system")) return false;
  step("engine", "starting the service: systemctl start docker");
  const { code, stderr } = await runCommand("systemctl", ["start", "docker"], { timeoutMs: START_LIMIT_MS });
  if (code === 0) return true;
  throw new CannotContinue(`systemctl start docker failed: ${stderr.trim()}`, ["See:  journalctl -u docker -n 50"]);
}

/** Whether a dockerd that this script started runs. */
export const ownEngineRuns = () => dockerdOf(PID_FILE) !== undefined;

/** Stops the dockerd that this script started. @returns {Promise<boolean>} whether there was one */
export async function stopOwnEngine() {
  const pid = dockerdOf(PID_FILE);
  if (pid === undefined) return false;
  process.kill(pid, "SIGTERM");
  const end = performance.now() + STOP_LIMIT_MS;
  while (dockerdOf(PID_FILE) !== undefined) {
    if (performance.now() > end) {
      throw new CannotContinue(`dockerd (pid ${pid}) does not stop.`, [
        `See ${LOG_FILE}; end it with:  kill -9 ${pid}`,
      ]);
    }
    await sleep(100);
  }
  rmSync(PID_FILE, { force: true });
  return true;
}

async function main() {
  const [command = "up"] = process.argv.slice(2);
  if (command === "up") {
    await ensureEngine();
  } else if (command === "down") {
    step("engine", (await stopOwnEngine()) ? "stopped the dockerd that was started here" : "none was started here");
  } else if (command === "status") {
    const endpoint = parseEndpoint();
    const seen = await probe(endpoint);
    if (!("version" in seen)) throw explainNoEngine(endpoint, seen);
    step("engine", `Docker ${seen.version} answers on ${endpoint.name}`);
  } else {
    throw new CannotContinue(`Unknown command "${command}".`, ["Known: up, status, down"]);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await runMain(main);
