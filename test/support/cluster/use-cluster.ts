import { afterAll, beforeAll } from "bun:test";
import { ClusterKubectl } from "./cluster-kubectl.ts";
import { ClusterTestNode } from "./cluster-node.ts";
import { hasCluster } from "./cluster-tools.ts";
import { ControlPlane, type ControlPlaneOptions } from "./control-plane.ts";

/** A control plane, its kubectl, and a node. */
export interface TestCluster {
  plane: ControlPlane;
  kubectl: ClusterKubectl;
  node: ClusterTestNode;
}

/**
 * A control plane that runs during the tests of a file; it and the node are removed after them.
 * @param setUp joins the node
 * @param tearDown is called after the node is removed, also when `setUp` failed
 */
export function useCluster(
  setUp: (cluster: TestCluster) => Promise<unknown> = ({ node }) => node.join(),
  { tearDown, ...options }: ControlPlaneOptions & { tearDown?: () => unknown } = {},
): TestCluster {
  // The tests are skipped.
  if (!hasCluster) return {} as TestCluster;
  const plane = new ControlPlane(options);
  const cluster = { plane, kubectl: new ClusterKubectl(plane), node: new ClusterTestNode(plane) };
  beforeAll(async () => {
    await plane.start();
    await setUp(cluster);
  });
  afterAll(async () => {
    await cluster.node.cleanUp();
    await tearDown?.();
    await plane.stop();
  });
  return cluster;
}
