import { afterAll, beforeAll } from "bun:test";
import { ClusterKubectl } from "./cluster-kubectl.ts";
import { ClusterTestNode } from "./cluster-node.ts";
import { ControlPlane, type ControlPlaneOptions } from "./control-plane.ts";

/** A running control plane, its kubectl, and a node that has not joined yet. */
export interface TestCluster {
  plane: ControlPlane;
  kubectl: ClusterKubectl;
  node: ClusterTestNode;
}

/**
 * Starts a control plane before the tests of a file, and removes it and the node after them.
 * @param setUp keeps the parts for the tests, and joins the node
 * @param tearDown is called after the node is removed, also when `setUp` failed
 */
export function useCluster(
  setUp: (cluster: TestCluster) => Promise<unknown>,
  { tearDown, ...options }: ControlPlaneOptions & { tearDown?: () => unknown } = {},
): void {
  let plane: ControlPlane | undefined;
  let node: ClusterTestNode | undefined;

  beforeAll(async () => {
    plane = new ControlPlane(options);
    await plane.start();
    node = new ClusterTestNode(plane);
    await setUp({ plane, kubectl: new ClusterKubectl(plane), node });
  });

  afterAll(async () => {
    await node?.cleanUp();
    await tearDown?.();
    await plane?.stop();
  });
}
