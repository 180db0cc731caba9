import type { ApiObject } from "./api-object.ts";
import type { ApiRequest } from "./api-request.ts";
import type { ShowObject } from "./list-response.ts";
import { apiVersionOf, type ResourceDefinition } from "./resource-definition.ts";

/**
 * How objects are shown to a user: Secrets without values for users with read access only.
 * @param asked the definition in the version of the request
 */
export function showFor(
  { user }: Pick<ApiRequest, "user">,
  definition: ResourceDefinition,
  asked: ResourceDefinition,
): ShowObject {
  if (definition.isSecret && user.role !== "admin") return hideSecrets;
  const complete = definition.complete ?? ((object: ApiObject) => object);
  if (asked.version === definition.version) return complete;
  return (object) => ({ ...complete(object), apiVersion: apiVersionOf(asked) });
}

const shown = new WeakMap<ApiObject, ApiObject>();

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** A Secret for users with read access only: its keys without values. */
function hideSecrets(secret: ApiObject): ApiObject {
  let hidden = shown.get(secret);
  if (hidden === undefined) {
    const keys = Object.keys((secret.data as Record<string, string> | undefined) ?? {});
    // The last-applied annotation holds the values too.
    const { [LAST_APPLIED]: _applied, ...annotations } = secret.metadata.annotations ?? {};
    const { annotations: _annotations, ...metadata } = secret.metadata;
    hidden = {
      ...secret,
      metadata: { ...metadata, ...(Object.keys(annotations).length > 0 && { annotations }) },
      data: Object.fromEntries(keys.map((key) => [key, ""])),
    } as ApiObject;
    shown.set(secret, hidden);
  }
  return hidden;
}
