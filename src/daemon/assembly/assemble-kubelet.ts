import { lookup } from "node:dns/promises";
import { LocalApi } from "../../apiserver/node/local-api.ts";
import { SOURCE_ID } from "../../apiserver/storage/submitted-objects.ts";
import type { Pod } from "../../base/api/pod.ts";
import { Listeners } from "../../base/concurrency/listeners.ts";
import { descriptorPath, openBeneath } from "../../base/files/beneath.ts";
import { readTextIfReadable } from "../../base/files/whole-file.ts";
import { ARCHITECTURE } from "../../base/host/node-info.ts";
import { programOnPort } from "../../base/host/port-holder.ts";
import type { ImageProgress } from "../../base/model/container-engine.ts";
import { type DesiredPod, type DesiredState, NODE_SOURCE } from "../../base/model/desired-state.ts";
import type { PodUID } from "../../base/model/pod.ts";
import type { ContainerId, SandboxSnapshot } from "../../base/model/pod-snapshot.ts";
import { encryptionOf } from "../../base/text/age-text.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { messageOf, unlessFailed } from "../../base/text/error-message.ts";
import type { ClusterNode } from "../../cluster/cluster-node.ts";
import { toTlsVersions } from "../../config/cipher-suites.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import type { ControllerContext } from "../../controllers/controller.ts";
import { DnsServer, dnsPodManifest } from "../../controllers/dns-server.ts";
import {
  INGRESS_VOLUME,
  IngressManager,
  ingressPodManifest,
  OUTCOME_FILE,
  parseOutcome,
  WAKE_SIGNAL,
} from "../../controllers/ingress-manager.ts";
import { ExternalNames, ServiceHosts } from "../../controllers/service-hosts.ts";
import { ServiceManager, type ServiceProxy } from "../../controllers/service-manager.ts";
import { WorkloadManager } from "../../controllers/workload-manager.ts";
import type { DockerEngine } from "../../docker/docker-engine.ts";
import { findPodRefusal } from "../../docker/pod-refusal.ts";
import type { PodRules } from "../../kubelet/blocked-pods.ts";
import { type PodRevision, toPodRevision } from "../../kubelet/edit-rules.ts";
import { chainPrefix, DualStackRules, KernelRules } from "../../kubelet/kernel-rules.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { ManifestEvents } from "../../kubelet/manifest-events.ts";
import { NodeSettings } from "../../kubelet/node-settings.ts";
import { PodManager } from "../../kubelet/pod-records.ts";
import { PodDirectories } from "../../kubelet/volumes/pod-directories.ts";
import type { ReadManifestOptions } from "../../manifest/object-reading.ts";
import { readManifest, readManifestValue } from "../../manifest/read-manifest.ts";
import { type Admission, computeMaxPods, NodeAdmission, type Rejection } from "../../plan/admission.ts";
import { domainOf } from "../../plan/pod-dns.ts";
import { familiesOfRanges, parseRanges } from "../../plan/service-addresses.ts";
import { makeSigningRequest } from "../../server/certificates/certificate-process.ts";
import { ProbeLog } from "../../server/page/pod-detail.ts";
import { buildFeed, type ManifestReader } from "../../sources/build-sources.ts";
import { CheckpointStore } from "../../sources/checkpoint-store.ts";
import { checkForChange } from "../../sources/manifest-files.ts";
import { proxyFor } from "../../sources/proxy.ts";
import { describeFinding } from "../../sources/source-set.ts";
import { SecretValues } from "../secret-values.ts";
import { buildInfo, KUBERNETES_VERSION, probeVersion } from "../version.ts";
import { buildImageGc, buildImageUpdates, preloadImageArchives } from "./build-images.ts";
import { buildKubelet, buildProbes } from "./build-kubelet.ts";
import { buildPodServices } from "./build-pod-services.ts";
import { type NodeContext, type NodeContextInput, nodeLabelsOf, readNodeContext } from "./node-context.ts";
import { openStateFile } from "./state-files.ts";

interface AssembleInput extends NodeContextInput {
  /** Manifests given as arguments: absolute paths, URLs, `-`. */
  manifests: readonly string[];
  onPullProgress?: (progress: ImageProgress) => void;
}

/** All subsystems of a kubelet, built but not yet running. */
export type AssembledKubelet = Awaited<ReturnType<typeof assembleKubelet>>;

