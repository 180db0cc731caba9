import { X509Certificate } from "node:crypto";
import { accessSync, constants, existsSync, readdirSync, readlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Secret } from "../../base/api/config-objects.ts";
import type { Pod } from "../../base/api/pod.ts";
import { withRequests } from "../../base/api/pod-requests.ts";
import { readTextIfReadable } from "../../base/files/whole-file.ts";
import { findRulesProblem, runIptables } from "../../base/host/iptables.ts";
import { readMayLowerOomScores, readNodeName } from "../../base/host/node-info.ts";
import { readKeptNamesIfReadable } from "../../base/host/node-name.ts";
import { findPortHolder, hasSocket } from "../../base/host/port-holder.ts";
import { meminfoBytes, parseRoutes } from "../../base/host/proc.ts";
import { listInstances, readInstance } from "../../base/host/root-directory.ts";
import { runProgram } from "../../base/host/run-program.ts";
import { podTemplateOf } from "../../base/model/desired-state.ts";
import { EngineError } from "../../base/model/engine-error.ts";
import type { Finding } from "../../base/model/finding.ts";
import { containersOf } from "../../base/model/pod.ts";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { encryptionOf } from "../../base/text/age-text.ts";
import { isTimeZone } from "../../base/text/cron-schedule.ts";
import { messageOf, unlessFailed } from "../../base/text/error-message.ts";
import { type ImageReference, parseImageReference } from "../../base/text/image-reference.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import { DockerHost, type HostFacts } from "../../docker/docker-host.ts";
import type { ManifestResult, ReadManifestOptions } from "../../manifest/object-reading.ts";
import { readManifest, refuseManifest } from "../../manifest/read-manifest.ts";
import { resolvePullSecrets } from "../../plan/object-references.ts";
import { familiesOfRanges } from "../../plan/service-addresses.ts";
import { parseSavedRules } from "../../plan/service-rules.ts";
import { looksLikeManifest, readManifests } from "../../sources/manifest-files.ts";
import { CgroupReader } from "../../stats/cgroups/cgroup-reader.ts";
import { readCapacityNow } from "../../stats/disk-usage.ts";
import { detectManager, examineService, findService } from "../install/run-install.ts";

/** Response of the registry about an image. */
type RemoteImage =
  /** Why it cannot be pulled. */
  | { problem: string }
  /** As Docker names them: amd64, arm64; empty where the registry does not report it. */
  | { architectures: readonly string[] };

export interface ImageFacts {
  name: string;
  present: boolean;
  /** As Docker names it; "" when the image is not present. */
  architecture: string;
  pullPolicy: string;
  /** Absent when no registry was asked. */
  remote?: RemoteImage;
}

const MAX_IMAGES = 200;
/** A registry that does not answer by then is reported. */
const REGISTRY_TIMEOUT_MS = 15_000;

/** Credentials for an image, best first, as for a pull. */
export type CredentialLookUp = (
  reference: ImageReference,
  pullSecrets: readonly Secret[],
  signal: AbortSignal,
) => Promise<RegistryAuth[]>;

/**
 * Facts about the images of pods.
 * @param secrets by full name, for the pods' pull secrets
 * @param credentials asked for images that the registry has to have; absent: no registry is asked
 */
export async function gatherImages(
  host: Pick<DockerHost, "architectureOf" | "registryArchitectures">,
  pods: readonly Pick<Pod, "metadata" | "spec">[],
  secrets: ReadonlyMap<string, Secret>,
  credentials: CredentialLookUp | undefined,
): Promise<ImageFacts[]> {
  const wanted = new Map<string, { pullPolicy: string; pullSecrets: readonly Secret[] }>();
  for (const pod of pods) {
    const pullSecrets = resolvePullSecrets(pod, { secrets });
    for (const { image = "", imagePullPolicy: pullPolicy = "" } of containersOf(pod.spec)) {
      // One container that always pulls is enough to need the registry.
      if (wanted.get(image)?.pullPolicy !== "Always") wanted.set(image, { pullPolicy, pullSecrets });
    }
  }
  return Promise.all(
    [...wanted].slice(0, MAX_IMAGES).map(async ([name, { pullPolicy, pullSecrets }]): Promise<ImageFacts> => {
      const architecture = await host.architectureOf(name);
      const needsRegistry = pullPolicy === "Always" || (architecture === undefined && pullPolicy !== "Never");
      let remote: RemoteImage | undefined;
      if (credentials && needsRegistry) {
        const signal = AbortSignal.timeout(REGISTRY_TIMEOUT_MS);
        try {
          const auths = await credentials(parseImageReference(name), pullSecrets, signal);
          remote = { architectures: await host.registryArchitectures(name, auths, signal) };
        } catch (error) {
          const problem = signal.aborted ? `no answer within ${REGISTRY_TIMEOUT_MS / 1000} s` : messageOf(error);
          remote = { problem };
        }
      }
      return {
        name,
        present: architecture !== undefined,
        architecture: architecture ?? "",
        pullPolicy,
        ...(remote && { remote }),
      };
    }),
  );
}

