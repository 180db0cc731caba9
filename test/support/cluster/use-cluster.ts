import { afterAll, beforeAll } from "bun:test";
import type { KubeletProcess } from "../kubelet-process.ts";
import { TestNode, type TestNodeOptions } from "../test-node.ts";
import { ClusterKubectl } from "./cluster-kubectl.ts";
import { hasCluster } from "./cluster-tools.ts";
import { ControlPlane, type ControlPlaneOptions } from "./control-plane.ts";

interface JoinOptions {
  /** Address of the API server, e.g. of a proxy before it. */
  server?: string;
  flags?: readonly string[];
}

export class ClusterTestNode extends TestNode {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane, options: TestNodeOptions = {}) {
    super(options);
    this.#plane = plane;
  }

  joinFlags({ server, flags = [] }: JoinOptions = {}): string[] {
    return [
      `--kubeconfig=${this.#plane.nodeConfig(this.name, server)}`,
      `--client-ca-file=${this.#plane.authority.certFile}`,
      "--authentication-token-webhook",
      "--authorization-mode=Webhook",
      "--address=0.0.0.0",
      `--port=${this.kubeletPort}`,
      ...flags,
    ];
  }

  join(options: JoinOptions = {}): Promise<KubeletProcess> {
    return this.start(this.joinFlags(options));
  }
}

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
