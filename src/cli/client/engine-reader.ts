import { resolve } from "node:path";
import type { Pod } from "../../base/api/pod.ts";
import { nodeNameOfPod } from "../../base/host/node-name.ts";
import { EngineError } from "../../base/model/engine-error.ts";
import { byNewest, isRunning } from "../../base/model/pod-snapshot.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../config/option-table.ts";
import { readRemovalSettings } from "../../daemon/removal-settings.ts";
import { DockerHost, type EnginePod } from "../../docker/docker-host.ts";
import { ANNOTATION_LABEL_PREFIX, computeRootHash, LABEL } from "../../docker/labels.ts";
import type { ContainerProbeState } from "../../plan/pod-plan.ts";
import { computeQosClass } from "../../plan/pod-resources.ts";
import { computePodStatus } from "../../plan/status/compute-pod-status.ts";
import { type CommandRequest, UsageError } from "../sub-command.ts";
import { findingOptions, KubeletApiError } from "./find-kubelet.ts";
import { readKeptPods } from "./kept-pods.ts";

const TIMEOUT_MS = 15_000;

/** The engine of the flags, else of the kubelet. @param known of the kubelet that runs. @throws UsageError */
export function engineOf({ value }: CommandRequest, known?: string): DockerHost {
  try {
    return new DockerHost({ endpoint: value("docker-endpoint") ?? known, environment: process.env });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Answers about pods while no kubelet runs: from the labels on the engine and the checkpoints of the root directory. */
export class EngineReader {
  readonly #engine: DockerHost;
  /** undefined: the pods of every root directory. */
  readonly #rootHash: string | undefined;
  /** That of the checkpoints. */
  readonly #rootDir: string;
  /** Pods of the checkpoints; of two with one UID the first counts. */
  readonly #kept: ReadonlyMap<string, Pod>;
  readonly note: string;

  /** @param note why only the engine can be asked. @param endpoint as of {@link engineOf}. @throws UsageError */
  constructor(request: CommandRequest, note: string, endpoint?: string) {
    const { rootDir } = findingOptions(request);
    this.#rootDir = resolve(rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir);
    this.#engine = engineOf(request, endpoint ?? readRemovalSettings(this.#rootDir).dockerEndpoint);
    this.#rootHash = rootDir === undefined ? undefined : computeRootHash(this.#rootDir);
    const kept = readKeptPods(this.#rootDir).map(({ pod }): [string, Pod] => [pod.metadata.uid ?? "", pod]);
    this.#kept = new Map(kept.toReversed());
    this.note = note;
  }

  async pods(): Promise<readonly Pod[]> {
    const found = this.#engine.listPods(this.#rootHash, AbortSignal.timeout(TIMEOUT_MS));
    const pods = await found.catch((error: unknown) => {
      throw error instanceof EngineError && error.isUnreachable
        ? new KubeletApiError(`${this.note}; ${error.message}`)
        : error;
    });
    const now = new Date();
    return pods.map((found) => {
      const { snapshot, owner } = found;
      const nodeName = nodeNameOfPod(this.#rootDir, snapshot.name, owner.nodeName);
      return toPod(found, this.#kept.get(snapshot.uid) ?? toPodOfLabels(found, nodeName), now);
    });
  }

  async events(): Promise<never> {
    throw new KubeletApiError(`${this.note}; events are known to a running kubelet alone`);
  }

  async node(): Promise<never> {
    throw new KubeletApiError(this.note);
  }

  async health() {
    return { engine: this.note.split("; ")[0], refused: [] };
  }
}

/**
 * A pod as the API shows it. Without its manifest every main container counts as one that restarts; a running
 * container counts as ready, for nothing probes it.
 * @param pod by the manifest, if a checkpoint has it
 */
export function toPod({ snapshot }: EnginePod, pod: Pod, now: Date): Pod {
  const createdAt = [...snapshot.sandboxes, ...snapshot.containers].map((it) => it.createdAt.getTime());
  const startTime = new Date(Math.min(...createdAt));
  const probes = new Map(
    snapshot.containers
      .filter(isRunning)
      .map(({ name, id }): [string, ContainerProbeState] => [name, { containerId: id, started: true, ready: true }]),
  );
  const status = computePodStatus({
    pod,
    snapshot,
    qosClass: computeQosClass(pod),
    probes,
    waiting: new Map(),
    postStartPending: new Set(),
    terminationMessages: new Map(),
    imageNames: new Map(),
    lastPodIps: [],
    hostIp: "",
    startTime,
    now,
  });
  return { ...pod, status };
}

export function toPodOfLabels({ snapshot }: EnginePod, nodeName: string): Pod {
  const { name, namespace, uid, containers, sandboxes } = snapshot;
  // The newest of each name.
  const newest = new Map(
    containers
      .toSorted(byNewest)
      .map((it) => [it.name, it] as const)
      .toReversed(),
  );
  const inOrder = [...newest.values()].sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
  const isOwn = (key: string) =>
    !key.startsWith(ANNOTATION_LABEL_PREFIX) && !key.startsWith("io.kubernetes.") && !key.startsWith("kubelet-ts.io/");
  const toContainers = (chosen: typeof inOrder) =>
    chosen.map(({ name: container, image, labels: own }) => ({
      name: container,
      image: own[LABEL.image] ?? image,
      resources: {},
      ...(own[LABEL.initContainer] && { restartPolicy: own[LABEL.initContainer] }),
    }));
  const isInit = ({ labels: own }: (typeof inOrder)[number]) => own[LABEL.initContainer] !== undefined;
  const labels = Object.fromEntries(Object.entries(sandboxes[0]?.labels ?? {}).filter(([key]) => isOwn(key)));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, uid, labels },
    spec: {
      nodeName,
      restartPolicy: "Always",
      initContainers: toContainers(inOrder.filter(isInit)),
      containers: toContainers(inOrder.filter((it) => !isInit(it))),
    },
  } as unknown as Pod;
}