/** Manifests that are configured. */
interface ManifestFiles {
  paths: string[];
  findings: Finding[];
  /** Paths that cannot be read, or where their links lead, with the reason. */
  unreadable: { path: string; message: string }[];
  pods: number;
  /** Those of pods, and the templates of workloads. */
  specs: Pick<Pod, "metadata" | "spec">[];
  /** Secrets by full name. */
  secrets: Map<string, Secret>;
}

/** Reads an encrypted manifest. */
export type ReadEncrypted = (bytes: Uint8Array, how: ReadManifestOptions) => Promise<ManifestResult>;

/**
 * Reads the manifests of `--pod-manifest-path`, as the kubelet does; those of URLs are only named.
 * @param decrypt absent: an encrypted one is a finding
 */
async function readManifestFiles(options: KubeletOptions, decrypt?: ReadEncrypted): Promise<ManifestFiles> {
  const result: ManifestFiles = {
    paths: [...options.podManifestPaths, ...options.manifestUrls],
    findings: [],
    unreadable: [],
    pods: 0,
    specs: [],
    secrets: new Map(),
  };
  const nodeName = readNodeName(options.hostnameOverride);
  for (const path of options.podManifestPaths) {
    const { listing, contents } = readManifests(path, new Map());
    const howOf = (file: string): ReadManifestOptions => ({
      file,
      nodeName,
      source: "file",
      strictness: options.validate,
      allowPrivileged: options.allowPrivileged,
    });
    const refuse = (file: string, message: string) => addManifest(result, refuseManifest(howOf(file), message));
    const target = unlessFailed(() => resolve(dirname(path), readlinkSync(path))) ?? path;
    if ("message" in listing) result.unreadable.push({ path: target, message: listing.message });
    for (const [file, content] of contents) {
      if (content.kind === "unreadable") refuse(file, content.message);
      if (content.kind === "dangling") refuse(file, "its symbolic link leads nowhere");
      if (content.kind !== "content") continue;
      const { bytes } = content;
      if (listing.kind === "directory" && !looksLikeManifest(basename(file), bytes)) continue;
      const read = encryptionOf(bytes) && decrypt ? decrypt : readManifest;
      addManifest(result, await read(bytes, howOf(file)));
    }
  }
  return result;
}

function addManifest(result: ManifestFiles, { pods, findings, secrets, objects }: ManifestResult): void {
  result.findings.push(...findings);
  result.pods += pods.length;
  result.specs.push(...pods.map(({ pod }) => pod));
  for (const desired of objects) {
    const template = podTemplateOf(desired);
    const { namespace = "default" } = desired.object.metadata;
    if (template) result.specs.push({ ...withRequests(template), metadata: { ...template.metadata, namespace } });
  }
  for (const secret of secrets) {
    result.secrets.set(`${secret.metadata.namespace ?? "default"}/${secret.metadata.name}`, secret);
  }
}

/** Everything that is checked. */
export type MachineFacts = Awaited<ReturnType<typeof gatherFacts>>;

/** The files of --config and --config-dir. */
interface ConfigurationFacts {
  /** Errors of the files; they begin with file, line and column. */
  errors: readonly string[];
  /** Why the kubelet uses the last known good configuration instead. */
  rejected: string | undefined;
}

interface GatherInput {
  options: KubeletOptions;
  environment: Readonly<Record<string, string | undefined>>;
  buildMs: number;
  binaryTarget: string;
  /** Absent: no configuration files, or they are not checked. */
  configuration?: ConfigurationFacts | undefined;
  /** Reads encrypted manifests. */
  decrypt?: ReadEncrypted | undefined;
  /** Credentials for pulls; absent: registries are not asked. */
  credentials?: CredentialLookUp | undefined;
}

const MAX_PROC_BYTES = 1 << 20;
/** An engine that does not answer by then is reported. */
const ENGINE_TIMEOUT_MS = 5000;

