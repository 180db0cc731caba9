import { readdirSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import * as v from "valibot";
import type { Pod } from "../../base/api/pod.ts";
import { parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import { Turns } from "../../base/concurrency/turns.ts";
import {
  type DirectoryText,
  type ReplaceFile,
  readBoundedText,
  readDirectoryTexts,
  SYSTEM_FILE_BYTES,
  type TextFiles,
} from "../../base/files/whole-file.ts";
import { type RunProgramOptions, runProgram } from "../../base/host/run-program.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { PodUID } from "../../base/model/pod.ts";
import type { PodNetworks, SandboxNetwork } from "../../base/model/pod-networks.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import { messageOf, unlessCode } from "../../base/text/error-message.ts";
import { jsonIfValid } from "../../base/text/json.ts";
import { computeHostPorts } from "../../plan/pod-network.ts";

const IndexSchema = v.pipe(v.number(), v.integer(), v.minValue(0));

/**
 * The output of a plugin to ADD: of 0.3.0 to 1.0.0 and, in `ip4` and `ip6`, of earlier versions. The next plugins, CHECK and
 * DEL receive it unchanged.
 */
const ResultSchema = v.looseObject({
  cniVersion: v.optional(v.string()),
  interfaces: v.optional(v.nullable(v.array(v.looseObject({ sandbox: v.optional(v.string()) })))),
  ips: v.optional(v.nullable(v.array(v.looseObject({ address: v.string(), interface: v.optional(IndexSchema) })))),
  ip4: v.optional(v.nullable(v.looseObject({ ip: v.string() }))),
  ip6: v.optional(v.nullable(v.looseObject({ ip: v.string() }))),
});

type CniResult = v.InferOutput<typeof ResultSchema>;

const ErrorSchema = v.object({
  code: v.optional(v.number()),
  msg: v.optional(v.string(), ""),
  details: v.optional(v.string(), ""),
});

/** @throws Error when the text is not a result */
export function parseCniResult(text: string): CniResult {
  const data = jsonIfValid(text);
  if (data === undefined) throw new Error("its output is not JSON");
  return parseWith(ResultSchema, data, "its output is not a result: the whole", "its output is not a result: ");
}

/** Addresses of the pod, IPv4 first; those of interfaces on the host are left out. */
export function toPodIps({ interfaces, ips, ip4, ip6 }: CniResult): string[] {
  const ofPod = (ips ?? []).filter((ip) => {
    const owner = ip.interface === undefined ? undefined : interfaces?.[ip.interface];
    return owner === undefined || (owner.sandbox ?? "") !== "";
  });
  const addresses = [...ofPod.map(({ address }) => address), ip4?.ip ?? "", ip6?.ip ?? ""]
    .map((address) => address.split("/", 1)[0]!)
    .filter((address) => isIP(address) !== 0);
  return addresses.toSorted((a, b) => isIP(a) - isIP(b));
}

/**
 * Whether a failed CHECK is a defect of the plugin: portmap (1.1.1) expects its IPv6 rules wherever ip6tables works, but
 * makes none for a pod without an IPv6 address.
 */
export function isFalseAlarm(problem: string, result: CniResult): boolean {
  return problem.includes("could not check ipv6 dnat") && !toPodIps(result).some((address) => isIP(address) === 6);
}

export function describePluginFailure(outcome: { exitCode: number; stdout: string; stderr: string }): string {
  const parsed = v.safeParse(ErrorSchema, jsonIfValid(outcome.stdout));
  if (parsed.success && parsed.output.msg !== "") {
    const { msg, details } = parsed.output;
    return details === "" ? msg : `${msg}; ${details}`;
  }
  const output = (outcome.stderr.trim() || outcome.stdout.trim()).slice(0, 1000);
  return output === "" ? `exit code ${outcome.exitCode}` : output;
}

/** Versions of the specification that are spoken, oldest first. */
const CNI_VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"] as const;

const PluginSchema = v.looseObject({
  type: v.pipe(v.string(), v.regex(/^[^/\0]+$/, "must be the name of a program, without a path")),
  /** Which parts of `runtimeConfig` the plugin takes, e.g. `portMappings`. */
  capabilities: v.optional(v.record(v.string(), v.boolean())),
});

/** The configuration of one plugin, with fields that only the plugin knows. */
type PluginConfig = v.InferOutput<typeof PluginSchema>;

const NameSchema = v.pipe(
  v.string(),
  v.regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/, "must begin with a letter or digit, then letters, digits, _, . and -"),
);

/** A configuration list: the plugins that make the network of a pod, in the order of ADD. */
const NetworkConfigSchema = v.object({
  cniVersion: v.optional(v.string(), "0.1.0"),
  name: NameSchema,
  disableCheck: v.optional(v.boolean(), false),
  plugins: v.pipe(v.array(PluginSchema), v.minLength(1, "must name a plugin")),
});

type NetworkConfig = v.InferOutput<typeof NetworkConfigSchema>;

const SingleSchema = v.looseObject({
  cniVersion: v.optional(v.string(), "0.1.0"),
  name: NameSchema,
  ...PluginSchema.entries,
});

interface ChosenConfig {
  /** undefined: no file can be used. */
  config: NetworkConfig | undefined;
  /** Files before it that cannot be used: the name, and why. */
  problems: string[];
}

/** Files of the configuration directory that are read. Source: libcni's `ConfFiles`. */
const CONFIG_EXTENSIONS = [".conf", ".conflist", ".json"];

/** The first file, by name, that can be used. Source: dockershim's `getDefaultCNINetwork`. */
export function chooseNetworkConfig(files: readonly { name: string; text: string }[]): ChosenConfig {
  const problems: string[] = [];
  for (const { name, text } of files.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    try {
      return { config: parseNetworkConfig(name, text), problems };
    } catch (error) {
      problems.push(`${name}: ${messageOf(error)}`);
    }
  }
  return { config: undefined, problems };
}

/**
 * A list (`.conflist`), or the configuration of a single plugin, which becomes a list of one.
 * @throws Error whose message names the field
 */
export function parseNetworkConfig(fileName: string, text: string): NetworkConfig {
  const data: unknown = JSON.parse(text);
  const config = fileName.endsWith(".conflist") ? parseWith(NetworkConfigSchema, data) : toList(data);
  if (!CNI_VERSIONS.some((known) => known === config.cniVersion)) {
    throw new Error(`cniVersion ${JSON.stringify(config.cniVersion)} is none of ${CNI_VERSIONS.join(", ")}`);
  }
  return config;
}

function toList(data: unknown): NetworkConfig {
  const { cniVersion, name, ...plugin } = parseWith(SingleSchema, data);
  return { cniVersion, name, disableCheck: false, plugins: [plugin as PluginConfig] };
}

/** @throws Error that names the field, or `whole` */
function parseWith<T>(schema: v.GenericSchema<unknown, T>, data: unknown, whole = "the file", prefix = ""): T {
  const parsed = v.safeParse(schema, data);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const path = v.getDotPath(issue);
  throw new Error(`${path === null ? whole : `${prefix}${path}`}: ${issue.message}`);
}

/** CHECK, and results as input of DEL, are new in 0.4.0. */
const knowsPreviousResult = (version: string) => version === "0.4.0" || version === "1.0.0";

/** Limits of a pod's traffic in bits per second, a quantity; for plugins with the capability `bandwidth`. */
const BANDWIDTH_ANNOTATIONS = {
  ingress: "kubernetes.io/ingress-bandwidth",
  egress: "kubernetes.io/egress-bandwidth",
} as const;

type CniCommand = "ADD" | "CHECK" | "DEL";

/** Name of the interface in the pod. Source: dockershim. */
const INTERFACE_NAME = "eth0";

/**
 * The variables of one call. Source: CNI specification, and the kubelet's `buildCNIRuntimeConf` for CNI_ARGS.
 * @param netns path of the network namespace; "" when it is gone
 */
function toPluginEnvironment(
  command: CniCommand,
  { sandboxId, pod }: { sandboxId: string; pod: { name: string; namespace: string } },
  netns: string,
  binDirs: readonly string[],
): Record<string, string> {
  const args = {
    IgnoreUnknown: "1",
    K8S_POD_NAMESPACE: pod.namespace,
    K8S_POD_NAME: pod.name,
    K8S_POD_INFRA_CONTAINER_ID: sandboxId,
  };
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: sandboxId,
    CNI_NETNS: netns,
    CNI_IFNAME: INTERFACE_NAME,
    CNI_PATH: binDirs.join(":"),
    CNI_ARGS: Object.entries(args)
      .map(([key, value]) => `${key}=${value}`)
      .join(";"),
  };
}