/** Builds one subsystem after the other. Reads and writes below the root directory but does not talk to the engine. */
export async function assembleKubelet(input: AssembleInput) {
  const context = await readNodeContext(input);
  const { clock, logger, options } = context;
  const checkpoints = openCheckpoints(context);
  /** The cluster this machine is a node of; undefined without --kubeconfig. */
  const cluster = await buildCluster(context, checkpoints);
  const podManager = new PodManager();
  const hasLocalApi = !options.runOnce && !cluster;
  /** undefined without a local API. */
  const settings = hasLocalApi ? buildNodeSettings(context) : undefined;
  /** They change while the process runs. */
  const labels = () => settings?.labels ?? cluster?.nodeLabels ?? nodeLabelsOf(context);
  const controllers = toControllerContext(context, labels);
  const lookUp = async (name: string) => (await lookup(name, { all: true })).map(({ address }) => address);
  const hosts = new ServiceHosts(options.clusterDomain, new ExternalNames({ clock, logger, lookUp }));
  const serviceManager = await buildServiceManager(context, controllers, hosts, () =>
    [...kubelet.workers.values()].flatMap(({ snapshot }) => snapshot.sandboxes.slice(0, 1)),
  );
  const { onPullProgress } = input;
  const parts = await buildPodServices(context, { podManager, cluster, serviceManager, onPullProgress });
  const { engine, volumes, networks, services, files, connect } = parts;
  hosts.onStale((pods) => files.rewriteHostsFiles(pods));
  /** Last answers of each probe. */
  const probeLog = new ProbeLog();
  const probes = buildProbes(context, engine, probeLog);
  /** Containers and sandboxes that ran out of memory, as the engine reports it. */
  const oomEvents = new Listeners<ContainerId>();
  const imageUpdates = buildImageUpdates(context, parts);
  const admission = new PodAdmission(context, engine, settings, labels);
  const kubeletParts = { podManager, services, probes, rules: admission, oomEvents, imageUpdates };
  const kubelet = buildKubelet(context, engine, kubeletParts);
  kubelet.podsGone.add((uid) => probeLog.forget(uid));
  const imageGc = buildImageGc(context, parts, kubelet, imageUpdates);
  /** The Kubernetes API of this node; undefined when pods run once, and for a node of a cluster. */
  const localApi = hasLocalApi ? buildLocalApi(context) : undefined;
  const feed = buildFeed({
    ...context,
    manifests: input.manifests,
    submitted: cluster?.source ?? localApi?.submitted,
    reader: toManifestReader(context),
    checkpoints,
  });
  // The stages of what is wanted, the last one first: workloads, DNS server, values of Secrets, Ingresses, kubelet.
  /** undefined without a local API. */
  const ingresses = hasLocalApi
    ? buildIngressManager(
        controllers,
        { kubelet, engine, services: serviceManager, isSettled: () => workloads.isSettled },
        options,
      )
    : undefined;
  const secretValues = new SecretValues({
    ...context,
    credentialsDir: context.environment.CREDENTIALS_DIRECTORY || undefined,
    readBytes: context.background.tasks.readBytes,
    next: ingresses ?? kubelet,
  });
  /** undefined where no address leads to it. A flag asks for it, no manifest: whether it is wanted is known without any. */
  const dnsServer = serviceManager.hasDns
    ? new DnsServer({ pod: { ...toDnsPod(context), sourceId: NODE_SOURCE }, next: secretValues })
    : undefined;
  const events = new ManifestEvents({
    recorder: context.recorder,
    nodeName: context.node.name,
    clusterDns: () => [...options.clusterDns, ...(serviceManager.dnsAddress ? [serviceManager.dnsAddress] : [])],
    // Those without a pod that runs by an older text of them.
    refused: () =>
      feed
        .rejections()
        .filter(({ stalePods }) => stalePods.length === 0)
        .map(({ finding }) => ({ file: finding.file, message: describeFinding(finding) })),
  });
  const workloads = new WorkloadManager({
    context: controllers,
    file: openStateFile(context, "workloads"),
    kubelet,
    services: serviceManager,
    ingresses,
    next: dnsServer ?? secretValues,
  });
  workloads.states.add((state) => events.report(state));
  if (dnsServer) workloads.syncs.add(() => dnsServer.setRecords(serviceManager.dnsRecords()));
  return {
    context,
    engine,
    kubelet,
    workloads,
    secretValues,
    ingresses,
    feed,
    cluster,
    localApi,
    settings,
    imageUpdates,
    imageGc,
    volumes,
    networks,
    probes,
    probeLog,
    admission,
    oomEvents,
    /** Loads the archives of `--images-dir` before anything is pulled. Rejects only when the signal aborts. */
    preload: (signal: AbortSignal) => preloadImageArchives(context, engine, imageGc, signal),
    connect,
  };
}

