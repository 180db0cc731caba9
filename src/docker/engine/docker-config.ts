import * as v from "valibot";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { jsonIfValid } from "../../base/text/json.ts";

const AuthEntrySchema = v.object({
  username: v.nullish(v.string(), ""),
  password: v.nullish(v.string(), ""),
  /** base64 of `user:password`. */
  auth: v.nullish(v.string(), ""),
  identitytoken: v.nullish(v.string(), ""),
  registrytoken: v.nullish(v.string(), ""),
});

const AuthMapSchema = v.record(v.string(), AuthEntrySchema);

const DockerConfigSchema = v.object({
  auths: v.nullish(AuthMapSchema, {}),
  credsStore: v.nullish(v.string(), ""),
  credHelpers: v.nullish(v.record(v.string(), v.string()), {}),
});

/** One entry of `auths`: a registry as the file spells it, and its credentials. */
export interface RegistryCredential {
  /** `host`, `host:port`, `host/path` or a URL. */
  registry: string;
  auth: RegistryAuth;
}

/** A Docker configuration: credentials and credential helpers. */
export interface DockerConfig {
  entries: RegistryCredential[];
  /** Suffix of the `docker-credential-<suffix>` for all registries; "" = none. */
  credsStore: string;
  /** Suffix of the helper by registry. */
  credHelpers: Readonly<Record<string, string>>;
}

/** The text is not a Docker configuration. `message` contains no part of it. */
export class DockerConfigError extends Error {}

/** Reads `config.json` (with `auths`, `credHelpers`, `credsStore`). @throws DockerConfigError */
export function parseDockerConfig(text: string): DockerConfig {
  const config = parseAs(DockerConfigSchema, text);
  return { entries: toEntries(config.auths), credsStore: config.credsStore, credHelpers: config.credHelpers };
}

/** Reads the old `.dockercfg`: what is in `auths` today, at the top. @throws DockerConfigError */
export function parseLegacyDockerConfig(text: string): DockerConfig {
  return { entries: toEntries(parseAs(AuthMapSchema, text)), credsStore: "", credHelpers: {} };
}

function toEntries(auths: v.InferOutput<typeof AuthMapSchema>): RegistryCredential[] {
  return Object.entries(auths).flatMap(([registry, entry]) => {
    const auth = toAuth(registry, entry);
    return auth ? [{ registry, auth }] : [];
  });
}

/** undefined for an empty entry, whose secrets are in a helper. */
function toAuth(registry: string, entry: v.InferOutput<typeof AuthEntrySchema>): RegistryAuth | undefined {
  let { username, password } = entry;
  if (entry.auth !== "") {
    const decoded = Buffer.from(entry.auth, "base64").toString("utf8");
    const colon = decoded.indexOf(":");
    if (colon < 0) throw new DockerConfigError(`the "auth" of ${registry} is not base64 of user:password`);
    username = decoded.slice(0, colon);
    // Some writers end the password with a NUL or a line end; docker trims the former, as is done here.
    password = decoded.slice(colon + 1).replace(/\0+$/, "");
  }
  if (entry.identitytoken !== "") return { username, identitytoken: entry.identitytoken };
  if (entry.registrytoken !== "") return { registrytoken: entry.registrytoken };
  return username === "" && password === "" ? undefined : { username, password };
}

function parseAs<const S extends v.GenericSchema>(schema: S, text: string): v.InferOutput<S> {
  const json = jsonIfValid(text);
  if (json === undefined) throw new DockerConfigError("not JSON");
  const result = v.safeParse(schema, json, { abortEarly: true });
  if (result.success) return result.output;
  const path = v.getDotPath(result.issues[0]);
  throw new DockerConfigError(`${path ?? "the whole"} does not have the shape of a docker config`);
}

/** Docker Hub's name in every docker config. */
const DEFAULT_REGISTRY_KEY = "index.docker.io";

/** Credentials for a repository, the most specific first. Source: kubelet `BasicDockerKeyring.Lookup`. */
export function lookUpCredentials(entries: readonly RegistryCredential[], repository: string): RegistryAuth[] {
  const keyed = entries.map((entry) => ({ key: registryKey(entry.registry), auth: entry.auth }));
  const matching = keyed
    .filter(({ key }) => registryMatches(key, repository))
    // Backwards by name puts `host/path` before `host`, so the longest match is tried first.
    .sort((a, b) => (a.key < b.key ? 1 : a.key > b.key ? -1 : 0));
  if (matching.length > 0) return matching.map(({ auth }) => auth);
  if (/^(?:index\.)?docker\.io\//.test(repository)) {
    return keyed.filter(({ key }) => key === DEFAULT_REGISTRY_KEY).map(({ auth }) => auth);
  }
  return [];
}

/** `host:port` or `host:port/path` of a registry as written; `/v1/` and `/v2/` mean the host itself. */
export function registryKey(registry: string): string {
  const bare = registry.replace(/^https?:\/\//, "");
  const slash = bare.indexOf("/");
  if (slash < 0) return bare;
  const path = bare.slice(slash).replace(/^\/v[12]\//, "/");
  return path === "/" ? bare.slice(0, slash) : bare.slice(0, slash) + path;
}

/**
 * Whether a key (`*.example.com`) covers an image: same parts and port, path as prefix. Source: kubelet `URLsMatch`.
 */
export function registryMatches(key: string, image: string): boolean {
  const [glob, target] = [splitKey(key), splitKey(image)];
  if (glob.port !== target.port) return false;
  const globParts = glob.host.split(".");
  const targetParts = target.host.split(".");
  if (globParts.length !== targetParts.length) return false;
  if (!globParts.every((part, index) => globMatches(part, targetParts[index] ?? ""))) return false;
  return target.path.startsWith(glob.path);
}

function splitKey(key: string): { host: string; port: string; path: string } {
  const slash = key.indexOf("/");
  const authority = slash < 0 ? key : key.slice(0, slash);
  const path = slash < 0 ? "" : key.slice(slash);
  const port = /:(\d+)$/.exec(authority)?.[1] ?? "";
  return { host: port === "" ? authority : authority.slice(0, -port.length - 1), port, path };
}

function globMatches(glob: string, text: string): boolean {
  if (!/[*?[]/.test(glob)) return glob === text;
  return new Bun.Glob(glob).match(text);
}
