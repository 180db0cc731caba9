import { createHash } from "node:crypto";
import { askEngine, callEngine, engineMessage } from "./engine-api.mjs";

/**
 * The labels on every container of one kubelet-ts, as src/runtime/labels.ts writes them: node name and root directory.
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
 * Removes them at once, with their anonymous volumes.
 * @param {readonly string[]} labels
 * @param {(container: { Labels: Record<string, string> }) => boolean} [isMeant] narrows down further
 * @returns {Promise<number>} how many there were
 */
export async function removeContainers(endpoint, labels, isMeant = () => true) {
  const containers = (await listContainers(endpoint, labels)).filter(isMeant);
  await Promise.all(
    containers.map(async ({ Id }) => {
      const { status, text } = await callEngine(endpoint, "DELETE", `/containers/${Id}?force=1&v=1`);
      // 404: gone already; 409: somebody else is removing it.
      if (status > 299 && status !== 404 && status !== 409) {
        throw new Error(`Docker DELETE /containers/${Id} answered ${status}: ${engineMessage(text)}`);
      }
    }),
  );
  return containers.length;
}
