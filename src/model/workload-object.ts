import type { ObjectMeta } from "../api/meta.ts";

/** An object of a workload's kind as the API shows it, with its status. */
export interface WorkloadObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec: object;
  status: object;
}
