import type { ApiObject } from "../api-object.ts";
import type { ObjectStore } from "../object-store.ts";
import { type ResourceDefinition, resourceId } from "../resource-definition.ts";

interface RefusalDeps {
  store: Pick<ObjectStore, "list">;
  registry: { all(): readonly ResourceDefinition[] };
  /** Whether an object was submitted to this API. */
  isOwn: (definition: ResourceDefinition, object: ApiObject) => boolean;
  /** File and line, or masked URL, that an object comes from. */
  originOf: (kind: string, metadata: ApiObject["metadata"]) => string | undefined;
  /** The pod that uses a claim of a StatefulSet. @param fullName `namespace/name` */
  userOfClaim: (fullName: string) => string | undefined;
}

/** Why a write to an object is refused: it comes from a manifest of the node. undefined where it is not. Pure. */
export function refusalOf(
  definition: ResourceDefinition,
  object: ApiObject,
  { store, registry, isOwn, originOf, userOfClaim }: RefusalDeps,
): string | undefined {
  if (definition.storage !== "file" || isOwn(definition, object)) return undefined;
  const { name } = object.metadata;
  const what = `${definition.singular} "${name}"`;
  if (definition.plural === "namespaces") {
    // Objects made by controllers go with their workload.
    const isForeign = (it: ResourceDefinition, found: ApiObject) =>
      !isOwn(it, found) && !found.metadata.ownerReferences?.some(({ controller }) => controller);
    const isUsed = registry
      .all()
      .filter(({ namespaced, storage }) => namespaced && storage === "file")
      .some((it) => store.list(resourceId(it), name).some((found) => isForeign(it, found)));
    return isUsed ? `manifests of this node have objects in ${what}` : undefined;
  }
  const user =
    definition.kind === "PersistentVolumeClaim" && userOfClaim(`${object.metadata.namespace ?? "default"}/${name}`);
  if (user)
    return `${what} is of a StatefulSet, and pod "${user}" uses it: scale the StatefulSet down, or delete it, first`;
  const origin = originOf(definition.kind, object.metadata);
  if (origin === undefined) return `${what} comes from a manifest of this node: edit that`;
  return `${what} comes from ${origin}: edit that ${/^https?:/.test(origin) ? "manifest" : "file"}`;
}
