import { join } from "node:path";
import { ConcurrencyLimit } from "../base/concurrency/concurrency-limit.ts";
import { SingleFlight } from "../base/concurrency/single-flight.ts";
import type { Clock } from "../base/model/clock.ts";
import type {
  ContainerEngine,
  EngineVolume,
  NewVolume,
  OtherContainer,
  Owner,
  VolumeEngine,
} from "../base/model/container-engine.ts";
import type { Logger } from "../base/model/logger.ts";
import type { EngineInfo } from "../base/model/node.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { DockerHost, type DockerHostOptions } from "./docker-host.ts";
import { DockerImages, preloadImages } from "./docker-images.ts";
import { DockerPods, type DockerPodsDeps } from "./docker-pods.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { known } from "./engine/docker-error.ts";
import type { ContainerInspect, EngineInfoResponse } from "./engine/schemas.ts";
import { isOwned, ownershipLabels, toOwnershipFilter } from "./labels.ts";
import { ensurePauseImage } from "./pause-image.ts";
import type { InsecureRegistries } from "./registry-client.ts";

/** The configuration does not fit the engine that responded: a retry does not help. */
export class MisconfigurationError extends Error {}

interface DockerEngineOptions extends DockerHostOptions {
  owner: Owner;
  clock: Clock;
  logger: Logger;
  options: Pick<KubeletOptions, "cgroupDriver" | "podInfraContainerImage">;
  /** Whether this process may lower OOM scores below 0. */
  mayLowerOomScores: () => boolean;
  pods: Pick<DockerPodsDeps, "networks" | "onOperation" | "onStarted" | "onRemoved">;
}

/** The engine of a node: its pods, containers, images and volumes, and what is known of it since it was last connected to. */
export class DockerEngine extends DockerHost implements ContainerEngine {
  readonly pods: DockerPods;
  readonly images: DockerImages;
  readonly volumes: DockerVolumes;
  readonly others: OtherContainers;
  readonly #options: DockerEngineOptions;
  readonly #pauseImages = new SingleFlight<string>();
  #info: EngineInfo | undefined;
  #error: string | undefined = "the Docker engine has not answered yet";

  constructor(options: DockerEngineOptions) {
    super(options);
    const { owner, clock, logger } = options;
    const { client } = this;
    this.#options = options;
    const onReconnect = (signal: AbortSignal) => this.#refresh(signal);
    this.pods = new DockerPods({ client, owner, clock, onReconnect, ...options.pods });
    const pauseOverride = options.options.podInfraContainerImage;
    this.images = new DockerImages({ client, owner, clock, logger, pauseOverride });
    this.volumes = new DockerVolumes({ client, owner });
    this.others = new OtherContainers(client, owner);
  }

  /** undefined until the engine has responded once. */
  get infoIfKnown(): EngineInfo | undefined {
    return this.#info;
  }

