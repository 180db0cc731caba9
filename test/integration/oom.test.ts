import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { shell, sleeper } from "../support/manifests.ts";
import { isRoot } from "../support/temp-dir.ts";

const EATER = "dd if=/dev/zero of=/dev/null bs=200M count=1";

/** A child of `shell` is killed while its shell lives on; `whole` is the main process itself. */
const scripts = {
  shell: `trap 'exit 0' TERM; ${EATER}; while :; do sleep 1 & wait $!; done`,
  whole: `sleep 1; exec ${EATER}`,
};
const resources = { limits: { memory: "32Mi" } };
const containers = Object.entries(scripts).map(([name, script]) => ({
  name,
  image: "busybox:test",
  ...shell(script),
  resources,
}));
const HUNGRY = sleeper("hungry", {}, { restartPolicy: "Never", containers });

/** As in many a system container: what is there is not the kernel's log. */
const WITHOUT_KERNEL_LOG = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /dev/kmsg && exec "$0" "$@"'];

describeWithEngine("OOM kills", () => {
  test.skipIf(!isRoot)("are reported without the kernel's log too, of children and of whole containers", async () => {
    const node = testNode();
    node.writeManifest("hungry.json", HUNGRY);
    const kubelet = await node.start([], { prefix: WITHOUT_KERNEL_LOG });
    const messages = (name: string) =>
      kubelet.log
        .split("\n")
        .filter((line) => line.includes(`A process in container "${name}" was killed by the kernel`));
    await node.until("both to be reported", () => messages("shell").length > 0 && messages("whole").length > 0);
    const statuses = await node.until("the container to have ended", async () => {
      const [pod] = await node.pods();
      const found = pod?.status.containerStatuses ?? [];
      return found[1]?.state.terminated && found;
    });
    expect(statuses[0]?.state.running).toBeDefined();
    expect(statuses[1]?.state.terminated).toMatchObject({ reason: "OOMKilled", exitCode: 137 });
    expect([messages("shell").length, messages("whole").length]).toEqual([1, 1]);
    expect(kubelet.log).toContain("OOM kills are known from the engine and the counters of cgroups");
  });
});