type NodeLabels = () => Readonly<Record<string, string>>;

const toControllerContext = (context: NodeContext, labels: NodeLabels): ControllerContext => ({
  ...context,
  node: {
    name: context.node.name,
    ip: context.node.ip,
    get labels() {
      return labels();
    },
    maxPods: computeMaxPods(context.options, context.node.cpuCount),
    comparesAllLabels: context.options.validate === "strict",
    rootHash: context.owner.rootHash,
    startedAt: toApiTime(context.clock.now()),
  },
});

/** @param sandboxes of all pods, once there are some */
async function buildServiceManager(
  context: NodeContext,
  controllers: ControllerContext,
  hosts: ServiceHosts,
  sandboxes: () => readonly SandboxSnapshot[],
): Promise<ServiceManager> {
  const { options, logger } = context;
  const file = openStateFile(context, "service-addresses");
  const proxy = await buildServiceProxy(context, sandboxes, file.read()?.range ?? "");
  const wantsDns = options.clusterDnsImage !== "";
  if (wantsDns && !proxy) logger.warn("--cluster-dns-image has no effect: Services have no addresses");
  return new ServiceManager({
    context: controllers,
    hosts,
    proxy,
    hasDns: wantsDns && proxy !== undefined,
    file,
    range: options.serviceClusterIpRange,
    nodePortRange: options.serviceNodePortRange,
    portHolder: programOnPort,
  });
}

const toDnsPod = ({ options, node }: NodeContext): DesiredPod =>
  toOwnPod(dnsPodManifest(options.clusterDnsImage, domainOf(options.clusterDomain)), "the DNS server", node.name);

/** A pod that the node runs for itself. */
function toOwnPod(manifest: object, what: string, nodeName: string): DesiredPod {
  const file = `${what} of this node`;
  const [read] = readManifestValue(manifest, { file, nodeName, source: "file" }).pods;
  if (!read) throw new Error(`the manifest of ${file} is not valid`);
  // It is in no file.
  const { location: _, ...pod } = read;
  return pod;
}

/**
 * The kernel's rules for Services; undefined where there are none: in a cluster this is the work of kube-proxy, and pods that
 * run once have no process that would change them.
 * @param storedRange that of an earlier process, which left rules for it
 */
async function buildServiceProxy(
  { options, owner, clock, logger }: NodeContext,
  sandboxes: () => readonly SandboxSnapshot[],
  storedRange: string,
): Promise<ServiceProxy | undefined> {
  if (options.kubeconfig !== "" || options.runOnce) return undefined;
  const { nodePortAddresses, rootDir, serviceClusterIpRange } = options;
  const prefix = chainPrefix(owner.rootHash);
  const deps = { clock, logger, prefix, rootDir, nodePortAddresses, sandboxes };
  const families = familiesOfRanges(serviceClusterIpRange);
  for (const { family } of parseRanges(storedRange).filter((it) => !families.includes(it.family))) {
    await new KernelRules({ ...deps, family }).remove().catch((error: unknown) => {
      logger.warn(`The rules of Services for ${family} are not removed: ${messageOf(error)}`);
    });
  }
  if (families.length === 0) return undefined;
  const rules = new DualStackRules(families.map((family) => new KernelRules({ ...deps, family })));
  if (await rules.prepare(storedRange !== "")) return rules;
  logger.info(`Services have no addresses, their names lead to pods: ${rules.problem}`);
  return undefined;
}

/** The largest answer of the ingress server about its configuration. */
const MAX_OUTCOME_BYTES = 16 * 1024;

