import { formatQuantity, parseQuantity } from "../../base/api/quantity.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { parseDuration } from "../../base/text/duration.ts";
import { nearestByWords, nearestName } from "../../base/text/nearest-name.ts";
import { describePlaceholder, type FieldPath } from "../field.ts";
import { isDeeperThan, type MapEntry, type MapNode, type SourceNode, toPlainValue } from "../yaml/source-node.ts";
import { BASE64 } from "../yaml/yaml-scalars.ts";
import type { Field, ObjectShape, ScalarShape, Shape } from "./shape.ts";

/**
 * A value of a wrong type, a number or boolean in place of a string whose text is beyond doubt or the other way round, an
 * unknown field, or a duplicate key.
 */
export interface DecodeIssue {
  kind: "type" | "unquoted" | "quoted" | "unknown" | "duplicate";
  path: FieldPath;
  /** Offset into the text; for an unknown field that of the key. */
  offset: number;
  message: string;
  /** The message without the value, for fields that may be secret. */
  discreet: string;
  /** The field with the nearest name, of an unknown field. */
  nearest?: string;
  /** Path of the field that an unknown field, which stands elsewhere, is meant to be. */
  home?: string;
  /** The message of an unknown field names the field that has its meaning. */
  isForeign?: true;
  /** The unknown field is `false`. */
  isFalse?: true;
  /** The unknown field asks for something that is so without it. */
  isNeedless?: true;
}

/** Whether Kubernetes refuses the value because of its type. */
export const isTypeIssue = ({ kind }: DecodeIssue): boolean =>
  kind === "type" || kind === "unquoted" || kind === "quoted";

/**
 * Decodes an object as Go's JSON decoder does: null is the same as absent; empty lists and maps, and zero values of plain
 * fields, are left out. Fills in static defaults. Maps with user-defined keys have no prototype, so that a key such as
 * `constructor` finds nothing. Numbers and booleans are not strings, but `unquoted` and `quoted` issues leave the decision
 * to the caller: the value is the one that is meant.
 */
export function decodeObject(node: SourceNode, shape: ObjectShape, path: FieldPath, issues: DecodeIssue[]): object {
  if (node.kind === "map") return decodeFields(node, shape, path, issues);
  if (node.kind !== "null") issues.push(mismatch("an object with fields", node, path));
  return zeroObject(shape);
}

function decodeFields(node: MapNode, shape: ObjectShape, path: FieldPath, issues: DecodeIssue[]): object {
  const object: Record<string, unknown> = {};
  let known = 0;
  for (const field of shape.fields) {
    const entry = node.entries.get(field.name);
    let value: unknown;
    if (entry) {
      known++;
      if (entry.isRepeated) issues.push(repetition(field.name, entry, path.child(field.name)));
      if (entry.value.kind !== "null") value = decodeValue(entry.value, field.shape, path.child(field.name), issues);
    }
    value ??= absentValue(field);
    if (value !== undefined) object[field.name] = value;
  }
  if (known < node.entries.size) reportUnknown(node, shape, path, issues);
  return object;
}

/** @returns undefined where the value is the same as absent. */
function decodeValue(node: SourceNode, shape: Shape, path: FieldPath, issues: DecodeIssue[]): unknown {
  switch (shape.kind) {
    case "object":
      return decodeObject(node, shape, path, issues);
    case "list": {
      if (node.kind !== "list") {
        issues.push(mismatch("a list", node, path));
        return undefined;
      }
      if (node.items.length === 0) return undefined;
      return node.items.map((item, index) => decodeItem(item, shape.item, path.index(index), issues));
    }
    case "map": {
      if (node.kind !== "map") {
        issues.push(mismatch("a map", node, path));
        return undefined;
      }
      if (node.entries.size === 0) return undefined;
      const map: Record<string, unknown> = Object.create(null);
      for (const [key, entry] of node.entries) {
        if (entry.isRepeated) issues.push(repetition(key, entry, path.key(key)));
        map[key] = decodeItem(entry.value, shape.value, path.key(key), issues);
      }
      return map;
    }
    case "scalar": {
      const result = decodeScalar(node, shape);
      if (!("expected" in result)) return result.value;
      const issue = mismatch(result.expected, node, path);
      const text = shape.scalar === "string" ? plainText(node) : undefined;
      const bare = text === undefined ? withoutQuotes(node, shape) : undefined;
      issues.push({ ...issue, ...(text !== undefined ? { kind: "unquoted" } : bare && { kind: "quoted" }) });
      return bare ? decodeValue(bare, shape, path, issues) : text;
    }
  }
}

