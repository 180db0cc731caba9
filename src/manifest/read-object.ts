import * as v from "valibot";
import { type ConfigMap, ConfigMapSchema, type Secret, SecretSchema } from "../base/api/config-objects.ts";
import type { ObjectMeta } from "../base/api/meta.ts";
import { type LabelSelector, type Pod, PodSchema } from "../base/api/pod.ts";
import { raw } from "../base/api/scalar.ts";
import type { DesiredObject, DesiredPod, ObjectKind, TypedObject } from "../base/model/desired-state.ts";
import { didYouMean, nearestByWords, nearestName } from "../base/text/nearest-name.ts";
import { type DecodeIssue, decodeAnyCase, decodeObject, isTypeIssue } from "./decode/decode.ts";
import { type ObjectShape, type Shape, typedShapeOf } from "./decode/shape.ts";
import { applyIdentity, applyPodDefaults, CONFIG_SOURCE_ANNOTATION, computeRevision } from "./defaults.ts";
import { Field, type FieldError, type FieldPath, type SupportNote } from "./field.ts";
import {
  convertContainerDeclaration,
  describeForeignFormat,
  describeForeignList,
  describePatch,
  describeUnknownObject,
} from "./foreign-formats.ts";
import { describeIgnoredKind } from "./ignored-kinds.ts";
import { MAX_OBJECTS, ObjectReading, type ReadContext, resolveHostPaths } from "./object-reading.ts";
import { adaptPodmanPod, isEngineName, renameObject, restartAlways } from "./podman-pod.ts";
import { findMisplacedAnnotations, findPodNotes } from "./support/pod-notes.ts";
import { validateConfigMap, validateSecret } from "./validate/config-objects.ts";
import { validatePod } from "./validate/pod.ts";
import { isObjectKind, needsSelector, OBJECT_KINDS, rulesOf, templateOf, versionsOf } from "./workloads/kind-rules.ts";
import { type MapNode, type SourceNode, stringAt } from "./yaml/source-node.ts";

const listSchema = v.object({ metadata: v.optional(raw) });

/**
 * Reads one object, or the items of a list.
 * @param root the document, for positions
 * @param path of the object in its document
 * @param defaultKind kind of the items of a typed list that do not name one
 */
export function readObject(
  root: SourceNode,
  node: SourceNode,
  path: FieldPath,
  context: ReadContext,
  defaultKind = "",
): void {
  const reading = new ObjectReading(root, path, context);
  if (node.kind !== "map") {
    const message =
      node.kind === "list"
        ? describeForeignList(node)
        : `a manifest is an object with apiVersion, kind, metadata and spec (found a ${node.kind})`;
    reading.refuse(path, message);
    reading.finish();
    return;
  }
  const declaration = reading.isLenient && path.steps().length === 0 ? convertContainerDeclaration(node) : undefined;
  if (declaration) {
    for (const note of declaration.notes) reading.addDeviation(path, note);
    node = declaration.node;
  }
  const type = readType(node, reading, defaultKind);
  reading.name = stringAt(node, "metadata", "name") ?? "";
  reading.namespace = stringAt(node, "metadata", "namespace") ?? "default";
  const itemKind = type && listedKind(type.kind);
  if (itemKind !== undefined) {
    if (readItems(node, itemKind, reading)) return;
  } else if (type?.kind === "Pod") readPod(node, reading);
  else if (type?.kind === "ConfigMap" || type?.kind === "Secret") readConfigObject(type.kind, node, reading);
  else if (type && isObjectKind(type.kind)) readDesiredObject(type.kind, type.apiVersion, node, reading);
  reading.finish();
}

/** Versions that users mix up; podman does not read apiVersion. */
const SERVED_VERSIONS = new Set(["v1", "apps/v1", "batch/v1"]);

/**
 * The kind and the API version of an object; undefined, with a finding, when it is of no kind that is read. The names of
 * both fields match without regard to case, as in Go before the type is known.
 * @param defaultKind kind of an item that names none, in a typed list
 */
