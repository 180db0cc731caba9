/** A Kubernetes event about a pod, with upstream's reasons (`Pulling`, `Started`, `Unhealthy`, `BackOff`, …). */
export interface PodEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  /** e.g. `spec.containers{app}`; absent when the whole pod is meant. */
  fieldPath?: string;
}

/** The object of an event: a pod, or the node, whose UID is its name. */
export interface EventTarget {
  /** Absent: Pod. */
  kind?: "Node";
  uid: string;
  name: string;
  namespace: string;
}

/** Takes events; aggregation, bounds and the log line are its business. */
export interface EventRecorder {
  record(target: EventTarget, event: PodEvent): void;
}
