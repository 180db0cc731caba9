import { describeMissingKey } from "../base/api/annotations.ts";
import type { Container, EnvVarSource, FileKeySelector, Pod } from "../base/api/pod.ts";
import type { ObjectIndex } from "../base/model/desired-state.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { namespaceOf } from "../base/model/pod.ts";
import type { PodEvent } from "../base/model/pod-event.ts";
import { messageOf } from "../base/text/error-message.ts";
import { type NodeAllocatable, resolveFieldRef, resolveResourceFieldRef, toNodeAllocatable } from "./downward-api.ts";
import { PodStepError } from "./waiting-reasons.ts";

export interface EnvironmentVariable {
  name: string;
  /** May come from a Secret: never logged. */
  value: string;
}

/** Sources of a container's environment other than its pod. */
export interface EnvironmentFacts {
  objects: ObjectIndex;
  /** IPv4 first; with host networking the node's. */
  podIps: readonly string[];
  hostIp: string;
  node: NodeInfo;
  /** Limits reported where a container sets none; the whole machine when absent. */
  allocatable?: NodeAllocatable;
  /** Variables of Services: those of the container itself go before them. Throws an `Error` while they are not known. */
  readServiceEnvironment?(): ReadonlyMap<string, string>;
  /** Text of a file in an emptyDir; undefined when there is none. @throws Error with a message for events */
  readEnvFile?(volumeName: string, path: string): string | undefined;
}

/** A container cannot be created now; the next sync tries it again. */
const unresolved = (message: string) => new PodStepError("CreateContainerConfigError", message);

/**
 * `envFrom`, then `env` over it. A value may refer to earlier ones; the last of equal names wins; an optional reference
 * that leads nowhere leaves its variable out. Source: upstream's `makeEnvironmentVariables`.
 * @returns each name once, in the order they first appeared; `InvalidEnvironmentVariableNames`, for each container start
 * @throws PodStepError CreateContainerConfigError for a reference that leads nowhere
 */
export function resolveEnvironment(pod: Pod, container: Container, facts: EnvironmentFacts) {
  const values = new Map<string, string>();
  const warnings: PodEvent[] = [];
  const services = readServices(facts);
  importWholeObjects(pod, container, facts, values, warnings);
  for (const variable of container.env ?? []) {
    const value = variable.value
      ? expand(variable.value, (name) => values.get(name) ?? services.get(name))
      : variable.valueFrom
        ? resolveSource(variable.valueFrom, pod, container, facts)
        : "";
    if (value !== undefined) values.set(variable.name, value);
  }
  for (const [name, value] of services) if (!values.has(name)) values.set(name, value);
  return { env: [...values].map(([name, value]) => ({ name, value })), warnings };
}

/**
 * `command` and `args` with `$(NAME)` replaced from the container's own environment (not the image's).
 * @throws PodStepError CreateContainerConfigError for one that becomes too long
 */
export function expandCommand(
  container: Container,
  env: readonly EnvironmentVariable[],
): { command: string[]; args: string[] } {
  const values = new Map(env.map(({ name, value }) => [name, value]));
  const expandAll = (texts: readonly string[] = []) => texts.map((text) => expand(text, (name) => values.get(name)));
  return { command: expandAll(container.command), args: expandAll(container.args) };
}

function readServices({ readServiceEnvironment }: EnvironmentFacts): ReadonlyMap<string, string> {
  try {
    return readServiceEnvironment?.() ?? new Map();
  } catch (error) {
    throw unresolved((error as Error).message);
  }
}

