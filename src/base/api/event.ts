/** An event of an object. Times are RFC 3339 in whole seconds. Source: core/v1 `Event`. */
export interface CoreEvent {
  apiVersion: "v1";
  kind: "Event";
  metadata: { name: string; namespace: string; uid: string; resourceVersion: string; creationTimestamp: string };
  involvedObject: {
    kind: string;
    namespace: string;
    name: string;
    uid: string;
    apiVersion: string;
    /** e.g. `spec.containers{app}`; absent when the whole pod is meant. */
    fieldPath?: string;
  };
  reason: string;
  message: string;
  source: { component: string; host: string };
  firstTimestamp: string;
  lastTimestamp: string;
  count: number;
  type: "Normal" | "Warning";
  eventTime: null;
  reportingComponent: string;
  reportingInstance: string;
}

/** Source: core/v1 `EventList`. */
export interface CoreEventList {
  kind: "EventList";
  apiVersion: "v1";
  metadata: { resourceVersion: string };
  items: CoreEvent[];
}
