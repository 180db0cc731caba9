import { ConcurrencyLimit } from "../base/concurrency/concurrency-limit.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Owner } from "../base/model/container-engine.ts";
import type { PodAddress } from "../base/model/pod-dialer.ts";
import { byNewest, type ContainerId, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { RegistryAuth } from "../base/model/registry-auth.ts";
import { DockerContainers } from "./docker-containers.ts";
import { DockerClient } from "./engine/docker-client.ts";
import type { KillExecProcesses } from "./engine/docker-connection.ts";
import { DockerError, known } from "./engine/docker-error.ts";
import { endpointText, parseEndpoint } from "./engine/endpoint.ts";
import { realSchedule } from "./engine/transport.ts";
import { toObserved } from "./inspect-to-snapshot.ts";
import { LABEL } from "./labels.ts";

/** Where an engine is, and how it is called. */
export interface DockerHostOptions {
  /** `--docker-endpoint`; "" or absent: DOCKER_HOST, else the default socket. */
  endpoint: string | undefined;
  environment: Readonly<Record<string, string | undefined>>;
  /** Deadlines; the real timer when absent. */
  clock?: Pick<Clock, "schedule">;
  /** Deadline of a call that sets none; default 2 min. */
  timeoutMs?: number;
  /** Default: in this thread. */
  killExecProcesses?: KillExecProcesses;
}

/** A pod by its containers alone, as the engine knows them while no kubelet runs. */
export interface EnginePod {
  owner: Owner;
  snapshot: PodSnapshot;
  /** Grace period of the pod by its containers' labels. Unit: seconds. */
  graceSeconds: number;
}

/** Facts of an engine: itself, its networks and its containers. */
export type HostFacts = Awaited<ReturnType<DockerHost["facts"]>>;

/** Inspects at the same time; more make each of them slower. */
const MAX_INSPECTS = 8;
const DEFAULT_GRACE_SECONDS = 30;
const IMAGES_TIMEOUT_MS = 3000;

/** The endpoint of the flag, else of the environment, as users write it. @throws EngineError `bad-endpoint` */
export const dockerEndpoint = ({ endpoint, environment }: DockerHostOptions): string =>
  endpointText(parseEndpoint(endpoint || undefined, environment));

/**
 * One Docker engine, for callers that own no containers of it. Every call throws EngineError when the engine refuses or
 * cannot be reached, and the signal's reason.
 */
export class DockerHost {
  protected readonly client: DockerClient;
  readonly containers: DockerContainers;

  /** @throws EngineError `bad-endpoint` */
  constructor({ endpoint, environment, clock, timeoutMs, killExecProcesses }: DockerHostOptions) {
    const schedule = clock ? (ms: number, callback: () => void) => clock.schedule(ms, callback) : realSchedule;
    this.client = new DockerClient(parseEndpoint(endpoint || undefined, environment), {
      schedule,
      timeoutMs,
      killExecProcesses,
    });
    this.containers = new DockerContainers(this.client, schedule);
  }

  /**
   * The pods of a root directory, of every node name it was used with, by their containers alone.
   * @param rootHash undefined: of all root directories
   */
  async listPods(rootHash: string | undefined, signal: AbortSignal): Promise<EnginePod[]> {
    const label = [rootHash === undefined ? LABEL.root : `${LABEL.root}=${rootHash}`, LABEL.node];
    const listed = await this.client.listContainers({ all: true, filters: { label } }, { signal });
    const gate = new ConcurrencyLimit(MAX_INSPECTS);
    const inspected = await Promise.all(
      // undefined: removed since the list.
      listed.map(({ Id }) => gate.run(signal, () => known(this.client.inspectContainer(Id, { signal })))),
    );
    const pods = new Map<string, EnginePod>();
    for (const inspect of inspected) {
      const observed = inspect && toObserved(inspect);
      if (!inspect || !observed) continue;
      const labels = inspect.Config.Labels;
      const owner = { nodeName: labels[LABEL.node] ?? "", rootHash: labels[LABEL.root] ?? "" };
      const { uid, name, namespace } = observed.pod;
      const key = `${owner.rootHash} ${owner.nodeName} ${uid}`;
      const pod = pods.getOrInsert(key, {
        owner,
        snapshot: { uid, name, namespace, sandboxes: [], containers: [] },
        graceSeconds: DEFAULT_GRACE_SECONDS,
      });
      if (observed.kind === "sandbox") pod.snapshot.sandboxes.push(observed.sandbox);
      else {
        pod.snapshot.containers.push(observed.container);
        const grace = labels[LABEL.terminationGracePeriod];
        if (grace !== undefined && /^\d+$/.test(grace)) pod.graceSeconds = Number(grace);
      }
    }
    for (const { snapshot } of pods.values()) {
      snapshot.containers.sort(byNewest);
      snapshot.sandboxes.sort((a, b) => b.attempt - a.attempt || b.createdAt.getTime() - a.createdAt.getTime());
    }
    const nameOf = ({ snapshot }: EnginePod) => `${snapshot.namespace}/${snapshot.name}`;
    return [...pods.values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  }

  /** Names with tags of all images; none when the engine does not tell them soon. Never rejects. */
  async imageNames(): Promise<string[]> {
    const images = await this.client.listImages({}, { timeoutMs: IMAGES_TIMEOUT_MS }).catch(() => []);
    return images.flatMap(({ RepoTags }) => RepoTags);
  }

  /** Address of the pod that a container belongs to, by its sandbox. */
  async podAddressOf(id: ContainerId): Promise<PodAddress> {
    const { Config } = await this.client.inspectContainer(id);
    const sandboxId = Config.Labels[LABEL.sandboxId] ?? "";
    const { NetworkSettings, HostConfig, State } = await this.client.inspectContainer(sandboxId);
    const networks = Object.values(NetworkSettings.Networks).filter((network) => network !== null);
    return {
      ip: networks[0]?.IPAddress ?? "",
      hostNetwork: HostConfig.NetworkMode === "host",
      sandboxPid: State.Pid,
      sandboxId,
    };
  }

  /** `docker inspect` of a container, as the engine wrote it; undefined when there is none. @param name name or id */
  inspectContainer(name: string, signal: AbortSignal): Promise<Record<string, unknown> | undefined> {
    return known(this.client.inspectContainerRaw(name, { signal }));
  }

  /** `docker inspect` of an image, as the engine wrote it; undefined when there is none. @param reference name or id */
  inspectImage(reference: string, signal: AbortSignal): Promise<Record<string, unknown> | undefined> {
    return known(this.client.inspectImageRaw(reference, { signal }));
  }

  /** Which of the images the engine does not have. */
  async missingImages(references: readonly string[]): Promise<string[]> {
    const missing: string[] = [];
    for (const reference of references) {
      if (!(await known(this.client.inspectImage(reference)))) missing.push(reference);
    }
    return missing;
  }

  /** A `docker save` archive of images, as a stream. */
  saveImages(references: readonly string[], signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return this.client.saveImages(references, signal);
  }

  /** Loads a `docker save` archive. */
  async loadImages(archive: Blob): Promise<void> {
    await this.client.loadImage(archive);
  }

  /** As Docker names it: amd64, arm64; undefined when the image is not present or cannot be inspected. */
  async architectureOf(reference: string): Promise<string | undefined> {
    return (await this.client.inspectImage(reference).catch(() => undefined))?.Architecture;
  }

  /**
   * The architectures that a registry has of an image, empty where it does not report them. Nothing is pulled.
   * @param auths tried one after the other; none: without credentials
   * @throws Error with the registry's words, as the engine passes them on
   */
  async registryArchitectures(
    reference: string,
    auths: readonly RegistryAuth[],
    signal: AbortSignal,
  ): Promise<string[]> {
    let last: unknown;
    for (const auth of auths.length > 0 ? auths : [undefined]) {
      try {
        const { Platforms } = await this.client.inspectDistribution(reference, { auth, signal });
        return Platforms.map(({ architecture }) => architecture).filter(Boolean);
      } catch (error) {
        if (!(error instanceof DockerError)) throw error;
        last = new Error(error.daemonMessage, { cause: error });
      }
    }
    throw last;
  }

  /** Version, drivers, networks and containers of the engine, read now. */
  async facts(signal: AbortSignal) {
    const { engineApiVersion } = await this.client.connect({ signal });
    const [info, networks, containers] = await Promise.all([
      this.client.info({ signal }),
      this.client.listNetworks({ signal }),
      this.client.listContainers({ all: true }, { signal }),
    ]);
    const deviceOf = ({ Options }: (typeof networks)[number]) => Options["com.docker.network.bridge.name"] ?? "";
    const bridge = networks.find(({ Name }) => Name === "bridge");
    return {
      version: info.ServerVersion,
      apiVersion: engineApiVersion,
      storageDriver: info.Driver,
      logDriver: info.LoggingDriver,
      cgroupDriver: info.CgroupDriver,
      cgroupVersion: info.CgroupVersion || "1",
      liveRestore: info.LiveRestoreEnabled,
      warnings: info.Warnings as readonly string[],
      rootless: info.SecurityOptions.some((option) => option.startsWith("name=rootless")),
      firewall: info.FirewallBackend?.Driver ?? "",
      rootDir: info.DockerRootDir,
      /** Subnets of the default bridge. */
      bridgeSubnets: (bridge?.IPAM?.Config ?? []).map(({ Subnet }) => Subnet) as readonly string[],
      /** Device of the default bridge. */
      bridge: (bridge && deviceOf(bridge)) || "docker0",
      /** Devices of networks of the engine that have names of their own. */
      bridges: networks.map(deviceOf).filter((device) => device !== "") as readonly string[],
      containers: containers.map(({ Names, Labels }) => ({ name: Names[0] ?? "", labels: Labels })),
    };
  }
}