function importWholeObjects(
  pod: Pod,
  container: Container,
  facts: EnvironmentFacts,
  values: Map<string, string>,
  warnings: PodEvent[],
): void {
  for (const source of container.envFrom ?? []) {
    const reference = source.configMapRef ?? source.secretRef;
    if (!reference) continue;
    const name = reference.name ?? "";
    const kind = source.configMapRef ? "ConfigMap" : "Secret";
    const refused: string[] = [];
    for (const [key, value] of findData(kind, pod, name, reference.optional, facts) ?? []) {
      const variable = `${source.prefix ?? ""}${key}`;
      if (isEnvironmentVariableName(variable)) values.set(variable, value);
      else refused.push(variable);
    }
    if (refused.length > 0) {
      const source = kind === "ConfigMap" ? "configMap" : "secret";
      warnings.push({
        type: "Warning",
        reason: "InvalidEnvironmentVariableNames",
        message: `Keys [${refused.sort().join(", ")}] from the EnvFrom ${source} ${namespaceOf(pod)}/${name} were skipped since they are considered invalid environment variable names.`,
      });
    }
  }
}

/** Source: `IsRelaxedEnvVarName`, the rule since Kubernetes 1.34. */
export const isEnvironmentVariableName = (name: string) => /^[ -<>-~]+$/.test(name);

/** @returns undefined when an optional reference leads nowhere. */
function resolveSource(
  source: EnvVarSource,
  pod: Pod,
  container: Container,
  facts: EnvironmentFacts,
): string | undefined {
  if (source.fieldRef) {
    return unwrap(resolveFieldRef(source.fieldRef, pod, { podIps: facts.podIps, hostIps: [facts.hostIp] }));
  }
  if (source.resourceFieldRef) {
    const allocatable = facts.allocatable ?? toNodeAllocatable(facts.node);
    return unwrap(resolveResourceFieldRef(source.resourceFieldRef, pod, container, allocatable));
  }
  const selector = source.configMapKeyRef ?? source.secretKeyRef;
  if (selector) {
    const kind = source.configMapKeyRef ? "ConfigMap" : "Secret";
    const { name = "", key, optional = false } = selector;
    const data = findData(kind, pod, name, optional, facts);
    const value = data?.get(key);
    if (data && value === undefined && !optional) {
      const fullName = `${namespaceOf(pod)}/${name}`;
      const secret = kind === "Secret" ? facts.objects.secrets.get(fullName) : undefined;
      throw unresolved(describeMissingKey(secret, key, `${kind} ${fullName}`));
    }
    return value;
  }
  return source.fileKeyRef ? resolveFileKey(source.fileKeyRef, pod, facts) : "";
}

function resolveFileKey(selector: FileKeySelector, pod: Pod, facts: EnvironmentFacts): string | undefined {
  const { volumeName, path, key, optional } = selector;
  const where = `file "${path}" of volume "${volumeName}"`;
  const volume = pod.spec.volumes?.find((candidate) => candidate.name === volumeName);
  if (!volume) throw unresolved(`cannot find the volume "${volumeName}" referenced by FileKeyRef`);
  let text: string | undefined;
  try {
    text = facts.readEnvFile?.(volumeName, path);
  } catch (error) {
    throw unresolved(`couldn't read ${where}: ${messageOf(error)}`);
  }
  if (text === undefined) {
    if (optional) return undefined;
    throw unresolved(`couldn't find ${where}`);
  }
  if (Buffer.byteLength(text) > ENV_FILE_LIMIT_BYTES) {
    throw unresolved(`couldn't parse ${where}: larger than ${ENV_FILE_LIMIT_BYTES} bytes`);
  }
  const parsed = parseEnvFile(text);
  if ("problem" in parsed) throw unresolved(`couldn't parse ${where}: ${parsed.problem}`);
  const value = parsed.values.get(key);
  if (value === undefined && !optional) throw unresolved(`environment variable key "${key}" not found in ${where}`);
  return value;
}

function unwrap(result: { value: string } | { problem: string }): string {
  if ("problem" in result) throw unresolved(result.problem);
  return result.value;
}