/** Inside lists and maps null is the zero value, and zero values are kept. */
function decodeItem(node: SourceNode, shape: Shape, path: FieldPath, issues: DecodeIssue[]): unknown {
  const value = node.kind === "null" ? undefined : decodeValue(node, shape, path, issues);
  return value ?? zeroValue(shape);
}

function zeroValue(shape: Shape): unknown {
  switch (shape.kind) {
    case "object":
      return zeroObject(shape);
    case "list":
      return [];
    case "map":
      return Object.create(null);
    case "scalar":
      return ZERO_SCALARS[shape.scalar]();
  }
}

function zeroObject(shape: ObjectShape): object {
  const object: Record<string, unknown> = {};
  for (const field of shape.fields) {
    const value = absentValue(field);
    if (value !== undefined) object[field.name] = value;
  }
  return object;
}

function absentValue(field: Field): unknown {
  if (!field.required) return typeof field.default === "object" ? structuredClone(field.default) : field.default;
  return field.nullable ? null : zeroValue(field.shape);
}

function repetition(key: string, entry: MapEntry, path: FieldPath): DecodeIssue {
  const message = `the key "${shorten(key)}" occurs twice: only the last one counts`;
  return { kind: "duplicate", path, offset: entry.keyOffset, message, discreet: message };
}

const KIND_NAMES: Readonly<Record<SourceNode["kind"], string>> = {
  map: "a map",
  list: "a list",
  string: "a string",
  number: "a number",
  bool: "a boolean",
  null: "null",
};

function mismatch(expected: string, node: SourceNode, path: FieldPath): DecodeIssue {
  const steps = path.steps();
  const name = String(steps.findLast((step) => typeof step === "string"));
  const field = name === "ports" && steps[1] === name ? "ports of a Service" : name;
  const advice =
    steps[0] === "data" && expected === "a string" ? adviceForData(node) : adviceFor(expected, node, field);
  return {
    kind: "type",
    path,
    offset: node.offset,
    message: `must be ${expected} (found ${found(node)})${advice}${quoted(expected, node)}`,
    discreet: `must be ${expected} (found ${KIND_NAMES[node.kind]})${advice}`,
  };
}

/** The text of a number or boolean that every reader of YAML takes for the same value: not `yes`, `0777` or `1.10`. */
function plainText(node: SourceNode): string | undefined {
  if (node.kind === "number") return node.source === node.json ? node.source : undefined;
  return node.kind === "bool" && node.source === String(node.value) ? node.source : undefined;
}

/** The boolean or whole number that a text in quotes is, for a field that is one. */
function withoutQuotes(node: SourceNode, shape: ScalarShape): SourceNode | undefined {
  if (node.kind !== "string") return undefined;
  const { value: source, offset } = node;
  if (shape.scalar === "bool" && /^(?:true|false)$/.test(source)) {
    return { kind: "bool", value: source === "true", source, offset };
  }
  const isNumber = (shape.scalar === "int32" || shape.scalar === "int64") && /^(?:0|[1-9]\d{0,8})$/.test(source);
  return isNumber ? { kind: "number", json: source, source, offset } : undefined;
}

function found(node: SourceNode): string {
  if (node.kind === "string") return `the string ${JSON.stringify(shorten(node.value))}`;
  if (node.kind === "number") return `the number ${node.json}`;
  if (node.kind === "bool")
    return node.source === String(node.value) ? `${node.value}` : `${node.source}, which YAML reads as ${node.value}`;
  return KIND_NAMES[node.kind];
}

/** The text to write in place of a number or boolean. Contains the value. */
function quoted(expected: string, node: SourceNode): string {
  if (expected !== "a string" || (node.kind !== "number" && node.kind !== "bool")) return "";
  return `, "${shorten(node.source)}"`;
}

