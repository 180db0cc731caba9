import type { Pod } from "../../api/pod.ts";
import type { FieldPath } from "../field-path.ts";

/** Something legal in Kubernetes that means nothing, or cannot be done, on one node without an API server. */
export interface SupportNote {
  code: "unsupported" | "ignored";
  path: FieldPath;
  message: string;
}

export function findUnsupported(_pod: Pod, _path: FieldPath): SupportNote[] {
  return [];
}
