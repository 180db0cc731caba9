import { createHash } from "node:crypto";
import type { NFSVolumeSource, Pod } from "../../base/api/pod.ts";
import { claimVolumeOf } from "../../base/model/claim-volume.ts";
import type { EngineVolume, VolumeEngine } from "../../base/model/container-engine.ts";
import type { FsGroupOptions } from "./ownership.ts";

/** Name of the Docker volume of a claim of a pod. */
export const claimVolumeName = ({ metadata }: Pod, claimName: string): string =>
  claimVolumeOf(metadata.namespace ?? "default", claimName);

/**
 * Name of the Docker volume through which one nfs volume of one pod is mounted. It changes with what is mounted, because
 * the engine returns an existing volume without comparing options.
 */
export function nfsVolumeName(podUid: string, { name, nfs }: NfsVolume): string {
  const source = createHash("sha256")
    .update(JSON.stringify(nfsOptions(nfs)))
    .digest("hex")
    .slice(0, 8);
  return `kubelet-ts_${podUid}_${name}_${source}`;
}

type NfsVolume = { name: string; nfs: NFSVolumeSource };

const nfsOptions = ({ server, path, readOnly, mountOptions = [] }: NFSVolumeSource) => {
  const version = mountOptions.some((option) => NFS_VERSION.test(option)) ? [] : ["nfsvers=4.1"];
  const options = [`addr=${server}`, ...version, readOnly ? "ro" : "rw", ...mountOptions];
  return { type: "nfs", device: `:${path}`, o: options.join(",") };
};

const NFS_VERSION = /^(?:nfsvers=|vers=|v[234])/;

/**
 * Ensures that the Docker volume of a claim exists and belongs to the pod's fsGroup. It outlives the pod.
 * @param applyFsGroup undefined where ownership cannot be changed
 * @param sizeBytes storage that the claim requests: a limit where the engine can set one
 * @throws Error with a message for users.
 */
export async function setUpClaim(
  claimName: string,
  pod: Pod,
  engine: VolumeEngine,
  labels: Readonly<Record<string, string>>,
  applyFsGroup: ((directory: string, options: FsGroupOptions) => Promise<void>) | undefined,
  signal: AbortSignal,
  sizeBytes?: number,
): Promise<void> {
  const name = claimVolumeName(pod, claimName);
  let found = await engine.inspectVolume(name, signal);
  if (!found) {
    const namespace = pod.metadata.namespace ?? "default";
    const claimLabels = { "kubelet-ts.io/claim": claimName, "kubelet-ts.io/claim-namespace": namespace };
    const volume = { name, driver: "local" as const, labels: { ...labels, ...claimLabels } };
    await createSized(volume, sizeBytes, engine, signal);
    found = await engine.inspectVolume(name, signal);
  }
  const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext;
  if (fsGroup === undefined || !applyFsGroup || !found || !isPlainDirectory(found)) return;
  const policy = fsGroupChangePolicy && { policy: fsGroupChangePolicy };
  await applyFsGroup(found.mountpoint, { fsGroup, readOnly: false, ...policy });
}

/** The local driver limits the size on XFS with project quotas, and refuses the option elsewhere. */
async function createSized(
  volume: { name: string; driver: "local"; labels: Record<string, string> },
  sizeBytes: number | undefined,
  engine: VolumeEngine,
  signal: AbortSignal,
): Promise<void> {
  if (sizeBytes !== undefined) {
    try {
      return await engine.createVolume({ ...volume, options: { size: String(sizeBytes) } }, signal);
    } catch (error) {
      if (!/quota/i.test((error as Error).message)) throw error;
    }
  }
  await engine.createVolume({ ...volume, options: {} }, signal);
}

/** Whether the volume is a directory of the engine's host that can be used without the engine. */
export const isPlainDirectory = ({ driver, options, mountpoint }: EngineVolume) =>
  driver === "local" && Object.keys(options).every((name) => name === "size") && mountpoint !== "";

/**
 * Makes the Docker volume of an nfs volume. The engine mounts it when a container starts, so a server that does not
 * answer shows only then. NFS 4.1 unless the mount options say otherwise, since only mount.nfs negotiates versions, and
 * current servers no longer have 4.0.
 */
export async function setUpNfs(
  volume: NfsVolume,
  pod: Pod,
  engine: VolumeEngine,
  labels: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const uid = pod.metadata.uid ?? "";
  await engine.createVolume(
    {
      name: nfsVolumeName(uid, volume),
      driver: "local",
      options: nfsOptions(volume.nfs),
      labels: { ...labels, "io.kubernetes.pod.uid": uid },
    },
    signal,
  );
}
