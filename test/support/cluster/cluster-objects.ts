import type { AnyObject } from "../kubectl.ts";
import { podSpec, sleeper } from "../manifests.ts";

/** Image of the pods of these tests; it is on the engine. */
export const IMAGE = "busybox:1.35";

const LOCAL = { image: IMAGE, imagePullPolicy: "Never" };

/** {@link sleeper} without a pull. */
export const aClusterPod = (name: string, container: object = {}, spec = {}, metadata = {}) =>
  sleeper(name, { ...LOCAL, ...container }, spec, metadata);

export const aPodSpec = (container: object = {}, spec = {}) => podSpec({ ...LOCAL, ...container }, spec);

export const conditionOf = ({ status }: AnyObject, type: string): string | undefined =>
  status?.conditions?.find((condition: AnyObject) => condition.type === type)?.status;

export const isReady = (object: AnyObject): boolean =>
  object.metadata.deletionTimestamp === undefined && conditionOf(object, "Ready") === "True";
