import type { Pod } from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import { findUnsupported, type SupportNote } from "./find-unsupported.ts";
import { findFractionalBytes } from "./fractional-bytes.ts";
import { findAnnotationNotes } from "./pod-annotations.ts";
import { findShellCommands } from "./shell-commands.ts";

/**
 * Everything that is valid in a pod but has no effect, is not possible here, or is probably not intended.
 * @param path of the pod in its document
 * @param isLenient fields without which a pod runs are ignored instead of refused
 */
export const findPodNotes = (pod: Pod, path: FieldPath, isLenient: boolean): SupportNote[] => [
  ...findUnsupported(pod, path, isLenient),
  ...findFractionalBytes(pod, path),
  ...findAnnotationNotes(pod, path),
  ...findShellCommands(pod, path),
  ...findImageTemplates(pod, path),
];

/** Images that are expressions of a template in quotes, which are text for YAML, or variables of a shell. */
const findImageTemplates = ({ spec }: Pod, path: FieldPath): SupportNote[] =>
  (["initContainers", "containers"] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap(({ image }, index): SupportNote[] => {
      const message = describeExpression(image ?? "");
      if (message === undefined) return [];
      return [{ code: "unsupported", path: path.child("spec").child(list).index(index).child("image"), message }];
    }),
  );

function describeExpression(image: string): string | undefined {
  if (image.includes("{{")) {
    return "holds an expression of a template: render the template first, e.g. with `helm template NAME CHART`";
  }
  return /\$(?:\{|[A-Za-z_])/.test(image)
    ? "holds a variable, which nothing replaces: write its value, e.g. with `envsubst < FILE`"
    : undefined;
}
