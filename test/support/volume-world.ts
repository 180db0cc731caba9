import type { Container, Pod, Volume } from "../../src/base/api/pod.ts";
import type { EngineVolume, VolumeEngine } from "../../src/base/model/container-engine.ts";
import type { ObjectIndex } from "../../src/base/model/desired-state.ts";
import { HOST_FILE_TASKS, type HostFiles } from "../../src/kubelet/volumes/host-files.ts";
import { Mounter } from "../../src/kubelet/volumes/mounter.ts";
import { VolumeManager } from "../../src/kubelet/volumes/volume-manager.ts";
import type { VolumeHost } from "../../src/kubelet/volumes/volume-plugins.ts";
import { toNodeAllocatable } from "../../src/plan/downward-api.ts";
import { aContainer, aPod } from "./builders.ts";
import { FakeClock } from "./fake-clock.ts";
import { aMetrics } from "./metrics.ts";
import { RecordingLogger, RecordingRecorder } from "./recording-logger.ts";
import { mounting } from "./temp-dir.ts";

/** An engine's volumes and images in memory. */
export class FakeVolumeEngine implements VolumeEngine {
  readonly volumes = new Map<string, EngineVolume>();
  readonly pulls: string[] = [];
  version = "1.41";
  /** The tar that every image exports to. */
  archive: Uint8Array = new Uint8Array(1024);

  apiVersion(): string {
    return this.version;
  }

  async createVolume(volume: Parameters<VolumeEngine["createVolume"]>[0]): Promise<void> {
    if (!this.volumes.has(volume.name)) this.volumes.set(volume.name, { ...volume, mountpoint: "" });
  }

  async inspectVolume(name: string): Promise<EngineVolume | undefined> {
    return this.volumes.get(name);
  }

  async removeVolume(name: string): Promise<void> {
    this.volumes.delete(name);
  }

  async ensureImage(_pod: Pod, { image = "", imagePullPolicy }: Container): Promise<{ id: string }> {
    this.pulls.push(`${image} ${imagePullPolicy}`);
    return { id: `sha256:${image}` };
  }

  async exportImage(): Promise<ReadableStream<Uint8Array>> {
    return new Blob([this.archive]).stream();
  }
}

/** The uid of every pod made here. */
export const UID = "uid1";
export const SIGNAL = new AbortController().signal;
export const NO_OBJECTS: ObjectIndex = { configMaps: new Map(), secrets: new Map() };

/** A ConfigMap `cfg` with key `k` and a Secret `sec` with key `pw`, both of this value. */
export const objects = (value: string): ObjectIndex => ({
  configMaps: new Map([["default/cfg", { metadata: { name: "cfg" }, data: { k: value } }]]),
  secrets: new Map([
    ["default/sec", { metadata: { name: "sec" }, type: "Opaque", data: { pw: btoa(`secret ${value}`) } }],
  ]),
});

/** Tasks on files in this thread, without a deadline. */
export const localHostFiles = (): HostFiles =>
  Object.fromEntries(
    Object.entries(HOST_FILE_TASKS).map(([name, task]) => [
      name,
      async (...args: unknown[]) => (task as (...args: unknown[]) => unknown)(...args),
    ]),
  ) as never;

/** A volume manager on a real directory, with an engine in memory. */
export function aManager(
  rootDir: string,
  { mounts = mounting.ok, ...options }: { mounts?: boolean } & Partial<VolumeHost> = {},
) {
  const engine = new FakeVolumeEngine();
  const logger = new RecordingLogger();
  const recorder = new RecordingRecorder();
  const metrics = aMetrics();
  const clock = new FakeClock();
  const host = {
    allocatable: toNodeAllocatable({
      name: "node1",
      ip: "192.0.2.1",
      cpuCount: 2,
      memoryBytes: 1024,
    }),
    clock,
    engine,
    images: engine,
    hostFiles: localHostFiles(),
    ...(mounts && { mounter: new Mounter() }),
    ...options,
  };
  const manager = new VolumeManager(host, { rootDir, logger, recorder, metrics });
  return { manager, engine, logger, recorder, metrics, clock };
}

/** A pod whose one container mounts each volume at `/<name>`, then what `mounts` adds. */
export function podWith(
  volumes: Volume[],
  spec: Partial<Pod["spec"]> = {},
  mounts: Container["volumeMounts"] = [],
): Pod {
  const volumeMounts = [...volumes.map(({ name }) => ({ name, mountPath: `/${name}` })), ...mounts];
  return aPod({ containers: [aContainer({ volumeMounts })], volumes, ...spec }, { uid: UID, labels: { app: "web" } });
}

export const firstContainer = (pod: Pod) => pod.spec.containers[0] as Container;
