import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Container, ImageVolumeSource, Pod } from "../../base/api/pod.ts";
import type { Secret } from "../../base/api/secret.ts";
import { readBoundedText } from "../../base/files/bounded-read.ts";
import { readOutput } from "../../base/files/bounded-stream.ts";
import type { ImageInfo, VolumeEngine } from "../../base/model/container-engine.ts";
import { apiAtLeast } from "../../base/text/api-version.ts";
import { makeDirectory } from "./pod-directories.ts";

export interface ImageVolumePaths {
  directory: string;
  /** Keeps `image`: reference and id of what was unpacked or is to be mounted. */
  stateDirectory: string;
}

/** Engines from API 1.48 on mount images themselves; for older ones the files are unpacked. */
export const mountsImages = (engine: VolumeEngine) => apiAtLeast(engine.apiVersion(), "1.48");

/**
 * Makes the contents of an image available to the pod: pulled by its policy, then mounted by the engine or unpacked into
 * the volume's directory, once per life of the pod and reference (a newer image behind the same tag is not checked for).
 * @throws Error with a message for users.
 */
export async function setUpImageVolume(
  { reference, pullPolicy = "IfNotPresent" }: ImageVolumeSource,
  pod: Pod,
  paths: ImageVolumePaths,
  { engine, images, hostFiles }: ImageHost,
  pullSecrets: readonly Secret[],
  signal: AbortSignal,
): Promise<void> {
  if (!reference) throw new Error("image volume has no reference");
  if ((await hostFiles.readImageState(paths))?.reference === reference) return;
  // Events and back-off are those of the pod; the volume has no container of its own.
  const container = { ...pod.spec.containers[0]!, image: reference, imagePullPolicy: pullPolicy };
  const { id: imageId } = await images.ensureImage(pod, container, { pullSecrets }, signal);
  if (!mountsImages(engine)) await unpack(imageId, paths.directory, engine, hostFiles, signal);
  await hostFiles.writeImageState(paths, { reference, imageId });
}

/** Pulls by policy as for a container of the pod: `ImageManager`. */
export interface ImageSource {
  ensureImage(
    pod: Pod,
    container: Container,
    options: { pullSecrets: readonly Secret[] },
    signal: AbortSignal,
  ): Promise<Pick<ImageInfo, "id">>;
}

interface ImageHost {
  engine: VolumeEngine;
  images: ImageSource;
  hostFiles: ImageFiles;
}

/** The steps of the set-up that touch the disk, as `HostFiles` has them. */
interface ImageFiles {
  readImageState(paths: ImageVolumePaths): Promise<ImageVolumeState | undefined>;
  writeImageState(paths: ImageVolumePaths, state: ImageVolumeState): Promise<void>;
  prepareExtraction(directory: string): Promise<string>;
  commitExtraction(fresh: string, directory: string): Promise<void>;
}

interface ImageVolumeState {
  reference: string;
  imageId: string;
}

export function writeImageState({ stateDirectory }: ImageVolumePaths, state: ImageVolumeState): void {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o750 });
  writeFileSync(join(stateDirectory, "image.new"), JSON.stringify(state));
  renameSync(join(stateDirectory, "image.new"), join(stateDirectory, "image"));
}

/** undefined for a volume that has not been set up. */
export function readImageState(paths: ImageVolumePaths): ImageVolumeState | undefined {
  try {
    return JSON.parse(readBoundedText(join(paths.stateDirectory, "image"), MAX_STATE_BYTES));
  } catch {
    return undefined; // not there, or torn: then it is set up again
  }
}

const MAX_STATE_BYTES = 64 * 1024;

async function unpack(
  imageId: string,
  directory: string,
  engine: VolumeEngine,
  hostFiles: ImageFiles,
  signal: AbortSignal,
): Promise<void> {
  const fresh = await hostFiles.prepareExtraction(directory);
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
  await hostFiles.commitExtraction(fresh, directory);
}

/** @returns an empty directory for the files of an image */
export function prepareExtraction(directory: string): string {
  const fresh = `${directory}.new`;
  rmSync(fresh, { recursive: true, force: true });
  makeDirectory(fresh, 0o755);
  return fresh;
}

/** Puts complete files in the place of earlier ones. */
export function commitExtraction(fresh: string, directory: string): void {
  // Docker adds this file to every container; it is not part of the image.
  rmSync(join(fresh, ".dockerenv"), { force: true });
  rmSync(directory, { recursive: true, force: true });
  renameSync(fresh, directory);
}