/**
 * Reads everything the checks need. Changes nothing. Beyond this machine, only registries are asked, for images that have
 * to be pulled.
 */
export async function gatherFacts(input: GatherInput) {
  const { environment } = input;
  const running = readInstance(input.options.rootDir);
  const known = typeof running === "object" ? running.dockerEndpoint : "";
  const options = { ...input.options, dockerEndpoint: input.options.dockerEndpoint || known };
  const { engine, host, rootDir } = await readEngine(options, environment);
  const paths =
    options.podManifestPaths.length + options.manifestUrls.length > 0 ? undefined : runningManifestPaths(options);
  const manifests = await readManifestFiles({ ...options, ...(paths && { podManifestPaths: paths }) }, input.decrypt);
  const service = findService();
  return {
    configuration: input.configuration,
    isRoot: process.getuid?.() === 0,
    engine,
    /** Controllers in the hierarchies that are mounted. */
    cgroupControllers: [...new CgroupReader().layout.controllers.keys()],
    hasPsi: existsSync("/proc/pressure/cpu"),
    swapBytes: meminfoBytes(read("/proc/meminfo"), "SwapTotal") ?? 0,
    failSwapOn: options.failSwapOn,
    inotifyInstances: numberIn("/proc/sys/fs/inotify/max_user_instances"),
    inotifyWatches: numberIn("/proc/sys/fs/inotify/max_user_watches"),
    pidMax: numberIn("/proc/sys/kernel/pid_max"),
    ipForward: numberIn("/proc/sys/net/ipv4/ip_forward") === 1,
    /** undefined where br_netfilter is not loaded. */
    bridgeNetfilter: existsSync("/proc/sys/net/bridge/bridge-nf-call-iptables")
      ? numberIn("/proc/sys/net/bridge/bridge-nf-call-iptables") === 1
      : undefined,
    /** Why Services cannot have addresses; undefined where they can. */
    serviceProblem: await findRulesProblem(familiesOfRanges(options.serviceClusterIpRange)),
    /** Root directories that are gone and whose rules for Services are still there. */
    staleRules: (await readRuledRootDirs()).filter((path) => !existsSync(path)),
    mayLowerOomScores: readMayLowerOomScores(),
    /** Flags of the first CPU; empty where they cannot be read. */
    cpuFlags: /^flags\s*:\s*(.*)$/m.exec(read("/proc/cpuinfo"))?.[1]?.split(" ") ?? [],
    binaryTarget: input.binaryTarget,
    node: readNode(options),
    disks: readDisks([
      ["root directory", options.rootDir],
      ["images", rootDir],
    ]),
    nowMs: Date.now(),
    buildMs: input.buildMs,
    clockSynchronized: await readClockSynchronized(),
    nameservers: Array.from(
      read(options.resolvConf || "/etc/resolv.conf").matchAll(/^nameserver\s+(\S+)/gm),
      ([, ip]) => ip!,
    ),
    ports: readPorts(options),
    routes: readRoutes(),
    maxPods: options.maxPods,
    timeZone: readTimeZone(environment.TZ),
    otherOrchestrators: readOrchestrators(),
    manifests,
    images: host ? await gatherImages(host, manifests.specs, manifests.secrets, input.credentials) : [],
    certificates: readCertificates(options),
    unit: service && (await examineService(service)),
    hasServiceManager: detectManager({ destdir: "", isRoot: true, home: "", user: "" }) !== undefined,
  };
}

/** Static pod paths of the kubelet that uses the root directory, else of the only one that runs. */
function runningManifestPaths({ rootDir }: KubeletOptions): string[] {
  const own = readInstance(rootDir);
  const others = own ? [own] : listInstances().map(readInstance);
  const found = others.filter((instance) => typeof instance === "object");
  return found.length === 1 ? [...(found[0]?.manifestPaths ?? [])] : [];
}

/** Names of the node: of the next start, of the last run, and the machine's own. */
function readNode({ rootDir, hostnameOverride }: KubeletOptions) {
  const { name: last, isChosen = hostnameOverride !== "" } = readKeptNamesIfReadable(
    rootDir,
    readNodeName(hostnameOverride),
  );
  const name = hostnameOverride === "" ? last : readNodeName(hostnameOverride);
  return { name, last, machine: isChosen ? name : readNodeName("") };
}

