import { isIP } from "node:net";
import * as v from "valibot";
import type { Pod } from "../../base/api/pod.ts";
import { parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { jsonIfValid } from "../../base/text/json.ts";
import { computeHostPorts } from "../../plan/pod-network.ts";

const IndexSchema = v.pipe(v.number(), v.integer(), v.minValue(0));

/**
 * The output of a plugin to ADD: of 0.3.0 to 1.0.0 and, in `ip4` and `ip6`, of earlier versions. The next plugins, CHECK and
 * DEL receive it unchanged.
 */
export const ResultSchema = v.looseObject({
  cniVersion: v.optional(v.string()),
  interfaces: v.optional(v.nullable(v.array(v.looseObject({ sandbox: v.optional(v.string()) })))),
  ips: v.optional(v.nullable(v.array(v.looseObject({ address: v.string(), interface: v.optional(IndexSchema) })))),
  ip4: v.optional(v.nullable(v.looseObject({ ip: v.string() }))),
  ip6: v.optional(v.nullable(v.looseObject({ ip: v.string() }))),
});

export type CniResult = v.InferOutput<typeof ResultSchema>;

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
export type PluginConfig = v.InferOutput<typeof PluginSchema>;

const NameSchema = v.pipe(
  v.string(),
  v.regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/, "must begin with a letter or digit, then letters, digits, _, . and -"),
);

/** A configuration list: the plugins that make the network of a pod, in the order of ADD. */
export const NetworkConfigSchema = v.object({
  cniVersion: v.optional(v.string(), "0.1.0"),
  name: NameSchema,
  disableCheck: v.optional(v.boolean(), false),
  plugins: v.pipe(v.array(PluginSchema), v.minLength(1, "must name a plugin")),
});

export type NetworkConfig = v.InferOutput<typeof NetworkConfigSchema>;

const SingleSchema = v.looseObject({
  cniVersion: v.optional(v.string(), "0.1.0"),
  name: NameSchema,
  ...PluginSchema.entries,
});

export interface ChosenConfig {
  /** undefined: no file can be used. */
  config: NetworkConfig | undefined;
  /** Files before it that cannot be used: the name, and why. */
  problems: string[];
}

/** Files of the configuration directory that are read. Source: libcni's `ConfFiles`. */
export const CONFIG_EXTENSIONS = [".conf", ".conflist", ".json"];

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
export const knowsPreviousResult = (version: string) => version === "0.4.0" || version === "1.0.0";

/** Limits of a pod's traffic in bits per second, a quantity; for plugins with the capability `bandwidth`. */
const BANDWIDTH_ANNOTATIONS = {
  ingress: "kubernetes.io/ingress-bandwidth",
  egress: "kubernetes.io/egress-bandwidth",
} as const;

export type CniCommand = "ADD" | "CHECK" | "DEL";

/** Name of the interface in the pod. Source: dockershim. */
const INTERFACE_NAME = "eth0";

/**
 * The variables of one call. Source: CNI specification, and the kubelet's `buildCNIRuntimeConf` for CNI_ARGS.
 * @param netns path of the network namespace; "" when it is gone
 */
export function toPluginEnvironment(
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
export function toPluginInput(
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

export function toRuntimeConfig(pod: Pod): Record<string, unknown> {
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
