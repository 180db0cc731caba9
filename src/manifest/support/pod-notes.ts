import type { Pod } from "../../api/pod.ts";
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
];
