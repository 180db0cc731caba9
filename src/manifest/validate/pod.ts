import type { Pod } from "../../api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import { FieldErrors } from "./field-errors.ts";

export function validatePod(_pod: Pod, _path: FieldPath, _options: { allowPrivileged: boolean }): FieldErrors {
  return new FieldErrors();
}
