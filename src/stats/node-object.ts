import type { Clock } from "../model/clock.ts";
import type { EvictionSignal, EvictionThreshold, NodeTaint } from "../model/kubelet-options.ts";
import type { NodeSignals, PressureType } from "../model/node-signals.ts";
import type { CadvisorFacts } from "./cadvisor-facts.ts";
import { toTime } from "./summary.ts";

/** What is known of the node beside measurements. */
export interface NodeObjectFacts {
  name: string;
  /** As the machine calls itself. */
  hostName: string;
  ip: string;
  labels: Readonly<Record<string, string>>;
  taints: readonly NodeTaint[];
  maxPods: number;
  /** Of the authenticated port. */
  kubeletPort: number;
  /** Semantic version, without `v`. */
  kubeletVersion: string;
  /** What is left for pods. */
  allocatable: { cpuMillis: number; memoryBytes: number };
  evictionHard: readonly EvictionThreshold[];
  /** A pressure that has passed is reported so much longer (`--eviction-pressure-transition-period`). */
  pressureTransitionMs: number;
  /** undefined: the kubelet does its work; else why not. */
  trouble: string | undefined;
}

const PRESSURES: Readonly<Record<PressureType, { signals: readonly EvictionSignal[]; reasons: Reasons }>> = {
  MemoryPressure: {
    signals: ["memory.available"],
    reasons: {
      False: ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
      True: ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"],
    },
  },
  DiskPressure: {
    signals: ["nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"],
    reasons: {
      False: ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
      True: ["KubeletHasDiskPressure", "kubelet has disk pressure"],
    },
  },
  PIDPressure: {
    signals: ["pid.available"],
    reasons: {
      False: ["KubeletHasSufficientPID", "kubelet has sufficient PID available"],
      True: ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"],
    },
  },
};

type Reasons = Record<"True" | "False", readonly [reason: string, message: string]>;

/** Which thresholds are met. Source: kubelet's eviction manager. [S055] */
export function metThresholds(signals: NodeSignals, thresholds: readonly EvictionThreshold[]): EvictionThreshold[] {
  return thresholds.filter((threshold) => {
    const seen = signals[threshold.signal];
    if (!seen) return false;
    const least = "quantity" in threshold ? threshold.quantity : (seen.capacity * threshold.percentage) / 100;
    return seen.available < least;
  });
}

interface Remembered {
  status: "True" | "False";
  since: Date;
  /** Monotonic; when the pressure was last there. */
  lastTrueMs: number;
}

/** Node conditions over time: since when, and not back to normal before the transition period is over. */
export class NodeConditions {
  readonly #clock: Clock;
  readonly #remembered = new Map<string, Remembered>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** As they are now, in upstream's order. */
  conditions(signals: NodeSignals, facts: NodeObjectFacts): object[] {
    const met = new Set(metThresholds(signals, facts.evictionHard).map(({ signal }) => signal));
    const pressures = Object.entries(PRESSURES).map(([type, { signals: watched, reasons }]) => {
      const is = watched.some((signal) => met.has(signal));
      const { status, since } = this.#remember(type, is, facts.pressureTransitionMs);
      return this.#condition(type, status, since, ...reasons[status]);
    });
    const { status, since } = this.#remember("Ready", facts.trouble === undefined, 0);
    const [reason, message] =
      facts.trouble === undefined
        ? (["KubeletReady", "kubelet is posting ready status"] as const)
        : (["KubeletNotReady", facts.trouble] as const);
    return [...pressures, this.#condition("Ready", status, since, reason, message)];
  }

  #remember(type: string, is: boolean, keepMs: number): Remembered {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#remembered.get(type);
    const stays = !is && known?.status === "True" && nowMs - known.lastTrueMs < keepMs;
    const status = is || stays ? "True" : "False";
    const remembered: Remembered = {
      status,
      since: known?.status === status ? known.since : this.#clock.now(),
      lastTrueMs: is ? nowMs : (known?.lastTrueMs ?? Number.NEGATIVE_INFINITY),
    };
    this.#remembered.set(type, remembered);
    return remembered;
  }

  #condition(type: string, status: string, since: Date, reason: string, message: string): object {
    const lastHeartbeatTime = toTime(this.#clock.now());
    return { type, status, lastHeartbeatTime, lastTransitionTime: toTime(since), reason, message };
  }
}

/** The v1 Node, as the kubelet would register it. */
export function toNodeObject(facts: NodeObjectFacts, cadvisor: CadvisorFacts, conditions: readonly object[]): object {
  const { machine } = cadvisor;
  const { name, labels, taints, allocatable, maxPods } = facts;
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const disk = cadvisor.nodeFs?.capacityBytes;
  const diskThreshold = facts.evictionHard.find(({ signal }) => signal === "nodefs.available");
  const kept = (capacity: number) =>
    !diskThreshold
      ? 0
      : "quantity" in diskThreshold
        ? diskThreshold.quantity
        : (capacity * diskThreshold.percentage) / 100;
  const shared = { ...hugePages(machine.hugepages), pods: String(maxPods) };
  return {
    kind: "Node",
    apiVersion: "v1",
    metadata: {
      name,
      creationTimestamp: null,
      labels: {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        ...labels,
      },
    },
    spec: taints.length > 0 ? { taints } : {},
    status: {
      capacity: {
        cpu: String(machine.num_cores),
        ...(disk !== undefined && { "ephemeral-storage": inKi(disk) }),
        memory: inKi(machine.memory_capacity),
        ...shared,
      },
      allocatable: {
        cpu: allocatable.cpuMillis % 1000 === 0 ? String(allocatable.cpuMillis / 1000) : `${allocatable.cpuMillis}m`,
        ...(disk !== undefined && { "ephemeral-storage": String(Math.floor(disk - kept(disk))) }),
        memory: inKi(allocatable.memoryBytes),
        ...shared,
      },
      conditions,
      addresses: [
        { type: "InternalIP", address: facts.ip },
        { type: "Hostname", address: facts.hostName },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: facts.kubeletPort } },
      nodeInfo: {
        machineID: machine.machine_id,
        systemUUID: machine.system_uuid,
        bootID: machine.boot_id,
        kernelVersion: cadvisor.kernelVersion,
        osImage: cadvisor.osVersion,
        containerRuntimeVersion: `docker://${cadvisor.engineVersion}`,
        kubeletVersion: `v${facts.kubeletVersion}`,
        kubeProxyVersion: "",
        operatingSystem: "linux",
        architecture,
      },
    },
  };
}

const inKi = (bytes: number) => `${Math.floor(bytes / 1024)}Ki`;

function hugePages(pages: CadvisorFacts["machine"]["hugepages"]): Record<string, string> {
  const mebi = ({ page_size }: (typeof pages)[number]) => page_size / 1024;
  return Object.fromEntries(
    pages.map((page) => {
      const name =
        mebi(page) >= 1024 ? `${mebi(page) / 1024}Gi` : mebi(page) >= 1 ? `${mebi(page)}Mi` : `${page.page_size}Ki`;
      const total = mebi(page) * page.num_pages;
      return [`hugepages-${name}`, total === 0 ? "0" : `${total}Mi`];
    }),
  );
}
