import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { DescribeTimes } from "./describe-pod.ts";

/** An object of the API, whose fields beyond the metadata depend on its kind. */
export interface DescribedObject {
  kind: string;
  metadata: {
    name?: string;
    namespace?: string;
    creationTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: readonly { kind: string; name: string; controller?: boolean }[];
  };
  [field: string]: unknown;
}

/** Surroundings of a described object. */
export interface ObjectSurroundings {
  /** The object's own, oldest first. */
  events: readonly CoreEvent[];
  /** The pods that the object selects or owns. */
  pods: readonly Pod[];
  /** ReplicaSets of a Deployment. */
  replicaSets?: readonly DescribedObject[];
  /** `file:line` of its manifest, if it is known. */
  manifest: string | undefined;
  times: DescribeTimes;
}
