import { chmodSync } from "node:fs";
import type { Pod, Volume } from "../../base/api/pod.ts";
import type { TokenSpec } from "../../base/model/token-spec.ts";
import { type Payload, writeAtomically } from "./atomic-writer.ts";
import { isMounted, readState, writeState } from "./empty-dir.ts";
import type { Mounter } from "./mounter.ts";
import { computeMountPointNames } from "./nested-mounts.ts";
import { applyFsGroup, READ_ONLY } from "./ownership.ts";
import { computePayload, type PayloadFacts, tokenKey, toTokenSpec } from "./payload.ts";
import { makeDirectory } from "./pod-directories.ts";

/** Volumes whose files we write; containers see them read-only. */
export type FileVolumePlugin = "configmap" | "secret" | "downward-api" | "projected";

/** Volumes on a tmpfs, as the kubelet has them: what may hold secrets is never on a disk. */
export const isInMemory = (plugin: FileVolumePlugin): boolean => plugin !== "configmap";

/** Directories of a volume. */
export interface FileVolumePaths {
  plugin: FileVolumePlugin;
  directory: string;
  stateDirectory: string;
}

/** The files of a volume, and their group. */
export interface FileVolumeContent {
  files: Payload;
  fsGroup?: number;
  /** First names of paths in it at which containers mount something else. */
  mountPoints: ReadonlySet<string>;
  /** For the name of the directory with the files. */
  now: Date;
}

/** Computes the files of a configMap, secret, downwardAPI or projected volume. @throws Error with a message for users */
export function computeFileVolume(volume: Volume, pod: Pod, facts: PayloadFacts & { now: Date }): FileVolumeContent {
  const computed = computePayload(volume, pod, facts);
  if ("problem" in computed) throw new Error(computed.problem);
  const { fsGroup } = pod.spec.securityContext;
  return {
    files: fsGroup === undefined ? computed.files : withGroupAccess(computed.files),
    ...(fsGroup !== undefined && { fsGroup }),
    mountPoints: computeMountPointNames(pod, volume.name),
    now: facts.now,
  };
}

/**
 * Makes the files of a volume these: at set-up and again whenever an object or the pod's labels or annotations changed.
 * Secrets lie on a tmpfs where mounts are possible, else in a directory only root (or we) may enter.
 * @param mounter undefined where mounts are impossible.
 * @returns whether anything was different.
 * @throws Error with a message for users; what was there stays.
 */
export async function writeFileVolume(
  { plugin, directory, stateDirectory }: FileVolumePaths,
  { files, fsGroup, mountPoints, now }: FileVolumeContent,
  mounter: Mounter | undefined,
): Promise<boolean> {
  const inMemory = mounter !== undefined && isInMemory(plugin);
  const state = `${fsGroup ?? ""}`;
  const known = readState(stateDirectory);
  if (known === undefined || (inMemory && !isMounted(directory))) {
    makeDirectory(directory, 0o777);
    if (inMemory && !isMounted(directory)) {
      await mounter.mountSecretFileSystem(directory, ["mode=0777"]);
      chmodSync(directory, 0o777);
    }
  }
  const group = fsGroup === undefined ? undefined : { fsGroup, readOnly: true };
  const changed = writeAtomically(directory, files, now, {
    own: group && ((written) => applyFsGroup(written, group)),
    mountPoints,
  });
  if (known !== state) {
    if (group) applyFsGroup(directory, group);
    writeState(stateDirectory, state);
  }
  return changed;
}

/** Tokens that the sources of a projected volume ask for, by {@link tokenKey}. @throws what `tokenFor` throws */
export async function fetchTokens(
  volume: Volume,
  pod: Pod,
  { tokenFor }: { tokenFor(pod: Pod, spec: TokenSpec): Promise<string> },
): Promise<ReadonlyMap<string, string>> {
  const specs = (volume.projected?.sources ?? []).flatMap(({ serviceAccountToken }) =>
    serviceAccountToken ? [toTokenSpec(serviceAccountToken)] : [],
  );
  const tokens = new Map<string, string>();
  for (const spec of specs) tokens.set(tokenKey(spec), await tokenFor(pod, spec));
  return tokens;
}

const withGroupAccess = (files: Payload): Payload =>
  new Map([...files].map(([path, { data, mode }]) => [path, { data, mode: mode | READ_ONLY }]));
