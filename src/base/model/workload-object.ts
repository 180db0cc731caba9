import type { ObjectMeta } from "../api/meta.ts";

/** An object of a workload's kind as the API shows it, with its status. */
export interface WorkloadObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  /** Absent: of a ControllerRevision. */
  spec?: object;
  status?: object;
  /** The patch of a ControllerRevision, and its number. */
  data?: object;
  revision?: number;
}
