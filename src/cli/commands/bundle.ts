import { basename } from "node:path";
import { podTemplateOf } from "../../base/model/desired-state.ts";
import { containersOf } from "../../base/model/pod.ts";
import { buildInfo } from "../../daemon/version.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { BINARY, type BundleContent, IMAGES, MANIFESTS, writeBundle } from "../bundle/bundle-file.ts";
import { engineOf } from "../client/engine-reader.ts";
import { readManifestFiles } from "../client/manifest-inputs.ts";
import { CommandError, type CommandIo, type CommandRequest, replaceablePath, UsageError } from "../sub-command.ts";

/** `kubelet-ts bundle -f DIR -o site.tar`. Returns the exit code. */
export async function runBundle(request: CommandRequest, io: CommandIo): Promise<number> {
  const files = request.values("filename");
  const output = request.value("output");
  if (files.length === 0 || output === undefined) throw new UsageError("give -f with manifests and -o with a file");
  const manifests = new Map<string, Uint8Array>();
  const images = new Set<string>();
  for (const { file, bytes } of await readManifestFiles(files)) {
    const name = basename(file);
    if (manifests.has(name)) throw new CommandError(`two manifests are named "${name}"`);
    for (const image of imagesOf(file, bytes)) images.add(image);
    manifests.set(name, bytes);
  }
  if (manifests.size === 0) throw new CommandError(`no manifest in ${files.join(", ")}`);
  const engine = engineOf(request);
  const missing = await engine.missingImages([...images]);
  if (missing.length > 0) {
    const pulls = missing.map((image) => `  docker pull ${image}`).join("\n");
    throw new CommandError(`images that are not on this machine:\n${pulls}`);
  }
  const contents: BundleContent[] = [
    { path: BINARY, mode: 0o755, chunks: Bun.file(process.execPath).stream() },
    ...[...manifests].map(([name, bytes]) => ({ path: `${MANIFESTS}${name}`, mode: 0o644, chunks: [bytes] })),
  ];
  if (images.size > 0) {
    const stop = new AbortController();
    contents.push({ path: IMAGES, mode: 0o644, chunks: await engine.saveImages([...images].sort(), stop.signal) });
  }
  const index = await writeBundle(replaceablePath(output), contents, {
    version: 1,
    architecture: process.arch,
    kubeletVersion: buildInfo.version,
    images: [...images].sort(),
  }).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      `"${output}" cannot be written: ${error.code === "ENOSPC" ? "the disk is full" : error.message}`,
    );
  });
  const bytes = index.files.reduce((sum, { size }) => sum + size, 0);
  io.stdout(`${output}: ${count(manifests.size, "manifest")}, ${count(images.size, "image")}, ${(bytes / 1e6).toFixed(1)} MB
On the other machine: tar -xf ${basename(output)} ${BINARY} && ./${BINARY} install --bundle ${basename(output)}
`);
  return 0;
}

const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** @throws CommandError when the manifest is not valid */
function imagesOf(file: string, bytes: Uint8Array): string[] {
  const { findings, pods, objects } = readManifest(bytes, {
    file,
    nodeName: "bundle",
    source: "file",
    strictness: "standard",
    allowPrivileged: true,
  });
  const error = findings.find(({ severity }) => severity === "error");
  if (error) throw new CommandError(`${error.file}:${error.line}:${error.column}: ${error.field} ${error.message}`);
  const specs = [...pods.map(({ pod }) => pod.spec), ...objects.flatMap((it) => podTemplateOf(it)?.spec ?? [])];
  return specs.flatMap((spec) =>
    [
      ...containersOf(spec).map(({ image }) => image),
      ...(spec.volumes ?? []).map(({ image }) => image?.reference),
    ].flatMap((image) => image || []),
  );
}