function adviceFor(expected: string, node: SourceNode, field: string): string {
  const isText = node.kind === "string";
  if (expected === "a string" && (node.kind === "number" || node.kind === "bool")) return ": put it in quotes";
  if (expected === "a string" && field === "matchLabels") return ": write the labels here, without matchLabels";
  if (expected === "an object with fields") return adviceForObject(node, field);
  if (isText && expected === "a whole number" && /^(?:runAsUser|runAsGroup|fsGroup)$/.test(field)) {
    return ": write its number, as `docker run --rm IMAGE id NAME` shows it";
  }
  const bare = expected === "true or false" ? /^(?:true|false|yes|no|on|off)$/i : /^-?\d+$/;
  if (isText && /number|^true/.test(expected) && bare.test(node.value)) return ": remove the quotes";
  const ms = isText && field.endsWith("Seconds") ? parseDuration(node.value) : undefined;
  if (ms !== undefined) return `: write ${Math.ceil(ms / 1000)}, the number of seconds`;
  const placeholder = isText ? describePlaceholder(node.value) : "";
  if (placeholder !== "") return placeholder;
  if (expected === "a list") return adviceForList(node, field);
  if (expected === "a map" && node.kind === "list") return ': write "KEY: VALUE" lines, without "- "';
  if (expected === "base64") return ": encode it, or write the text under stringData (of a ConfigMap: data)";
  if (isText && expected.startsWith("a quantity")) return adviceForQuantity(node.value, field);
  return "";
}

