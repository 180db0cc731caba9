import type { Pod, PodCondition, PodStatus } from "../../src/base/api/pod.ts";
import type { DesiredPod, DesiredState } from "../../src/base/model/desired-state.ts";
import type { PodRef } from "../../src/base/model/pod.ts";
import { allContainersOf } from "../../src/base/model/pod.ts";
import type { PodRevision } from "../../src/kubelet/edit-rules.ts";
import type { ImageUpdateManager } from "../../src/kubelet/images/image-update-manager.ts";
import { Kubelet } from "../../src/kubelet/kubelet.ts";
import { PodCache } from "../../src/kubelet/pod-cache.ts";
import type { Completion } from "../../src/kubelet/pod-records.ts";
import { PodManager, PodRecords, type StoredEvictions, type StoredManifests } from "../../src/kubelet/pod-records.ts";
import {
  RevisionSelector,
  type StoredEphemeralContainers,
  type StoredRollouts,
} from "../../src/kubelet/rollout-manager.ts";
import { RuntimeWatcher } from "../../src/kubelet/runtime-watcher.ts";
import { pinImage } from "../../src/plan/image-updates.ts";
import type { ContainerProbeState } from "../../src/plan/pod-plan.ts";
import type { PendingResize } from "../../src/plan/pod-resources.ts";
import { aPod, NO_LIMITS } from "./builders.ts";
import { FakeClock } from "./fake-clock.ts";
import { FakeEngine } from "./fake-engine.ts";
import { aMetrics } from "./metrics.ts";
import { RecordingLogger, RecordingRecorder } from "./recording-logger.ts";

/** The image names the revision of a container; labels and the like change nothing. */
export const toPodRevision = (
  desired: Pick<DesiredPod, "pod"> & Partial<DesiredPod>,
  state?: Partial<DesiredState>,
): PodRevision => {
  const { pod, imagePins } = desired;
  return {
    pod,
    desired: { source: "file", origin: "test", revision: "", ...desired },
    objects: { configMaps: new Map(), secrets: new Map() },
    hashes: {
      sandbox: `sandbox ${pod.spec.hostname ?? ""}`,
      containers: new Map(allContainersOf(pod.spec).map((c) => [c.name, pinImage(c, imagePins).image!])),
      limits: new Map(
        pod.spec.containers.map((c) => [
          c.name,
          { ...NO_LIMITS, memoryBytes: Number(c.resources.limits?.memory ?? 0) },
        ]),
      ),
    },
    qosClass: "BestEffort",
    options: { maxBackOffMs: 300_000, maxDeadPerContainer: 1, minDeadTtlMs: 0 },
    runRevision: JSON.stringify(pod.spec),
    objectsRevision: "",
    extraConditions: (state?.notices?.get(pod.metadata.uid!) ?? []).map(({ reason, message }) => ({
      type: "ManifestLive",
      status: "False",
      reason,
      message,
    })),
  };
};

/** A desired state of these pods. @param of what they have besides the pod */
export const stateOf = (
  pods: readonly Pod[],
  more: Partial<DesiredState> = {},
  of: Partial<DesiredPod> = {},
): DesiredState => ({
  pods: pods.map((pod) => ({ pod, source: "file", origin: "test", revision: "", ...of })),
  configMaps: new Map(),
  secrets: new Map(),
  ...more,
});

/** Pod `<name>-node1` with uid `uid-<name>`. */
export const named = (name: string, spec: Partial<Pod["spec"]> = {}, metadata: Partial<Pod["metadata"]> = {}) =>
  aPod(spec, { name: `${name}-node1`, uid: `uid-${name}`, ...metadata });

/** The loops on a fake engine and a fake clock. */
export class KubeletWorld {
  readonly clock = new FakeClock();
  readonly engine = new FakeEngine(this.clock);
  readonly logger = new RecordingLogger();
  readonly recorder = new RecordingRecorder();
  metrics = aMetrics();
  /** State files: they outlive `renew`. */
  completions = new Map<string, Completion>();
  podCleanup: readonly PodRef[] = [];
  /** Resolves when the state files are written. */
  disk: Promise<void> = Promise.resolve();
  evictions: StoredEvictions = [];
  conditions: readonly (readonly [string, readonly PodCondition[]])[] = [];
  rollouts: StoredRollouts = [];
  earlierManifests: StoredManifests = [];
  ephemeralContainers: StoredEphemeralContainers = [];
  oomVerdicts: readonly string[] = [];
  shutdownTerminated: string[] = [];
  /** Keys are the uid, then the container. */
  readonly probes = new Map<string, Map<string, ContainerProbeState>>();
  isSerialRollout: boolean;
  imageUpdates: ImageUpdateManager | undefined;
  readonly #newImageUpdates: ((clock: FakeClock) => ImageUpdateManager) | undefined;
  kubelet: Kubelet;
  desired: Pod[] = [];

  constructor({
    isSerialRollout = false,
    imageUpdates,
  }: { isSerialRollout?: boolean; imageUpdates?: (clock: FakeClock) => ImageUpdateManager } = {}) {
    this.isSerialRollout = isSerialRollout;
    this.#newImageUpdates = imageUpdates;
    this.kubelet = this.#newKubelet();
  }

  /** As {@link want}; the images of a pod name its revision. */
  submit(...pods: Pod[]): void {
    this.#setDesired(pods, ({ spec }) => spec.containers.map(({ image }) => image).join());
  }

