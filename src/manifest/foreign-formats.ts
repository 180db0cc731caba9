import { type MapNode, type SourceNode, stringAt } from "./yaml/source-node.ts";

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
const COMPOSE_KEYS = new Set([
  "services",
  "version",
  "name",
  "networks",
  "volumes",
  "configs",
  "secrets",
  "include",
  "models",
]);

/** Keys of the values of most Helm charts, as `helm create` writes them. */
const HELM_VALUES_KEYS = ["replicaCount", "image", "nameOverride", "fullnameOverride", "serviceAccount", "ingress"];
const MIN_HELM_VALUES_KEYS = 3;

/** Keys that only a Kustomization has, which may lack apiVersion and kind. */
const KUSTOMIZATION_KEYS = [
  "bases",
  "components",
  "commonLabels",
  "configMapGenerator",
  "generators",
  "namePrefix",
  "nameSuffix",
  "patchesJson6902",
  "patchesStrategicMerge",
  "secretGenerator",
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
  const ankaios = describeAnkaios(entries.get("workloads")?.value ?? entries.get("desiredState")?.value);
  if (ankaios !== undefined) return ankaios;
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

/** The next step for a state of Eclipse Ankaios: workloads with a runtime and its configuration. */
function describeAnkaios(node: SourceNode | undefined): string | undefined {
  if (node?.kind !== "map") return undefined;
  const inner = node.entries.get("workloads")?.value;
  if (inner) return describeAnkaios(inner);
  const runtimes = [...node.entries.values()].map(({ value }) => value.kind === "map" && stringAt(value, "runtime"));
  if (runtimes.length === 0 || !runtimes.every((runtime) => typeof runtime === "string")) return undefined;
  return runtimes.includes("podman-kube")
    ? "this is a state of Ankaios, not a manifest: write the `manifest` of its runtimeConfig into a file of its own"
    : "this is a state of Ankaios, not a manifest: start its containers with docker run, and let `kubelet-ts import docker CONTAINER` write their manifests";
}

const KUSTOMIZE =
  "this is a Kustomization, not a manifest: run `kustomize build DIR` (or `kubectl kustomize DIR`), and give the output to kubelet-ts";

/** Keys that a GCE container declaration has on its top level. */
const DECLARATION_KEYS = new Set(["spec", "metadata"]);

/** A pod made of another format, and what was assumed. */
interface ConvertedPod {
  node: MapNode;
  notes: string[];
}

/**
 * Converts a container declaration of Google Compute Engine (`gce-container-declaration`, read there by konlet): the spec
 * of a pod without apiVersion and kind, which runs in the network of the machine.
 */
export function convertContainerDeclaration(root: MapNode): ConvertedPod | undefined {
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
