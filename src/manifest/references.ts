import type { Pod } from "../base/api/pod.ts";
import type { ObjectIndex } from "../base/model/desired-pod.ts";
import { Field, FieldPath } from "./field.ts";

/** The names and keys of ConfigMaps and Secrets, as all sources that refer to one have them. */
interface Source {
  name?: string | undefined;
  optional?: boolean | undefined;
  items?: readonly { key: string }[] | undefined;
  key?: string;
}

/** A reference of a pod to a ConfigMap or Secret in its namespace. */
interface PodReference {
  kind: "ConfigMap" | "Secret";
  /** The field with the name. */
  name: Field<string | undefined>;
  source: Source;
}

/** References that must be resolved before the containers of the pod can run, in the order of the spec. */
function listReferences(pod: Field<Pod>): PodReference[] {
  const references: PodReference[] = [];
  const add = (kind: PodReference["kind"], from: Field<Source | undefined>) => {
    if (from.value) references.push({ kind, name: from.field("name"), source: from.value });
  };
  const spec = pod.field("spec");
  for (const volume of spec.field("volumes").items()) {
    add("ConfigMap", volume.field("configMap"));
    const secret = volume.field("secret");
    if (secret.value) references.push({ kind: "Secret", name: secret.field("secretName"), source: secret.value });
    for (const source of volume.field("projected").field("sources").items()) {
      add("ConfigMap", source.field("configMap"));
      add("Secret", source.field("secret"));
    }
  }
  for (const container of [...spec.field("initContainers").items(), ...spec.field("containers").items()]) {
    for (const from of container.field("envFrom").items()) {
      add("ConfigMap", from.field("configMapRef"));
      add("Secret", from.field("secretRef"));
    }
    for (const variable of container.field("env").items()) {
      add("ConfigMap", variable.field("valueFrom").field("configMapKeyRef"));
      add("Secret", variable.field("valueFrom").field("secretKeyRef"));
    }
  }
  return references;
}

/** A reference to an object that is not in the index: the pod waits for it unless it is optional. */
interface DanglingReference {
  path: FieldPath;
  /** e.g. `there is no ConfigMap "default/web"`. */
  message: string;
}

/**
 * References to missing objects or keys; optional references are left out.
 * @param path of the pod in its document
 */
export function findDanglingReferences(
  pod: Pod,
  index: ObjectIndex,
  path: FieldPath = FieldPath.root,
): DanglingReference[] {
  const namespace = pod.metadata.namespace ?? "default";
  return listReferences(new Field(pod, path)).flatMap(({ kind, name, source }): DanglingReference[] => {
    if (source.optional) return [];
    const fullName = `${namespace}/${name.value ?? ""}`;
    const found = kind === "ConfigMap" ? index.configMaps.get(fullName) : index.secrets.get(fullName);
    const named = `${kind} ${JSON.stringify(fullName)}`;
    const message = `there is no ${named}: the pod waits until there is, or set optional: true`;
    if (!found) return [{ path: name.path, message }];
    const binary = "binaryData" in found ? found.binaryData : undefined;
    const keys = [...(source.items ?? []).map(({ key }) => key), ...(source.key === undefined ? [] : [source.key])];
    return keys
      .filter((key) => found.data?.[key] === undefined && binary?.[key] === undefined)
      .map((key) => ({
        path: name.path,
        message: `${named} has no key ${JSON.stringify(key)}: the pod waits until it has`,
      }));
  });
}
