import { ANNOTATION_PREFIX, POD_ANNOTATIONS } from "../../base/api/annotations.ts";
import type { Pod } from "../../base/api/pod.ts";
import { nearestName } from "../../base/text/nearest-name.ts";
import type { FieldPath } from "../field-path.ts";
import type { SupportNote } from "./find-unsupported.ts";

/**
 * Warns of annotations of kubelet-ts that are misspelt or malformed.
 * @param path of the pod in its document
 */
export function findAnnotationNotes({ metadata }: Pod, path: FieldPath): SupportNote[] {
  const at = path.child("metadata").child("annotations");
  return [...findForeignAnnotations(metadata.annotations ?? {}, at), ...findOwnAnnotations(metadata, at)];
}

/** Annotations that podman and cri-o write and read. */
export const FOREIGN_ANNOTATION =
  /^(?:io\.podman\.annotations\.|io\.kubernetes\.cri-o\.|org\.systemd\.property\.|bind-mount-options)/;

function findForeignAnnotations(annotations: Readonly<Record<string, string>>, at: FieldPath): SupportNote[] {
  const names = Object.keys(annotations).filter((name) => FOREIGN_ANNOTATION.test(name));
  const [first] = names;
  if (first === undefined) return [];
  const others = names.length > 1 ? ` (and ${names.length - 1} more of podman)` : "";
  const message = `has no effect here${others}: podman reads it; use the fields of the pod, e.g. securityContext`;
  return [{ code: "ignored", path: at.key(first), message }];
}

function findOwnAnnotations(metadata: Pod["metadata"], at: FieldPath): SupportNote[] {
  return Object.entries(metadata.annotations ?? {}).flatMap(([key, value]): SupportNote[] => {
    if (!key.startsWith(ANNOTATION_PREFIX)) return [];
    const known = POD_ANNOTATIONS.find(({ name }) => name === key);
    if (known) {
      const format = known.check(value);
      if (format === undefined) return [];
      const message = `must be ${format} (found ${JSON.stringify(value.slice(0, 60))})`;
      return [{ code: "ignored", path: at.key(key), message }];
    }
    const names = POD_ANNOTATIONS.map(({ name }) => name.slice(ANNOTATION_PREFIX.length));
    const nearest = nearestName(key.slice(ANNOTATION_PREFIX.length), names);
    const hint =
      nearest === undefined
        ? `the annotations are ${POD_ANNOTATIONS.map(({ name }) => name).join(", ")}`
        : `did you mean "${ANNOTATION_PREFIX}${nearest}"?`;
    return [{ code: "ignored", path: at.key(key), message: `there is no such annotation; ${hint}` }];
  });
}
