import type { Pod } from "../api/pod.ts";
import type { Clock } from "../model/clock.ts";
import type { DesiredPod } from "../model/desired-pod.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import type { Rejection } from "../plan/admission.ts";
import type { Checkpoint } from "../sources/checkpoint-store.ts";
import type { FeedSource } from "../sources/desired-state-feed.ts";
import { ClusterClient } from "./client/cluster-client.ts";
import { Credentials } from "./client/credentials.ts";
import { Reflector } from "./client/reflector.ts";
import { NodeAgent } from "./node/node-agent.ts";
import { ObjectCache } from "./objects/object-cache.ts";
import { type ApiPod, CLUSTER_SOURCE_ID } from "./pods/api-pod.ts";
import { ApiPodSource } from "./pods/api-pod-source.ts";
import { type ReportedPods, StatusReporter } from "./pods/status-reporter.ts";

export interface ClusterNodeDeps {
  options: KubeletOptions;
  nodeName: string;
  clock: Clock;
  logger: Logger;
  userAgent: string;
  /** The set of a source that an earlier process stored. */
  loadCheckpoint: (id: string) => Checkpoint | undefined;
}

/** The running kubelet, as the cluster sees it. */
export interface ClusterKubelet extends ReportedPods {
  /** The node as it is now, as `v1.Node`. */
  readNode: () => Promise<object>;
  /** Calls back after every change of pods and their statuses. */
  onChange: (listener: () => void) => void;
}

/** This machine as a node of a cluster: everything that speaks with its API server. */
export class ClusterNode {
  readonly client: ClusterClient;
  readonly credentials: Credentials;
  /** The pods of the API server. */
  readonly source: FeedSource;
  readonly #deps: ClusterNodeDeps;
  readonly #source: ApiPodSource;
  readonly #objects: ObjectCache;
  readonly #stop = new AbortController();
  #pods: Reflector<ApiPod> | undefined;
  #reporter: StatusReporter | undefined;
  #agent: NodeAgent | undefined;

  /** @throws Error when the kubeconfig cannot be used */
  constructor(deps: ClusterNodeDeps) {
    const { options, clock, logger, userAgent } = deps;
    this.#deps = deps;
    this.credentials = new Credentials(options.kubeconfig, clock);
    this.client = new ClusterClient({
      credentials: this.credentials,
      clock,
      rate: { perSecond: options.kubeApiQps, burst: options.kubeApiBurst },
      userAgent,
    });
    this.#objects = new ObjectCache({ client: this.client, clock, onChange: () => this.#source.changed() });
    this.#source = new ApiPodSource({
      server: this.credentials.server,
      clock,
      logger,
      objects: this.#objects,
      resolve: (desired: DesiredPod) => desired,
      lastKnownGood: () => deps.loadCheckpoint(this.#source.id),
    });
    this.source = this.#source;
  }

  /** Registers the node, and takes its pods from the API server. */
  start(kubelet: ClusterKubelet): void {
    const { client } = this;
    const { options, nodeName, clock, logger } = this.#deps;
    const { signal } = this.#stop;
    const apiPodOf = ({ metadata }: Pod) => this.#pods?.get(metadata.namespace, metadata.name ?? "");
    const reporter = new StatusReporter({
      client,
      clock,
      logger,
      kubelet,
      apiPodOf: (pod) => {
        const found = apiPodOf(pod);
        return found?.metadata.uid === pod.metadata.uid ? found : undefined;
      },
    });
    this.#reporter = reporter;
    kubelet.onChange(() => reporter.podsChanged());
    this.#pods = new Reflector<ApiPod>({
      client,
      clock,
      path: "/api/v1/pods",
      query: { fieldSelector: `spec.nodeName=${nodeName}` },
      onChange: (reflector) => {
        const pods = reflector.list();
        this.#source.setPods(pods);
        reporter.setPods(pods);
      },
      onHealth: (error) => this.#source.setHealth(error),
    });
    this.#agent = new NodeAgent({
      client,
      clock,
      logger,
      nodeName,
      settings: options,
      readNode: kubelet.readNode,
      record: () => {},
      onNode: () => {},
    });
    void this.#agent.run(signal);
    this.#pods.start();
  }

  /** Looks at the node's conditions now. */
  nodeChanged(): void {
    this.#agent?.statusChanged();
  }

  /** Why a pod must not be started: it has ended already. */
  refusalOf({ metadata }: Pod): Rejection | undefined {
    const end = this.#reporter?.endOf(metadata.uid ?? "");
    return end && { reason: end.reason ?? "PodEnded", message: end.message ?? `Pod has ended: ${end.phase}` };
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("stopped"));
    this.#reporter?.stop();
    await Promise.all([this.#pods?.stop(), this.#objects.stop()]);
  }
}

export const isClusterPod = ({ sourceId }: DesiredPod): boolean => sourceId === CLUSTER_SOURCE_ID;