function adviceForList(node: SourceNode, field: string): string {
  if (node.kind === "map")
    return field === "env" ? ': write each as "- name: NAME" with "value: VALUE"' : ': begin each item with "- "';
  const isCommand = field === "command" || field === "args";
  if (isCommand && node.kind === "string" && node.value.trim().includes(" ")) {
    return `: write ["sh", "-c", ${JSON.stringify(shorten(node.value))}], or one item per argument`;
  }
  const form = adviceForObject(node, field);
  return form.endsWith("}") ? form.replace(/\{.*/, "[$&]") : ": put it in brackets, [ ]";
}

/** Data of a ConfigMap or Secret. */
const adviceForData = (node: SourceNode): string =>
  node.kind === "number" || node.kind === "bool"
    ? ": put it in quotes"
    : ': write it as one text, with "|" behind the key and its lines below';

/** Objects of which people write the main field alone, by the field that has the object, or a list of them. */
const MAIN_FIELDS: Readonly<Record<string, string>> = {
  addresses: "{ip: VALUE}",
  configMap: "{name: VALUE}",
  configMapKeyRef: "{name: VALUE, key: KEY}",
  configMapRef: "{name: VALUE}",
  containers: "{name: NAME, image: VALUE}",
  env: '"- name: NAME" with "value: VALUE"',
  envFrom: "{configMapRef: {name: VALUE}}",
  exec: '{command: [sh, -c, "VALUE"]}',
  fieldRef: "{fieldPath: VALUE}",
  grpc: "{port: VALUE}",
  hostPath: "{path: VALUE}",
  httpGet: "{path: VALUE, port: PORT}",
  imagePullSecrets: "{name: VALUE}",
  persistentVolumeClaim: "{claimName: VALUE}",
  port: "{number: VALUE}",
  postStart: '{exec: {command: [sh, -c, "VALUE"]}}',
  preStop: '{exec: {command: [sh, -c, "VALUE"]}}',
  resourceFieldRef: "{resource: VALUE}",
  secret: "{secretName: VALUE}",
  secretKeyRef: "{name: VALUE, key: KEY}",
  secretRef: "{name: VALUE}",
  strategy: "{type: VALUE}",
  tcpSocket: "{port: VALUE}",
  tls: "{hosts: [VALUE], secretName: SECRET}",
  updateStrategy: "{type: VALUE}",
  volumeMounts: "{name: VOLUME, mountPath: PATH}, and the volume under volumes of the pod",
};

/** `8080:80` of Docker's ports, and the main field of an object in place of the object. */
function adviceForObject(node: SourceNode, field: string): string {
  if (node.kind === "list" && field === "capabilities") return ": write {add: [NAME]} or {drop: [NAME]}";
  if (node.kind === "list" && node.items.length === 1 && node.items[0]!.kind === "map")
    return ': write it without "- "';
  if (node.kind !== "string" && node.kind !== "number") return field === "emptyDir" ? ": write {}" : "";
  const text = node.kind === "string" ? node.value : node.json;
  const [, outer, inner] = (field.startsWith("ports") && /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(text)) || [];
  if (inner !== undefined) {
    if (field !== "ports") return `: write {port: ${outer ?? inner}, targetPort: ${inner}}`;
    return `: write {containerPort: ${inner}${outer === undefined ? "" : `, hostPort: ${outer}`}}`;
  }
  const [, scheme, port, path = "/"] =
    (field === "httpGet" && /^(https?):\/\/[^/:]+(?::(\d+))?(\/.*)?$/.exec(text)) || [];
  if (scheme !== undefined) {
    const secure = scheme === "https" ? ", scheme: HTTPS" : "";
    return `: write {path: ${path}, port: ${port ?? (secure ? 443 : 80)}${secure}}`;
  }
  const form = Object.hasOwn(MAIN_FIELDS, field) ? MAIN_FIELDS[field]! : undefined;
  // Texts of variables may be secret.
  return form === undefined ? "" : `: write ${field === "env" ? form : form.replace("VALUE", shorten(text))}`;
}

/** `512mb` and `1 GiB` as other programs write them, per cents of a CPU, and `0,5`. */
function adviceForQuantity(text: string, field: string): string {
  const [, perCent] = /^(\d{1,6})\s*%$/.exec(text.trim()) ?? [];
  if (perCent !== undefined) return `: per cents are no amounts; ${perCent} % of a CPU is ${Number(perCent) * 10}m`;
  const [, whole, part] = /^(\d+),(\d+)$/.exec(text.trim()) ?? [];
  if (whole !== undefined) return `: write ${whole}.${part}`;
  const [, milli] = /^(\d+) *m(b?)$/.exec(text.trim()) ?? [];
  if (milli !== undefined && (field === "cpu" || !text.includes("b"))) return `: write ${milli}m`;
  const [, amount, unit, binary] = /^(\d+(?:\.\d+)?)\s*([kmgt])(i?)b?$/i.exec(text.trim()) ?? [];
  if (amount === undefined || unit === undefined) return "";
  const letter = unit.toLowerCase() === "k" && binary === "" ? "k" : unit.toUpperCase();
  return `: write ${amount}${letter}${binary === "" ? "" : "i"}`;
}

/** A text as messages have it. */
export const shorten = (text: string) => (text.length > 60 ? `${text.slice(0, 57)}...` : text);

/** Unknown fields of an object for which a similar name is searched: the search is slow. */
const MAX_HINTS = 20;

const nearestField = (key: string, { names }: ObjectShape): string | undefined =>
  nearestName(key, names.keys()) ?? nearestByWords(key, names.keys());

function reportUnknown(node: MapNode, shape: ObjectShape, path: FieldPath, issues: DecodeIssue[]): void {
  for (const [key, entry] of node.entries) {
    if (shape.names.has(key)) continue;
    const isSearched = issues.length < MAX_HINTS;
    const foreign = isSearched ? describeForeignField(key, path, shape) : undefined;
    const nearest = isSearched && foreign === undefined ? nearestField(key, shape) : undefined;
    const hint = foreign ?? (nearest === undefined ? "" : `; did you mean "${nearest}"?`);
    const message = `there is no field "${shorten(key)}" here${hint}`;
    const isFalse = entry.value.kind === "bool" && !entry.value.value;
    // A name near that of a field is a slip.
    const isNeedless = !hint && entry.value.kind === "map" && entry.value.entries.size === 0;
    issues.push({
      kind: "unknown",
      path: path.child(key),
      offset: entry.keyOffset,
      message,
      discreet: message,
      ...(nearest !== undefined && { nearest }),
      ...(foreign !== undefined && { isForeign: true }),
      ...(isFalse && { isFalse }),
      ...(isNeedless && { isNeedless }),
    });
  }
}

/** Fields of Compose files that are settings of a pod, and the place Kubernetes has them in. */
const FIELDS_OF_COMPOSE = {
  depends_on: "the annotation kubelet-ts.io/depends-on of the pod",
  dns: "dnsConfig of the pod, with dnsPolicy: None",
  extra_hosts: "hostAliases of the pod",
  init: "the annotation kubelet-ts.io/init of the pod",
  ipc: "hostIPC of the pod",
  logging: "the annotation kubelet-ts.io/log-options of the pod",
  network_mode: "hostNetwork of the pod",
  networks: "the annotation kubelet-ts.io/network of the pod",
  pid: "hostPID of the pod",
  restart: "restartPolicy of the pod: Always, OnFailure or Never",
  runtime: "runtimeClassName of the pod",
  stop_grace_period: "terminationGracePeriodSeconds of the pod",
  ulimits: "the annotation kubelet-ts.io/ulimits of the pod",
};

/** Names of container fields in Compose files, and the place Kubernetes has them in. */
const CONTAINER_FIELDS: Readonly<Record<string, string>> = {
  ...FIELDS_OF_COMPOSE,
  cap_add: "securityContext.capabilities.add",
  cap_drop: "securityContext.capabilities.drop",
  cmd: "command",
  configs: "volumes of the pod, and volumeMounts",
  container_name: "name",
  cpu: "resources.limits.cpu",
  cpus: "resources.limits.cpu",
  deploy: "resources, and replicas of a Deployment",
  devices: "a hostPath volume of type CharDevice",
  entrypoint: "command, where args is what Docker calls command",
  env_file: "envFrom, with a ConfigMap or Secret",
  environment: 'env, a list of "- name: NAME" with "value: VALUE"',
  expose: "ports",
  gpus: "resources.limits, with nvidia.com/gpu",
  group_add: "securityContext.supplementalGroups of the pod",
  healthcheck: "livenessProbe",
  limits: "resources.limits",
  mem_limit: "resources.limits.memory",
  memory: "resources.limits.memory",
  read_only: "securityContext.readOnlyRootFilesystem",
  requests: "resources.requests",
  secrets: "volumes of the pod, and volumeMounts",
  shm_size: "an emptyDir volume with medium: Memory at /dev/shm",
  stop_signal: "lifecycle.stopSignal",
  tmpfs: "an emptyDir volume with medium: Memory",
  user: "securityContext.runAsUser",
  volumes: 'volumeMounts, a list of "- name: VOLUME" with "mountPath: PATH"',
};

const PROBE_FIELDS: Readonly<Record<string, string>> = {
  command: "it in exec",
  host: "it in httpGet and tcpSocket",
  http: "httpGet",
  interval: "periodSeconds",
  path: "it in httpGet",
  port: "it in httpGet, tcpSocket and grpc",
  retries: "failureThreshold",
  scheme: "it in httpGet",
  start_period: "initialDelaySeconds",
  tcp: "tcpSocket",
  test: "exec: {command: [WORD, …]}",
  timeout: "timeoutSeconds",
};

const SERVICE_OF_BACKEND = "service: {name: NAME, port: {number: PORT}}";

/** Fields that people write one level too high, or that older versions had, by the field that has the object; and where they are. */
const FIELDS_OF: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  backend: { serviceName: SERVICE_OF_BACKEND, servicePort: SERVICE_OF_BACKEND },
  configMap: { configMapName: "name" },
  configMapKeyRef: { configMapName: "name" },
  configMapRef: { configMapName: "name" },
  livenessProbe: PROBE_FIELDS,
  readinessProbe: PROBE_FIELDS,
  httpGet: { uri: "path and port", url: "path and port" },
  resources: { cpu: "it in limits and requests", memory: "it in limits and requests", storage: "it in requests" },
  secretKeyRef: { secretName: "name" },
  secretRef: { secretName: "name" },
  startupProbe: PROBE_FIELDS,
};

