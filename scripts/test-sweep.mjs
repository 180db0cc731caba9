import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { removeCniRules } from "./cni-rules.mjs";
import { removeContainers } from "./owned-containers.mjs";
import { runCommand } from "./run-command.mjs";

/**
 * Removes what the tests of one run left behind when they were not allowed to do so themselves: processes, containers,
 * mounts and files, all recognized by the run's id in their names. Another run's are not touched.
 * @param {import("./engine-api.mjs").Endpoint | undefined} endpoint absent when no engine was found
 * @param {string} runId
 * @param {string} scratch the run's temporary directory
 * @returns {Promise<number>} containers removed
 */
export async function sweepTestRun(endpoint, runId, scratch) {
  await endProcesses([
    `--hostname-override=t-${runId}-`,
    `--data-root=/tmp/kte-${runId}-`,
    // The processes of a control plane.
    `--data-dir=${scratch}/`,
    `--kubeconfig=${scratch}/`,
    `--cert-dir=${scratch}/`,
  ]);
  // Pods by their node, what a test creates directly by its name or a label that holds the run's id.
  const removed =
    endpoint &&
    (await removeContainers(endpoint, [], (container) =>
      JSON.stringify([container.Names, container.Labels]).includes(`-${runId}`),
    ));
  const engines = readdirSync("/tmp").filter((name) => name.startsWith(`kte-${runId}-`));
  for (const name of engines) await removeFolder(join("/tmp", name));
  await removeFolder(scratch);
  sweepCniRules();
  return removed ?? 0;
}

/** Removes the firewall rules of CNI networks whose tests were killed: a later test may listen on one of their ports. */
export function sweepCniRules() {
  removeCniRules((name) => {
    const [, pid] = /^ktcni([0-9a-z]+)(?:-[0-9a-z]+)?$/.exec(name) ?? [];
    return pid !== undefined && !existsSync(`/proc/${Number.parseInt(pid, 36)}`);
  });
}

/** Ends the processes that have one of these in their command line. */
async function endProcesses(marks) {
  const found = readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return line.split("\0").some((arg) => marks.some((mark) => arg.startsWith(mark)));
    } catch {
      return false; // Ended meanwhile.
    }
  });
  for (const pid of found) {
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch {
      // Ended meanwhile.
    }
  }
  if (found.length > 0) await sleep(500);
}

/** With the mounts in it, and the bridge of a private engine. */
async function removeFolder(folder) {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${folder}/`));
  for (const point of mounts.reverse()) await runCommand("umount", ["--lazy", point]);
  const bridge = join(folder, "bridge");
  if (existsSync(bridge)) await runCommand("ip", ["link", "delete", readFileSync(bridge, "utf8")]);
  rmSync(folder, { recursive: true, force: true });
}
