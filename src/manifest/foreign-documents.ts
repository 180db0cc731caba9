import { type ListNode, type MapNode, stringAt } from "./yaml/source-node.ts";

/** The first line of a unit of systemd, comments aside. */
const UNIT = /^(?:\s*[#;].*\n|\s*\n)*\[(?:Unit|Container|Pod|Kube|Volume|Network|Service)\]\s*\n\w+=/;

/** The next step for a unit of systemd; undefined for other texts. */
export const describeUnit = (matches: (pattern: RegExp) => boolean): string | undefined =>
  matches(UNIT)
    ? "this is a unit of systemd (Quadlet), not a manifest: a .kube unit names its manifest after Yaml=; for a .container unit, start the container and let `kubelet-ts import docker CONTAINER` write one"
    : undefined;

/** Keys of the plays of an Ansible playbook and of its tasks. */
const ANSIBLE_KEYS = [
  "hosts",
  "tasks",
  "roles",
  "become",
  "when",
  "register",
  "notify",
  "loop",
  "with_items",
  "import_playbook",
];

/** Says what a list in place of a manifest is, and names the next step. */
export function describeForeignList({ items }: ListNode): string {
  const maps = items.filter((item): item is MapNode => item.kind === "map");
  const areAll = (test: (item: MapNode) => boolean) =>
    maps.length > 0 && maps.length === items.length && maps.every(test);
  if (areAll((item) => stringAt(item, "kind") !== undefined)) {
    return 'this is a list of objects: separate them with lines "---", or put the list under "items" of {apiVersion: v1, kind: List}';
  }
  if (areAll((item) => stringAt(item, "op") !== undefined && stringAt(item, "path") !== undefined)) {
    return "this is a JSON patch of a Kustomization, not a manifest: run `kustomize build DIR` (or `kubectl kustomize DIR`), and give the output to kubelet-ts";
  }
  if (areAll((item) => item.entries.has("Id") && (item.entries.has("Config") || item.entries.has("HostConfig")))) {
    return "this is the output of docker inspect, not a manifest: `kubelet-ts import docker CONTAINER` writes the manifest of a container";
  }
  const isOfAnsible = (item: MapNode) =>
    ANSIBLE_KEYS.some((key) => item.entries.has(key)) ||
    [...item.entries.keys()].some((key) => /^[a-z_]+\.[a-z_]+\.[a-z_]+$/.test(key));
  if (maps.some(isOfAnsible)) {
    return "this is an Ansible playbook or a list of its tasks, not a manifest: give the file to kubelet-ts that `kube_file` of containers.podman.podman_play, or a template task, names";
  }
  return "a manifest is an object with apiVersion, kind, metadata and spec (found a list)";
}

/** Kinds whose objects have a selector and a template of pods. */
const SELECTING_KINDS = new Set(["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"]);

/**
 * The next step for a patch of a Kustomization: a workload that has neither a selector nor an image; undefined for
 * everything else.
 */
export function describePatch(kind: string, root: MapNode): string | undefined {
  const spec = root.entries.get("spec")?.value;
  if (!SELECTING_KINDS.has(kind) || (spec && spec.kind !== "map") || spec?.entries.has("selector")) return undefined;
  const template = spec?.entries.get("template")?.value;
  const podSpec = template?.kind === "map" ? template.entries.get("spec")?.value : undefined;
  const containers = podSpec?.kind === "map" ? podSpec.entries.get("containers")?.value : undefined;
  const hasImage =
    containers?.kind === "list" && containers.items.some((it) => it.kind === "map" && it.entries.has("image"));
  if (hasImage) return undefined;
  return `this ${kind} has neither a selector nor an image, as a patch of a Kustomization: run \`kustomize build DIR\` (or \`kubectl kustomize DIR\`) where kustomization.yaml is, and give the output to kubelet-ts`;
}

/**
 * The next step for an object without any field of a manifest; undefined for other objects.
 * @param describeText of a text that only happens to be an object of YAML
 */
export function describeUnknownObject(
  { entries }: MapNode,
  describeText: () => string | undefined,
): string | undefined {
  const keys = [...entries.keys()];
  const isContainerList = entries.get("containers")?.value.kind === "list";
  if (keys.some((key) => MANIFEST_KEYS.has(key.toLowerCase()))) return undefined;
  if (isContainerList) {
    return 'the containers of a pod are under "spec" of an object with apiVersion: v1, kind: Pod and metadata: {name: NAME}';
  }
  const text = describeText();
  if (text !== undefined) return text;
  const found = `${keys.slice(0, 3).join(", ")}${keys.length > 3 ? ", …" : ""}`;
  return `this is not a manifest: it has neither apiVersion nor kind (found ${found}), with which every object begins, e.g. apiVersion: v1, kind: Pod; values of a Helm chart belong into \`helm template NAME CHART --values FILE\`, whose output is a manifest`;
}

const MANIFEST_KEYS: ReadonlySet<string> = new Set(["apiversion", "kind", "metadata", "spec"]);
