import type { EngineVolume, VolumeEngine } from "../../src/base/model/container-engine.ts";

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

  async ensureImage(_pod: unknown, image: { reference: string; pullPolicy: string }): Promise<string> {
    this.pulls.push(`${image.reference} ${image.pullPolicy}`);
    return `sha256:${image.reference}`;
  }

  async exportImage(): Promise<ReadableStream<Uint8Array>> {
    return new Blob([this.archive]).stream();
  }
}
