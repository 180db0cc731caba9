import { computeSysctlNamespace, toDottedSysctl } from "./security-profiles.ts";
import type { Explained } from "./waiting-reasons.ts";

type EndExplanation = Explained | ((message: string) => Explained);

const NOT_POSSIBLE = "the node cannot run the pod as it is written";
const EDIT = "an edit of the manifest runs the pod again";

/** Why the node refused or ended a pod. A new reason is an entry here and the place that reports it. */
const POD_END_REASONS = {
  NodePorts: {
    problem: "another pod has its host port",
    fix: "choose another hostPort, or remove the pod that holds it",
  },
  OutOfpods: (message) => ({ problem: "the node has as many pods as it may have", fix: fixOfResources(message) }),
  /** And the name of a resource: `OutOfcpu`. */
  OutOf: (message) => ({ problem: "it requests more than the node has left", fix: fixOfResources(message) }),
  Evicted: explainEviction,
  Preempting: { problem: "it was ended to make room for a critical pod", fix: EDIT },
  DeadlineExceeded: {
    problem: "it ran for longer than spec.activeDeadlineSeconds",
    fix: "raise or remove spec.activeDeadlineSeconds",
  },
  Terminated: { problem: "it was ended because the machine was shut down", fix: EDIT },
  NodeShutdown: { problem: "it was not started because the machine is being shut down", fix: EDIT },
  NodeAffinity: {
    problem: "the labels of the node are not those it asks for",
    fix: "correct spec.nodeSelector or the affinity, or label the node with --node-labels",
  },
  UnexpectedAdmissionError: { problem: "the node could not decide whether it can run the pod", fix: EDIT },
  PodOSNotSupported: {
    problem: "it is made for another operating system",
    fix: "use an image for Linux, and remove spec.os and the label kubernetes.io/os",
  },
  SysctlForbidden: (message) => ({ problem: "it sets a sysctl that pods may not set here", fix: fixOfSysctl(message) }),
  AppArmor: {
    problem: "it names an AppArmor profile, and the kernel of this machine does not run AppArmor",
    fix: "enable AppArmor on this machine and restart Docker, or remove securityContext.appArmorProfile (or its annotation)",
  },
  PrivilegedNotAllowed: {
    problem: "the node allows no privileged containers",
    fix: "remove securityContext.privileged, or start the kubelet with --allow-privileged",
  },
  Unsupported: (message) => ({ problem: NOT_POSSIBLE, fix: fixOfUnsupported(message) }),
} satisfies Record<string, EndExplanation>;

/** Why a pod is not run on this node, or not any longer: its phase is Failed with this reason and message. */
export interface PodRefusal {
  reason: Exclude<keyof typeof POD_END_REASONS, "OutOf"> | `OutOf${string}`;
  message: string;
}

/** In words; also for reasons that only other kubelets have. */
export function explainPodEnd(reason: string, message: string): Explained {
  const name = Object.hasOwn(POD_END_REASONS, reason) ? reason : reason.startsWith("OutOf") ? "OutOf" : undefined;
  const found: EndExplanation = name
    ? POD_END_REASONS[name as keyof typeof POD_END_REASONS]
    : { problem: "the node ended or refused the pod", fix: "correct the manifest; an edit runs the pod again" };
  return typeof found === "function" ? found(message) : found;
}

/** Source: the kubelet's `InsufficientResourceError`. */
function fixOfResources(message: string): string {
  const [, requested, capacity] = /requested: (\d+), used: \d+, capacity: (\d+)/.exec(message) ?? [];
  return requested !== undefined && Number(requested) > Number(capacity)
    ? "lower the pod's requests: they are more than the whole node has"
    : "lower the pod's requests, or remove another pod";
}

const RETURN =
  "the pod runs again automatically after that and --eviction-pressure-transition-period (5 minutes unless it is set)";