  /** A kubelet that starts with these pods. */
  async started(...pods: Pod[]): Promise<void> {
    this.kubelet.start();
    this.want(...pods);
    await this.clock.advance(10);
  }

  /** Refusals of the node by uid. */
  rejections = new Map<string, { reason: string; message: string }>();

  /** Uids of the pods that the node refuses now; absent: see {@link rejections}. */
  refuses: ((pods: readonly DesiredPod[]) => string[]) | undefined;

  /** Ids of the images whose names were looked up, in order. */
  readonly imageLookUps: string[] = [];

  /** Read by a new kubelet only. */
  formerNodeNames: readonly string[] = [];

  /** Edits of resources that the node cannot satisfy, by uid. */
  resizes = new Map<string, PendingResize>();

  /** Why pods without a place are not assigned to the node. */
  hold: string | undefined;

  /** Every source has spoken, and this is what they want. */
  want(...pods: Pod[]): void {
    this.#setDesired(pods);
  }

  /** A source deletes one pod, with this grace period in place of its own. */
  delete(uid: string, graceSeconds: number): void {
    const left = this.desired.filter(({ metadata }) => metadata.uid !== uid);
    this.#setDesired(left, undefined, { deletions: new Map([[uid, { graceSeconds }]]) });
  }

  #setDesired(pods: Pod[], revisionOf = (_: Pod) => "", more: Partial<DesiredState> = {}): void {
    this.desired = pods;
    const desired = pods.map((pod) => ({ pod, source: "file" as const, origin: "test", revision: revisionOf(pod) }));
    this.kubelet.setDesired({ pods: desired, configMaps: new Map(), secrets: new Map(), ...more }, true);
  }

  /** A container of pod `<name>-node1` ends, and this much time passes. */
  async exit(name: string, container: string, exitCode: number, thenMs = 0): Promise<void> {
    this.engine.exit(this.engine.idOf(`${name}-node1`, container), exitCode);
    await this.clock.advance(thenMs);
  }

  /** Status of the first container. */
  containerOf(name: string) {
    return this.statusOf(name)?.containerStatuses?.[0];
  }

  statusOf(name: string): PodStatus | undefined {
    return this.kubelet.pods().find((pod) => pod.metadata.name === `${name}-node1`)?.status;
  }

  /** The process ends and another one takes its place, not started yet. */
  renew(): void {
    this.kubelet.stop();
    this.kubelet = this.#newKubelet();
  }

  /** As {@link started}, of the process that takes the place of this one. */
  async restarted(...pods: Pod[]): Promise<void> {
    this.renew();
    await this.started(...pods);
  }

  #newKubelet(): Kubelet {
    const { clock, logger, recorder, engine, probes, metrics } = this;
    this.imageUpdates?.stop();
    this.imageUpdates = this.#newImageUpdates?.(clock);
    const runtime = engine;
    const kept = <
      K extends
        | "podCleanup"
        | "conditions"
        | "earlierManifests"
        | "evictions"
        | "shutdownTerminated"
        | "rollouts"
        | "ephemeralContainers"
        | "oomVerdicts",
    >(
      key: K,
    ) => ({
      read: () => this[key],
      write: (all: this[K]) => {
        this[key] = JSON.parse(JSON.stringify(all));
        return this.disk;
      },
    });
    const cache = new PodCache({
      runtime,
      clock,
      oomVerdicts: kept("oomVerdicts"),
      images: { imageStatus: async (id) => void this.imageLookUps.push(id) },
    });
    return new Kubelet({
      worker: {
        clock,
        logger,
        recorder,
        cache,
        services: engine,
        probes: {
          update: () => {},
          remove: () => {},
          states: (uid) => probes.get(uid) ?? new Map(),
        },
        node: { ip: "10.0.0.1", formerNames: this.formerNodeNames },
        metrics,
        records: new PodRecords({
          completions: {
            read: () => Object.fromEntries(this.completions),
            write: (all) => {
              this.completions = new Map(Object.entries(all));
            },
          },
          podCleanup: kept("podCleanup"),
          evictions: kept("evictions"),
          conditions: kept("conditions"),
          earlierManifests: kept("earlierManifests"),
          shutdownTerminated: kept("shutdownTerminated"),
        }),
      },
      watcher: new RuntimeWatcher({ clock, logger, runtime, cache, metrics, relistPeriodMs: 60_000 }),
      podManager: new PodManager(),
      revisions: new RevisionSelector({
        clock,
        logger,
        recorder,
        metrics,
        rollouts: kept("rollouts"),
        ephemeralContainers: kept("ephemeralContainers"),
        isSerialRollout: this.isSerialRollout,
        ...(this.imageUpdates && { imageUpdates: this.imageUpdates }),
      }),
      rules: {
        toPodRevision,
        admit: (pods, _running, _isComplete, earlier) => {
          const why = { reason: "No", message: "the node refuses it" };
          const refused = (this.refuses?.(pods) ?? []).map((uid) => [uid, why] as const);
          const [refusedEdits, others] = Array.from(["", "others"], (list) =>
            refused.filter(([uid]) => earlier.has(uid) === (list === "")),
          );
          return {
            rejections: new Map([...this.rejections, ...others!]),
            resizes: this.resizes,
            refusedEdits: new Map(refusedEdits),
          };
        },
        holdOf: () => this.hold,
      },
    });
  }
}
