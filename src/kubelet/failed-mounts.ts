import type { Pod } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";

/** The kubelet's podAttachAndMountTimeout: longer than two attempts of a volume that hangs. Source: recorded kubelet. */
export const MOUNT_TIMEOUT_MS = 123_000;

interface FailingPod {
  pod: Pod;
  /** Names of the volumes that failed last time. */
  volumes: readonly string[];
  cancel: () => void;
}

/** Reports pods that have waited for a volume for minutes: each failed attempt has its reason, this adds the duration. */
export class FailedMounts {
  readonly #clock: Clock;
  readonly #recorder: EventRecorder;
  /** Pods whose mounts fail, by UID. */
  readonly #failing = new Map<string, FailingPod>();

  constructor({ clock, recorder }: { clock: Clock; recorder: EventRecorder }) {
    this.#clock = clock;
    this.#recorder = recorder;
  }

  /** A try has failed for these volumes. */
  failed(pod: Pod, volumes: readonly string[]): void {
    const uid = pod.metadata.uid ?? "";
    const known = this.#failing.get(uid);
    this.#failing.set(uid, { pod, volumes, cancel: known?.cancel ?? this.#schedule(uid) });
  }

  /** All volumes are there, or the pod is gone. */
  settled(uid: string): void {
    this.#failing.get(uid)?.cancel();
    this.#failing.delete(uid);
  }

  #schedule(uid: string): () => void {
    return this.#clock.schedule(MOUNT_TIMEOUT_MS, () => this.#reportAgain(uid));
  }

  #reportAgain(uid: string): void {
    const failing = this.#failing.get(uid);
    if (!failing) return;
    const { pod, volumes } = failing;
    const { name = "", namespace = "default" } = pod.metadata;
    const message = `Unable to attach or mount volumes: unmounted volumes=[${volumes.join(" ")}], unattached volumes=[${usedVolumeNames(pod).join(" ")}]: timed out waiting for the condition`;
    this.#recorder.record({ uid, name, namespace }, { type: "Warning", reason: "FailedMount", message });
    this.#failing.set(uid, { ...failing, cancel: this.#schedule(uid) });
  }
}

function usedVolumeNames({ spec }: Pod): string[] {
  const containers = containersOf(spec);
  const mounted = new Set(containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)));
  return (spec.volumes ?? []).map(({ name }) => name).filter((name) => mounted.has(name));
}
