import { createHash } from "node:crypto";
import { readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { askEngine, callEngine, engineMessage } from "./engine-api.mjs";

/**
 * The labels on every container of one kubelet-ts, as src/docker/labels.ts writes them: node name and root directory.
 * @param {string} nodeName
 * @param {string} rootDir absolute, without a trailing slash
 */
export const ownershipLabels = (nodeName, rootDir) => [
  `kubelet-ts.io/node=${nodeName}`,
  `kubelet-ts.io/root=${createHash("sha256").update(rootDir).digest("hex").slice(0, 16)}`,
];

/** Sandboxes and containers, running or not, that carry all of these labels. @param {readonly string[]} labels */
export async function listContainers(endpoint, labels) {
  const filters = encodeURIComponent(JSON.stringify({ label: labels }));
  return await askEngine(endpoint, "GET", `/containers/json?all=1&filters=${filters}`);
}

/**
 * Removes them at once, with their anonymous volumes and the cgroups of their pods.
 * @param {readonly string[]} labels
 * @param {(container: { Names: string[], Labels: Record<string, string> }) => boolean} [isMeant] narrows down further
 * @returns {Promise<number>} the number of removed containers
 */
export async function removeContainers(endpoint, labels, isMeant = () => true) {
  const containers = (await listContainers(endpoint, labels)).filter(isMeant);
  const cgroups = await podCgroupsOf(endpoint, containers);
  await Promise.all(
    containers.map(async ({ Id }) => {
      const { status, text } = await callEngine(endpoint, "DELETE", `/containers/${Id}?force=1&v=1`);
      // 404: gone already; 409: something else is removing it.
      if (status > 299 && status !== 404 && status !== 409) {
        throw new Error(`Docker DELETE /containers/${Id} answered ${status}: ${engineMessage(text)}`);
      }
    }),
  );
  for (const cgroup of cgroups) removeCgroup(cgroup);
  return containers.length;
}

/** The cgroups under which the engine put them, as paths below the cgroup file systems. */
async function podCgroupsOf(endpoint, containers) {
  const parents = new Set();
  for (const { Id } of containers) {
    const { status, text } = await callEngine(endpoint, "GET", `/containers/${Id}/json`);
    if (status === 200) parents.add(JSON.parse(text).HostConfig.CgroupParent);
  }
  return [...parents].filter((parent) => /^\/.*\bpod[^/]*$/.test(parent ?? ""));
}

/** On cgroup v1 there is one in each hierarchy, on v2 just one. Those still in use, or below systemd, stay. */
function removeCgroup(path) {
  const root = "/sys/fs/cgroup";
  for (const folder of [root, ...readdirSync(root).map((name) => join(root, name))]) {
    try {
      rmdirSync(join(folder, path));
    } catch {
      // Not in this hierarchy, or not empty.
    }
  }
}
