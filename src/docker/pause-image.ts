import type { DockerClient } from "./engine/docker-client.ts";
import { DockerUnreachableError, isNotFound } from "./engine/docker-error.ts";
import type { ImageInspect } from "./engine/image-schema.ts";
import { tarArchive } from "./engine/tar.ts";
import { type PauseArchitecture, pauseExecutable } from "./pause-program.ts";

/** Tag of the sandboxes' image; the image garbage collection recognizes it. It is never collected. */
export const PAUSE_IMAGE = "kubelet-ts/pause:1";

/** Label of the image, and so of each sandbox made from it, even if the image is renamed. */
const PAUSE_IMAGE_LABEL = "kubelet-ts.io/pause";

interface PauseImageOptions {
  /** `--pod-infra-container-image`: used instead of the embedded one, and pulled when it is not there. */
  override?: string | undefined;
  /** How `override` is pulled, with credentials; without any when absent. */
  pull?: ((reference: string, signal: AbortSignal | undefined) => Promise<void>) | undefined;
}

/**
 * Ensures that the engine has the sandbox image, which is loaded through the API: no registry is needed.
 * @returns its id
 * @throws Error when `override` cannot be pulled, and for a machine that is neither x86-64 nor arm64
 */
export async function ensurePauseImage(
  client: DockerClient,
  options: PauseImageOptions = {},
  signal?: AbortSignal,
): Promise<string> {
  const { override } = options;
  if (override) {
    const present = await inspect(client, override, signal);
    if (present) return present.Id;
    try {
      if (options.pull) await options.pull(override, signal);
      else await client.pullImage(override, { signal });
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof DockerUnreachableError) throw cause;
      // The engine's message need not name the image, and no pod manifest names it.
      const why = (cause as Error).message;
      throw new Error(
        `Cannot pull image "${override}" of the sandboxes, which --pod-infra-container-image names: ${why}`,
        { cause },
      );
    }
    return (await client.inspectImage(override, { signal })).Id;
  }
  const wanted = buildPauseImage(toPauseArchitecture((await client.engine({ signal })).architecture));
  const present = await inspect(client, PAUSE_IMAGE, signal);
  if (present && isPauseImage(present, wanted)) return present.Id;
  await client.loadImage(wanted.archive, { signal });
  const loaded = await client.inspectImage(PAUSE_IMAGE, { signal });
  if (!isPauseImage(loaded, wanted)) {
    throw new Error(`The engine loaded "${PAUSE_IMAGE}" as something else: ${loaded.Id} (${loaded.Architecture})`);
  }
  return loaded.Id;
}

/** An image as `docker save` would write it, and its identity. */
interface BuiltPauseImage {
  /** Its id in the classic image store: sha256 of its config. */
  id: string;
  /** Digest of its only layer: the same in every image store. */
  layer: string;
  /** Body of `/images/load`. */
  archive: Uint8Array<ArrayBuffer>;
}

/** Every sandbox needs it, so it is built once. */
const built = new Map<PauseArchitecture, BuiltPauseImage>();

/** The image, built without a registry. Always the same bytes for an architecture. */
export function buildPauseImage(architecture: PauseArchitecture): BuiltPauseImage {
  const image = built.get(architecture) ?? build(architecture);
  built.set(architecture, image);
  return image;
}

function build(architecture: PauseArchitecture): BuiltPauseImage {
  const layerTar = tarArchive([{ path: "pause", mode: 0o755, data: pauseExecutable(architecture) }]);
  const layerHex = sha256(layerTar);
  const layer = `sha256:${layerHex}`;
  const config = json({
    architecture,
    os: "linux",
    created: "1970-01-01T00:00:00Z",
    config: {
      Entrypoint: ["/pause"],
      User: "65535:65535",
      WorkingDir: "/",
      Labels: { [PAUSE_IMAGE_LABEL]: "1" },
    },
    rootfs: { type: "layers", diff_ids: [layer] },
    history: [{ created: "1970-01-01T00:00:00Z", created_by: "kubelet-ts" }],
  });
  const configHex = sha256(config);
  const archive = tarArchive([
    {
      path: "manifest.json",
      mode: 0o644,
      data: json([{ Config: `${configHex}.json`, RepoTags: [PAUSE_IMAGE], Layers: [`${layerHex}/layer.tar`] }]),
    },
    { path: `${configHex}.json`, mode: 0o644, data: config },
    { path: `${layerHex}/`, mode: 0o755, data: new Uint8Array() },
    { path: `${layerHex}/layer.tar`, mode: 0o644, data: layerTar },
  ]);
  return { id: `sha256:${configHex}`, layer, archive };
}

/** Our label or our only layer: true for an image of any kubelet-ts version. */
export const isAnyPauseImage = (labels: Readonly<Record<string, string>>): boolean => PAUSE_IMAGE_LABEL in labels;

function isPauseImage(image: ImageInspect, wanted: BuiltPauseImage): boolean {
  const sameContent = image.RootFS.Layers.length === 1 && image.RootFS.Layers[0] === wanted.layer;
  return sameContent && image.Config.Entrypoint?.[0] === "/pause" && image.Config.User === "65535:65535";
}

function toPauseArchitecture(architecture: string): PauseArchitecture {
  switch (architecture) {
    case "amd64":
    case "x86_64":
      return "amd64";
    case "arm64":
    case "aarch64":
      return "arm64";
    default:
      throw new Error(
        `There is no embedded pause image for "${architecture}": name one with --pod-infra-container-image`,
      );
  }
}

async function inspect(
  client: DockerClient,
  reference: string,
  signal: AbortSignal | undefined,
): Promise<ImageInspect | undefined> {
  try {
    return await client.inspectImage(reference, { signal });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
