import { expect, test } from "bun:test";
import { tarArchive } from "../../src/base/files/tar.ts";
import { PAUSE_IMAGE, pauseExecutable } from "../../src/docker/pause-image.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import { callEngine, RUN_ID, type TestNode } from "../support/test-node.ts";

/** An image of this test alone: one program that waits, and a label of its own. */
async function makeImage(node: TestNode, name: string): Promise<string> {
  const reference = `kubelet-ts-test/${name}-${RUN_ID}:1`;
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  const layer = tarArchive([{ path: "wait", mode: 0o755, data: pauseExecutable(architecture) }]);
  const query = new URLSearchParams({ fromSrc: "-", repo: reference.slice(0, -2), tag: "1" });
  for (const change of ['ENTRYPOINT ["/wait"]', `LABEL kubelet-ts-test=${node.name}-${name}`]) {
    query.append("changes", change);
  }
  await callEngine(`/images/create?${query}`, { "Content-Type": "application/x-tar" }, "POST", layer);
  return reference;
}

const isThere = async (node: TestNode, image: string) =>
  (await node.docker.listImages()).some(({ RepoTags }) => RepoTags.includes(image));

const greedy = ["--image-gc-high-threshold=1", "--image-gc-low-threshold=0", "--minimum-image-ttl-duration=0s"];

describeWithEngine("image clean-up", () => {
  test("on a full disk exactly our unused images go", async () => {
    const node = testNode();
    const [unused, used, foreign] = (await Promise.all(
      ["unused", "used", "foreign"].map((name) => makeImage(node, name)),
    )) as [string, string, string];
    try {
      node.writeManifest("unused.json", sleeper("unused", { image: unused, command: undefined }));
      node.writeManifest("used.json", sleeper("used", { image: used, command: undefined }));
      const first = await node.start();
      for (const name of ["unused", "used"]) await node.untilPhase(name, "Running");
      node.removeManifest("unused.json");
      await node.until("one pod to be gone", async () => (await node.containers()).length === 1);
      await first.stop();

      const second = await node.start(greedy);
      await node.until("the unused image to be gone", async () => !(await isThere(node, unused)));
      await node.untilLogged(second, `Removed unused image "${unused}"`);
      expect([...second.log.matchAll(/Removed unused image "([^"]*)"/g)].map(([, name]) => name)).toEqual([unused]);
      for (const image of [used, foreign, "busybox:test", PAUSE_IMAGE])
        expect([image, await isThere(node, image)]).toEqual([image, true]);
      // Also the one that is wanted, when its container is gone for a moment.
      expect((await node.pods()).map(({ status }) => status.phase)).toEqual(["Running"]);
    } finally {
      await node.cleanUp();
      for (const image of [unused, used, foreign]) await node.docker.removeImage(image).catch(() => {});
    }
  });
});
