import type { DesiredState } from "../../base/model/desired-pod.ts";
import type { WorkloadManager } from "../../controllers/workload-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { NodeCordon } from "../../kubelet/node-cordon.ts";
import type { Servers } from "../../server/servers.ts";
import type { KubeletView } from "../../server/view.ts";
import type { DesiredStateFeed } from "../../sources/desired-state-feed.ts";

interface NodeViewParts {
  kubelet: Kubelet;
  workloads: WorkloadManager;
  feed: DesiredStateFeed;
  cordon: NodeCordon | undefined;
  view: KubeletView;
  servers: Servers;
}

/** The parts of this node that the API shows and acts on. */
export class NodeView {
  readonly kubelet: Kubelet;
  readonly workloads: WorkloadManager;
  readonly feed: DesiredStateFeed;
  readonly view: KubeletView;
  readonly servers: Servers;
  readonly #cordon: NodeCordon | undefined;
  /** The newest state of all sources. */
  desired: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  #isRead = false;

  constructor({ kubelet, workloads, feed, cordon, view, servers }: NodeViewParts) {
    this.kubelet = kubelet;
    this.workloads = workloads;
    this.feed = feed;
    this.view = view;
    this.servers = servers;
    this.#cordon = cordon;
    feed.onChange((state, { isRead }) => {
      this.desired = state;
      this.#isRead = isRead;
    });
  }

  /** Whether all containers were inspected and every source was read: pods that use a claim are known. */
  get arePodsKnown(): boolean {
    return this.kubelet.isSynced && this.#isRead;
  }

  /** Whether further pods stay Pending; see `NodeCordon`. */
  setUnschedulable(isUnschedulable: boolean): void {
    const assigned = this.kubelet.pods().map(({ metadata }) => metadata.uid ?? "");
    if (this.#cordon?.set(isUnschedulable, assigned)) this.kubelet.refresh();
  }
}
