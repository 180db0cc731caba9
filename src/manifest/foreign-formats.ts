import { needsSelector } from "./workloads/kind-rules.ts";
import { type ListNode, type MapNode, type SourceNode, stringAt } from "./yaml/source-node.ts";

/** Expressions of Go templates: `{{ .Values.image }}`, `{{- if …`, `{{ include "x" . }}`. */
const GO_TEMPLATE =
  /\{\{-?\s*(?:[.$"(]|\/\*|(?:if|else|end|range|with|include|template|define|block|default|required|quote|printf|tpl|toYaml|lookup)\b)/;
/** Expressions and blocks of Jinja, as in Ansible: `{{ image }}`, `{% for …`. */
const JINJA = /\{\{-?\s*[A-Za-z_][\w.]*(?:\s*\|[^}]*)?\s*-?\}\}|\{%-?\s*[a-z]+/;

/** The next step for a text with template expressions; undefined for other texts. */
export function describeTemplate(matches: (pattern: RegExp) => boolean): string | undefined {
  if (matches(GO_TEMPLATE)) return HELM_TEMPLATE;
  return matches(JINJA)
    ? "this is a template, not a manifest: render it first with the program it is for (Ansible, Jinja, …), and give the output to kubelet-ts"
    : undefined;
}

const HELM_TEMPLATE =
  "this is a template, not a manifest: render it first, e.g. with `helm template NAME CHART`, and give the output to kubelet-ts";

/** Keys of the Compose format besides `services`. */
const COMPOSE_KEYS = new Set("services version name networks volumes configs secrets include models".split(" "));

/** Keys of the values of most Helm charts, as `helm create` writes them. */
const HELM_VALUES_KEYS = ["replicaCount", "image", "nameOverride", "fullnameOverride", "serviceAccount", "ingress"];
const MIN_HELM_VALUES_KEYS = 3;

/** Keys that only a Kustomization has, which may lack apiVersion and kind. */
const KUSTOMIZATION_KEYS = [
  ..."bases components commonLabels configMapGenerator generators namePrefix nameSuffix".split(" "),
  ..."patchesJson6902 patchesStrategicMerge secretGenerator".split(" "),
];

/** Recognizes files of other programs and names the next step; undefined for everything else. */
export function describeForeignFormat(root: MapNode): string | undefined {
  const { entries } = root;
  const kind = stringAt(root, "kind");
  const apiVersion = stringAt(root, "apiVersion") ?? "";
  if (kind === "Kustomization" || kind === "Component") return KUSTOMIZE;
  if (GO_TEMPLATE.test(stringAt(root, "metadata", "name") ?? "")) return HELM_TEMPLATE;
  if (kind !== undefined) return undefined;
  if (isCompose(root)) {
    return "this is a Compose file, not a manifest: `kubelet-ts import compose FILE` writes manifests of its services";
  }
  if (/^v[12]$/.test(apiVersion) && entries.has("name") && entries.has("version") && !entries.has("spec")) {
    return "this is the Chart.yaml of a Helm chart: render the chart with `helm template NAME CHART`, and give the output to kubelet-ts";
  }
  if (entries.has("spec")) return undefined;
  const isKustomization = KUSTOMIZATION_KEYS.some((key) => entries.has(key));
  if (isKustomization || entries.get("resources")?.value.kind === "list") return KUSTOMIZE;
  if (HELM_VALUES_KEYS.filter((key) => entries.has(key)).length >= MIN_HELM_VALUES_KEYS) {
    return "these are the values of a Helm chart, not a manifest: render the chart with `helm template NAME CHART --values FILE`, and give the output to kubelet-ts";
  }
  return undefined;
}

/** Whether all keys are those of Compose, or at least one of its services has an image or a build. */
function isCompose({ entries }: MapNode): boolean {
  const services = entries.get("services")?.value;
  const hasOnlyItsKeys = [...entries.keys()].every((key) => COMPOSE_KEYS.has(key) || key.startsWith("x-"));
  if (services?.kind !== "map") return hasOnlyItsKeys && entries.get("include")?.value.kind === "list";
  const isService = (node: SourceNode) =>
    node.kind === "map" && ["image", "build", "extends"].some((key) => node.entries.has(key));
  return hasOnlyItsKeys || [...services.entries.values()].some(({ value }) => isService(value));
}

const KUSTOMIZE =
  "this is a Kustomization, not a manifest: run `kustomize build DIR` (or `kubectl kustomize DIR`), and give the output to kubelet-ts";

/** The first line of a unit of systemd, comments aside. */
const UNIT = /^(?:[ \t\r]*(?:[#;][^\n]*)?\n)*[ \t]*\[(?:Unit|Container|Pod|Kube|Volume|Network|Service)\]\s*\n\w+=/;
const MARKUP = /^\s*<(?:!doctype|html|\?xml)/i;
/** After blank lines and comments. */
const RUN_COMMAND =
  /^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:\$[ \t]+)?(?:sudo[ \t]+)?(?:docker|podman|nerdctl)[ \t]+(?:container[ \t]+)?(?:run|create)[ \t]/;

/**
 * Says what a text is that is no object of YAML or JSON, and names the next step; undefined for a text of no known kind.
 * The message contains nothing of the text, which may be a secret.
 * @param matches whether a pattern occurs in the text of the file
 */
export function describeForeignText(matches: (pattern: RegExp) => boolean): string | undefined {
  if (matches(UNIT)) {
    return "this is a unit of systemd (Quadlet), not a manifest: a .kube unit names its manifest after Yaml=; for a .container unit, start the container and let `kubelet-ts import docker CONTAINER` write one";
  }
  if (matches(MARKUP)) {
    return "this is an HTML or XML page, not a manifest: a URL has to lead to the text of the manifest, not to a page that shows it or asks for a login";
  }
  if (matches(RUN_COMMAND)) {
    return "this is a command line of docker or podman, not a manifest: start the container with docker, and let `kubelet-ts import docker CONTAINER` write its manifest";
  }
  return undefined;
}

/** Keys of the plays of an Ansible playbook and of its tasks. */
const ANSIBLE_KEYS = "hosts tasks roles become when register notify loop with_items import_playbook".split(" ");

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

/**
 * The next step for a patch of a Kustomization, a workload that has neither a selector nor an image, and for a workload
 * with the spec of a pod; undefined for everything else.
 */
export function describePatch(kind: string, root: MapNode): string | undefined {
  const spec = root.entries.get("spec")?.value;
  if (!needsSelector(kind) || (spec && spec.kind !== "map") || spec?.entries.has("selector")) return undefined;
  if (spec?.entries.has("containers")) {
    return `this ${kind} has the spec of a pod: write it under spec.template.spec`;
  }
  const template = spec?.entries.get("template")?.value;
  const podSpec = template?.kind === "map" ? template.entries.get("spec")?.value : undefined;
  const containers = podSpec?.kind === "map" ? podSpec.entries.get("containers")?.value : undefined;
  const hasImage =
    containers?.kind === "list" && containers.items.some((it) => it.kind === "map" && it.entries.has("image"));
  if (hasImage) return undefined;
  return `this ${kind} has neither a selector nor an image, as a patch of a Kustomization: run \`kustomize build DIR\` (or \`kubectl kustomize DIR\`) where kustomization.yaml is, and give the output to kubelet-ts`;
}

/** The next step for an object without any field of a manifest; undefined for other objects. */
export function describeUnknownObject({ entries }: MapNode): string | undefined {
  const keys = [...entries.keys()];
  const isContainerList = entries.get("containers")?.value.kind === "list";
  if (keys.some((key) => MANIFEST_KEYS.has(key.toLowerCase()))) return undefined;
  if (isContainerList) {
    return 'the containers of a pod are under "spec" of an object with apiVersion: v1, kind: Pod and metadata: {name: NAME}';
  }
  const found = `${keys.slice(0, 3).join(", ")}${keys.length > 3 ? ", …" : ""}`;
  return `this is not a manifest: it has neither apiVersion nor kind (found ${found}), with which every object begins, e.g. apiVersion: v1, kind: Pod; values of a Helm chart belong into \`helm template NAME CHART --values FILE\`, whose output is a manifest`;
}

const MANIFEST_KEYS: ReadonlySet<string> = new Set(["apiversion", "kind", "metadata", "spec"]);

/** Keys that a GCE container declaration has on its top level. */
const DECLARATION_KEYS = new Set(["spec", "metadata"]);

/**
 * Converts a container declaration of Google Compute Engine (`gce-container-declaration`, read there by konlet): the spec
 * of a pod without apiVersion and kind, which runs in the network of the machine.
 * @returns the pod, and what was assumed
 */
export function convertContainerDeclaration(root: MapNode): { node: MapNode; notes: string[] } | undefined {
  const spec = root.entries.get("spec")?.value;
  if (spec?.kind !== "map" || ![...root.entries.keys()].every((key) => DECLARATION_KEYS.has(key))) return undefined;
  const containers = spec.entries.get("containers")?.value;
  if (containers?.kind !== "list") return undefined;
  const { offset } = root;
  const notes = [
    "it has no apiVersion and kind and is read as a GCE container declaration: write apiVersion: v1 and kind: Pod",
  ];
  const entries = new Map(root.entries);
  const set = (target: Map<string, { keyOffset: number; value: SourceNode }>, key: string, value: SourceNode) =>
    target.set(key, { keyOffset: offset, value });
  set(entries, "apiVersion", { kind: "string", value: "v1", offset });
  set(entries, "kind", { kind: "string", value: "Pod", offset });
  const pod: MapNode = { ...spec, entries: new Map(spec.entries) };
  set(entries, "spec", pod);
  const [first, ...others] = containers.items;
  if (!entries.has("metadata")) {
    const name = (first?.kind === "map" ? stringAt(first, "name") : undefined) ?? "container";
    const metadata: MapNode = { kind: "map", offset, entries: new Map() };
    set(metadata.entries, "name", { kind: "string", value: toLabel(name), offset });
    set(entries, "metadata", metadata);
    notes.push(`the pod is named ${JSON.stringify(toLabel(name))} after its first container`);
  }
  if (first?.kind === "map" && others.length === 0 && !first.entries.has("name")) {
    const named: MapNode = { ...first, entries: new Map(first.entries) };
    set(named.entries, "name", { kind: "string", value: "container", offset });
    set(pod.entries, "containers", { ...containers, items: [named] });
  }
  if (!spec.entries.has("hostNetwork")) {
    set(pod.entries, "hostNetwork", { kind: "bool", value: true, source: "true", offset });
    notes.push("the containers use the network of the host, as on Compute Engine: set hostNetwork: false to change it");
  }
  return { node: { ...root, entries }, notes };
}

/** The DNS label nearest to a name. */
const toLabel = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/g, "") || "container";
