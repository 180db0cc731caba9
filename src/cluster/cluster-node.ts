import * as v from "valibot";
import type { Pod } from "../base/api/pod.ts";
import type { Rate } from "../base/concurrency/token-bucket.ts";
import type { Clock } from "../base/model/clock.ts";
import type { AccessAttributes, AccessReviewer, ClusterConnection, User } from "../base/model/cluster-connection.ts";
import { SettingsError } from "../base/model/configuration.ts";
import type { Logger } from "../base/model/logger.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { Rejection } from "../plan/admission.ts";
import type { ServiceAddress } from "../plan/service-environment.ts";
import type { CheckpointStore, FeedSource } from "../sources/checkpoint-store.ts";
import {
  CertificateFile,
  CertificateManager,
  type CertificateUsage,
  type MakeSigningRequest,
  needsBootstrap,
  writeKubeconfig,
} from "./certificates/certificate-manager.ts";
import { ClusterClient } from "./client/cluster-client.ts";
import { Credentials, type ProxyFor } from "./client/credentials.ts";
import { ObjectSchema, Reflector } from "./client/reflector.ts";
import { EventSink, type RecordedEvents } from "./events/event-sink.ts";
import { NodeAgent, type ReportedNode } from "./node/node-agent.ts";
import { ClaimResolver } from "./objects/claim-resolver.ts";
import { ClusterServices, ObjectCache, type RuntimeClassEntry, RuntimeClasses } from "./objects/object-cache.ts";
import { TokenManager } from "./objects/token-manager.ts";
import { type ApiPod, ApiPodSource, isMirrorPod, kindOfPod } from "./pods/api-pod-source.ts";
import { MirrorManager, type StaticPods } from "./pods/mirror-manager.ts";
import { type ReportedPods, StatusReporter } from "./pods/status-reporter.ts";

interface ClusterNodeDeps {
  /** State of an earlier process. */
  stored: {
    /** Has the set of the source. */
    checkpoints: Pick<CheckpointStore, "load">;
    services: Persisted<readonly ServiceAddress[]>;
    runtimeClasses: Persisted<readonly RuntimeClassEntry[]>;
  };
  options: KubeletOptions;
  nodeName: string;
  clock: Clock;
  logger: Logger;
  userAgent: string;
  /** Proxy of the environment. */
  proxyFor: ProxyFor;
  makeSigningRequest: MakeSigningRequest;
}

/** Events per second to an API server where --event-qps sets no limit. Source: newer kubelets. */
const DEFAULT_EVENT_QPS = 50;

/** Only the watch of pods retries an unreachable API server this often; once it connects, the others stop waiting. */
const LONGEST_UNREACHABLE_MS = 5_000;

/** The running kubelet, as the cluster sees it. */
interface ClusterKubelet extends ReportedPods, StaticPods, ReportedNode {
  /** The engine and the network can run pods: a change is reported at once. */
  isReady: () => boolean;
  /** Calls back after every change of pods and their statuses. */
  onChange: (listener: () => void) => void;
  events: RecordedEvents;
}

/** This machine as a node of a cluster: everything that speaks with its API server. */
export class ClusterNode {
  readonly client: ClusterClient;
  readonly credentials: Credentials;
  /** Decides about clients of the authenticated port. */
  readonly accessReviewer: AccessReviewer;
  /** The pods of the API server. */
  readonly source: FeedSource;
  readonly claims: ClaimResolver;
  readonly tokens: TokenManager;
  readonly services: ClusterServices;
  readonly runtimeClasses: RuntimeClasses;
  readonly #deps: ClusterNodeDeps;
  readonly #source: ApiPodSource;
  readonly #objects: ObjectCache;
  readonly #isBootstrapping: boolean;
  readonly #stop = new AbortController();
  #pods: Reflector<ApiPod> | undefined;
  #reporter: StatusReporter | undefined;
  #agent: NodeAgent | undefined;
  #events: EventSink | undefined;
  #mirrors: MirrorManager | undefined;

