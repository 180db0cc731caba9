import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../../src/base/api/pod.ts";
import type { Service } from "../../src/base/api/service.ts";
import type { Clock } from "../../src/base/model/clock.ts";
import { type DesiredObject, type DesiredWorkload, isWorkload } from "../../src/base/model/desired-state.ts";
import type { Logger } from "../../src/base/model/logger.ts";
import type { EventRecorder } from "../../src/base/model/pod-event.ts";
import type { ControllerContext, ControllerWorld, PodFacts, WorkloadEvent } from "../../src/controllers/controller.ts";
import { reconcileWorkload } from "../../src/controllers/reconcile-workload.ts";
import { ExternalNames, ServiceHosts } from "../../src/controllers/service-hosts.ts";
import { ServiceManager } from "../../src/controllers/service-manager.ts";
import type {
  ControllerState,
  JobRecord,
  PodRecord,
  WorkloadRecord,
  WorkloadState,
} from "../../src/controllers/workload-records.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { aPod } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

export const readObjects = (...manifests: object[]): DesiredObject[] =>
  manifests.flatMap((manifest) => {
    const bytes = Buffer.from(JSON.stringify(manifest));
    const { objects, findings } = readManifest(bytes, { file: "f.yaml", nodeName: "node1", source: "file" });
    const error = findings.find(({ severity }) => severity === "error");
    if (error) throw new Error(`${error.field}: ${error.message}`);
    return objects;
  });

export const readWorkloads = (...manifests: object[]): DesiredWorkload[] =>
  readObjects(...manifests).filter(isWorkload);

/** A manifest of one object, in the API version of its kind. */
export const manifest = (kind: string, metadata: object, spec: object) => {
  const isBatch = kind === "Job" || kind === "CronJob";
  const isCore = /^(Service|Persistent|ReplicationController)/.test(kind);
  return { apiVersion: isBatch ? "batch/v1" : isCore ? "v1" : "apps/v1", kind, metadata, spec };
};

export const podTemplate = (image = "busybox:1", spec: object = {}) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "app", image }], ...spec },
});

/** A Service that selects the pods of {@link aServicePod}. */
export const aService = (name: string, spec: object = {}, metadata: object = {}): Service =>
  readObjects(
    manifest(
      "Service",
      { name, ...metadata },
      { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8000 }], ...spec },
    ),
  )[0]!.object as Service;

/** A running pod with an address, behind the Service unless its labels are others. */
export const aServicePod = (
  name: string,
  ip: string,
  more: { labels?: Record<string, string>; ready?: boolean; spec?: object; ports?: object[]; namespace?: string } = {},
): Pod => {
  const { labels = { app: "web" }, ready = true, spec, ports, namespace = "default" } = more;
  const containers = ports && { containers: [{ name: "a", image: "b:1", ports }] };
  return {
    ...aPod({ ...containers, ...spec } as Partial<Pod["spec"]>, { name, uid: name, namespace, labels }),
    status: {
      phase: "Running",
      podIPs: [{ ip }],
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
    } as Pod["status"] & object,
  };
};

/** The state of a WorkloadManager, which outlives it as its file does. */
export interface KeptState {
  state: WorkloadState | undefined;
  /** The disk is full, until it is emptied. */
  isFull?: true;
  empty?: () => void;
}

/** The context of controllers of node1. */
export const aContext = (
  clock: Clock,
  recorder: EventRecorder = { record() {} },
  logger: Logger = new RecordingLogger(),
): ControllerContext => ({
  clock,
  logger,
  recorder: Object.assign(recorder, { objectGone() {} }),
  node: {
    name: "node1",
    ip: "192.0.2.1",
    labels: {},
    maxPods: 110,
    comparesAllLabels: false,
    rootHash: "",
    startedAt: "2026-01-02T03:04:05Z",
  },
});

/** Dependencies of a WorkloadManager of node1, without the kubelet and the next stage. */
export function managerDeps(context: ControllerContext, kept: KeptState, hosts?: ServiceHosts) {
  const { clock, logger } = context;
  return {
    context,
    file: {
      read: () => kept.state,
      write: (state: WorkloadState, onWritten = () => {}) => {
        kept.empty = () => {
          delete kept.isFull;
          kept.state = JSON.parse(JSON.stringify(state)) as WorkloadState;
          onWritten();
        };
        if (kept.isFull) return Promise.resolve(false);
        kept.state = JSON.parse(JSON.stringify(state)) as WorkloadState;
        return undefined;
      },
    },
    services: new ServiceManager({
      context,
      hosts: hosts ?? new ServiceHosts("", new ExternalNames({ clock, logger, lookUp: async () => [] })),
      file: { read: () => undefined, write() {} },
      range: "",
      portHolder: () => undefined,
    }),
  };
}

