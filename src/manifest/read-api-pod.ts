import { type Pod, PodSchema } from "../base/api/pod.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "./decode/decode.ts";
import { objectShapeOf } from "./decode/shape.ts";
import { applyPodDefaults } from "./defaults.ts";
import { FieldPath } from "./field.ts";
import { parseJson } from "./yaml/json-parser.ts";

const podShape = objectShapeOf(PodSchema);

/**
 * A pod as an API server returns it: validated there, so that fields of newer versions are left out rather than refused.
 * @param object `v1.Pod`
 * @throws Error when a field has a value of a wrong type
 */
export function readApiPod(object: object): Pod {
  const issues: DecodeIssue[] = [];
  const pod = decodeObject(parseJson(JSON.stringify(object)), podShape, FieldPath.root, issues) as Pod;
  const wrong = issues.find(isTypeIssue);
  if (wrong) throw new Error(`${wrong.path.toString()}: ${wrong.discreet}`);
  applyPodDefaults(pod);
  return pod;
}
