import type { KubeletProcess } from "../test/support/kubelet-process.ts";
import type { TestNode } from "../test/support/test-node.ts";

/** Enough for a hundred pods on a slow machine; the kubelet's log explains a pod that does not start. */
const PATIENCE_MS = 1_200_000;

/** Memory that only the start needed is returned within this time. */
export const SETTLE_MS = 10_000;

/** One pod of one container. @param container fields of it */
export const benchPod = (name: string, container: object) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: "app", image: "busybox:test", ...container }] },
});

/** One pod of one container that does nothing. */
export const idlePod = (name: string) => benchPod(name, { command: ["sleep", "100000"] });

/** Starts the long-running kubelet with `count` manifests, and waits until their containers run. */
export async function startWithPods(
  node: TestNode,
  count: number,
  toManifest: (name: string) => object = idlePod,
): Promise<KubeletProcess> {
  for (let index = 0; index < count; index++) node.writeManifest(`p${index}.json`, toManifest(`p${index}`));
  const kubelet = await node.start();
  await untilRunning(node, count);
  return kubelet;
}

/** Starts the manifests of a directory by `--runonce`. @returns milliseconds from process start to exit 0 */
export async function startByRunOnce(node: TestNode, directory: string): Promise<number> {
  const started = performance.now();
  const { exitCode, stderr } = await node.runOnce([directory, "--max-pods=500"]);
  const ms = performance.now() - started;
  if (exitCode !== 0) throw new Error(`--runonce ended with ${exitCode}:\n${stderr}`);
  return ms;
}

/** Waits until this number of containers of the node run. */
async function untilRunning(node: TestNode, count: number): Promise<void> {
  await node.until(
    `${count} running containers`,
    async () => (await node.containers()).filter(({ State }) => State === "running").length === count,
    PATIENCE_MS,
  );
}