/** Texts of a ConfigMap or Secret; undefined for one that is missing and optional. */
function findData(
  kind: "ConfigMap" | "Secret",
  pod: Pod,
  name: string,
  optional = false,
  { objects: { configMaps, secrets } }: EnvironmentFacts,
): Map<string, string> | undefined {
  const found = (kind === "ConfigMap" ? configMaps : secrets).get(`${namespaceOf(pod)}/${name}`);
  if (!found && !optional) throw unresolved(`${kind.toLowerCase()} "${name}" not found`);
  const entries = Object.entries(found?.data ?? {});
  return found && new Map(kind === "ConfigMap" ? entries : entries.map(([key, value]) => [key, decodeBase64(value)]));
}

const decodeBase64 = (value: string) => Buffer.from(value, "base64").toString("utf8");

/** Larger env files are refused. Source: `env.valueFrom.fileKeyRef`, 64 KiB. */
export const ENV_FILE_LIMIT_BYTES = 65_536;

/** The outcome of {@link parseEnvFile}; `problem` names the line, never a value. */
type ParsedEnvFile = { values: Map<string, string> } | { problem: string };

/**
 * Shell syntax as `fileKeyRef` takes it: `NAME='value'`, single quotes only, also over lines; `#` starts a comment. As
 * in a shell, white space after `=` makes the value empty. Source: KEP-3721 and upstream's `ParseEnv`.
 */
export function parseEnvFile(text: string): ParsedEnvFile {
  const lines = text.split(/\r?\n/);
  const values = new Map<string, string>();
  for (let at = 0; at < lines.length; at++) {
    const line = (lines[at] ?? "").replace(/^[ \t]+/, "");
    if (line === "" || line.startsWith("#")) continue;
    const number = at + 1;
    const broken = (what: string) => ({ problem: `invalid environment variable format at line ${number}: ${what}` });
    const equals = line.indexOf("=");
    if (equals < 0) return broken("missing '='");
    const name = line.slice(0, equals);
    if (name.trim() === "") return broken("empty variable name");
    if (name !== name.trimEnd()) return broken("whitespace before '=' is not allowed");
    const value = line.slice(equals + 1);
    if (/^[ \t]/.test(value)) {
      values.set(name, "");
      continue;
    }
    if (!value.startsWith("'")) return broken("value must be enclosed in single quotes");
    let quoted = value.slice(1);
    while (!quoted.includes("'")) {
      at++;
      const next = lines[at];
      if (next === undefined) return broken("unclosed single quote");
      quoted += `\n${next}`;
    }
    const end = quoted.indexOf("'");
    const rest = quoted.slice(end + 1).trim();
    if (rest !== "" && !rest.startsWith("#")) return broken("unexpected content after closing quote");
    values.set(name, quoted.slice(0, end));
  }
  return { values };
}

/**
 * Replaces `$(NAME)` by its value; `$$` gives `$`; unknown references stay. Source: upstream's `expansion.Expand`.
 * @throws PodStepError for a text that becomes too long for a program
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let length = text.length;
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (found: string, name: string | undefined) => {
    const value = name === undefined ? "$" : (lookup(name) ?? found);
    length += value.length - found.length;
    if (length > MAX_EXPANDED_LENGTH) {
      throw unresolved(`"${text.slice(0, 40)}" would become longer than ${MAX_EXPANDED_LENGTH} characters`);
    }
    return value;
  });
}

/** The text that {@link expand} turns into `text`. */
export const withoutExpansion = (text: string): string =>
  text.replace(/\$+\(|\${2,}/g, (found) => found.replaceAll("$", "$$$$"));

/** The kernel gives no longer argument or variable to a program. Source: Linux, `MAX_ARG_STRLEN`. */
const MAX_EXPANDED_LENGTH = 128 * 1024;

/** As {@link expand}, for `subPathExpr`. @returns the text, or the names that are unknown or empty, sorted */
export function expandStrictly(
  text: string,
  lookup: (name: string) => string | undefined,
): { text: string } | { missing: string[] } {
  const missing = new Set<string>();
  const expanded = expand(text, (name) => {
    const value = lookup(name);
    if (!value) missing.add(name);
    return value;
  });
  return missing.size > 0 ? { missing: [...missing].sort() } : { text: expanded };
}
