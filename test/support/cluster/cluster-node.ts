import type { KubeletProcess } from "../kubelet-process.ts";
import { TestNode, type TestNodeOptions } from "../test-node.ts";
import type { ControlPlane } from "./control-plane.ts";

export interface JoinOptions {
  /** Address of the API server, e.g. of a proxy before it. */
  server?: string;
  flags?: readonly string[];
}

/** kubelet-ts as a node of a control plane; the name of the Node is that of the test node. */
export class ClusterTestNode extends TestNode {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane, options: TestNodeOptions = {}) {
    super(options);
    this.#plane = plane;
  }

  /** Flags with which the node joins; as kubeadm sets a node up. */
  joinFlags({ server, flags = [] }: JoinOptions = {}): string[] {
    return [
      `--kubeconfig=${this.#plane.nodeConfig(this.name, server)}`,
      `--client-ca-file=${this.#plane.authority.certFile}`,
      "--authentication-token-webhook",
      "--authorization-mode=Webhook",
      "--address=0.0.0.0",
      ...flags,
    ];
  }

  join(options: JoinOptions = {}): Promise<KubeletProcess> {
    return this.start(this.joinFlags(options));
  }
}