function readType(
  node: MapNode,
  reading: ObjectReading,
  defaultKind: string,
): { kind: string; apiVersion: string } | undefined {
  const kind = typeField(node, "kind", reading);
  const apiVersion = typeField(node, "apiVersion", reading);
  if (kind === undefined || apiVersion === undefined) return undefined;
  const { path } = reading;
  const isTypedItem = kind === "" && apiVersion === "" && defaultKind !== "";
  reading.kind = isTypedItem ? defaultKind : kind;
  if (isTypedItem) return { kind: defaultKind, apiVersion: servedVersionsOf(defaultKind)[0] ?? "v1" };
  const foreign = describeForeignFormat(node) ?? describeUnknownObject(node);
  if (foreign) {
    reading.add("unsupported", "error", path, foreign);
    reading.valid = false;
    return undefined;
  }
  if (kind === "") {
    const meant = nearestName("kind", node.entries.keys());
    const hint = meant === undefined ? ", e.g. kind: Pod" : `; did you mean "kind" by "${meant}"?`;
    reading.refuse(path.child("kind"), `is required${hint}`);
  }
  if (apiVersion === "") {
    // A list of a kind needs its apiVersion: only the kind itself has a version without it.
    const served = kind.endsWith("List") && !CORE_KINDS.includes(kind) ? [] : servedVersionsOf(kind);
    const current = served[0] ?? "v1";
    if (reading.acceptsPodman && served.length > 0) {
      reading.addDeviation(path.child("apiVersion"), `is missing, which Kubernetes requires: it is read as ${current}`);
      return { kind, apiVersion: current };
    }
    reading.refuse(path.child("apiVersion"), `is required: apiVersion: ${current}`);
  }
  if (kind === "" || apiVersion === "") return undefined;
  const version = apiVersion.replace(/^\//, "");
  const served = servedVersionsOf(kind);
  if (served.includes(version)) return { kind, apiVersion: version };
  const [current] = served;
  if (reading.acceptsPodman && current !== undefined && SERVED_VERSIONS.has(version)) {
    const message = `${kind} is not of ${version} in Kubernetes: it is read as ${current}`;
    reading.addDeviation(path.child("apiVersion"), message);
    return { kind, apiVersion: current };
  }
  refuseType(kind, version, reading);
  return undefined;
}

/** Versions in which a kind, or a list of its objects, can be written, the current one first; none for kinds that are not read. */
function servedVersionsOf(kind: string): readonly string[] {
  if (CORE_KINDS.includes(kind)) return ["v1"];
  const objectKind = itemKindOf(kind);
  return isObjectKind(objectKind) ? versionsOf(objectKind) : [];
}

const itemKindOf = (kind: string) => (kind.endsWith("List") ? kind.slice(0, -4) : kind);

/** @returns "" when absent, undefined when it is not a string. */
function typeField(node: MapNode, name: string, reading: ObjectReading): string | undefined {
  const key = node.entries.has(name)
    ? name
    : [...node.entries.keys()].findLast((candidate) => candidate.toLowerCase() === name.toLowerCase());
  const value = key === undefined ? undefined : node.entries.get(key)!.value;
  if (!value || value.kind === "null") return "";
  if (value.kind === "string") return value.value;
  reading.addAt("invalid", "error", value.offset, reading.path.child(name), "must be a string", "DecodeError");
  return undefined;
}

/** @returns whether the items represent the list, which then has no result of its own. */
function readItems(node: MapNode, itemKind: string, reading: ObjectReading): boolean {
  const { root, path, context } = reading;
  const items = node.entries.get("items")?.value;
  const issues: DecodeIssue[] = [];
  decodeObject({ ...node, entries: withoutItems(node) }, typedShapeOf(listSchema), path, issues);
  reading.addDecodeIssues(issues);
  if (!items || items.kind === "null") return false;
  const itemsPath = path.child("items");
  if (items.kind !== "list") {
    reading.refuse(itemsPath, "must be a list", "DecodeError");
    return false;
  }
  if (path.steps().length > 0) {
    reading.refuse(path, "a list cannot be an item of a list");
    return false;
  }
  for (const [index, item] of items.items.entries()) {
    if (context.result.results.length >= MAX_OBJECTS) {
      reading.refuse(itemsPath.index(index), `the file has more than ${MAX_OBJECTS} objects: split it`);
      return false;
    }
    const origin = `${context.origin} (item ${index + 1})`;
    readObject(root, item, itemsPath.index(index), { ...context, origin }, itemKind);
  }
  return items.items.length > 0 && reading.findings.length === 0;
}

const withoutItems = (node: MapNode) => new Map([...node.entries].filter(([key]) => key !== "items"));

/** Values of environment variables and headers may be passwords, also where they are written as `env: [KEY=VALUE]`. */
const isEnvValue = (field: string) => /\.(?:env|httpHeaders)(?:\[\d+\](?:\.value)?)?$/.test(field);

interface Decoded<T> {
  object: Field<T>;
  /** Errors of validation, without those that follow from values of a wrong type. */
  errors(): readonly FieldError[];
}

/** Decodes an object and reports what does not fit its fields. */
function decode<T>(node: MapNode, shape: ObjectShape, reading: ObjectReading): Decoded<T> {
  const issues: DecodeIssue[] = [];
  const { decoded, miscased } = reading.acceptsPodman
    ? decodeAnyCase(node, shape, reading.path, issues)
    : { decoded: decodeObject(node, shape, reading.path, issues), miscased: [] };
  addFieldHomes(issues, shape, decoded);
  mergeRepetitions(issues, reading.path);
  for (const { path, name } of miscased) reading.addDeviation(path, `is read as ${name}, as Kubernetes writes it`);
  const isSound = reading.addDecodeIssues(issues, isEnvValue);
  const { apiVersion: _apiVersion, kind: _kind, ...value } = decoded as Record<string, unknown>;
  const object = new Field(value as T, reading.path);
  const errorsOf = () => {
    const errors = reading.acceptsPodman ? withoutMisnamed(object.errors, issues) : object.errors;
    if (errors.length < object.errors.length) reading.valid = false;
    return errors;
  };
  return { object, errors: () => (isSound ? errorsOf() : withoutDependentErrors(errorsOf(), issues)) };
}

/** Adds a pod to the result when it has no errors. */
function readPod(node: MapNode, reading: ObjectReading): void {
  const { options, origin, result } = reading.context;
  const { source, nodeName } = options;
  const { object, errors } = decode<Pod>(node, typedShapeOf(PodSchema), reading);
  const pod = object.value;
  applyPodDefaults(pod);
  if (reading.acceptsPodman) {
    // When podman wrote the text; the age of the pod counts from its start.
    delete pod.metadata.creationTimestamp;
    for (const { path, message } of [...renameObject(object.field("metadata")), ...adaptPodmanPod(object)])
      reading.addDeviation(path, message);
  }
  const notes = [...resolveHostPaths(object, reading.directory), ...findPodNotes(object, reading.isLenient)];
  const revision = computeRevision(pod);
  applyIdentity(pod, { nodeName, source, revision });
  reading.namespace = pod.metadata.namespace ?? "";
  validatePod(object, options);
  addErrors(errors(), pod, reading);
  reading.addNotes(notes);
  reading.pod = pod;
  if (!reading.ok) return;
  const annotations = { ...pod.metadata.annotations, [CONFIG_SOURCE_ANNOTATION]: source };
  const metadata = { ...pod.metadata, annotations: Object.assign(Object.create(null), annotations) };
  result.pods.push({ pod: { ...pod, metadata }, source, origin, revision, ...originOf(node, reading) });
}

/** Adds an object of another kind to the result when it has no errors. */
function readDesiredObject(kind: ObjectKind, apiVersion: string, node: MapNode, reading: ObjectReading): void {
  const { options, origin, result } = reading.context;
  const patch = reading.acceptsPodman ? describePatch(kind, node) : undefined;
  if (patch !== undefined) return reading.refuse(reading.path, patch);
  const rules = rulesOf(kind);
  const [current] = rules.versions;
  const converted = apiVersion === current ? node : (rules.convert?.(node) ?? node);
  const { object: field, errors } = decode<DesiredObject["object"]>(converted, typedShapeOf(rules.schema), reading);
  const object = field.value;
  delete (object as { status?: unknown }).status;
  rules.applyDefaults?.(object, apiVersion);
  const { metadata }: { metadata: ObjectMeta } = object;
  if (!rules.isOfCluster) metadata.namespace ??= "default";
  const template = templateOf(kind, field);
  const notes: SupportNote[] = [];
  // Before validation, which refuses the names.
  if (reading.acceptsPodman && (template || rules.isRenamed)) notes.push(...renameObject(field.field("metadata")));
  if (template) {
    if (reading.acceptsPodman) {
      const adapted = [...addSelector(kind, field, template), ...adaptPodmanPod(template)];
      notes.push(...adapted.filter(({ path }) => !reading.hasErrorIn(path)));
    }
    if (reading.acceptsPodman && needsSelector(kind)) notes.push(...restartAlways(template));
    notes.push(...resolveHostPaths(template, reading.directory), ...findPodNotes(template, reading.isLenient));
    notes.push(...findMisplacedAnnotations(field.field("metadata").field("annotations"), template));
  }
  notes.push(...(rules.findNotes?.(field) ?? []));
  rules.validate(field, { allowPrivileged: options.allowPrivileged });
  reading.desired = { kind, object } as TypedObject;
  reading.namespace = metadata.namespace ?? "default";
  addErrors(errors(), object, reading, rules.keepsName);
  reading.addNotes(notes);
  if (apiVersion !== current) {
    const message = `${apiVersion} is no longer served by Kubernetes: write ${current}`;
    reading.add("ignored", "warning", reading.path.child("apiVersion"), message);
  }
  if (!reading.ok) return;
  reading.noteLocation(kind, metadata, node);
  const known = { source: options.source, origin, ...originOf(node, reading), revision: computeRevision(object) };
  result.objects.push({ ...reading.desired, ...known } as DesiredObject);
}

/** Podman does not read selectors. */
function addSelector(kind: ObjectKind, object: Field<DesiredObject["object"]>, template: Field<Pod>): SupportNote[] {
  const spec = object.value.spec as { selector?: LabelSelector };
  if (!needsSelector(kind) || spec.selector !== undefined) return [];
  const { metadata } = template.value;
  if (Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { app: object.value.metadata.name ?? "" };
  spec.selector = { matchLabels: { ...metadata.labels } };
  const label = Object.entries(spec.selector.matchLabels ?? {}).map(([name, value]) => `${name}: ${value}`);
  const missing = `write selector: {matchLabels: {${label.join(", ")}}}, as it is read here`;
  return [object.field("spec").note(`has no selector, which Kubernetes requires: ${missing}`)];
}

const POD_SPECS = [["spec"], ["spec", "template", "spec"], ["spec", "jobTemplate", "spec", "template", "spec"]];

/** Where an object begins, and whether its author wrote `dnsPolicy: ClusterFirst`: an API has every default, and no place. */
function originOf(node: MapNode, reading: ObjectReading): Pick<DesiredPod, "location" | "asksForClusterDns"> {
  const location = reading.locationOf(node);
  if (!location) return {};
  const isWritten = POD_SPECS.some((path) => stringAt(node, ...path, "dnsPolicy") === "ClusterFirst");
  return { location, ...(isWritten && { asksForClusterDns: true }) };
}

/**
 * Drops errors that follow from values of a wrong type, which were left out while decoding: those in the same item of
 * `containers`, `volumes` etc., and those that report something missing.
 */
function withoutDependentErrors(errors: readonly FieldError[], issues: readonly DecodeIssue[]): FieldError[] {
  const damaged = new Set(issues.filter(isTypeIssue).map((issue) => sectionOf(issue.path)));
  if (damaged.has("")) return [];
  const absences = ["FieldValueRequired", "FieldValueNotFound", "FieldValueDuplicate"];
  return errors.filter(({ path, type }) => !absences.includes(type) && !damaged.has(sectionOf(path)));
}

/** Drops errors about the absence of a field that an unknown field in the same object is meant to be. */
function withoutMisnamed(errors: readonly FieldError[], issues: readonly DecodeIssue[]): readonly FieldError[] {
  const meant = new Set(
    issues.flatMap(({ path, nearest, home, isForeign }) => {
      const field = path.toString();
      const before = field.slice(0, field.length - String(path.steps().at(-1)).length);
      if (nearest !== undefined) return `${before}${nearest}`;
      return home ?? (isForeign ? before.replace(/\.$/, "") : []);
    }),
  );
  const absences = ["FieldValueRequired", "FieldValueInvalid"];
  return errors.filter(({ path, type }) => !absences.includes(type) || !meant.has(path.toString()));
}

/** e.g. `spec.containers[0]`; "" for fields of the pod as a whole. */
function sectionOf(path: FieldPath): string {
  const match = /^(?:items\[\d+\]\.)?(?:spec\.(?:jobTemplate\.spec\.)?template\.)?spec\.\w+\[\d+\]/.exec(
    path.toString(),
  );
  return match?.[0] ?? "";
}

const PARTS_OF_PODS = ["Pod", "ConfigMap", "Secret"];

/** Kinds of the group `""` that are read. */
const CORE_KINDS = [...PARTS_OF_PODS, "List", ...PARTS_OF_PODS.map((kind) => `${kind}List`)];

/** Kind of the items of a typed list such as DeploymentList; "" of a List; undefined when it is no list. */
function listedKind(kind: string): string | undefined {
  const item = itemKindOf(kind);
  return item !== kind && (item === "" || PARTS_OF_PODS.includes(item) || isObjectKind(item)) ? item : undefined;
}

/** Adds why an object of this type is not read, and what to write instead. */
function refuseType(kind: string, version: string, reading: ObjectReading): void {
  const ignored = describeIgnoredKind(kind, version);
  if (ignored !== undefined) {
    const at = reading.path.child("kind");
    if (reading.isLenient) reading.addDeviation(at, ignored);
    else reading.add("unsupported", "error", at, ignored);
    reading.valid = false;
    return;
  }
  const supported = `Pod, ConfigMap, Secret and List (of v1), ${OBJECT_KINDS.join(", ")} can be used here`;
  const say = (at: string, found: string, hint = "") =>
    reading.add("unsupported", "error", reading.path.child(at), `${found} is not supported: ${supported}${hint}`);
  const hint = didYouMean(kind, [...CORE_KINDS, ...OBJECT_KINDS]);
  const [current] = servedVersionsOf(kind);
  if (current !== undefined) say("apiVersion", `${kind} of ${version}`, `; write ${current}`);
  else say("kind", version === "v1" ? `"${kind}"` : `${kind} of ${version}`, hint);
  // The kubelet accepts Pods only.
  reading.valid = false;
}

/** Adds a ConfigMap or Secret to the result when it has no errors. */
function readConfigObject(kind: "ConfigMap" | "Secret", node: MapNode, reading: ObjectReading): void {
  const { result } = reading.context;
  const issues: DecodeIssue[] = [];
  const schema = kind === "Secret" ? SecretSchema : ConfigMapSchema;
  const decoded = decodeObject(node, typedShapeOf(schema), reading.path, issues);
  const { apiVersion: _apiVersion, kind: _kind, ...object } = decoded as (ConfigMap | Secret) & Record<string, unknown>;
  if (!reading.addDecodeIssues(issues, () => kind === "Secret")) return;
  object.metadata.namespace ??= "default";
  if (kind === "Secret") mergeStringData(object as Secret);
  const field = new Field(object, reading.path);
  if (kind === "Secret") validateSecret(field as Field<Secret>);
  else validateConfigMap(field as Field<ConfigMap>);
  addErrors(field.errors, object, reading, true);
  if (!reading.ok) return;
  reading.noteLocation(kind, object.metadata, node);
  if (kind === "Secret") result.secrets.push(object as Secret);
  else result.configMaps.push(object as ConfigMap);
}

/** Moves `stringData` into `data`, where it takes precedence, as the API server does. Changes the secret in place. */
function mergeStringData(secret: Secret): void {
  if (!secret.stringData) return;
  const data: Record<string, string> = Object.assign(Object.create(null), secret.data);
  for (const [key, value] of Object.entries(secret.stringData))
    data[key] = Buffer.from(value, "utf8").toString("base64");
  secret.data = data;
  delete secret.stringData;
}

const REFERENCE = /\.(configMap|secret)(Key)?Ref\.name$/;

/**
 * Objects that are only referred to by name keep names that Kubernetes refuses and podman accepts, and references to them
 * do. A claim of podman has neither a size nor access modes.
 */
function addErrors(errors: readonly FieldError[], object: object, reading: ObjectReading, keepsName?: boolean): void {
  const { path, kind } = reading;
  const namePath = path.child("metadata").child("name").toString();
  const claimFields = [path.child("spec").child("accessModes"), path.child("spec").child("resources").key("storage")];
  const missing = kind === "PersistentVolumeClaim" ? claimFields.map(String) : [];
  const acceptanceOf = ({ path, type }: FieldError): string | undefined => {
    const field = path.toString();
    const isName = (keepsName && field === namePath) || REFERENCE.test(field);
    const name = isName && valueAt(object, path.steps().slice(reading.path.steps().length));
    if (typeof name === "string" && isEngineName(name)) return "is not a DNS subdomain, which Kubernetes requires";
    if (type === "FieldValueRequired" && missing.includes(field)) return "is missing, which Kubernetes requires";
    return undefined;
  };
  const others: FieldError[] = [];
  const messages = new Map<string, { path: FieldPath; message: string }>();
  for (const error of errors) {
    const message = reading.acceptsPodman ? acceptanceOf(error) : undefined;
    if (message === undefined) others.push(error);
    else messages.set(`${error.path}`, { path: error.path, message });
  }
  reading.addFieldErrors(others);
  for (const { path, message } of messages.values()) reading.addDeviation(path, message);
}

const valueAt = (object: unknown, steps: readonly (string | number)[]): unknown =>
  steps.reduce((value: unknown, step) => (value as Record<string, unknown> | undefined)?.[step], object);

/** Two objects without a line `---` between them are one that has each key twice: one issue names that. Changes the issues in place. */
function mergeRepetitions(issues: DecodeIssue[], path: FieldPath): void {
  const depth = path.steps().length + 1;
  const isRepeated = ({ kind, path: at }: DecodeIssue) => kind === "duplicate" && at.steps().length === depth;
  const first = issues.find((issue) => isRepeated(issue) && issue.path.steps().at(-1) === "apiVersion");
  if (first === undefined) return;
  first.message = 'a second object begins here: a line "---" is missing before it; only the last of each key counts';
  first.discreet = first.message;
  const kept = issues.filter((issue) => issue === first || !isRepeated(issue));
  issues.splice(0, issues.length, ...kept);
}

/** Unknown fields of an object whose place is searched: the search visits thousands of fields. */
const MAX_HOMES = 20;

/** Fields that are false, or act as if they were, unless they are set: tokens, for one, are never mounted. */
const FALSE_BY_DEFAULT: ReadonlySet<string> = new Set([
  ..."automountServiceAccountToken hostIPC hostNetwork hostPID privileged readOnly readOnlyRootFilesystem".split(" "),
  ..."runAsNonRoot shareProcessNamespace stdin tty".split(" "),
]);

/**
 * Says of unknown fields where in the object there is a field of that name, and whether they ask for what is so anyway.
 * Changes the issues in place.
 * @param decoded the object without the unknown fields
 */
function addFieldHomes(issues: readonly DecodeIssue[], shape: ObjectShape, decoded: object): void {
  // Programs write the status.
  const root = { ...shape, fields: shape.fields.filter(({ name }) => name !== "status") };
  for (const issue of issues.slice(0, MAX_HOMES)) {
    if (issue.kind !== "unknown" || issue.nearest !== undefined || issue.isForeign) continue;
    const name = String(issue.path.steps().at(-1));
    const home = findFieldHome(name, root);
    if (home === undefined) {
      const similar = findSimilarField(name, root);
      if (similar !== undefined) issue.message += `; did you mean "${similar.name}" of ${similar.home}?`;
      issue.discreet = issue.message;
      continue;
    }
    issue.message += `; it belongs to ${home}`;
    issue.home = home === "the top level" ? name : `${home}.${name}`;
    if (issue.isFalse && FALSE_BY_DEFAULT.has(name) && !JSON.stringify(decoded).includes(`"${name}":true`)) {
      issue.isNeedless = true;
      issue.message += ", where it is false without being written";
    }
    issue.discreet = issue.message;
  }
}

/**
 * Path of the object with a field of this name, the nearest to the root, e.g. `spec.containers[].securityContext`;
 * undefined when there is none, or when several are equally near and not one of them is a part of containers.
 */
function findFieldHome(name: string, root: ObjectShape): string | undefined {
  const seen = new Set<ObjectShape>([root]);
  let level: { shape: ObjectShape; path: string }[] = [{ shape: root, path: "" }];
  while (level.length > 0) {
    const homes = level.filter(({ shape }) => shape.names.has(name));
    const [home, ...others] = homes.length > 1 ? homes.filter(({ path }) => path.includes("containers[]")) : homes;
    if (homes.length > 0) return home && others.length === 0 ? home.path || "the top level" : undefined;
    const next: typeof level = [];
    for (const { shape, path } of level) {
      // Init containers and containers have the same shape; users mean the latter.
      const fields = shape.fields.toSorted((a, b) => Number(b.name === "containers") - Number(a.name === "containers"));
      for (const field of fields) {
        const inner = objectOf(field.shape);
        if (!inner || seen.has(inner.shape)) continue;
        seen.add(inner.shape);
        next.push({ shape: inner.shape, path: `${path === "" ? "" : `${path}.`}${field.name}${inner.suffix}` });
      }
    }
    level = next;
  }
  return undefined;
}

/** The only field anywhere that ends with the same two words or more; undefined when there are none or several. */
function findSimilarField(name: string, root: ObjectShape): { name: string; home: string } | undefined {
  const names = new Set<string>();
  const seen = new Set<ObjectShape>();
  const open = [root];
  for (let shape = open.pop(); shape; shape = open.pop()) {
    if (seen.has(shape)) continue;
    seen.add(shape);
    for (const field of shape.fields) {
      names.add(field.name);
      const inner = objectOf(field.shape);
      if (inner) open.push(inner.shape);
    }
  }
  const similar = nearestByWords(name, names, 2);
  const home = similar === undefined ? undefined : findFieldHome(similar, root);
  return similar === undefined || home === undefined ? undefined : { name: similar, home };
}

function objectOf(shape: Shape): { shape: ObjectShape; suffix: string } | undefined {
  if (shape.kind === "object") return { shape, suffix: "" };
  if (shape.kind === "list" && shape.item.kind === "object") return { shape: shape.item, suffix: "[]" };
  return undefined;
}