/** Fields of workloads and of Compose files that people write in the spec of a pod. */
const POD_FIELDS: Readonly<Record<string, string>> = {
  ...FIELDS_OF_COMPOSE,
  replicas: "it in a Deployment, whose spec.template is the pod",
  template: "it in a Deployment or Job: what is below it is the pod itself",
  schedule: "it in a CronJob, whose spec.jobTemplate.spec.template is the pod",
};

/** Fields of other formats, by a field that tells the objects in which people write them. */
const FIELDS_BESIDE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  targetPort: {
    containerPort: "port, and targetPort where the container has another one",
    hostPort: "nodePort, with type: NodePort",
  },
  mountPath: { path: "mountPath", source: "name, that of a volume", target: "mountPath", volume: "name" },
  updateStrategy: { replicas: "no count of a DaemonSet: it has one pod on each node, here one" },
  volumeName: { storage: "it in resources: {requests: {storage: …}}" },
  jobTemplate: { template: "it in jobTemplate: {spec: {template: …}}" },
  restartPolicy: POD_FIELDS,
};

/**
 * Says which field has the meaning of a field of another format; undefined for other fields.
 * @param path of the object that has the field
 */
function describeForeignField(name: string, path: FieldPath, { names }: ObjectShape): string | undefined {
  if (/^\s/.test(name)) return " because it begins with a no-break space (U+00A0): write spaces";
  const owner = path.steps().at(-1)!;
  const isContainer = typeof owner === "number" && names.has("image") && names.has("command");
  if (names.has("matchLabels")) return `; write matchLabels: {${shorten(name)}: VALUE}`;
  const ofOwner = Object.hasOwn(FIELDS_OF, owner) ? FIELDS_OF[owner] : undefined;
  const [, near = {}] = Object.entries(FIELDS_BESIDE).find(([known]) => names.has(known)) ?? [];
  const fields = isContainer ? CONTAINER_FIELDS : (ofOwner ?? near);
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return field === undefined ? undefined : `; Kubernetes has ${field}`;
}

