import { formatBytes, formatMillis } from "../base/api/quantity.ts";
import { ARCHITECTURE } from "../base/host/node-info.ts";
import type { Configuration, ConfigurationStatus } from "../base/model/configuration.ts";
import { type PressureState, type PressureType, UNSCHEDULABLE_TAINT } from "../base/model/node.ts";
import type { NodeTaint } from "../base/model/option-values.ts";
import { toApiTime } from "../base/text/api-time.ts";
import type { NodeObjectMachine } from "../stats/cadvisor/cadvisor-facts.ts";

/** Facts of the node that are not measured. */
export interface NodeObjectFacts {
  name: string;
  /** Creation time; undefined where that is not known. */
  createdAt: Date | undefined;
  ip: string;
  /** All labels, default ones included. */
  labels: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>> | undefined;
  taints: readonly NodeTaint[];
  /** Since when the node is cordoned; absent: it is not. */
  cordonedSince?: Date | undefined;
  maxPods: number;
  /** Port of the authenticated server. */
  kubeletPort: number;
  /** Semantic version, without `v`. */
  kubeletVersion: string;
  /** Resources for pods; those of the disk depend on its size. */
  allocatable: { cpuMillis: number; memoryBytes: number; diskBytes: (capacityBytes: number) => number };
  pressures: ReadonlyMap<PressureType, PressureState>;
  /** `runtimeError` undefined: the kubelet does its work; else why not. */
  ready: { runtimeError: string | undefined; since: Date };
  /** undefined until the engine has answered. */
  images: readonly { /** Digests, then tags. */ names: readonly string[]; sizeBytes: number }[] | undefined;
  /** Absent without configuration files. */
  configuration?: ConfigurationStatus | undefined;
  maxImages?: number;
  /** Runtimes of the engine; undefined until it has answered. */
  runtimes?: { names: readonly string[]; recursiveReadOnlyMounts: boolean } | undefined;
}

export type ReadNodeFacts = (withImages?: boolean) => Promise<NodeObjectFacts>;

/** Condition texts of upstream, by status: reason and message. */
const PRESSURES: Readonly<Record<PressureType, Record<"True" | "False", readonly [string, string]>>> = {
  MemoryPressure: {
    False: ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
    True: ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"],
  },
  DiskPressure: {
    False: ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
    True: ["KubeletHasDiskPressure", "kubelet has disk pressure"],
  },
  PIDPressure: {
    False: ["KubeletHasSufficientPID", "kubelet has sufficient PID available"],
    True: ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"],
  },
};

/** Conditions of the node, in upstream's order. */
export function toNodeConditions({ pressures, ready }: Pick<NodeObjectFacts, "pressures" | "ready">, now: Date) {
  const condition = (type: string, is: boolean, since: Date, [reason, message]: readonly [string, string]) => ({
    type,
    status: is ? "True" : "False",
    lastHeartbeatTime: toApiTime(now),
    lastTransitionTime: toApiTime(since),
    reason,
    message,
  });
  return [
    ...Object.entries(PRESSURES).map(([type, texts]) => {
      const { is, since } = pressures.get(type as PressureType) ?? { is: false, since: now };
      return condition(type, is, since, texts[is ? "True" : "False"]);
    }),
    ready.runtimeError === undefined
      ? condition("Ready", true, ready.since, ["KubeletReady", "kubelet is posting ready status"])
      : condition("Ready", false, ready.since, ["KubeletNotReady", ready.runtimeError]),
  ];
}

/** Images that are shown by default, and names of each. Source: the kubelet. */
const MAX_IMAGES = 50;
const MAX_IMAGE_NAMES = 5;

