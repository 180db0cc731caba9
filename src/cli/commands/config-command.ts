import { Document, isMap, isScalar, type Pair, type Scalar, type YAMLMap } from "yaml";
import { originsByField, toKubeletConfiguration } from "../../config/effective-config.ts";
import { resolveOptions } from "../../config/resolve-options.ts";
import type { TextIo } from "../command-io.ts";

/**
 * `kubelet-ts config [flags] [-o yaml|json]`: prints the effective configuration with the origin of each value. Returns
 * the exit code.
 */
export async function runConfig(argv: readonly string[], io: TextIo, cwd: string = process.cwd()): Promise<number> {
  const resolved = await resolveOptions(argv, cwd, "show");
  if (resolved.request === "help") {
    io.stdout(
      "Usage: kubelet-ts config [flags] [-o yaml|json]\n\nShows the effective configuration and where each value comes from.\nTakes all flags of kubelet-ts (see kubelet-ts --help).\n",
    );
    return 0;
  }
  for (const warning of resolved.warnings) io.stderr(`kubelet-ts config: warning: ${warning}\n`);
  for (const error of resolved.errors) io.stderr(`kubelet-ts config: ${error}\n`);
  if (resolved.errors.length > 0) return 2;
  const config = toKubeletConfiguration(resolved.options);
  const origins = originsByField(resolved.origins);
  if (resolved.options.output === "json") {
    io.stdout(`${JSON.stringify({ config, origins: Object.fromEntries(origins) }, null, 2)}\n`);
  } else io.stdout(toAnnotatedYaml(config, origins));
  return 0;
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
