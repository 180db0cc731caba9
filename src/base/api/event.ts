import type { SelectableFields } from "./meta.ts";

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
    resourceVersion?: string;
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
  /** Events of clients have it, and `series`. */
  eventTime: string | null;
  series?: { count: number; lastObservedTime: string };
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

/** Fields of the object that an event is about; newer clients call it `regarding`. */
const fieldsOfObject = (prefix: string): SelectableFields<CoreEvent> =>
  Object.fromEntries(
    (["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"] as const).map((name) => [
      `${prefix}.${name}`,
      ({ involvedObject }) => involvedObject[name] ?? "",
    ]),
  );

/** Source: core/v1 `Event`'s selectable fields. */
export const EVENT_FIELDS: SelectableFields<CoreEvent> = {
  "metadata.name": ({ metadata }) => metadata.name,
  "metadata.namespace": ({ metadata }) => metadata.namespace,
  ...fieldsOfObject("involvedObject"),
  ...fieldsOfObject("regarding"),
  reason: ({ reason }) => reason,
  reportingComponent: ({ reportingComponent }) => reportingComponent,
  reportingController: ({ reportingComponent }) => reportingComponent,
  source: ({ source, reportingComponent }) => source.component || reportingComponent,
  type: ({ type }) => type,
};