/** One workload, its controller and pods that do what the test says. */
export class WorkloadWorld {
  readonly clock = new FakeClock();
  readonly #facts = new Map<string, { facts: PodFacts; readySinceMs: number }>();
  #object: DesiredWorkload;
  record: WorkloadRecord | undefined;
  controllerState: ControllerState | undefined;
  /** States of the Jobs of a CronJob, by name. */
  readonly jobs = new Map<string, JobRecord>();
  events: WorkloadEvent[] = [];
  wakeInMs: number | undefined;
  holdsUntilMs: number | undefined;

  constructor(manifest: object) {
    this.#object = readWorkloads(manifest)[0]!;
  }

  /** A world in which every pod of the workload runs, and that has recorded no event yet. */
  static settled(manifest: object): WorkloadWorld {
    const world = new WorkloadWorld(manifest);
    world.reconcile();
    world.settle();
    world.events = [];
    return world;
  }

  /** A new text of the same workload. */
  apply(manifest: object): void {
    this.#object = readWorkloads(manifest)[0]!;
    this.reconcile();
  }

  reconcile(): void {
    const world: ControllerWorld = {
      node: { name: "node1", labels: { "kubernetes.io/os": "linux" }, maxPods: 110 },
      now: this.clock.now(),
      nowMs: this.clock.monotonicMs(),
      pod: (uid) => {
        const known = this.#facts.get(uid);
        if (!known) return { phase: "Pending", isReady: false, readyForMs: 0, isGone: false };
        const readyForMs = known.facts.isReady ? this.clock.monotonicMs() - known.readySinceMs : 0;
        return { ...known.facts, readyForMs };
      },
    };
    const outcome = reconcileWorkload(this.#object, this.record, world, this.controllerState, (name) =>
      this.jobs.get(name),
    );
    this.record = outcome.record;
    this.controllerState = outcome.state;
    this.wakeInMs = outcome.wakeInMs;
    this.holdsUntilMs = outcome.holdsUntilMs;
    this.events.push(...outcome.events);
  }

  /** Sets the state of a pod, and reconciles. */
  set(pod: PodRecord, facts: Partial<PodFacts>): void {
    this.setFacts(pod, facts);
    this.reconcile();
  }

  setFacts(pod: PodRecord, facts: Partial<PodFacts>): void {
    const before = this.#facts.get(pod.uid)?.facts ?? {
      phase: "Pending",
      isReady: false,
      readyForMs: 0,
      isGone: false,
    };
    const now = { ...before, ...facts };
    const readySinceMs =
      now.isReady && before.isReady ? this.#facts.get(pod.uid)!.readySinceMs : this.clock.monotonicMs();
    this.#facts.set(pod.uid, { facts: now, readySinceMs });
  }

  /** All wanted pods run and are Ready; all others are gone. Until nothing changes. */
  settle(): void {
    for (let pass = 0; pass < 50; pass++) {
      const before = JSON.stringify(this.record);
      for (const pod of this.record?.pods ?? []) {
        if (pod.leaving) this.setFacts(pod, { isGone: true, isReady: false });
        else this.setFacts(pod, { phase: "Running", isReady: true });
      }
      this.reconcile();
      if (JSON.stringify(this.record) === before) return;
    }
    throw new Error("it does not settle");
  }

  get live(): PodRecord[] {
    return this.record!.pods.filter(({ leaving }) => !leaving);
  }
  get leaving(): PodRecord[] {
    return this.record!.pods.filter(({ leaving }) => leaving);
  }

  /** Image of each wanted pod, sorted. */
  get images(): string[] {
    return this.live.map((pod) => this.imageOf(pod)).sort();
  }

  imageOf({ revision }: PodRecord): string {
    return (this.record!.revisions[revision]!.template as Pod).spec.containers[0]!.image!;
  }
}

/** Scenarios recorded of a controller manager, one a line. */
export const readScenarios = <Scenario>(name: string): Scenario[] =>
  new TextDecoder()
    .decode(Bun.gunzipSync(readFileSync(join(import.meta.dir, "../fixtures/oracle", name))))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Scenario);