/** As an engine that does not answer. */
const UNKNOWN: Omit<HostFacts, "rootDir" | "containers"> = {
  version: "",
  apiVersion: "",
  storageDriver: "",
  logDriver: "",
  cgroupDriver: "",
  cgroupVersion: "",
  liveRestore: false,
  warnings: [],
  bridgeSubnets: [],
  bridge: "docker0",
  bridges: [],
  rootless: false,
  firewall: "",
};

async function readEngine(options: KubeletOptions, environment: GatherInput["environment"]) {
  const given = {
    endpoint: options.dockerEndpoint || environment.DOCKER_HOST || "unix:///var/run/docker.sock",
    /** undefined: it answered. */
    problem: undefined as { kind: string; message: string } | undefined,
    /** `--cgroup-driver`; "" when it is not given. */
    wantedCgroupDriver: options.cgroupDriver as string,
    settings: readNetworkSettings(),
    /** Names of containers that another kubelet or orchestrator made. */
    foreignContainers: [] as readonly { name: string; owner: string }[],
  };
  const stateOf = (facts: typeof UNKNOWN, more: Partial<typeof given>) => ({ ...given, ...facts, ...more });
  const { owner: nodeName } = readKeptNamesIfReadable(options.rootDir, readNodeName(options.hostnameOverride));
  try {
    const host = new DockerHost({ endpoint: options.dockerEndpoint, environment, timeoutMs: ENGINE_TIMEOUT_MS });
    const { rootDir, containers, ...facts } = await host.facts(AbortSignal.timeout(ENGINE_TIMEOUT_MS));
    const foreignContainers = containers.flatMap(({ name, labels }) => {
      const owner = ownerOf(labels, nodeName);
      return owner ? { name, owner } : [];
    });
    return { engine: stateOf(facts, { foreignContainers }), host, rootDir };
  } catch (error) {
    const kind = error instanceof EngineError ? error.kind : "";
    const isLate = (error as Error).name === "TimeoutError";
    const late = `the engine at ${given.endpoint} takes the connection, and does not answer within ${ENGINE_TIMEOUT_MS / 1000} s`;
    const problem = { kind, message: isLate ? late : (error as Error).message };
    return { engine: stateOf(UNKNOWN, { problem }), host: undefined, rootDir: "" };
  }
}

/** The maker of a container that is not ours; undefined for ours and for plain ones. */
function ownerOf(labels: Readonly<Record<string, string>>, nodeName: string): string | undefined {
  const node = labels["kubelet-ts.io/node"];
  if (node !== undefined) return node === nodeName ? undefined : `kubelet-ts of node ${node}`;
  if ("io.kubernetes.pod.name" in labels) return "a kubelet";
  if ("com.docker.compose.project" in labels) return "docker compose";
  if ("com.docker.swarm.service.id" in labels) return "Docker Swarm";
  return undefined;
}

const read = (path: string): string => readTextIfReadable(path, MAX_PROC_BYTES) ?? "";

const numberIn = (path: string): number => Number(read(path).trim() || Number.NaN);

/** `capacity`: undefined where the file system cannot be asked. */
function readDisks(places: readonly (readonly [string, string])[]) {
  return places
    .filter(([, path]) => path !== "")
    .map(([name, path]) => {
      const at = existing(path);
      return { name, path, capacity: readCapacityNow(at), isReadOnly: isOnReadOnly(at) };
    });
}

/** Whether the file system is mounted read-only; permissions do not count. */
function isOnReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EROFS";
  }
}

/** The directory, or the nearest one above it that exists. */
function existing(path: string): string {
  let at = path;
  while (!existsSync(at) && at !== "/") at = join(at, "..");
  return at;
}

/** Root directories of those who have rules of Services in the kernel. */
async function readRuledRootDirs(): Promise<string[]> {
  const text = await runIptables("IPv4", "save", ["-t", "nat"]).catch(() => "");
  return [...parseSavedRules(text, "").rootDirs.values()];
}

/** undefined where timedatectl is not there or does not know. */
async function readClockSynchronized(): Promise<boolean | undefined> {
  const argv = ["timedatectl", "show", "-p", "NTPSynchronized", "--value"];
  const outcome = await runProgram(argv, { timeoutMs: 3000, maxBytes: 4096 }).catch(() => undefined);
  const text = outcome?.stdout.trim();
  return text === "yes" ? true : text === "no" ? false : undefined;
}

