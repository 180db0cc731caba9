import { Document, isMap, isScalar, type Pair, type Scalar, type YAMLMap } from "yaml";
import { readNodeName } from "../../base/host/node-info.ts";
import { isManifestUrl } from "../../base/text/url.ts";
import { originsByField, toKubeletConfiguration } from "../../config/effective-config.ts";
import { type ResolvedOptions, resolveOptions } from "../../config/resolve-options.ts";
import type { CommandIo } from "../sub-command.ts";

/**
 * `kubelet-ts config [flags] [-o yaml|json]`: prints the effective configuration with the origin of each value. Returns
 * the exit code.
 */
export async function runConfig(argv: readonly string[], io: CommandIo, cwd: string = process.cwd()): Promise<number> {
  const resolved = await resolveOptions(argv, cwd, "show");
  for (const warning of resolved.warnings) io.stderr(`kubelet-ts config: warning: ${warning}\n`);
  for (const error of resolved.errors) io.stderr(`kubelet-ts config: ${error}\n`);
  if (resolved.errors.length > 0) return 2;
  const { options, origins: originOf } = inForce(resolved, process.env.DOCKER_HOST);
  const config = toKubeletConfiguration(options);
  const origins = originsByField(originOf);
  if (resolved.options.output === "json") {
    io.stdout(`${JSON.stringify({ config, origins: Object.fromEntries(origins) }, null, 2)}\n`);
  } else io.stdout(toAnnotatedYaml(config, origins));
  return 0;
}

/** The options with the values that the kubelet derives from its arguments and environment when it starts. */
function inForce({ options, origins, positionals }: ResolvedOptions, dockerHost: string | undefined) {
  const values = { ...options };
  const originOf = { ...origins };
  const paths = positionals.filter((place) => place !== "-" && !isManifestUrl(place));
  const urls = positionals.filter(isManifestUrl);
  const withArguments = (origin: string) => (origin === "default" ? "arguments" : `${origin} and arguments`);
  if (paths.length > 0) {
    values.podManifestPaths = [...options.podManifestPaths, ...paths];
    originOf.podManifestPaths = withArguments(origins.podManifestPaths);
  }
  if (urls.length > 0) {
    values.manifestUrls = [...options.manifestUrls, ...urls];
    originOf.manifestUrls = withArguments(origins.manifestUrls);
  }
  if (options.dockerEndpoint === "") {
    values.dockerEndpoint = dockerHost || "unix:///var/run/docker.sock";
    if (dockerHost) originOf.dockerEndpoint = "DOCKER_HOST";
  }
  values.hostnameOverride = readNodeName(options.hostnameOverride);
  return { options: values, origins: originOf };
}

/** A file for `--config`; comments give the origin of each value. */
function toAnnotatedYaml(config: unknown, origins: ReadonlyMap<string, string>): string {
  const document = new Document(config);
  annotate(document.contents as YAMLMap, "", origins);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function annotate(map: YAMLMap, path: string, origins: ReadonlyMap<string, string>): void {
  for (const pair of map.items as Pair<Scalar<string>, Scalar | YAMLMap>[]) {
    const field = path === "" ? pair.key.value : `${path}.${pair.key.value}`;
    const origin = origins.get(field);
    if (origin === undefined) {
      if (isMap(pair.value)) annotate(pair.value, field, origins);
    } else if (isScalar(pair.value)) pair.value.comment = ` ${origin}`;
    else pair.key.commentBefore = ` ${origin}:`;
  }
}