  /** @throws SettingsError when the kubeconfig cannot be used */
  constructor(deps: ClusterNodeDeps) {
    const { options, clock, userAgent } = deps;
    this.#deps = deps;
    this.#isBootstrapping = needsBootstrap(options, clock.now());
    this.credentials = openCredentials(deps, this.#isBootstrapping);
    const rate = { perSecond: options.kubeApiQps, burst: options.kubeApiBurst };
    this.client = new ClusterClient({ credentials: this.credentials, clock, logger: deps.logger, rate, userAgent });
    this.accessReviewer = new ClusterAccessReviewer(this.client, deps.nodeName);
    this.#objects = new ObjectCache({ client: this.client, clock, onChange: () => this.#source.changed() });
    const onChange = () => this.#source.changed();
    this.claims = new ClaimResolver({ ...deps, client: this.client, nodeLabels: () => this.nodeLabels, onChange });
    this.tokens = new TokenManager({ client: this.client, clock, onDue: () => this.#source.changed() });
    this.services = new ClusterServices(this.client, clock, deps.stored.services);
    this.runtimeClasses = new RuntimeClasses(this.client, clock, deps.stored.runtimeClasses);
    this.#source = new ApiPodSource({
      ...deps,
      server: this.credentials.server,
      objects: this.#objects,
      claims: this.claims,
      tokens: this.tokens,
      lastKnownGood: () => deps.stored.checkpoints.load(this.#source.id),
    });
    this.source = this.#source;
  }

  /** Registers the node, and takes its pods from the API server. */
  start(kubelet: ClusterKubelet): void {
    const { client } = this;
    const { options, nodeName, clock, logger } = this.#deps;
    const shared = { client, clock, logger, nodeName, kubelet };
    const apiPodOf = ({ metadata }: Pod) => this.#pods?.get(metadata.namespace, metadata.name ?? "");
    const reporter = new StatusReporter({
      ...shared,
      apiPodOf: (pod) => {
        const found = apiPodOf(pod);
        return found && (isMirrorPod(found) || found.metadata.uid === pod.metadata.uid) ? found : undefined;
      },
    });
    const mirrors = new MirrorManager({ ...shared, nodeUid: () => this.#agent?.node?.metadata.uid });
    this.#reporter = reporter;
    this.#mirrors = mirrors;
    let wasReady = kubelet.isReady();
    kubelet.onChange(() => {
      reporter.podsChanged();
      mirrors.changed();
      if (kubelet.isReady() === wasReady) return;
      wasReady = !wasReady;
      this.#agent?.statusChanged();
    });
    this.#pods = new Reflector<ApiPod>({
      ...shared,
      schema: ObjectSchema as v.GenericSchema<unknown, ApiPod>,
      kindOf: kindOfPod,
      path: "/api/v1/pods",
      query: { fieldSelector: `spec.nodeName=${nodeName}` },
      longestUnreachableMs: LONGEST_UNREACHABLE_MS,
      onChange: (reflector) => {
        const pods = reflector.list();
        this.#source.setPods(pods, reflector.waiting);
        reporter.setPods(pods);
        mirrors.setPods(pods);
      },
      onHealth: (error) => this.#source.setHealth(error),
    });
    // A flood of events must not delay statuses. Source: the kubelet's event client.
    const eventRate = { perSecond: options.eventRecordQps || DEFAULT_EVENT_QPS, burst: options.eventBurst };
    const eventClient = this.#clientOf(eventRate);
    this.#events = new EventSink({ client: eventClient, clock, logger, recorded: kubelet.events });
    this.#agent = new NodeAgent({
      ...shared,
      heartbeats: this.#clientOf({ perSecond: 0, burst: 0 }),
      settings: options,
      node: kubelet,
      recorder: kubelet.events,
    });
    this.#agent.onChange = () => mirrors.changed();
    void this.#run(this.#agent, this.#pods);
  }

  /** Begins to speak with the API server, with a certificate of its own where one has to be requested first. */
  async #run(agent: NodeAgent, pods: Reflector<ApiPod>): Promise<void> {
    const { options, logger } = this.#deps;
    const { signal } = this.#stop;
    if (this.#isBootstrapping) {
      logger.info(`Requesting a client certificate with "${options.bootstrapKubeconfig}"`);
      await this.#certificates("client", () => {
        writeKubeconfig(options, options.certDir);
        this.credentials.use(options.kubeconfig);
      }).obtain(signal);
    }
    if (signal.aborted) return;
    void agent.run(signal);
    this.services.start();
    pods.start();
    if (options.rotateCertificates) void this.#certificates("client", () => this.credentials.invalidate()).run(signal);
    if (options.rotateServerCertificates) {
      await agent.registered;
      void this.#certificates("server", () => {}).run(signal);
    }
  }

  #certificates(usage: CertificateUsage, onStored: () => void): CertificateManager {
    return new CertificateManager({
      ...this.#deps,
      client: this.client,
      file: new CertificateFile(this.#deps.options.certDir, usage),
      node: this.#agent!,
      onStored,
    });
  }

  /** A client with a rate of its own. */
  #clientOf(rate: Rate): ClusterClient {
    const { clock, logger, userAgent } = this.#deps;
    const { reachability } = this.client;
    return new ClusterClient({ credentials: this.credentials, clock, logger, rate, userAgent, reachability });
  }

  get nodeLabels(): Readonly<Record<string, string>> | undefined {
    return this.#agent?.node?.metadata.labels;
  }

  get connection(): ClusterConnection {
    return {
      server: this.credentials.server,
      outage: this.client.reachability.outage,
      refusal: this.#source.failure,
    };
  }

  /** Why a pod must not be started: it has ended already. */
  refusalOf({ metadata }: Pod): Rejection | undefined {
    const end = this.#reporter?.endOf(metadata.uid ?? "");
    return end && { reason: end.reason ?? "PodEnded", message: end.message ?? `Pod has ended: ${end.phase}` };
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("stopped"));
    this.#reporter?.stop();
    this.#events?.stop();
    this.#mirrors?.stop();
    this.claims.stop();
    this.tokens.stop();
    await Promise.all([this.#pods?.stop(), this.#objects.stop(), this.services.stop(), this.runtimeClasses.stop()]);
  }
}

