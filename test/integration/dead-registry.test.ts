import { expect, test } from "bun:test";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import { BadNetwork, hasRegistry, TestRegistry } from "../support/registry.ts";

const LAYER_BYTES = 300_000;

describeWithEngine("a registry that dies in the middle of a layer and stays dead", () => {
  test.if(hasRegistry)(
    "its pod waits and says why, the others run on, and it comes up when the registry does",
    async () => {
      // An engine tries a layer five times, for about a minute; that is Docker's patience, not ours.
      const engine = await privateEngine({ flags: ["--max-download-attempts=1"] });
      await engine.provideImages("busybox:test");
      const registry = await TestRegistry.start();
      const network = await BadNetwork.before(registry);
      try {
        const image = await registry.push("oracle/dead:1", LAYER_BYTES);
        const reference = image.reference.replace(registry.address, network.address);
        const node = testNode({ socketPath: engine.socketPath });
        const kubelet = await node.start();
        node.writeManifest("other.yaml", sleeper("other", { name: "other" }));
        const { Id: otherId } = await node.runningContainer("other");
        network.doesStall = true;
        node.writeManifest("app.yaml", sleeper("app", { image: reference, command: undefined }));
        await node.until("half a layer", () => network.stalled > 0);
        network.close();
        network.doesStall = false;

        const reasons = new Set<string>();
        await node.until("the pod to wait between two pulls", async () => {
          const reason = (await node.waitingOf("app"))?.reason;
          if (reason) reasons.add(reason);
          return reason === "ImagePullBackOff";
        });
        expect([...reasons]).toContain("ErrImagePull");
        expect(kubelet.log).toContain(`Failed to pull image "${reference}"`);
        expect(kubelet.log).toContain("check the registry's address and the network");
        expect(await node.containers("app")).toEqual([]);

        await network.open();
        await node.until("the image to be fetched", async () => {
          const [shown] = await engine.docker.listImages({ filters: { reference: [reference] } });
          return shown?.Id === image.id;
        });
        expect(await node.runningContainer("other")).toMatchObject({ Id: otherId });
      } finally {
        network.close();
        await registry.cleanUp();
      }
    },
  );
});