/**
 * The standard input of one call: the plugin's own configuration with what the list and the runtime add.
 * @param runtimeConfig values by the capability that takes them
 */
function toPluginInput(
  list: NetworkConfig,
  plugin: PluginConfig,
  runtimeConfig: Readonly<Record<string, unknown>>,
  prevResult: unknown,
): string {
  const taken = Object.entries(runtimeConfig).filter(([name]) => plugin.capabilities?.[name]);
  const { capabilities: _, ...own } = plugin;
  return JSON.stringify({
    ...own,
    cniVersion: list.cniVersion,
    name: list.name,
    ...(taken.length > 0 && { runtimeConfig: Object.fromEntries(taken) }),
    ...(prevResult !== undefined && { prevResult }),
  });
}

function toRuntimeConfig(pod: Pod): Record<string, unknown> {
  const portMappings = computeHostPorts(pod).map(({ hostPort, containerPort, protocol, hostIP }) => ({
    hostPort,
    containerPort,
    protocol: protocol.toLowerCase(),
    ...(hostIP && { hostIP }),
  }));
  const annotations = pod.metadata.annotations ?? {};
  const ingress = toBits(annotations[BANDWIDTH_ANNOTATIONS.ingress]);
  const egress = toBits(annotations[BANDWIDTH_ANNOTATIONS.egress]);
  const bandwidth = { ...rate("ingress", ingress), ...rate("egress", egress) };
  return { portMappings, ...(ingress || egress ? { bandwidth } : {}) };
}

