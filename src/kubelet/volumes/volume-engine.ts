import type { Pod } from "../../base/api/pod.ts";

/** A named volume as the engine knows it. */
export interface EngineVolume {
  name: string;
  driver: string;
  /** Path on the engine's host; "" where the driver has none. */
  mountpoint: string;
  /** Driver options, e.g. `{ type: "nfs", device: ":/export" }`; empty for a plain directory. */
  options: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
}

/** The little that volumes need of the engine. Every call throws when the engine refuses or cannot be reached. */
export interface VolumeEngine {
  /** Negotiated, e.g. `1.41`. */
  apiVersion(): string;
  /** One that exists with the same driver is success. */
  createVolume(
    volume: { name: string; driver: "local"; options: Record<string, string>; labels: Record<string, string> },
    signal: AbortSignal,
  ): Promise<void>;
  inspectVolume(name: string, signal: AbortSignal): Promise<EngineVolume | undefined>;
  /** A missing one is success. */
  removeVolume(name: string, signal: AbortSignal): Promise<void>;
  /** Pulls by policy as for a container of the pod; resolves to the image's id. */
  ensureImage(
    pod: Pod,
    image: { reference: string; pullPolicy: "Always" | "IfNotPresent" | "Never" },
    signal: AbortSignal,
  ): Promise<string>;
  /** The image's whole file system as a tar stream. */
  exportImage(imageId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** Compares `1.9` and `1.41` as versions, not as text. */
export function apiAtLeast(version: string, wanted: `${number}.${number}`): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split(".").map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
