import type { TestNode } from "../test/support/test-node.ts";

/** On a slow machine a hundred pods take their time; the kubelet's log explains a pod that does not start. */
const PATIENCE_MS = 1_200_000;

/** Memory that only the start needed is returned within this time. */
export const SETTLE_MS = 10_000;

/** One pod of one container that does nothing. */
export const idlePod = (name: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: "app", image: "busybox:test", command: ["sleep", "100000"] }],
  },
});

/** Waits until so many containers of the node run. */
export async function untilRunning(node: TestNode, count: number): Promise<void> {
  await node.until(
    `${count} running containers`,
    async () => (await node.containers()).filter(({ State }) => State === "running").length === count,
    PATIENCE_MS,
  );
}