/** A field whose name is written with other capitals. */
interface MiscasedField {
  path: FieldPath;
  name: string;
}

/**
 * Decodes an object whose field names may have other capitals, as encoding/json and so podman reads them: `readonly` for
 * `readOnly`. A name that is also written correctly is left to be reported as unknown.
 */
export function decodeAnyCase(
  node: SourceNode,
  shape: ObjectShape,
  path: FieldPath,
  issues: DecodeIssue[],
): { decoded: object; miscased: readonly MiscasedField[] } {
  const miscased: MiscasedField[] = [];
  const corrected = correct(node, shape, path, miscased);
  return { decoded: decodeObject(corrected, shape, path, issues), miscased };
}

function correct(node: SourceNode, shape: Shape, path: FieldPath, miscased: MiscasedField[]): SourceNode {
  if (shape.kind === "object" && node.kind === "map") return correctFields(node, shape, path, miscased);
  if (shape.kind === "list" && node.kind === "list") {
    return { ...node, items: node.items.map((item, index) => correct(item, shape.item, path.index(index), miscased)) };
  }
  return node;
}

function correctFields(node: MapNode, shape: ObjectShape, path: FieldPath, miscased: MiscasedField[]): MapNode {
  const byLowerCase = new Map([...shape.names.keys()].map((name) => [name.toLowerCase(), name]));
  const entries: MapNode["entries"] = new Map();
  for (const [key, entry] of node.entries) {
    const known = shape.names.has(key) ? key : byLowerCase.get(key.toLowerCase());
    const isFree = known !== undefined && (known === key || !(node.entries.has(known) || entries.has(known)));
    const name = isFree ? known : key;
    if (name !== key) miscased.push({ path: path.child(key), name });
    const field = shape.names.get(name);
    const value = field ? correct(entry.value, field.shape, path.child(key), miscased) : entry.value;
    entries.set(name, { ...entry, value });
  }
  return { ...node, entries };
}

/** Raw values are processed recursively later on. */
const MAX_RAW_DEPTH = 500;

/** The decoded value (undefined: the same as absent), or the expected type. */
type ScalarResult = { value: unknown } | { expected: string };

const INTEGER = /^-?(?:0|[1-9][0-9]*)$/;
const INT_RANGES = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
} as const;

