import { type KubeletOptions, OPTION_TABLE, type Origins, ROW_BY_FIELD } from "./option-table.ts";

/** Type fields of the configuration file. Source: kubelet.config.k8s.io. */
export const CONFIG_KIND = "KubeletConfiguration";
export const CONFIG_API_VERSION = "kubelet.config.k8s.io/v1beta1";

type Tree = { [key: string]: unknown };

/**
 * The options as a KubeletConfiguration with masked secrets, for `/configz` and `kubelet-ts config`. Options without a
 * field upstream are below `kubeletTs`. Source: kubelet's `/configz`.
 */
export function toKubeletConfiguration(options: KubeletOptions): Tree {
  const config: Tree = { kind: CONFIG_KIND, apiVersion: CONFIG_API_VERSION };
  for (const [field, row] of FIELD_ROWS) setField(config, field, row.kind.toField(options[row.option]));
  const { kubeletTs, ...upstream } = config;
  return { ...upstream, kubeletTs };
}

/** Fields that are one string upstream. */
const STRINGS = ["staticPodPath", "staticPodURL"] as const;

/**
 * The options as `/configz` shows them: as {@link toKubeletConfiguration}, decodable with upstream's types. Of several
 * static pod paths or URLs the first is in the field of upstream, and all of them are below `kubeletTs`.
 */
export function toServedConfiguration(options: KubeletOptions): Tree {
  const { kubeletTs, ...config } = toKubeletConfiguration(options);
  const several = STRINGS.filter((field) => Array.isArray(config[field]));
  const lists = Object.fromEntries(several.map((field) => [`${field}s`, config[field]]));
  const firsts = Object.fromEntries(several.map((field) => [field, (config[field] as unknown[])[0]]));
  return { ...config, ...firsts, kubeletTs: { ...(kubeletTs as Tree), ...lists } };
}

/** Each flag with its value, as in `address=0.0.0.0`, sorted, with masked secrets. Source: newer kubelets' `/flagz`. */
export const toFlagLines = (options: KubeletOptions): string[] =>
  OPTION_TABLE.flatMap((row) => {
    if (row.is !== "option" || row.flag === undefined || row.deprecated !== undefined) return [];
    const value = row.kind.toField(options[row.option]);
    return `${row.flag}=${typeof value === "object" ? JSON.stringify(value) : value}`;
  }).sort();

/** Origin of each field of {@link toKubeletConfiguration}, by dotted path. */
export const originsByField = (origins: Origins): Map<string, string> =>
  new Map(FIELD_ROWS.map(([field, row]) => [field, origins[row.option]]));

const FIELD_ROWS = [...ROW_BY_FIELD].flatMap(([field, row]) => (row.is === "option" ? [[field, row] as const] : []));

function setField(tree: Tree, field: string, value: unknown): void {
  const parts = field.split(".");
  let node = tree;
  for (const part of parts.slice(0, -1)) {
    node[part] ??= {};
    node = node[part] as Tree;
  }
  node[parts.at(-1)!] = value;
}
