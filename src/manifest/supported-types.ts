import { nearestName } from "../base/text/nearest-name.ts";
import { describeIgnoredKind } from "./ignored-kinds.ts";
import type { ObjectReading } from "./object-reading.ts";
import { isObjectKind, OBJECT_KINDS, versionsOf } from "./workloads/read-workload.ts";

const LIST_KINDS: Readonly<Record<string, string>> = {
  List: "",
  PodList: "Pod",
  ConfigMapList: "ConfigMap",
  SecretList: "Secret",
};

/** Kind of the items of a typed list such as DeploymentList; undefined when it is no such list. */
export function listedKind(kind: string): string | undefined {
  if (Object.hasOwn(LIST_KINDS, kind)) return LIST_KINDS[kind]!;
  const item = kind.endsWith("List") ? kind.slice(0, -4) : "";
  return isObjectKind(item) ? item : undefined;
}

/** Kinds of the group `""` that are read. */
export const CORE_KINDS = ["Pod", "ConfigMap", "Secret", ...Object.keys(LIST_KINDS)];

/** Adds why an object of this type is not read, and what to write instead. */
export function refuseType(kind: string, version: string, reading: ObjectReading): void {
  const ignored = describeIgnoredKind(kind, version);
  if (ignored !== undefined) {
    const at = reading.path.child("kind");
    if (reading.isLenient) reading.addDeviation(at, ignored);
    else reading.add("unsupported", "error", at, ignored);
    reading.valid = false;
    return;
  }
  const objectKind = kind.endsWith("List") ? kind.slice(0, -4) : kind;
  const supported = `Pod, ConfigMap, Secret and List (of v1), ${OBJECT_KINDS.join(", ")} can be used here`;
  const say = (at: string, found: string, hint = "") =>
    reading.add("unsupported", "error", reading.path.child(at), `${found} is not supported: ${supported}${hint}`);
  const nearest = nearestName(kind, [...CORE_KINDS, ...OBJECT_KINDS]);
  if (isObjectKind(objectKind)) say("apiVersion", `${kind} of ${version}`, `; write ${versionsOf(objectKind)[0]}`);
  else if (CORE_KINDS.includes(kind)) say("apiVersion", `${kind} of ${version}`);
  else if (version !== "v1") say("kind", `${kind} of ${version}`);
  else say("kind", `"${kind}"`, nearest === undefined ? "" : `; did you mean "${nearest}"?`);
  // The kubelet accepts Pods only.
  reading.valid = false;
}