function decodeScalar(node: SourceNode, shape: ScalarShape): ScalarResult {
  switch (shape.scalar) {
    case "string":
      if (node.kind !== "string") return { expected: "a string" };
      return { value: node.value === "" && !shape.pointer ? undefined : node.value };
    case "bool":
      if (node.kind !== "bool") return { expected: "true or false" };
      return { value: node.value || shape.pointer ? node.value : undefined };
    case "int32":
    case "int64":
      return decodeInteger(node, shape.scalar, shape.pointer);
    case "float64":
      if (node.kind !== "number") return { expected: "a number" };
      return { value: Number(node.json) };
    case "quantity":
      return decodeQuantity(node);
    case "intOrString":
      if (node.kind === "string") return { value: node.value };
      if (node.kind !== "number") return { expected: "a whole number or a string" };
      return decodeInteger(node, "int32", true);
    case "time":
      return decodeTime(node);
    case "bytes":
      return decodeBytes(node);
    case "raw":
      return isDeeperThan(node, MAX_RAW_DEPTH)
        ? { expected: `a value of at most ${MAX_RAW_DEPTH} levels` }
        : { value: toPlainValue(node) };
  }
}

/** Zero values of items of lists and of required fields. */
const ZERO_SCALARS: Readonly<Record<ScalarShape["scalar"], () => unknown>> = {
  string: () => "",
  bool: () => false,
  int32: () => 0,
  int64: () => 0,
  float64: () => 0,
  intOrString: () => 0,
  quantity: () => "0",
  time: () => null,
  bytes: () => "",
  raw: () => ({}),
};

function decodeInteger(node: SourceNode, type: "int32" | "int64", pointer: boolean): ScalarResult {
  if (node.kind !== "number" || !INTEGER.test(node.json)) return { expected: "a whole number" };
  // An integer of 64 bits has at most 20 characters; conversion of longer ones takes quadratic time.
  const [least, most] = INT_RANGES[type];
  const exact = node.json.length > 20 ? undefined : BigInt(node.json);
  if (exact === undefined || exact < least || exact > most) {
    return { expected: `a whole number between ${least} and ${most}` };
  }
  return { value: exact === 0n && !pointer ? undefined : Number(exact) };
}

/** White space that Go trims, limited to what JSON leaves unescaped. */
const QUANTITY_SPACE = /[ \x85\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]/;

/** Trims without a regular expression for the end, which would take quadratic time. */
function trimQuantity(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && QUANTITY_SPACE.test(text[start]!)) start++;
  while (end > start && QUANTITY_SPACE.test(text[end - 1]!)) end--;
  return text.slice(start, end);
}

function decodeQuantity(node: SourceNode): ScalarResult {
  const expected = "a quantity such as 500m, 2 or 64Mi";
  const text = node.kind === "string" ? trimQuantity(node.value) : node.kind === "number" ? node.json : "";
  const quantity = parseQuantity(text);
  return quantity ? { value: formatQuantity(quantity) } : { expected };
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,]\d+)?(Z|[+-]\d{2}:\d{2})$/;

function decodeTime(node: SourceNode): ScalarResult {
  const expected = "a time such as 2006-01-02T15:04:05Z";
  const match = node.kind === "string" ? RFC3339.exec(node.value) : null;
  if (!match) return { expected };
  const ms = Date.parse(`${match[1]}-${match[2]}-${match[3]}T${match[4]}:${match[5]}:${match[6]}${match[7]}`);
  const [hours, minutes] = (match[7] === "Z" ? "0:0" : match[7]!.slice(1)).split(":").map(Number);
  const days = new Date(Date.UTC(Number(match[1]), Number(match[2]), 0)).getUTCDate();
  if (Number.isNaN(ms) || Number(match[3]) > days || Number(match[4]) > 23 || hours! > 24 || minutes! > 60)
    return { expected };
  return { value: toApiTime(new Date(ms)) };
}

function decodeBytes(node: SourceNode): ScalarResult {
  const expected = "base64";
  if (node.kind === "list") {
    // Go's JSON reads a list of numbers as bytes, too.
    const values = node.items.map((item) => (item.kind === "number" ? Number(item.json) : Number.NaN));
    const areBytes = values.every((value) => Number.isInteger(value) && value >= 0 && value <= 255);
    return areBytes ? { value: Buffer.from(values).toString("base64") } : { expected };
  }
  if (node.kind !== "string") return { expected };
  const text = node.value.replace(/[\r\n]/g, "");
  if (!BASE64.test(text)) return { expected };
  return { value: Buffer.from(text, "base64").toString("base64") };
}