function buildIngressManager(
  context: ControllerContext,
  { engine, ...parts }: { kubelet: Kubelet; engine: DockerEngine; services: ServiceManager; isSettled: () => boolean },
  options: KubeletOptions,
): IngressManager {
  const [http = 0, https = 0] = options.ingressPorts.split(",").map(Number);
  const manifest = ingressPodManifest(options.ingressImage, { http, https });
  let made: DesiredPod | undefined;
  // Most nodes have no Ingress, and to read a manifest would be a twentieth of their start.
  const server = () => (made ??= toOwnPod(manifest, "the Ingresses", context.node.name));
  return new IngressManager({
    context,
    ports: { http, https },
    server,
    ...parts,
    readOutcome: () => {
      const { uid = "" } = server().pod.metadata;
      const volume = new PodDirectories(options.rootDir, uid).volume("empty-dir", INGRESS_VOLUME);
      return parseOutcome(readBeneath(volume, OUTCOME_FILE));
    },
    // Without the signal it looks a second later.
    wake: (id) => void engine.containers.signal(id, WAKE_SIGNAL).catch(() => {}),
    next: parts.kubelet,
  });
}

/** A file of a directory that a container writes: no link leads out of it. undefined while it cannot be read. */
function readBeneath(directory: string, name: string): string | undefined {
  return unlessFailed(() => {
    using held = openBeneath(directory, name);
    return readTextIfReadable(descriptorPath(held.descriptor), MAX_OUTCOME_BYTES);
  });
}

/** Returns why the node takes no such pod at present, or undefined. Asked for pods that do not run yet. */
type PodAdmitHandler = (pod: Pod) => Rejection | undefined;

/** Decides which pods the node takes: features of the engine, admit handlers, resources, in this order. */
class PodAdmission implements PodRules {
  /** Pods that the node takes at most. */
  readonly maxPods: number;
  readonly #context: NodeContext;
  readonly #engine: DockerEngine;
  readonly #settings: NodeSettings | undefined;
  readonly #node: NodeAdmission;
  readonly #handlers: PodAdmitHandler[] = [];
  /** The last revision of each pod, with what it was made of besides the pod: most changes are of another pod. */
  readonly #revisions = new WeakMap<DesiredPod, { inputs: readonly unknown[]; revision: PodRevision }>();

  /** @param settings absent for a node whose pods something else assigns */
  constructor(context: NodeContext, engine: DockerEngine, settings: NodeSettings | undefined, labels: NodeLabels) {
    const { node, options, allocatable } = context;
    this.#context = context;
    this.#engine = engine;
    this.#settings = settings;
    this.maxPods = computeMaxPods(options, node.cpuCount);
    const { ephemeralStorageBytes, ...others } = allocatable;
    const offer = {
      name: node.name,
      get labels() {
        return labels();
      },
      comparesAllLabels: options.validate === "strict",
      maxPods: this.maxPods,
      ...others,
      // 0: the size of the disk is not known.
      ...(ephemeralStorageBytes > 0 && { ephemeralStorageBytes }),
      ...(node.hugePageBytes && { hugePageBytes: node.hugePageBytes }),
    };
    this.#node = new NodeAdmission(offer, openStateFile(context, "allocations"));
  }

  /** Eviction and node shutdown refuse new pods this way. */
  addHandler(handler: PodAdmitHandler): void {
    this.#handlers.push(handler);
  }

