import type { ConfigMap } from "../../api/config-map.ts";
import type { Secret } from "../../api/secret.ts";
import type { FieldPath } from "../field-path.ts";
import { FieldErrors } from "./field-errors.ts";

export function validateConfigMap(_configMap: ConfigMap, _path: FieldPath): FieldErrors {
  return new FieldErrors();
}
export function validateSecret(_secret: Secret, _path: FieldPath): FieldErrors {
  return new FieldErrors();
}
