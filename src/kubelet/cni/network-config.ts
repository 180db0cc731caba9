import * as v from "valibot";
import { messageOf } from "../../base/text/error-message.ts";

/** Versions of the specification that are spoken, oldest first. */
const CNI_VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"] as const;

const PluginSchema = v.looseObject({
  /** Name of the program. */
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

const ListSchema = v.object({
  cniVersion: v.optional(v.string(), "0.1.0"),
  name: NameSchema,
  disableCheck: v.optional(v.boolean(), false),
  plugins: v.pipe(v.array(PluginSchema), v.minLength(1, "must name a plugin")),
});

/** A configuration list: the plugins that make the network of a pod, in the order of ADD. */
export type NetworkConfig = v.InferOutput<typeof ListSchema>;

export const NetworkConfigSchema: v.GenericSchema<unknown, NetworkConfig> = ListSchema;

const SingleSchema = v.looseObject({
  cniVersion: v.optional(v.string(), "0.1.0"),
  name: NameSchema,
  ...PluginSchema.entries,
});

/** A file of the configuration directory. */
interface ConfigFile {
  /** Without the directory. */
  name: string;
  text: string;
}

export interface ChosenConfig {
  /** undefined: no file can be used. */
  config: NetworkConfig | undefined;
  /** Files before it that cannot be used: the name, and why. */
  problems: string[];
}

/** Files of the configuration directory that are read. Source: libcni's `ConfFiles`. */
export const CONFIG_EXTENSIONS = [".conf", ".conflist", ".json"];

/** The first file, by name, that can be used. Source: dockershim's `getDefaultCNINetwork`. */
export function chooseNetworkConfig(files: readonly ConfigFile[]): ChosenConfig {
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
  const config = fileName.endsWith(".conflist") ? parseWith(ListSchema, data) : toList(data);
  if (!CNI_VERSIONS.some((known) => known === config.cniVersion)) {
    throw new Error(`cniVersion ${JSON.stringify(config.cniVersion)} is none of ${CNI_VERSIONS.join(", ")}`);
  }
  return config;
}

function toList(data: unknown): NetworkConfig {
  const { cniVersion, name, ...plugin } = parseWith(SingleSchema, data);
  return { cniVersion, name, disableCheck: false, plugins: [plugin as PluginConfig] };
}

function parseWith<T>(schema: v.GenericSchema<unknown, T>, data: unknown): T {
  const parsed = v.safeParse(schema, data);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  throw new Error(`${v.getDotPath(issue!) ?? "the file"}: ${issue!.message}`);
}

/** CHECK, and results as input of DEL, are new in 0.4.0. */
export const knowsPreviousResult = (version: string) => version === "0.4.0" || version === "1.0.0";
