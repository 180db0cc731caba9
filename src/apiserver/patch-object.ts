import { ApiError, badRequest } from "./api-error.ts";
import { PATCH_TYPES } from "./body.ts";
import { applyJsonPatch, PatchError } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { applyStrategicPatch } from "./strategic-merge-patch.ts";

/**
 * The object after a patch that is not server-side apply.
 * @throws ApiError 400, 422
 */
export function patchObject(before: unknown, type: string, patch: unknown): unknown {
  try {
    if (type === PATCH_TYPES.json) return applyJsonPatch(before, patch);
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