/** Bits per second. The burst is without limit, as upstream. */
const rate = (direction: string, bits: number | undefined) =>
  bits ? { [`${direction}Rate`]: bits, [`${direction}Burst`]: 2 ** 31 - 1 } : {};

const toBits = (text: string | undefined): number | undefined =>
  text !== undefined && parseQuantity(text) ? quantityToWhole(text) : undefined;

interface CniOptions {
  /** `--network-plugin=cni`; without it nothing is attached, but what was attached before is detached. */
  isEnabled: boolean;
  confDir: string;
  binDirs: readonly string[];
  /** Results are kept there. */
  cacheDir: string;
  files: RecordFiles & Pick<TextFiles, "readDirectory">;
}

const RELEASE_RETRY_MS = 60_000;

/** Limit of one plugin: time and output. */
const PLUGIN_LIMITS = { timeoutMs: 120_000, maxBytes: 1024 * 1024 };

/** The networks of pods by the plugins of the Container Network Interface. Source: dockershim's `network/cni`, libcni. */
export class CniNetworks implements PodNetworks {
  readonly #options: CniOptions;
  readonly #store: AttachmentStore;
  readonly #problems: ChangeLogger;
  readonly #clock: Pick<Clock, "schedule">;
  #isConfigured = false;
  /** One call at a time for each sandbox. */
  readonly #turns = new Turns();

  constructor(options: CniOptions, clock: Pick<Clock, "schedule">, logger: Logger) {
    this.#options = options;
    this.#clock = clock;
    this.#problems = new ChangeLogger(logger);
    this.#store = new AttachmentStore(options.cacheDir, options.files, logger);
    if (options.isEnabled) this.#take(readDirectoryTexts(options.confDir, CONFIG_EXTENSIONS, SYSTEM_FILE_BYTES));
  }

  get isEnabled(): boolean {
    return this.#options.isEnabled;
  }

