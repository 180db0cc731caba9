import { dirname, resolve } from "node:path";
import type { Pod } from "../base/api/pod.ts";
import type { FieldPath } from "./field-path.ts";
import type { ReadManifestOptions } from "./manifest-result.ts";
import type { SupportNote } from "./support/find-unsupported.ts";

/** Kubernetes accepts relative host paths and cannot mount them; podman and Compose resolve them. */
type RelativePath = { resolved: string } | { problem: string };

/** The absolute directory of a manifest file; undefined for standard input, URLs and the API. */
export const directoryOf = ({ file, source }: ReadManifestOptions): string | undefined =>
  source === "file" && file !== "-" && !/^\w+:\/\//.test(file) ? dirname(resolve(file)) : undefined;

/**
 * Makes the relative paths of hostPath volumes absolute. Changes the pod in place.
 * @param path of the pod in its document
 * @param directory that the paths are relative to; without it they are refused
 */
export function resolveHostPaths(pod: Pod, path: FieldPath, directory: string | undefined): SupportNote[] {
  const notes: SupportNote[] = [];
  for (const [index, { hostPath }] of (pod.spec.volumes ?? []).entries()) {
    if (!hostPath || hostPath.path === "" || hostPath.path.startsWith("/")) continue;
    const at = path.child("spec").child("volumes").index(index).child("hostPath").child("path");
    const found = resolveHostPath(hostPath.path, directory);
    if ("problem" in found) {
      notes.push({ code: "unsupported", path: at, message: found.problem });
      continue;
    }
    hostPath.path = found.resolved;
    const message = `is relative, which Kubernetes cannot mount: it is read as ${found.resolved}, relative to the manifest`;
    notes.push({ code: "ignored", path: at, message });
  }
  return notes;
}

function resolveHostPath(written: string, directory: string | undefined): RelativePath {
  if (/^[$%]|\$\{/.test(written)) {
    return { problem: "variables are not replaced here: write an absolute path, or run `envsubst < FILE` first" };
  }
  if (written.startsWith("~")) return { problem: "~ is not replaced here: write an absolute path" };
  if (directory === undefined) {
    return {
      problem: "must be absolute: only in a manifest file can a path be relative, to the directory of the file",
    };
  }
  return { resolved: resolve(directory, written) };
}
