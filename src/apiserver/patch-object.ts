import { isRecord } from "../base/text/json.ts";
import { ApiError, badRequest } from "./api-error.ts";
import { PATCH_TYPES } from "./body.ts";
import { applyJsonPatch, define, PatchError } from "./json-patch.ts";
import { applyStrategicPatch } from "./strategic-merge-patch.ts";

/**
 * The object after a patch that is not server-side apply.
 * @throws ApiError 400, 422
 */
export function patchObject(before: unknown, type: string, patch: unknown): unknown {
  try {
    if (type === PATCH_TYPES.json) return withoutEmptyAnnotations(applyJsonPatch(withAnnotations(before), patch));
    return type === PATCH_TYPES.merge ? applyMergePatch(before, patch) : applyStrategicPatch(before, patch);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    // An operation that does not fit the object is 422, a patch that is none 400. Source: apiserver's patch handler.
    const isUnfit = type === PATCH_TYPES.json && Array.isArray(patch);
    throw isUnfit
      ? new ApiError(
          422,
          "Invalid",
          `the server rejected our request due to an error in our request: ${error.message}`,
          {},
        )
      : badRequest(error.message);
  }
}

/** A copy of the document with the patch merged in: null removes, lists are replaced. Source: RFC 7386. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return structuredClone(patch);
  const result: Record<string, unknown> = isRecord(document) ? { ...document } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else define(result, name, applyMergePatch(Object.hasOwn(result, name) ? result[name] : undefined, value));
  }
  return result;
}

/**
 * `kubectl rollout undo` replaces `/metadata/annotations`, which every Deployment of a cluster has: its controller notes
 * the revision there.
 */
function withAnnotations(object: unknown): unknown {
  if (!isRecord(object) || !isRecord(object.metadata) || "annotations" in object.metadata) return object;
  return { ...object, metadata: { ...object.metadata, annotations: {} } };
}

function withoutEmptyAnnotations(object: unknown): unknown {
  if (!isRecord(object) || !isRecord(object.metadata)) return object;
  const { annotations, ...metadata } = object.metadata;
  return isRecord(annotations) && Object.keys(annotations).length === 0 ? { ...object, metadata } : object;
}
