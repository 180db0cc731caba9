import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ImageVolumeSource, Pod } from "../api/pod.ts";
import { readBoundedText } from "../files/bounded-read.ts";
import { readOutput } from "../files/bounded-stream.ts";
import { makeDirectory } from "./pod-directories.ts";
import { apiAtLeast, type VolumeEngine } from "./volume-engine.ts";

export interface ImageVolumePlace {
  directory: string;
  /** Keeps `image`: reference and id of what was unpacked or is to be mounted. */
  stateDirectory: string;
}

/** Engines from API 1.48 on mount images themselves; for older ones the files are unpacked. */
export const mountsImages = (engine: VolumeEngine) => apiAtLeast(engine.apiVersion(), "1.48");

/**
 * Makes the contents of an image available to the pod: pulled by its policy, then mounted by the engine or unpacked into
 * the volume's directory, once per life of the pod and reference (a newer image behind the same tag is not looked for again).
 * @throws Error with a message for people.
 */
export async function setUpImageVolume(
  { reference, pullPolicy = "IfNotPresent" }: ImageVolumeSource,
  pod: Pod,
  place: ImageVolumePlace,
  engine: VolumeEngine,
  signal: AbortSignal,
): Promise<void> {
  if (!reference) throw new Error("image volume has no reference");
  if (readState(place)?.reference === reference) return;
  const imageId = await engine.ensureImage(pod, { reference, pullPolicy }, signal);
  if (!mountsImages(engine)) await unpack(imageId, place.directory, engine, signal);
  mkdirSync(place.stateDirectory, { recursive: true, mode: 0o750 });
  writeFileSync(join(place.stateDirectory, "image.new"), JSON.stringify({ reference, imageId }));
  renameSync(join(place.stateDirectory, "image.new"), join(place.stateDirectory, "image"));
}

/** Id of the image the volume was set up with. */
export const readImageId = (place: ImageVolumePlace): string | undefined => readState(place)?.imageId;

function readState(place: ImageVolumePlace): { reference: string; imageId: string } | undefined {
  try {
    return JSON.parse(readBoundedText(join(place.stateDirectory, "image"), MAX_STATE_BYTES));
  } catch {
    return undefined; // not there, or torn: then it is set up again
  }
}

/** State files hold an image id. */
const MAX_STATE_BYTES = 64 * 1024;

async function unpack(imageId: string, directory: string, engine: VolumeEngine, signal: AbortSignal): Promise<void> {
  const fresh = `${directory}.new`;
  rmSync(fresh, { recursive: true, force: true });
  makeDirectory(fresh, 0o755);
  const archive = await engine.exportImage(imageId, signal);
  const tar = Bun.spawn(["tar", "-x", "-p", "--numeric-owner", "-f", "-", "-C", fresh], {
    stdin: archive,
    stdout: "ignore",
    stderr: "pipe",
    signal,
  });
  const [code, errors] = await Promise.all([tar.exited, readOutput(tar.stderr)]);
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`cannot unpack image ${imageId}: tar: ${errors.trim() || `exit code ${code}`}`);
  // Docker adds this file to every container; it is not part of the image.
  rmSync(join(fresh, ".dockerenv"), { force: true });
  rmSync(directory, { recursive: true, force: true });
  renameSync(fresh, directory);
}