  async findProblem(): Promise<string | undefined> {
    if (!this.isEnabled || (await this.#readConfig()).config) return undefined;
    return this.problem();
  }

  problem(): string | undefined {
    if (!this.isEnabled || this.#isConfigured) return undefined;
    return `docker: network plugin is not ready: cni config uninitialized: there is no configuration in ${this.#options.confDir}`;
  }

  holds(id: ContainerId): boolean {
    return this.#store.get(id) !== undefined;
  }

  heldBy(uid: PodUID): ContainerId[] {
    const held = this.#store.list().filter(({ pod }) => pod.uid === uid);
    return held.map(({ sandboxId }) => sandboxId);
  }

  ipsOf(id: ContainerId): string[] | undefined {
    const result = this.#store.get(id)?.result;
    return result && toPodIps(result);
  }

  attach(sandbox: SandboxNetwork, pod: Pod, signal: AbortSignal): Promise<void> {
    return this.#turns.run(sandbox.id, async () => {
      const { config } = await this.#readConfig();
      if (!config) throw new Error(this.problem() ?? "there is no network configuration");
      const record: AttachmentRecord = {
        sandboxId: sandbox.id,
        pod: {
          uid: pod.metadata.uid ?? "",
          name: pod.metadata.name ?? "",
          namespace: pod.metadata.namespace ?? "default",
        },
        runtimeConfig: toRuntimeConfig(pod),
        config,
      };
      // Kept before the first plugin runs: after a crash, what it did can be undone.
      await this.#store.save(record);
      let result: CniResult | undefined;
      for (const plugin of config.plugins) {
        const output = await this.#call("ADD", record, plugin, sandbox.netns, result, signal);
        result = parseResult(plugin, output);
      }
      await this.#store.save({ ...record, result });
    });
  }

  detach(id: ContainerId, netns: string, signal: AbortSignal): Promise<void> {
    return this.#turns.run(id, async () => {
      const record = this.#store.get(id);
      if (!record) return;
      const name = `${record.pod.namespace}/${record.pod.name}`;
      try {
        await this.#delete(record, netns, signal);
        this.#problems.resolve(id, `The network of pod "${name}" was released`);
      } catch (error) {
        signal.throwIfAborted();
        this.#problems.log(id, "warn", `Cannot release the network of pod "${name}": ${messageOf(error)}`);
        // Nothing that was not made has to be released.
        if (record.result !== undefined) return this.#retryLater(id);
      }
      await this.#store.remove(id).catch((error: unknown) => {
        this.#problems.log(
          `record ${id}`,
          "warn",
          `The record of a network stays until the next start: ${messageOf(error)}`,
        );
      });
    });
  }

  async check(sandbox: SandboxNetwork, signal: AbortSignal): Promise<string | undefined> {
    return this.#turns.run(sandbox.id, async () => {
      const record = this.#store.get(sandbox.id);
      if (!record?.result || record.config.disableCheck || !knowsPreviousResult(record.config.cniVersion)) return;
      for (const plugin of record.config.plugins) {
        try {
          await this.#call("CHECK", record, plugin, sandbox.netns, record.result, signal);
        } catch (error) {
          signal.throwIfAborted();
          const problem = messageOf(error);
          if (!isFalseAlarm(problem, record.result)) return problem;
        }
      }
      return;
    });
  }

  async detachMissing(existing: ReadonlySet<ContainerId>, signal: AbortSignal): Promise<void> {
    for (const { sandboxId } of this.#store.list()) {
      if (!existing.has(sandboxId)) await this.detach(sandboxId, "", signal);
    }
  }

  async #delete(record: AttachmentRecord, netns: string, signal: AbortSignal): Promise<void> {
    const result = knowsPreviousResult(record.config.cniVersion) ? record.result : undefined;
    for (const plugin of record.config.plugins.toReversed()) {
      await this.#call("DEL", record, plugin, netns, result, signal);
    }
  }

  /** The namespace is gone by then. */
  #retryLater(id: ContainerId): void {
    this.#clock.schedule(RELEASE_RETRY_MS, () => void this.detach(id, "", new AbortController().signal));
  }

  /** Reads the directory each time: it is small, and a file that comes or changes is in use at once. */
  async #readConfig(): Promise<ChosenConfig> {
    const { confDir, files } = this.#options;
    return this.#take(await files.readDirectory(confDir, CONFIG_EXTENSIONS, SYSTEM_FILE_BYTES));
  }

  #take(found: readonly DirectoryText[]): ChosenConfig {
    const { confDir } = this.#options;
    const chosen = chooseNetworkConfig(found.map(({ name, text = "" }) => ({ name, text })));
    this.#isConfigured = chosen.config !== undefined;
    const text = chosen.problems.join("; ");
    if (text === "") this.#problems.resolve(confDir, `The network configuration in ${confDir} can be used`);
    else this.#problems.log(confDir, "warn", `The network configuration in ${confDir} cannot be used: ${text}`);
    return chosen;
  }

  /** @returns what it wrote. @throws Error that names the plugin and says why */
  async #call(
    command: CniCommand,
    record: AttachmentRecord,
    plugin: PluginConfig,
    netns: string,
    prevResult: CniResult | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const { runtimeConfig, config } = record;
    const { binDirs } = this.#options;
    const program = findPlugin(plugin, binDirs);
    const options: RunProgramOptions = {
      ...PLUGIN_LIMITS,
      input: toPluginInput(config, plugin, runtimeConfig, prevResult),
      env: toPluginEnvironment(command, record, netns, binDirs),
      signal,
    };
    const outcome = await runProgram([program], options).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new Error(`plugin ${describe(plugin, config)} failed (${command}): ${messageOf(error)}`, { cause: error });
    });
    if (outcome.exitCode === 0) return outcome.stdout;
    throw new Error(`plugin ${describe(plugin, config)} failed (${command}): ${describePluginFailure(outcome)}`);
  }
}

