import type { Pod } from "../base/api/pod.ts";
import type { ObjectIndex } from "../base/model/desired-pod.ts";
import { FieldPath } from "./field-path.ts";

/** A reference of a pod to a ConfigMap or Secret. */
interface PodReference {
  kind: "ConfigMap" | "Secret";
  /** In the pod's namespace. */
  name: string;
  /** The keys that must be there; empty when none is named. */
  keys: readonly string[];
  /** The pod starts without it. */
  optional: boolean;
  path: FieldPath;
}

/** References that must be resolved before the containers of the pod can run, in the order of the spec. */
function listReferences(pod: Pod, path: FieldPath = FieldPath.root): PodReference[] {
  const references: PodReference[] = [];
  const add = (
    kind: PodReference["kind"],
    source: { name?: string | undefined; optional?: boolean | undefined },
    at: FieldPath,
    keys: readonly string[] = [],
  ) => references.push({ kind, name: source.name ?? "", keys, optional: source.optional ?? false, path: at });
  const specPath = path.child("spec");
  for (const [index, volume] of (pod.spec.volumes ?? []).entries()) {
    const volumePath = specPath.child("volumes").index(index);
    const { configMap, secret } = volume;
    if (configMap) add("ConfigMap", configMap, volumePath.child("configMap").child("name"), keysOf(configMap.items));
    if (secret) {
      const named = { name: secret.secretName, optional: secret.optional };
      add("Secret", named, volumePath.child("secret").child("secretName"), keysOf(secret.items));
    }
    for (const [sourceIndex, source] of (volume.projected?.sources ?? []).entries()) {
      const at = volumePath.child("projected").child("sources").index(sourceIndex);
      if (source.configMap)
        add("ConfigMap", source.configMap, at.child("configMap").child("name"), keysOf(source.configMap.items));
      if (source.secret) add("Secret", source.secret, at.child("secret").child("name"), keysOf(source.secret.items));
    }
  }
  for (const list of ["initContainers", "containers"] as const) {
    for (const [index, container] of (pod.spec[list] ?? []).entries()) {
      const containerPath = specPath.child(list).index(index);
      for (const [envIndex, { configMapRef, secretRef }] of (container.envFrom ?? []).entries()) {
        const at = containerPath.child("envFrom").index(envIndex);
        if (configMapRef) add("ConfigMap", configMapRef, at.child("configMapRef").child("name"));
        if (secretRef) add("Secret", secretRef, at.child("secretRef").child("name"));
      }
      for (const [envIndex, { valueFrom }] of (container.env ?? []).entries()) {
        const at = containerPath.child("env").index(envIndex).child("valueFrom");
        const { configMapKeyRef, secretKeyRef } = valueFrom ?? {};
        if (configMapKeyRef)
          add("ConfigMap", configMapKeyRef, at.child("configMapKeyRef").child("name"), [configMapKeyRef.key]);
        if (secretKeyRef) add("Secret", secretKeyRef, at.child("secretKeyRef").child("name"), [secretKeyRef.key]);
      }
    }
  }
  return references;
}

const keysOf = (items: readonly { key: string }[] | undefined) => (items ?? []).map(({ key }) => key);

/** A reference to an object that is not in the index: the pod waits for it unless it is optional. */
interface DanglingReference extends PodReference {
  /** e.g. `there is no ConfigMap "default/web"`. */
  message: string;
}

/**
 * References to missing objects or keys; optional references are left out.
 * @param path of the pod in its document
 */
export function findDanglingReferences(pod: Pod, index: ObjectIndex, path?: FieldPath): DanglingReference[] {
  const namespace = pod.metadata.namespace ?? "default";
  const dangling: DanglingReference[] = [];
  for (const reference of listReferences(pod, path)) {
    if (reference.optional) continue;
    const fullName = `${namespace}/${reference.name}`;
    const found = reference.kind === "ConfigMap" ? index.configMaps.get(fullName) : index.secrets.get(fullName);
    const named = `${reference.kind} ${JSON.stringify(fullName)}`;
    if (!found) {
      dangling.push({
        ...reference,
        message: `there is no ${named}: the pod waits until there is, or set optional: true`,
      });
      continue;
    }
    const binary = "binaryData" in found ? found.binaryData : undefined;
    const missing = reference.keys.filter((key) => found.data?.[key] === undefined && binary?.[key] === undefined);
    for (const key of missing) {
      dangling.push({
        ...reference,
        message: `${named} has no key ${JSON.stringify(key)}: the pod waits until it has`,
      });
    }
  }
  return dangling;
}