  readonly info = (): EngineInfo => {
    if (!this.#info) throw new Error("the Docker engine has not answered yet");
    return this.#info;
  };

  /** Where an engine with json-file logs keeps those of a container; reading it would cost an inspect per container. */
  logPathOf(containerId: string): string {
    return join(this.info().dockerRootDir, "containers", containerId, `${containerId}-json.log`);
  }

  /** Why the engine was never reached; undefined once it was. Later errors are those of the event stream. */
  get connectError(): string | undefined {
    return this.#info ? undefined : this.#error;
  }

  /** @throws DockerUnreachableError, DockerError, DockerProtocolError, MisconfigurationError */
  async connect(signal: AbortSignal): Promise<void> {
    const { options, mayLowerOomScores } = this.#options;
    try {
      await this.client.connect({ signal });
      this.#info = await readEngineInfo(this.client, mayLowerOomScores(), signal);
    } catch (error) {
      this.#error = (error as Error).message;
      throw error;
    }
    if (options.cgroupDriver !== "" && options.cgroupDriver !== this.#info.cgroupDriver) {
      throw new MisconfigurationError(
        `--cgroup-driver is ${options.cgroupDriver}, but the Docker engine uses ${this.#info.cgroupDriver}: remove the flag, or change native.cgroupdriver of the engine`,
      );
    }
  }

  /** Loads the image archives of a directory, as {@link preloadImages}. @returns the names of the images */
  preloadImages(directory: string, stateFile: string, signal: AbortSignal): Promise<string[]> {
    return preloadImages(this.client, directory, stateFile, this.#options.logger, signal);
  }

  /** Registries that the engine trusts without TLS. */
  async insecureRegistries(signal: AbortSignal): Promise<InsecureRegistries> {
    const { RegistryConfig } = await this.client.info({ signal });
    const hosts = Object.entries(RegistryConfig?.IndexConfigs ?? {});
    return {
      hosts: hosts.flatMap(([host, { Secure }]) => (Secure ? [] : [host])),
      cidrs: RegistryConfig?.InsecureRegistryCIDRs ?? [],
    };
  }

  /** Id of the image of the sandboxes, loaded or pulled when it is not there. Pods that need it at a time share one look-up. */
  ensurePauseImage(
    signal: AbortSignal,
    /** How an image of the administrator is pulled; without credentials when absent. */
    pull?: (reference: string, signal: AbortSignal) => Promise<unknown>,
  ): Promise<string> {
    const override = this.#options.options.podInfraContainerImage || undefined;
    const ensure = (stop: AbortSignal) =>
      ensurePauseImage(this.client, { override, ...(pull && { pull: (reference) => pull(reference, stop) }) }, stop);
    return this.#pauseImages.do("pause", ensure, signal);
  }

  /** Reads the facts again after a reconnection: the engine may have another version or cgroup driver. */
  async #refresh(signal: AbortSignal): Promise<void> {
    if (this.#info) this.#info = await readEngineInfo(this.client, this.#info.negativeOomScores, signal);
  }
}

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

  async createVolume({ name, driver, options, labels }: NewVolume, signal: AbortSignal): Promise<void> {
    const Labels = { ...ownershipLabels(this.#owner), ...labels };
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
      return new Response(andThen(chunks, remove)).body as ReadableStream<Uint8Array>;
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

/** Containers that are reported; of more, those that were created first. */
const MAX_CONTAINERS = 512;
/** Inspects at the same time. */
const MAX_INSPECTS = 4;

/** The running containers of the engine that are not ours. They are read, and nothing else is ever done to them. */
class OtherContainers {
  readonly #client: Pick<DockerClient, "listContainers" | "inspectContainer">;
  readonly #owner: Owner;
  #known = new Map<string, OtherContainer>();

  constructor(client: Pick<DockerClient, "listContainers" | "inspectContainer">, owner: Owner) {
    this.#client = client;
    this.#owner = owner;
  }

  /**
   * Lists them in the order of their creation. Only those that are new, or that have another process, are inspected.
   * @param isCurrent whether the process still is the container's
   */
  async list(isCurrent: (container: OtherContainer) => boolean, signal: AbortSignal): Promise<OtherContainer[]> {
    const running = await this.#client.listContainers({}, { signal });
    // The engine lists the newest first.
    const others = running.filter(({ Labels }) => !isOwned(Labels, this.#owner)).slice(-MAX_CONTAINERS);
    const gate = new ConcurrencyLimit(MAX_INSPECTS);
    const read = async (id: string): Promise<OtherContainer | undefined> => {
      const before = this.#known.get(id);
      if (before && isCurrent(before)) return before;
      const inspect = await gate.run(signal, () => known(this.#client.inspectContainer(id, { signal })));
      const container = inspect && toOtherContainer(inspect);
      // At once: where there are many, the time of one call may not be enough for all.
      if (container) this.#known.set(id, container);
      return container;
    };
    const found = await Promise.all(others.toReversed().map(({ Id }) => read(Id)));
    const containers = found.filter((container) => container !== undefined);
    this.#known = new Map(containers.map((container) => [container.id, container]));
    return containers;
  }
}

/** undefined for a container that has ended meanwhile. */
function toOtherContainer(inspect: ContainerInspect): OtherContainer | undefined {
  const { Id, Name, Created, State, Config, HostConfig } = inspect;
  if (State.Pid === 0) return undefined;
  return {
    id: Id,
    dockerName: Name.replace(/^\//, ""),
    image: Config.Image,
    createdAt: new Date(Created),
    startedAt: new Date(State.StartedAt),
    pid: State.Pid,
    hasOwnNetwork: !/^(host$|container:)/.test(HostConfig.NetworkMode),
  };
}

/** The machine's own containerd, where it is, and its default state directory. */
const CONTAINERD_ADDRESS = "/run/containerd/containerd.sock";
const CONTAINERD_ROOT = "/var/lib/containerd";

/** Where images and writable layers lie: in the machine's containerd, unless that is the engine's child or not used. */
export function toImagesDir(info: Pick<EngineInfoResponse, "DockerRootDir" | "DriverStatus" | "Containerd">): string {
  const isInContainerd = info.DriverStatus.flat().includes("io.containerd.snapshotter.v1");
  return isInContainerd && info.Containerd?.Address === CONTAINERD_ADDRESS ? CONTAINERD_ROOT : info.DockerRootDir;
}

/** @param negativeOomScores whether the kernel lets the engine lower an OOM score */
export async function readEngineInfo(
  client: DockerClient,
  negativeOomScores: boolean,
  signal?: AbortSignal,
): Promise<EngineInfo> {
  const [info, { apiVersion }] = await Promise.all([client.info({ signal }), client.engine({ signal })]);
  return {
    apiVersion,
    serverVersion: info.ServerVersion,
    cgroupDriver: info.CgroupDriver === "systemd" ? "systemd" : "cgroupfs",
    cgroupVersion: info.CgroupVersion === "2" ? 2 : 1,
    dockerRootDir: info.DockerRootDir,
    imagesDir: toImagesDir(info),
    ...(info.Driver !== "" && { storageDriver: info.Driver }),
    // In its user namespace a rootless engine may not, although it may inside.
    negativeOomScores: negativeOomScores && !info.SecurityOptions.includes("name=rootless"),
    securityOptions: info.SecurityOptions,
    runtimes: Object.keys(info.Runtimes),
    ...(info.DiscoveredDevices.length > 0 && { cdiDevices: info.DiscoveredDevices.map(({ ID }) => ID) }),
  };
}