  toPodRevision(desired: DesiredPod, state: DesiredState): PodRevision {
    const { configMaps, secrets, unreadSecrets, notices } = state;
    const inputs = [configMaps, secrets, unreadSecrets, notices?.get(desired.pod.metadata.uid ?? "")];
    const known = this.#revisions.get(desired);
    if (known?.inputs.every((input, index) => input === inputs[index])) return known.revision;
    const revision = toPodRevision(desired, state, this.#context.options, this.#context.node);
    this.#revisions.set(desired, { inputs, revision });
    return revision;
  }

  holdOf(desired: DesiredPod, { objects }: DesiredState): string | undefined {
    return this.#settings?.holdOf(desired, objects);
  }

  admit(...[pods, running, isComplete, earlier]: Parameters<PodRules["admit"]>): Admission {
    const refusals = new Map<PodUID, Rejection>();
    const refusedEdits = new Map<PodUID, Rejection>();
    // Refused pods take no resources from others.
    const others = pods.flatMap((desired) => {
      const uid = desired.pod.metadata.uid ?? "";
      const refusal = this.#findRefusal(desired.pod, !running.has(uid));
      if (!refusal) return desired;
      const before = earlier.get(uid);
      const isKept = before !== undefined && !this.#findRefusal(before.pod, false);
      (isKept ? refusedEdits : refusals).set(uid, refusal);
      return isKept ? before : [];
    });
    const admission = this.#node.admit(others, running, isComplete, earlier);
    return {
      rejections: new Map([...admission.rejections, ...refusals]),
      resizes: admission.resizes,
      refusedEdits: new Map([...admission.refusedEdits, ...refusedEdits]),
    };
  }

  #findRefusal(pod: Pod, isNew: boolean): Rejection | undefined {
    const unsupported = findPodRefusal({ pod, engine: this.#engine.info(), settings: this.#context.options });
    if (unsupported || !isNew) return unsupported;
    for (const handler of this.#handlers) {
      const refusal = handler(pod);
      if (refusal) return refusal;
    }
    return undefined;
  }
}

/** A longer text takes more than some 10 ms, and is parsed in another thread. */
const LONG_MANIFEST_BYTES = 256 * 1024;

/** Manifests are read in other threads, except short texts. */
function toManifestReader({ options, environment, node, background }: NodeContext): ManifestReader {
  const { slot, tasks, textFiles: files } = background;
  return {
    read: (bytes, file, source) => {
      const how: ReadManifestOptions = {
        file,
        nodeName: node.name,
        source,
        strictness: options.validate,
        allowPrivileged: options.allowPrivileged,
      };
      const { manifestIdentityFile } = options;
      if (manifestIdentityFile !== "" && encryptionOf(bytes))
        return tasks.readEncryptedManifest(bytes, how, manifestIdentityFile);
      return bytes.length > LONG_MANIFEST_BYTES ? tasks.readManifest(bytes, how) : readManifest(bytes, how);
    },
    readManifests: async (path, known) =>
      (await checkForChange(path, known, slot)) ?? (await tasks.readManifests(path, known)),
    files,
    proxyFor: (url) => proxyFor(url, environment),
  };
}

/**
 * The node of a cluster; undefined without --kubeconfig, and then nothing of it is loaded.
 * @throws SettingsError when the kubeconfig cannot be used
 */
async function buildCluster(context: NodeContext, checkpoints: CheckpointStore): Promise<ClusterNode | undefined> {
  const { options, node } = context;
  if (options.kubeconfig === "" || options.runOnce) return undefined;
  const { ClusterNode } = await import("../../cluster/cluster-node.ts");
  return new ClusterNode({
    ...context,
    nodeName: node.name,
    userAgent: `kubelet-ts/${probeVersion} (linux/${ARCHITECTURE})`,
    proxyFor: (url) => proxyFor(url, context.environment),
    stored: {
      checkpoints,
      services: openStateFile(context, "services"),
      runtimeClasses: openStateFile(context, "runtime-classes"),
    },
    makeSigningRequest,
  });
}

/** As the containers, they have the name under which the root directory was first used. */
function openCheckpoints({ options, owner: { nodeName }, clock, logger, background }: NodeContext): CheckpointStore {
  const { replaceFile } = background.tasks;
  return new CheckpointStore({ dir: `${options.rootDir}/checkpoints`, nodeName, clock, logger, replaceFile });
}

/** The store and the writers of the local API; nothing listens yet. */
function buildLocalApi(context: NodeContext): LocalApi {
  const { tlsMinVersion, tlsCipherSuites } = context.options;
  const tlsVersions = toTlsVersions(tlsMinVersion, tlsCipherSuites);
  return new LocalApi({
    ...context,
    tlsVersions,
    version: versionInfo(),
    mark: openStateFile(context, "resource-version"),
  });
}

/** Cordon, labels and annotations, as clients have set them. */
const buildNodeSettings = (context: NodeContext): NodeSettings =>
  new NodeSettings({
    ...context,
    file: openStateFile(context, "cordon"),
    nodeName: context.node.name,
    fixedLabels: nodeLabelsOf(context),
    submittedSourceId: SOURCE_ID,
  });

function versionInfo(): object {
  const { major, minor } = KUBERNETES_VERSION;
  return {
    major,
    minor,
    gitVersion: `v${major}.${minor}.0+kubelet-ts.${buildInfo.version}`,
    gitCommit: buildInfo.gitCommit,
    gitTreeState: buildInfo.gitTreeState,
    buildDate: buildInfo.buildDate,
    goVersion: `bun${Bun.version}`,
    compiler: "bun",
    platform: `linux/${ARCHITECTURE}`,
  };
}
