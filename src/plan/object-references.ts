import { createHash } from "node:crypto";
import type { Secret } from "../base/api/config-objects.ts";
import type { Container, Pod, Volume } from "../base/api/pod.ts";
import type { ObjectIndex } from "../base/model/desired-state.ts";
import { memoized } from "../base/model/memoized.ts";
import { allContainersOf } from "../base/model/pod.ts";

/** A ConfigMap or Secret in use. */
export interface ObjectReference {
  kind: "ConfigMap" | "Secret";
  /** `namespace/name`, the key of the `ObjectIndex`. */
  fullName: string;
  /** The keys used; absent when all of them are. */
  keys?: readonly string[];
}

/** One of a manifest. */
interface WrittenReference extends ObjectReference {
  /** The pod runs without the object, too. */
  optional: boolean;
  /** Steps from the container or the volume to the name. */
  field: readonly (string | number)[];
}

/** Sources of a container's environment, in the order of the manifest. */
export function environmentReferences(pod: Pod, container: Container): WrittenReference[] {
  const references: WrittenReference[] = [];
  type Source = { name?: string | undefined; key?: string; optional?: boolean | undefined };
  const add = (field: (string | number)[], kind: ObjectReference["kind"], source: Source | undefined) => {
    if (!source) return;
    const { name, key, optional = false } = source;
    const keys = key === undefined ? {} : { keys: [key] };
    references.push({ kind, fullName: fullNameOf(pod, name), ...keys, optional, field: [...field, "name"] });
  };
  for (const [index, { configMapRef, secretRef }] of (container.envFrom ?? []).entries()) {
    add(["envFrom", index, "configMapRef"], "ConfigMap", configMapRef);
    if (!configMapRef) add(["envFrom", index, "secretRef"], "Secret", secretRef);
  }
  for (const [index, { valueFrom }] of (container.env ?? []).entries()) {
    add(["env", index, "valueFrom", "configMapKeyRef"], "ConfigMap", valueFrom?.configMapKeyRef);
    add(["env", index, "valueFrom", "secretKeyRef"], "Secret", valueFrom?.secretKeyRef);
  }
  return references;
}

/** The Secrets named by the pod's imagePullSecrets, in their order; missing ones are left out. */
export function resolvePullSecrets(
  pod: Pick<Pod, "metadata" | "spec">,
  { secrets }: Pick<ObjectIndex, "secrets">,
): Secret[] {
  return (pod.spec.imagePullSecrets ?? []).flatMap(({ name }) => secrets.get(fullNameOf(pod, name)) ?? []);
}

/** Sources of a volume's files; empty for every volume but configMap, secret and projected. */
export function volumeReferences(pod: Pod, volume: Volume): WrittenReference[] {
  const { configMap, secret, projected } = volume;
  const sources = projected?.sources ?? [{ configMap, secret: secret && { ...secret, name: secret.secretName } }];
  return sources.flatMap((source, index) =>
    (["configMap", "secret"] as const).flatMap((field): WrittenReference[] => {
      const found = source[field];
      if (!found) return [];
      const keys = (found.items ?? []).map(({ key }) => key);
      const kind = field === "configMap" ? "ConfigMap" : "Secret";
      const name = field === "secret" && !projected ? "secretName" : "name";
      return [
        {
          kind,
          fullName: fullNameOf(pod, found.name),
          ...(keys.length > 0 && { keys }),
          optional: found.optional ?? false,
          field: [...(projected ? ["projected", "sources", index] : []), field, name],
        },
      ];
    }),
  );
}

/** Everything a pod uses, of all its containers, its volumes and its image pull secrets; each object once. */
export function podReferences(pod: Pod): ObjectReference[] {
  const found = new Map<string, ObjectReference>();
  const containers = allContainersOf(pod.spec);
  const all = [
    ...containers.flatMap((container) => environmentReferences(pod, container)),
    ...(pod.spec.volumes ?? []).flatMap((volume) => volumeReferences(pod, volume)),
    ...(pod.spec.imagePullSecrets ?? []).map(
      ({ name }): ObjectReference => ({ kind: "Secret", fullName: fullNameOf(pod, name) }),
    ),
  ];
  for (const { kind, fullName } of all) found.set(`${kind} ${fullName}`, { kind, fullName });
  return [...found.values()];
}

/** Whether all these objects are there, with the values that are read from files. */
export const hasReferences = (
  references: readonly ObjectReference[],
  { configMaps, secrets, unreadSecrets }: ObjectIndex,
): boolean =>
  references.every(({ kind, fullName }) =>
    kind === "ConfigMap" ? configMaps.has(fullName) : secrets.has(fullName) && !unreadSecrets?.has(fullName),
  );

/**
 * Revision of what the environment takes from ConfigMaps and Secrets: 16 hex digits that change with a used key only.
 * "" for a container that uses none. It reveals nothing that `docker inspect` does not.
 */
export function computeSourceRevision(pod: Pod, container: Container, objects: ObjectIndex): string {
  const references = environmentReferences(pod, container);
  if (references.length === 0) return "";
  const known = revisionsOf(objects.configMaps, objects.secrets);
  if (known.size > 1_000) known.clear();
  return known.getOrInsertComputed(JSON.stringify(references), () => {
    const hash = createHash("sha256");
    for (const reference of references)
      hash.update(JSON.stringify([reference.kind, reference.fullName, contentsOf(reference, objects)]));
    return hash.digest("hex").slice(0, 16);
  });
}

/** Revisions by what is used of these objects: pods with the same environment share one. */
const revisionsOf = memoized((_: ObjectIndex["configMaps"], __: ObjectIndex["secrets"]) => new Map<string, string>());

/** The keys and values that are used of an object; null when it is not there. */
function contentsOf({ kind, fullName, keys }: ObjectReference, objects: ObjectIndex) {
  const object = kind === "ConfigMap" ? objects.configMaps.get(fullName) : objects.secrets.get(fullName);
  if (!object) return null;
  const { data = {} } = object;
  const used = keys ?? Object.keys(data).sort();
  return used.map((key) => [key, Object.hasOwn(data, key) ? (data[key] ?? null) : null]);
}

/** The objects in the environment of containers of which a used key changed, without values: `Secret "shop/db"`. */
export function changedSources(pod: Pod, before: ObjectIndex, after: ObjectIndex): string[] {
  const references = allContainersOf(pod.spec).flatMap((container) => environmentReferences(pod, container));
  const changed = references.filter((reference) => {
    const known = contentsOf(reference, before);
    return known !== null && !Bun.deepEquals(known, contentsOf(reference, after));
  });
  return [...new Set(changed.map(({ kind, fullName }) => `${kind} ${JSON.stringify(fullName)}`))];
}

const fullNameOf = (pod: Pick<Pod, "metadata">, name: string | undefined) =>
  `${pod.metadata.namespace ?? "default"}/${name ?? ""}`;
