import type { Ingress, IngressBackend, IngressClass } from "../../base/api/ingress.ts";
import { INGRESS_CLASS_ANNOTATION, parseIngressAnnotations } from "../../base/api/ingress.ts";
import type { Field, SupportNote } from "../field.ts";
import { checkDnsSubdomain, checkIp, checkPortName, checkPortNumber, validateMetadata } from "../validate/names.ts";
import type { MapEntry, MapNode, SourceNode } from "../yaml/source-node.ts";

type IngressSpec = Ingress["spec"];
type IngressRule = NonNullable<IngressSpec["rules"]>[number];
type IngressPath = NonNullable<NonNullable<IngressRule["http"]>["paths"]>[number];

/** Source: networking validation `ValidateIngressCreate`. */
export function validateIngress(ingress: Field<Ingress>): void {
  const metadata = ingress.field("metadata");
  validateMetadata(metadata);
  const spec = ingress.field("spec");
  const { ingressClassName, rules = [], defaultBackend } = spec.value;
  if (ingressClassName !== undefined && metadata.value.annotations?.[INGRESS_CLASS_ANNOTATION] !== undefined) {
    const annotation = metadata.field("annotations").entry(INGRESS_CLASS_ANNOTATION);
    const path = ingress.path.child("annotations").child(INGRESS_CLASS_ANNOTATION);
    annotation.as(path).invalid("must be absent when spec.ingressClassName is set");
  }
  spec.field("ingressClassName").format(checkDnsSubdomain);
  if (rules.length === 0 && !defaultBackend) spec.absent("must have rules or defaultBackend");
  if (defaultBackend) validateBackend(spec.field("defaultBackend") as Field<IngressBackend>);
  for (const tls of spec.field("tls").items()) {
    for (const host of tls.field("hosts").items()) host.format(checkHost);
    tls.field("secretName").format(checkDnsSubdomain);
  }
  for (const rule of spec.field("rules").items()) {
    rule.field("host").format((host) => (checkIp(host).length === 0 ? ["must be a DNS name"] : checkHost(host)));
    if (!rule.value.http) continue;
    const paths = rule.field("http").field("paths");
    if (paths.items().length === 0) paths.required();
    for (const path of paths.items()) validatePath(path);
  }
}

/** A DNS name, or one with `*` in place of its first part. */
const checkHost = (host: string): string[] =>
  host.startsWith("*.")
    ? checkDnsSubdomain(host.slice(2))
    : checkDnsSubdomain(host).map((rule) => (host.includes("*") ? "may have * only as its whole first part" : rule));

const INSIDE = ["//", "/./", "/../", "%2f", "%2F"];
const AT_END = ["/..", "/."];

function validatePath(item: Field<IngressPath>): void {
  const path = item.field("path");
  const { path: text = "", pathType } = item.value;
  const type = item.field("pathType");
  if (pathType === undefined) type.required("is required: Prefix, Exact or ImplementationSpecific");
  else type.oneOf(["Exact", "ImplementationSpecific", "Prefix"]);
  const isLiteral = pathType === "Exact" || pathType === "Prefix";
  if (!text.startsWith("/") && (isLiteral || text !== "")) path.invalid("must be an absolute path: begin with /");
  if (isLiteral) {
    for (const part of INSIDE) if (text.includes(part)) path.invalid(`must not contain '${part}'`);
    for (const end of AT_END) if (text.endsWith(end)) path.invalid(`must not end with '${end}'`);
  }
  validateBackend(item.field("backend"));
}

const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

function validateBackend(backend: Field<IngressBackend>): void {
  if (backend.value.resource !== undefined) {
    if (backend.value.service) backend.absent("must have a service or a resource, not both");
    return;
  }
  if (!backend.value.service) return backend.absent("must have a service");
  const service = backend.field("service");
  const name = service.field("name") as Field<string>;
  if (!name.value) name.required();
  else if (!DNS_1035.test(name.value) || name.value.length > 63) {
    name.invalid("must be the name of a Service: begin with a letter, and have lower case letters, digits and '-'");
  }
  const { name: portName, number } = backend.value.service.port ?? {};
  const port = service.field("port");
  if (portName && number) backend.absent("must have the name of a port or its number, not both");
  else if (portName) port.field("name").format(checkPortName);
  else if (number) port.field("number").format(checkPortNumber);
  else backend.required("must have the name or the number of a port");
}

/** All backends of an Ingress: the default one, and those of paths. */
export function backendsOf(ingress: Field<Ingress>): Field<IngressBackend>[] {
  const spec = ingress.field("spec");
  const rules = spec.field("rules").items();
  const paths = rules.flatMap((rule) => rule.field("http").field("paths").items());
  const ofPaths = paths.map((path) => path.field("backend"));
  return spec.value.defaultBackend ? [spec.field("defaultBackend") as Field<IngressBackend>, ...ofPaths] : ofPaths;
}

