import type { Explained } from "./waiting-reasons.ts";

type EndExplanation = Explained | ((message: string) => Explained);

const NOT_POSSIBLE: Explained = {
  problem: "the node cannot run the pod as it is written",
  fix: "remove the field: this node cannot do it",
};
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
  Evicted: {
    problem: "the node ran short of memory or disk and evicted it",
    fix: "free memory or disk on this machine, or give the pod limits it keeps; edit the manifest to run it again",
  },
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
  PodOSNotSupported: NOT_POSSIBLE,
  SysctlForbidden: NOT_POSSIBLE,
  AppArmor: NOT_POSSIBLE,
  PrivilegedNotAllowed: {
    problem: "the node allows no privileged containers",
    fix: "remove securityContext.privileged, or start the kubelet with --allow-privileged",
  },
  Unsupported: NOT_POSSIBLE,
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
