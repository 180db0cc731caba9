import type { AnyObject } from "./cluster-kubectl.ts";

/** Image of the pods of these tests; it is on the engine. */
export const IMAGE = "busybox:1.35";

/** A pod with one container, `app`, that sleeps unless `container` says otherwise. */
export const aClusterPod = (name: string, container: object = {}, spec: object = {}, metadata: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, ...metadata },
  spec: aPodSpec(container, spec),
});

export const aPodSpec = (container: object = {}, spec: object = {}) => ({
  terminationGracePeriodSeconds: 1,
  containers: [{ name: "app", image: IMAGE, imagePullPolicy: "Never", command: ["sleep", "100000"], ...container }],
  ...spec,
});

/** A workload of apps/v1 whose pods have the label `app` with its name. */
export const aWorkload = (kind: string, name: string, spec: object, podSpec: object = aPodSpec()) => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: podSpec },
    ...spec,
  },
});

export const conditionOf = ({ status }: AnyObject, type: string): string | undefined =>
  status?.conditions?.find((condition: AnyObject) => condition.type === type)?.status;

export const isReady = (object: AnyObject): boolean =>
  object.metadata.deletionTimestamp === undefined && conditionOf(object, "Ready") === "True";
