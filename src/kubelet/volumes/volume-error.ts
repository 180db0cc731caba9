/** The failure of one volume; `message` is the text of the pod's event. */
export interface VolumeFailure {
  /** `spec.volumes[].name`. */
  volume: string;
  message: string;
}

/**
 * The volumes of a pod cannot be made ready. `FailedMount`: no container of the pod may start, the pod stays in
 * ContainerCreating; worth another try later. `message` is the first failure's, `failures` has all, one event each.
 */
export class VolumeError extends Error {
  readonly reason = "FailedMount";
  readonly volume: string;
  readonly failures: readonly VolumeFailure[];

  constructor(failures: readonly [VolumeFailure, ...VolumeFailure[]]) {
    super(failures[0].message);
    this.name = "VolumeError";
    this.volume = failures[0].volume;
    this.failures = failures;
  }
}

/**
 * The mounts of one container cannot be made (a bad subPath, mostly); the pod's other containers are not concerned.
 * `reason` and `message` go into the container's waiting state. `detail` is for the log only: it may say things about
 * the host that the pod's owner is not to learn.
 */
export class MountError extends Error {
  readonly reason = "CreateContainerConfigError";
  readonly detail: string;

  constructor(message: string, detail = "") {
    super(message);
    this.name = "MountError";
    this.detail = detail;
  }
}

/** The text of a failed set-up, as upstream's events have it (with the blank before the colon). */
export const setUpFailure = (volume: string, why: string): VolumeFailure => ({
  volume,
  message: `MountVolume.SetUp failed for volume "${volume}" : ${why}`,
});