/** Zone of TZ or /etc/localtime; `problem`: it is not known, and UTC is used. @param given TZ of the environment */
function readTimeZone(given: string | undefined): { name: string; problem?: string | undefined } {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  if (given !== undefined && given !== "" && !isTimeZone(given.replace(/^:/, ""))) {
    return { name, problem: `TZ is "${given}", which is not a known time zone` };
  }
  try {
    const target = readlinkSync("/etc/localtime");
    if (!existsSync("/etc/localtime")) return { name, problem: `/etc/localtime names ${target}, which does not exist` };
  } catch {
    // A copy of the zone's file, or none, which means UTC.
  }
  return { name };
}

/** A port that kubelet-ts would listen on. */
interface PortFacts {
  flag: string;
  port: number;
  /** `own`: of the kubelet that is checked. `unknown`: this user may not know whose it is. */
  state: "free" | "own" | "unknown" | "taken";
  /** `nginx (pid 812)`; "" while it is free or unknown. */
  holder: string;
}

function readPorts(options: KubeletOptions): PortFacts[] {
  const wanted = [
    ["healthz-port", options.healthzPort],
    ["read-only-port", options.readOnlyPort],
    ["cadvisor-port", options.cadvisorPort],
    ["local-api-port", options.localApiPort],
    ["port", options.port],
  ] as const;
  const instance = readInstance(options.rootDir);
  return wanted
    .filter(([, port]) => port !== 0)
    .map(([flag, port]): PortFacts => {
      if (!hasSocket("TCP", port)) return { flag, port, state: "free", holder: "" };
      const holder = findPortHolder(port);
      if (holder === undefined) {
        const mayBeOwn = instance === "unreadable" || (instance !== undefined && process.getuid?.() !== 0);
        return { flag, port, state: mayBeOwn ? "unknown" : "taken", holder: mayBeOwn ? "" : "another program" };
      }
      const isOwn = typeof instance === "object" && holder.endsWith(`(pid ${instance.pid})`);
      return { flag, port, state: isOwn ? "own" : "taken", holder };
    });
}

const processIds = () => readdirSync("/proc").filter((name) => /^\d+$/.test(name));
const commOf = (pid: string) => read(`/proc/${pid}/comm`).trim();

const ORCHESTRATORS = ["kubelet", "k3s", "k3s-server", "k0s", "microk8s", "rke2", "nomad"];

const readOrchestrators = (): string[] =>
  processIds().flatMap((pid) => (ORCHESTRATORS.includes(commOf(pid)) ? `${commOf(pid)} (pid ${pid})` : []));

function readCertificates({ tlsCertFile, clientCaFile, certDir }: KubeletOptions) {
  const files = [tlsCertFile, clientCaFile, ...(certDir ? [join(certDir, "kubelet.crt")] : [])];
  return files.flatMap((path) => {
    if (!path) return [];
    return unlessFailed(() => [{ path, expiresMs: Date.parse(new X509Certificate(read(path)).validTo) }]) ?? [];
  });
}

/** Devices of container networks. */
const CONTAINER_DEVICE = /^(docker|br-|veth|cni|lo$)/;

/** Routes of IPv4 to networks, without the default route and those of container networks. @param table for tests */
export const readRoutes = (table = read("/proc/net/route")) =>
  parseRoutes(table).filter(({ device, subnet }) => !subnet.endsWith("/0") && !CONTAINER_DEVICE.test(device));

/** Settings of the machine's own engine: its configuration file, and the command line that it was started with. */
function readNetworkSettings() {
  const commands = processIds().map((pid) => ({ pid, name: commOf(pid) }));
  const engine = commands.find(({ name }) => name === "dockerd");
  const argv = engine ? read(`/proc/${engine.pid}/cmdline`).split("\0") : [];
  const proxies = commands.filter(({ name }) => name === "docker-proxy").length;
  return toNetworkSettings(read("/etc/docker/daemon.json") || undefined, argv, proxies);
}

/** Pure. @param file daemon.json @param argv of dockerd */
export function toNetworkSettings(file: string | undefined, argv: readonly string[], proxies: number) {
  // The engine reports a file that is no JSON.
  const settings = (unlessFailed(() => JSON.parse(file ?? "{}")) ?? {}) as Record<string, unknown>;
  const isOff = (name: string) => settings[name] === false || argv.includes(`--${name}=false`);
  const mark = "bridge-accept-fwmark";
  const hasMark = settings[mark] !== undefined || argv.some((word) => word.startsWith(`--${mark}`));
  return { hasProxy: !isOff("userland-proxy"), hasIptables: !isOff("iptables"), hasMark, proxies };
}
