import { computeRootHash } from "../../src/docker/labels.ts";
import { aDockerEngine } from "../support/docker-engine.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { testEngineContract } from "../support/engine-contract.ts";

describeWithEngine("Docker as a container engine", () => {
  const node = testNode();
  testEngineContract(async () => {
    const { signal } = new AbortController();
    const owner = { nodeName: node.name, rootHash: computeRootHash(node.rootDir) };
    const engine = aDockerEngine({ client: node.docker, owner });
    await engine.connect(signal);
    const image = await engine.images.imageStatus("busybox:test");
    if (!image) throw new Error("busybox:test is missing: npm run images -- --test");
    const shared = { owner, engine: engine.info() };
    return {
      pods: engine.pods,
      volumes: engine.volumes,
      sandbox: { ...shared, image: await engine.ensurePauseImage(signal) },
      container: { ...shared, image },
    };
  });
});
