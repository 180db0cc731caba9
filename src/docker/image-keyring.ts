import type { RegistryAuth } from "./engine/docker-client.ts";
import type { RegistryCredential } from "./engine/docker-config.ts";

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