const describe = ({ type }: PluginConfig, { name }: NetworkConfig) => `"${type}" of network "${name}"`;

/** The first directory that has the program; the last one when none has, for the message of the failed start. */
function findPlugin({ type }: PluginConfig, binDirs: readonly string[]): string {
  const paths = binDirs.map((directory) => join(directory, type));
  return paths.find((path) => Bun.which(path) !== null) ?? paths.at(-1) ?? join("/opt/cni/bin", type);
}

function parseResult({ type }: PluginConfig, text: string): CniResult {
  try {
    return parseCniResult(text);
  } catch (error) {
    throw new Error(`plugin "${type}" failed (ADD): ${messageOf(error)}`, { cause: error });
  }
}

const RecordSchema = v.object({
  version: v.literal(1),
  sandboxId: v.string(),
  pod: v.object({ uid: v.string(), name: v.string(), namespace: v.string() }),
  runtimeConfig: v.record(v.string(), v.unknown()),
  config: NetworkConfigSchema,
  /** Absent: ADD had begun and did not end. */
  result: v.optional(ResultSchema),
});

const MAX_RECORD_BYTES = 1024 * 1024;

/** The attachment of one sandbox, with all that any later process needs to release it. */
type AttachmentRecord = Omit<v.InferOutput<typeof RecordSchema>, "version">;

/** How records are written and removed: in another thread, since the disk may not answer. */
interface RecordFiles {
  replaceFile: ReplaceFile;
  /** A file that is missing is success. */
  removeFile(path: string): Promise<void>;
}

/** A file for each sandbox that plugins were called for; written before ADD, removed after DEL has succeeded. */
class AttachmentStore {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #files: RecordFiles;
  readonly #records = new Map<string, AttachmentRecord>();

  constructor(directory: string, files: RecordFiles, logger: Logger) {
    this.#directory = directory;
    this.#files = files;
    this.#logger = logger;
    this.#load();
  }

  get(sandboxId: string): AttachmentRecord | undefined {
    return this.#records.get(sandboxId);
  }

  list(): AttachmentRecord[] {
    return [...this.#records.values()];
  }

  /** @throws the system's error when it cannot be written */
  async save(record: AttachmentRecord): Promise<void> {
    const text = JSON.stringify({ version: 1, ...record });
    await this.#files.replaceFile(this.#path(record.sandboxId), text, { durable: false, directoryMode: 0o700 });
    this.#records.set(record.sandboxId, record);
  }

  /** @throws the system's error */
  async remove(sandboxId: string): Promise<void> {
    await this.#files.removeFile(this.#path(sandboxId));
    this.#records.delete(sandboxId);
  }

  #path = (sandboxId: string) => join(this.#directory, `${sandboxId}.json`);

  #load(): void {
    const names = unlessCode(["ENOENT"], () => readdirSync(this.#directory)) ?? [];
    for (const name of names.filter((each) => each.endsWith(".json"))) {
      try {
        const data = JSON.parse(readBoundedText(join(this.#directory, name), MAX_RECORD_BYTES));
        const { version: _, ...record } = v.parse(RecordSchema, data);
        if (this.#path(record.sandboxId) !== join(this.#directory, name)) throw new Error("it names another sandbox");
        this.#records.set(record.sandboxId, record);
      } catch (error) {
        this.#logger.warn(`"${join(this.#directory, name)}" cannot be used: ${messageOf(error)}`);
      }
    }
  }
}
