import type { CoreEvent } from "../../src/base/api/event.ts";
import type { Container, Pod, Probe } from "../../src/base/api/pod.ts";
import type {
  ContainerLimits,
  ContainerSnapshot,
  PodSnapshot,
  SandboxSnapshot,
} from "../../src/base/model/pod-snapshot.ts";
import { PodSyncState } from "../../src/kubelet/pod-actions.ts";
import type { ContainerProbeState, PodPlanInput } from "../../src/plan/pod-plan.ts";

/** One probe with the API's defaults. */
export const aProbe = (fields: Partial<Probe> = {}): Probe => ({
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
  ...fields,
});

/** Wall time at which everything in the builders' world happens; monotonic 0 is the same instant. */
export const EPOCH = new Date("2026-01-02T03:04:05.000Z");
export const at = (ms: number) => new Date(EPOCH.getTime() + ms);

export const NO_LIMITS = { cpuShares: 2, cpuPeriodUs: 100_000, cpuQuotaUs: 0, memoryBytes: 0, memorySwapBytes: 0 };

export function aContainer(overrides: Partial<Container> = {}): Container {
  return {
    name: "app",
    image: "busybox:test",
    imagePullPolicy: "IfNotPresent",
    resources: {},
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    ...overrides,
  } as Container;
}

/** A defaulted pod as readManifest returns it, with one container by default. */
export function aPod(spec: Partial<Pod["spec"]> = {}, metadata: Partial<Pod["metadata"]> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-node1", namespace: "default", uid: "u".repeat(32), ...metadata },
    spec: {
      containers: [aContainer()],
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      dnsPolicy: "ClusterFirst",
      schedulerName: "default-scheduler",
      securityContext: {},
      enableServiceLinks: true,
      nodeName: "node1",
      ...spec,
    },
  } as Pod;
}

export function aSandbox(overrides: Partial<SandboxSnapshot> = {}): SandboxSnapshot {
  return {
    id: "sandbox-0",
    state: "ready",
    attempt: 0,
    hash: "sandbox-hash",
    createdAt: at(0),
    ips: ["172.17.0.2"],
    hostNetwork: false,
    pid: 100,
    imageId: "sha256:pause",
    dockerName: "",
    logPath: "",
    writableLayerPath: "",
    cgroupParent: "",
    labels: {},
    ...overrides,
  };
}

/** Running since the epoch by default; hash `hash-<name>`, as {@link aPlanInput} expects it. */
export function aRunning(name = "app", overrides: Partial<ContainerSnapshot> = {}): ContainerSnapshot {
  return {
    id: `${name}-${overrides.restartCount ?? 0}`,
    name,
    sandboxId: "sandbox-0",
    state: "running",
    restartCount: 0,
    hash: `hash-${name}`,
    image: "busybox:test",
    imageId: "sha256:busybox",
    createdAt: at(0),
    startedAt: at(0),
    exitCode: 0,
    oomKilled: false,
    error: "",
    pid: 200,
    paused: false,
    limits: NO_LIMITS,
    dockerName: "",
    logPath: "",
    writableLayerPath: "",
    labels: {},
    ...overrides,
  };
}

export function anExited(name = "app", exitCode = 0, overrides: Partial<ContainerSnapshot> = {}): ContainerSnapshot {
  return aRunning(name, { state: "exited", exitCode, finishedAt: at(1000), pid: 0, ...overrides });
}

export function aSnapshot(containers: ContainerSnapshot[] = [], sandboxes = [aSandbox()]): PodSnapshot {
  return { uid: "u".repeat(32), name: "web-node1", namespace: "default", sandboxes, containers };
}

/** State of a worker that has seen only the given ends (container id → monotonic milliseconds). */
export function aSyncState(exitedAtMs: Record<string, number> = {}): PodSyncState {
  return new PodSyncState(new Map(Object.entries(exitedAtMs)));
}

export interface PlanCase {
  pod?: Pod;
  containers?: ContainerSnapshot[];
  sandboxes?: SandboxSnapshot[];
  probes?: Record<string, Partial<ContainerProbeState> & { containerId: string }>;
  state?: PodSyncState;
  nowMs?: number;
  deadlineAtMs?: number;
  end?: PodPlanInput["end"];
  hashes?: Record<string, string>;
  sandboxHash?: string;
  initHash?: string;
  hold?: PodPlanInput["hold"];
  limits?: Record<string, Partial<ContainerLimits>>;
  options?: Partial<PodPlanInput["options"]>;
}

/** Hashes are `hash-<name>` unless given, so that what {@link aRunning} builds is up to date. */
export function aPlanInput(given: PlanCase = {}): PodPlanInput {
  const pod = given.pod ?? aPod();
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const probes = Object.entries(given.probes ?? {}).map(
    ([name, state]) => [name, { started: true, ready: true, ...state }] as const,
  );
  return {
    pod,
    hashes: {
      sandbox: given.sandboxHash ?? "sandbox-hash",
      ...(given.initHash !== undefined && { init: given.initHash }),
      containers: new Map(containers.map(({ name }) => [name, given.hashes?.[name] ?? `hash-${name}`])),
      limits: new Map(containers.map(({ name }) => [name, { ...NO_LIMITS, ...given.limits?.[name] }])),
    },
    snapshot: aSnapshot(given.containers ?? [], given.sandboxes ?? [aSandbox()]),
    probes: new Map(probes),
    state: given.state ?? aSyncState(),
    nowMs: given.nowMs ?? 60_000,
    options: { maxBackOffMs: 300_000, maxDeadPerContainer: 1, minDeadTtlMs: 0, ...given.options },
    ...(given.deadlineAtMs !== undefined && { deadlineAtMs: given.deadlineAtMs }),
    ...(given.end && { end: given.end }),
    ...(given.hold && { hold: given.hold }),
  };
}

/** An Event about a pod, which happened once. */
export function aCoreEvent(
  name: string,
  time: string,
  over: Partial<CoreEvent> = {},
  namespace = "default",
): CoreEvent {
  const id = `${name}.1`;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: id, namespace, uid: id, resourceVersion: "1", creationTimestamp: time },
    involvedObject: { kind: "Pod", namespace, name, uid: `u-${name}`, apiVersion: "v1" },
    reason: "Started",
    message: "Started container app",
    source: { component: "kubelet", host: "node1" },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
    type: "Normal",
    eventTime: null,
    reportingComponent: "kubelet",
    reportingInstance: "node1",
    ...over,
  };
}
