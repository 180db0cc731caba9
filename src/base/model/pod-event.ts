/** A Kubernetes event, with upstream's reasons (`Pulling`, `Started`, `Unhealthy`, `BackOff`, …). */
export interface PodEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  /** e.g. `spec.containers{app}`; absent when the whole pod is meant. */
  fieldPath?: string;
  /** The log has a line about it from elsewhere. */
  isLogged?: boolean;
}

/** The object of an event: a pod, a workload, or the node, whose UID is its name. */
export interface EventTarget {
  uid: string;
  name: string;
  namespace: string;
  /** Absent: Pod. */
  kind?: string;
  /** Default: `v1`. */
  apiVersion?: string;
}

/** The node as the target of an event. Source: the kubelet's nodeRef. */
export const nodeTarget = (name: string): EventTarget => ({ kind: "Node", uid: name, name, namespace: "default" });

/** Takes events; aggregation, bounds and the log line are its business. */
export interface EventRecorder {
  record(target: EventTarget, event: PodEvent): void;
}
