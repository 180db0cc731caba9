/** A Kubernetes event about a pod, with upstream's reasons (`Pulling`, `Started`, `Unhealthy`, `BackOff`, …). */
export interface PodEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  /** e.g. `spec.containers{app}`; absent when the whole pod is meant. */
  fieldPath?: string;
}

/** Takes events; aggregation, bounds and the log line are its business. */
export interface EventRecorder {
  record(pod: { uid: string; name: string; namespace: string }, event: PodEvent): void;
}