/** Parts of an Ingress that the server of this node does not follow. */
export function findIngressNotes(ingress: Field<Ingress>): SupportNote[] {
  const { metadata } = ingress.value;
  const annotations = ingress.field("metadata").field("annotations");
  const notes = parseIngressAnnotations(metadata.annotations).problems.map(({ name, message, isIgnored }) => {
    const consequence = isIgnored ? "" : ": the Ingress is not served";
    const at = metadata.annotations?.[name] === undefined ? annotations : annotations.entry(name);
    return at.note(`${message}${consequence}`);
  });
  const resources = backendsOf(ingress).flatMap((it) => (it.value.resource === undefined ? [] : it.field("resource")));
  const message = "is not supported: lead to a Service, for files to that of a web server with the files in a volume";
  return [...notes, ...resources.map((resource) => resource.note(message, "unsupported"))];
}

const MAX_CONTROLLER = 250;

/** Source: networking validation `ValidateIngressClass`. */
export function validateIngressClass(ingressClass: Field<IngressClass>): void {
  const { metadata } = ingressClass.value;
  // Classes are in no namespace.
  validateMetadata(ingressClass.field("metadata").with({ ...metadata, namespace: "default" }));
  const controller = ingressClass.field("spec").field("controller");
  const [domain = "", ...path] = (controller.value ?? "").split("/");
  if (!controller.value) controller.required();
  else if (controller.value.length > MAX_CONTROLLER) controller.tooLong(`${MAX_CONTROLLER} characters`);
  else if (checkDnsSubdomain(domain).length > 0 || !/^[\w%!$&'()*+,;=:@~./-]+$/.test(path.join("/"))) {
    controller.invalid("must be a DNS name, '/' and a path, such as k8s.io/ingress-nginx");
  }
}

export function findIngressClassNotes(ingressClass: Field<IngressClass>): SupportNote[] {
  const parameters = ingressClass.field("spec").field("parameters");
  return parameters.value === undefined ? [] : [parameters.note("have no effect here")];
}

/**
 * The text of an Ingress of networking.k8s.io/v1beta1 or extensions/v1beta1 as v1 has it. Values keep their places. Pure.
 * Source: `pkg/apis/networking/v1beta1/conversion.go` and `defaults.go`.
 */
export function convertIngress(root: MapNode): MapNode {
  return change(root, "spec", (spec) => {
    const rules = change(rename(spec, "backend", "defaultBackend"), "defaultBackend", convertBackend);
    return changeItems(rules, "rules", (rule) =>
      change(rule, "http", (http) => changeItems(http, "paths", convertPath)),
    );
  });
}

function convertPath(path: MapNode): MapNode {
  const { offset } = path;
  const type: MapEntry = { keyOffset: offset, value: { kind: "string", value: "ImplementationSpecific", offset } };
  const entries = new Map([["pathType", type] as const, ...path.entries]);
  return change({ ...path, entries }, "backend", convertBackend);
}

function convertBackend(backend: MapNode): MapNode {
  const entries = new Map(backend.entries);
  const name = entries.get("serviceName");
  const port = entries.get("servicePort");
  entries.delete("serviceName");
  entries.delete("servicePort");
  const first = name ?? port;
  if (!first) return backend;
  const mapOf = (...fields: (readonly [string, MapEntry | undefined])[]): MapEntry => ({
    keyOffset: first.keyOffset,
    value: {
      kind: "map",
      offset: first.value.offset,
      entries: new Map(fields.flatMap(([key, entry]) => (entry ? [[key, entry] as const] : []))),
    },
  });
  const isNumber = port?.value.kind === "number" || (port?.value.kind === "string" && /^\d+$/.test(port.value.value));
  const number = isNumber && port ? { ...port, value: toNumber(port.value) } : undefined;
  const portEntry = port && mapOf(isNumber ? ["number", number] : ["name", port]);
  entries.set("service", mapOf(["name", name], ["port", portEntry]));
  return { ...backend, entries };
}

/** The digits of a text as a number, which `servicePort` of the old versions may be too. */
const toNumber = (node: SourceNode): SourceNode =>
  node.kind === "string" ? { kind: "number", json: node.value, source: node.value, offset: node.offset } : node;

function rename(node: MapNode, from: string, to: string): MapNode {
  return { ...node, entries: new Map([...node.entries].map(([key, entry]) => [key === from ? to : key, entry])) };
}

/** The map with one value changed, if that is a map. */
function change(node: MapNode, key: string, convert: (value: MapNode) => MapNode): MapNode {
  const entry = node.entries.get(key);
  if (entry?.value.kind !== "map") return node;
  return { ...node, entries: new Map(node.entries).set(key, { ...entry, value: convert(entry.value) }) };
}

/** The map with the items of one list changed. */
function changeItems(node: MapNode, key: string, convert: (item: MapNode) => MapNode): MapNode {
  const entry = node.entries.get(key);
  if (entry?.value.kind !== "list") return node;
  const items = entry.value.items.map((item) => (item.kind === "map" ? convert(item) : item));
  return { ...node, entries: new Map(node.entries).set(key, { ...entry, value: { ...entry.value, items } }) };
}