/** Source: messages of the eviction manager. */
function explainEviction(message: string): Explained {
  const own = /Usage of EmptyDir volume|exceeds the total limit of containers|exceeded its local ephemeral/.test(
    message,
  );
  if (own) {
    const field = message.includes("EmptyDir") ? "emptyDir.sizeLimit" : 'resources.limits["ephemeral-storage"]';
    return {
      problem: "it used more disk space than its own limit and was evicted",
      fix: `raise ${field}, or make it write less; ${RETURN}`,
    };
  }
  const [, resource = ""] = /low on resource: ([\w-]+)/.exec(message) ?? /condition: \[(\w+)/.exec(message) ?? [];
  const [, threshold, left] = /Threshold quantity: (\S+), available: (\S+)\. /.exec(message) ?? [];
  const isOfBytes = SHORTAGES[resource] !== INODES && SHORTAGES[resource] !== PROCESSES;
  const numbers =
    threshold === undefined
      ? ""
      : ` (${left} left, the threshold is ${isOfBytes ? toMebibytes(threshold) : threshold})`;
  const [disk = ""] = / on the disk of [a-z ]+/.exec(message.replace("The disk is that of", " on the disk of")) ?? [];
  const { name, fix } = SHORTAGES[resource] ?? SHORTAGES.memory!;
  const why = message.includes("condition:") ? "did not start it" : "evicted it";
  return { problem: `the node ran short of ${name}${disk}${numbers} and ${why}`, fix: `${fix}; ${RETURN}` };
}

/** Upstream writes a threshold of percent in bytes. */
const toMebibytes = (quantity: string) =>
  /^\d+$/.test(quantity) ? `${Math.round(Number(quantity) / 2 ** 20)}Mi` : quantity;

/** For a node or a pod without disk space. */
export const FIX_OF_DISK =
  "free disk space: kubelet-ts doctor names the disk, and the command that shows what fills it; or lower the threshold with --eviction-hard";
const [MEMORY, SPACE, INODES, PROCESSES] = [
  {
    name: "memory",
    fix: "free memory on this machine, give pods memory limits, or lower the threshold with --eviction-hard",
  },
  { name: "disk space", fix: FIX_OF_DISK },
  { name: "inodes", fix: "remove small files on this machine (df -i), or lower the threshold with --eviction-hard" },
  { name: "processes", fix: "end processes on this machine, or raise kernel.pid_max" },
];
/** Name and fix of a shortage; its key is the resource of an eviction, or the condition of the node. */
const SHORTAGES: Readonly<Record<string, { name: string; fix: string }>> = {
  memory: MEMORY,
  MemoryPressure: MEMORY,
  "ephemeral-storage": SPACE,
  DiskPressure: SPACE,
  inodes: INODES,
  pids: PROCESSES,
  PIDPressure: PROCESSES,
};

/** Source: findForbiddenSysctl. */
function fixOfSysctl(message: string): string {
  const name = /forbidden sysctl: "([^"]*)"/.exec(message)?.[1] ?? "";
  if (message.includes("with host ")) {
    return `remove it from spec.securityContext.sysctls, or hostNetwork and hostIPC from spec: the pod shares them with the machine`;
  }
  return computeSysctlNamespace(toDottedSysctl(name)) === undefined
    ? `it counts for the whole machine: set it there (sysctl -w ${name}=VALUE), and remove it from spec.securityContext.sysctls`
    : `start the kubelet with --allowed-unsafe-sysctls=${name}, or remove it from spec.securityContext.sysctls`;
}

/** A message begins with the field. */
function fixOfUnsupported(message: string): string {
  const runtime = /the engine has no runtime "([^"]*)"/.exec(message)?.[1];
  if (runtime !== undefined) {
    return `add "${runtime}" to "runtimes" in /etc/docker/daemon.json and restart Docker and the kubelet, or correct spec.runtimeClassName`;
  }
  const field = /^(?:Pod )?(.+?): /.exec(message)?.[1] ?? "the field";
  return `do what the message says, or remove ${field}`;
}
