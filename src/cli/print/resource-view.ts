import { EVENT_COLUMNS, EVENT_WIDE_COLUMNS, toEventRow } from "../../apiserver/printers/event-row.ts";
import { NODE_COLUMNS, NODE_WIDE_COLUMNS, type NodeObject, toNodeRow } from "../../apiserver/printers/node-row.ts";
import { POD_COLUMNS, POD_WIDE_COLUMNS, toPodRow } from "../../apiserver/printers/pod-row.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";

/** An object as a line of a table. */
export interface ResourceItem {
  /** Identifies an object over time. */
  key: string;
  /** `pod/web-node1`. */
  reference: string;
  /** undefined: the kind has no namespace. */
  namespace: string | undefined;
  labels: Readonly<Record<string, string>>;
  /** With kind and apiVersion, as JSON and YAML show it. */
  object: object;
  row: (now: Date, wide: boolean) => string[];
  /** Differs when the row changed; ages do not count. */
  fingerprint: (wide: boolean) => string;
}

export type ResourceFormat = "table" | "wide" | "json" | "yaml" | "name";

/** Kinds that `kubelet-ts get` prints itself. */
export type ResourceName = "pods" | "nodes" | "events";

export function columnsOf(resource: ResourceName, wide: boolean): readonly string[] {
  switch (resource) {
    case "pods":
      return wide ? [...POD_COLUMNS, ...POD_WIDE_COLUMNS] : POD_COLUMNS;
    case "nodes":
      return wide ? [...NODE_COLUMNS, ...NODE_WIDE_COLUMNS] : NODE_COLUMNS;
    case "events":
      return wide ? EVENT_WIDE_COLUMNS : EVENT_COLUMNS;
    default:
      return resource satisfies never;
  }
}

/** Any instant: cells with an age are not compared. */
const NO_TIME = new Date(0);

export function toPodItem(pod: Pod): ResourceItem {
  const { name = "", namespace = "default", uid, labels = {} } = pod.metadata;
  const row = (now: Date, wide: boolean) => toPodRow(pod, now, wide);
  const fingerprint = (wide: boolean) => {
    const [, ready, status, restarts, , ...others] = row(NO_TIME, wide);
    return JSON.stringify([ready, status, restarts?.split(" ")[0], ...others]);
  };
  return {
    key: uid ?? `${namespace}/${name}`,
    reference: `pod/${name}`,
    namespace,
    labels,
    object: { apiVersion: "v1", kind: "Pod", ...pod },
    row,
    fingerprint,
  };
}

export function toNodeItem(node: NodeObject): ResourceItem {
  const row = (now: Date, wide: boolean) => toNodeRow(node, now, wide);
  const fingerprint = (wide: boolean) => {
    const [, status, roles, , ...others] = row(NO_TIME, wide);
    return JSON.stringify([status, roles, ...others]);
  };
  return {
    key: node.metadata.name,
    reference: `node/${node.metadata.name}`,
    namespace: undefined,
    labels: node.metadata.labels ?? {},
    object: node,
    row,
    fingerprint,
  };
}

export function toEventItem(event: CoreEvent): ResourceItem {
  return {
    key: event.metadata.uid,
    reference: `event/${event.metadata.name}`,
    namespace: event.metadata.namespace,
    labels: {},
    object: event,
    row: (now, wide) => toEventRow(event, now, wide),
    fingerprint: () => event.metadata.resourceVersion,
  };
}

/**
 * Objects that a watch prints after a new list: new and changed ones, in their order, then removed ones.
 * @param format a table changes with its rows, JSON and YAML with anything, a list of names with none
 */
export function changesBetween(
  before: readonly ResourceItem[],
  after: readonly ResourceItem[],
  format: ResourceFormat,
): { changed: ResourceItem[]; gone: ResourceItem[] } {
  const print = (item: ResourceItem) => {
    if (format === "name") return "";
    return format === "json" || format === "yaml" ? JSON.stringify(item.object) : item.fingerprint(format === "wide");
  };
  const known = new Map(before.map((item) => [item.key, print(item)]));
  const still = new Set(after.map(({ key }) => key));
  return {
    changed: after.filter((item) => known.get(item.key) !== print(item)),
    gone: before.filter(({ key }) => !still.has(key)),
  };
}