/** The v1 Node, as the kubelet would register it. */
export function toNodeObject(facts: NodeObjectFacts, cadvisor: NodeObjectMachine, now: Date): object {
  const { machine } = cadvisor;
  const { name, labels, annotations, taints, allocatable, maxPods, createdAt, images } = facts;
  const disk = cadvisor.nodeFs?.capacityBytes;
  const shared = { ...hugePages(machine.hugepages), pods: String(maxPods) };
  return {
    kind: "Node",
    apiVersion: "v1",
    metadata: {
      name,
      creationTimestamp: createdAt ? toApiTime(createdAt) : null,
      labels,
      ...(annotations && { annotations }),
    },
    spec: toSpec(taints, facts.cordonedSince),
    status: {
      capacity: {
        cpu: String(machine.num_cores),
        ...(disk !== undefined && { "ephemeral-storage": formatBytes(disk) }),
        memory: formatBytes(machine.memory_capacity),
        ...shared,
      },
      allocatable: {
        cpu: formatMillis(allocatable.cpuMillis),
        ...(disk !== undefined && { "ephemeral-storage": String(Math.floor(allocatable.diskBytes(disk))) }),
        memory: formatBytes(allocatable.memoryBytes),
        ...shared,
      },
      conditions: toNodeConditions(facts, now),
      addresses: [
        { type: "InternalIP", address: facts.ip },
        { type: "Hostname", address: name },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: facts.kubeletPort } },
      nodeInfo: {
        machineID: machine.machine_id,
        systemUUID: machine.system_uuid,
        bootID: machine.boot_id,
        kernelVersion: cadvisor.kernelVersion,
        osImage: cadvisor.osVersion,
        containerRuntimeVersion: `docker://${cadvisor.engineVersion || "Unknown"}`,
        kubeletVersion: `v${facts.kubeletVersion}`,
        kubeProxyVersion: "",
        operatingSystem: "linux",
        architecture: ARCHITECTURE,
      },
      ...(facts.configuration && { config: toConfigStatus(facts.configuration) }),
      ...(images && { images: toImageList(images, facts.maxImages ?? MAX_IMAGES) }),
      ...(facts.runtimes && { runtimeHandlers: toRuntimeHandlers(facts.runtimes) }),
      // Docker always adds the groups of the image.
      features: { supplementalGroupsPolicy: false },
    },
  };
}

/** The API knows ConfigMaps as sources only: `kubeletConfigKey` has the paths of the files, `resourceVersion` the hash of their content. */
function toConfigStatus({ assigned, active, lastKnownGood, error }: ConfigurationStatus): object {
  const source = ({ id, files }: Configuration) => ({
    configMap: {
      namespace: "kube-system",
      name: "kubelet-ts-files",
      uid: id,
      resourceVersion: id,
      kubeletConfigKey: files.map(({ path }) => path).join(","),
    },
  });
  return {
    ...(assigned && { assigned: source(assigned) }),
    ...(active && { active: source(active) }),
    ...(lastKnownGood && { lastKnownGood: source(lastKnownGood) }),
    ...(error !== undefined && { error }),
  };
}

/** Source: the taint is the node lifecycle controller's. */
function toSpec(taints: readonly NodeTaint[], cordonedSince: Date | undefined): object {
  const cordon = cordonedSince && { ...UNSCHEDULABLE_TAINT, timeAdded: toApiTime(cordonedSince) };
  const own = taints.map(({ key, value, effect }) => ({ key, ...(value !== "" && { value }), effect }));
  const all = [...own, ...(cordon ? [cordon] : [])];
  return { ...(all.length > 0 && { taints: all }), ...(cordon && { unschedulable: true }) };
}

/** The biggest ones with a name, in an order that does not depend on the engine's. @param max -1 = all */
const toImageList = (images: NonNullable<NodeObjectFacts["images"]>, max: number) =>
  images
    .filter(({ names }) => names.length > 0)
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes || ((a.names[0] ?? "") < (b.names[0] ?? "") ? -1 : 1))
    .slice(0, max < 0 ? images.length : max)
    .map(({ names, sizeBytes }) => ({ names: names.slice(0, MAX_IMAGE_NAMES), sizeBytes }));

/** The default runtime has the empty name. Docker maps users per engine, not per pod. */
const toRuntimeHandlers = ({ names, recursiveReadOnlyMounts }: NonNullable<NodeObjectFacts["runtimes"]>) =>
  ["", ...names.toSorted()].map((name) => ({ name, features: { recursiveReadOnlyMounts, userNamespaces: false } }));

const hugePages = (pages: NodeObjectMachine["machine"]["hugepages"]): Record<string, string> =>
  Object.fromEntries(
    pages
      .map(({ page_size, num_pages }) => [page_size * 1024, num_pages] as const)
      .map(([bytes, count]) => [`hugepages-${formatBytes(bytes)}`, formatBytes(bytes * count)]),
  );
