import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import { type Persisted, StoredMap } from "../../base/model/persisted.ts";
import { toApiTime } from "../../base/text/api-time.ts";
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
  clock: Pick<Clock, "now">;
  /** When objects appeared. */
  firstSeen: Persisted<readonly (readonly [key: string, time: string])[]>;
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

  readonly #clock: Pick<Clock, "now">;
  readonly #firstSeen: StoredMap<string, string, readonly (readonly [key: string, time: string])[]>;

  constructor({ kubelet, workloads, feed, cordon, view, servers, clock, firstSeen }: NodeViewParts) {
    this.kubelet = kubelet;
    this.workloads = workloads;
    this.feed = feed;
    this.view = view;
    this.servers = servers;
    this.#cordon = cordon;
    this.#clock = clock;
    this.#firstSeen = new StoredMap(firstSeen);
    feed.onChange((state, { isRead }) => {
      this.desired = state;
      this.#isRead = isRead;
      this.#noteObjects();
    });
  }

  /** RFC 3339: when an object of a file or URL was first part of the desired state. */
  firstSeen(kind: string, { namespace, name }: ObjectMeta): string {
    return this.#firstSeen.get(seenKey(kind, { namespace, name })) ?? toApiTime(this.#clock.now());
  }

  #noteObjects(): void {
    const { configMaps, secrets, objects = [] } = this.desired;
    const keys = new Set([
      ...Array.from(configMaps.values(), ({ metadata }) => seenKey("ConfigMap", metadata)),
      ...Array.from(secrets.values(), ({ metadata }) => seenKey("Secret", metadata)),
      ...objects.map(({ kind, object }) => seenKey(kind, object.metadata)),
    ]);
    const now = toApiTime(this.#clock.now());
    for (const key of keys) if (!this.#firstSeen.has(key)) this.#firstSeen.set(key, now);
    // An object of a source that was not read yet is missing, not gone.
    if (this.#isRead) for (const key of this.#firstSeen.keys()) if (!keys.has(key)) this.#firstSeen.delete(key);
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

const seenKey = (kind: string, { namespace = "default", name = "" }: ObjectMeta) => `${kind} ${namespace}/${name}`;
