import { dirname, resolve } from "node:path";
import type { Pod } from "../base/api/pod.ts";
import type { Field, SupportNote } from "./field.ts";
import type { ReadManifestOptions } from "./manifest-result.ts";

/** The absolute directory of a manifest file; undefined for standard input, URLs and the API. */
export const directoryOf = ({ file, source }: ReadManifestOptions): string | undefined =>
  source === "file" && file !== "-" && !/^\w+:\/\//.test(file) ? dirname(resolve(file)) : undefined;

/**
 * Makes the relative paths of hostPath volumes absolute: Kubernetes accepts them and cannot mount them; podman and Compose
 * resolve them. Changes the pod in place.
 * @param directory that the paths are relative to; without it they are refused
 */
export function resolveHostPaths(pod: Field<Pod>, directory: string | undefined): SupportNote[] {
  const volumes = pod.field("spec").field("volumes").items();
  return volumes.flatMap((volume) => {
    const { hostPath } = volume.value;
    if (!hostPath || hostPath.path === "" || hostPath.path.startsWith("/")) return [];
    const path = volume.field("hostPath").field("path");
    const problem = findProblem(hostPath.path, directory);
    if (problem !== undefined) return path.note(problem, "unsupported");
    hostPath.path = resolve(directory ?? "", hostPath.path);
    const how = `it is read as ${hostPath.path}, relative to the manifest`;
    return path.note(`is relative, which Kubernetes cannot mount: ${how}`);
  });
}

/** Why a relative path cannot be resolved; undefined when it can. */
function findProblem(written: string, directory: string | undefined): string | undefined {
  if (/^[$%]|\$\{/.test(written)) {
    return "variables are not replaced here: write an absolute path, or run `envsubst < FILE` first";
  }
  if (written.startsWith("~")) return "~ is not replaced here: write an absolute path";
  return directory === undefined
    ? "must be absolute: only in a manifest file can a path be relative, to the directory of the file"
    : undefined;
}
