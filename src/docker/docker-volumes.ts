import type { EngineVolume, Owner, VolumeEngine } from "../base/model/container-engine.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { known } from "./engine/docker-error.ts";
import { ownershipLabels, toOwnershipFilter } from "./labels.ts";

/** On a container that exists only to read its image. */
const EXPORT_LABEL = "kubelet-ts.io/export";

/** Docker volumes and images as pod volumes need them. */
export class DockerVolumes implements VolumeEngine {
  readonly #client: DockerClient;
  readonly #owner: Owner;

  constructor({ client, owner }: { client: DockerClient; owner: Owner }) {
    this.#client = client;
    this.#owner = owner;
  }

  /** Removes the containers for reading images that an earlier process left behind. */
  async removeLeftovers(signal: AbortSignal): Promise<void> {
    const filters = { label: [...toOwnershipFilter(this.#owner), EXPORT_LABEL] };
    for (const { Id } of await this.#client.listContainers({ all: true, filters }, { signal })) {
      await this.#client.removeContainer(Id, { force: true }, { signal });
    }
  }

  apiVersion(): string {
    return this.#client.apiVersion ?? "1.24";
  }

  async createVolume(
    volume: { name: string; driver: "local"; options: Record<string, string>; labels: Record<string, string> },
    signal: AbortSignal,
  ): Promise<void> {
    const { name, driver, options } = volume;
    const Labels = { ...ownershipLabels(this.#owner), ...volume.labels };
    await this.#client.createVolume({ Name: name, Driver: driver, DriverOpts: options, Labels }, { signal });
  }

  async inspectVolume(name: string, signal: AbortSignal): Promise<EngineVolume | undefined> {
    const found = await known(this.#client.inspectVolume(name, { signal }));
    if (!found) return undefined;
    const { Name, Driver, Mountpoint, Options, Labels } = found;
    return { name: Name, driver: Driver, mountpoint: Mountpoint, options: Options, labels: Labels };
  }

  async removeVolume(name: string, signal: AbortSignal): Promise<void> {
    await known(this.#client.removeVolume(name, { signal }));
  }

  /** Exports an image through a container that is never started. */
  async exportImage(imageId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const Labels = { ...ownershipLabels(this.#owner), [EXPORT_LABEL]: "1" };
    const { Id } = await this.#client.createContainer("", { Image: imageId, Cmd: ["/none"], Labels }, { signal });
    const remove = () => this.#client.removeContainer(Id, { force: true });
    try {
      const chunks = await this.#client.getArchive(Id, "/", { signal });
      return toStream(andThen(chunks, remove));
    } catch (error) {
      await remove();
      throw error;
    }
  }
}

async function* andThen(chunks: AsyncIterable<Uint8Array>, end: () => Promise<void>): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } finally {
    await end();
  }
}

/** A pull stream over a generator; cancelling it ends the generator. */
function toStream(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return(undefined);
    },
  });
}