/** @throws SettingsError that names the flag and the fix */
function openCredentials({ options, clock, proxyFor }: ClusterNodeDeps, isBootstrapping: boolean): Credentials {
  const { kubeconfig, bootstrapKubeconfig, rotateCertificates, certDir } = options;
  try {
    if (isBootstrapping) return new Credentials(bootstrapKubeconfig, clock, proxyFor);
    return new Credentials(
      kubeconfig,
      clock,
      proxyFor,
      rotateCertificates ? new CertificateFile(certDir, "client").path : undefined,
    );
  } catch (error) {
    const [flag, way] = isBootstrapping
      ? ["--bootstrap-kubeconfig", "it holds the server and the bootstrap token of the cluster"]
      : ["--kubeconfig", "name the kubeconfig of this node, or one to be made with --bootstrap-kubeconfig"];
    throw new SettingsError(`${flag}: ${messageOf(error)}; ${way}`, { cause: error });
  }
}

const REVIEW_LIMIT_MS = 10_000;

const TokenReviewSchema = v.object({
  status: v.object({
    authenticated: v.optional(v.boolean(), false),
    user: v.optional(
      v.object({
        username: v.optional(v.string(), ""),
        uid: v.optional(v.string(), ""),
        groups: v.optional(v.nullable(v.array(v.string())), []),
        extra: v.optional(v.nullable(v.record(v.string(), v.array(v.string())))),
      }),
    ),
  }),
});

const AccessReviewSchema = v.object({ status: v.object({ allowed: v.optional(v.boolean(), false) }) });

/** Asks the API server about clients of this node: TokenReview and SubjectAccessReview. */
class ClusterAccessReviewer implements AccessReviewer {
  readonly #client: Pick<ClusterClient, "request">;
  readonly #nodeName: string;

  constructor(client: Pick<ClusterClient, "request">, nodeName: string) {
    this.#client = client;
    this.#nodeName = nodeName;
  }

  async reviewToken(token: string, signal: AbortSignal): Promise<User | undefined> {
    const { status } = v.parse(
      TokenReviewSchema,
      await this.#review("authentication.k8s.io/v1", "TokenReview", { token }, signal),
    );
    const { user } = status;
    if (!status.authenticated || !user) return undefined;
    return {
      name: user.username,
      groups: user.groups ?? [],
      ...(user.uid !== "" && { uid: user.uid }),
      ...(user.extra && { extra: user.extra }),
    };
  }

  async reviewAccess(user: User, { verb, subresource }: AccessAttributes, signal: AbortSignal): Promise<boolean> {
    const spec = {
      user: user.name,
      groups: user.groups,
      ...(user.uid !== undefined && { uid: user.uid }),
      ...(user.extra && { extra: user.extra }),
      resourceAttributes: { verb, version: "v1", resource: "nodes", subresource, name: this.#nodeName },
    };
    const response = await this.#review("authorization.k8s.io/v1", "SubjectAccessReview", spec, signal);
    return v.parse(AccessReviewSchema, response).status.allowed;
  }

  #review(apiVersion: string, kind: string, spec: object, signal: AbortSignal): Promise<unknown> {
    return this.#client.request({
      method: "POST",
      path: `/apis/${apiVersion}/${kind.toLowerCase()}s`,
      body: { apiVersion, kind, spec },
      timeoutMs: REVIEW_LIMIT_MS,
      signal,
    });
  }
}
