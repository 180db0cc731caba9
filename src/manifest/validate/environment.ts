import type { EnvFromSource, EnvVar, ObjectFieldSelector, ResourceFieldSelector } from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import {
  checkConfigKey,
  checkDnsSubdomain,
  checkDnsSubdomainPrefix,
  checkEnvName,
  checkQualifiedName,
  checkUnreservedPath,
} from "./names.ts";

export function validateEnv(env: Field<readonly EnvVar[] | undefined>): void {
  for (const variable of env.items()) {
    const { name, valueFrom } = variable.value;
    if (name === "") variable.field("name").required();
    // A name that was written as `NAME=VALUE` is shown without the value, which may be a password.
    else variable.field("name").with(name.replace(/=.+/s, "=…")).format(checkEnvName);
    if (valueFrom) validateValueFrom(variable);
  }
}

const ENV_FIELDS = [
  ...["metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"],
  ...["status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"],
];

const ENV_SOURCES = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] as const;

function validateValueFrom(variable: Field<EnvVar>): void {
  const from = variable.field("valueFrom");
  validateFieldSelector(from.field("fieldRef"), ENV_FIELDS);
  validateResourceSelector(from.field("resourceFieldRef"), false);
  for (const kind of ["configMapKeyRef", "secretKeyRef"] as const) {
    const selector = from.field(kind);
    if (!selector.value) continue;
    selector
      .field("name")
      .with(selector.value.name ?? "")
      .format(checkDnsSubdomain);
    selector.field("key").requiredFormat(checkConfigKey);
  }
  const file = from.field("fileKeyRef");
  if (file.value?.volumeName === "") file.field("volumeName").required();
  file.field("path").requiredFormat(checkUnreservedPath);
  file.field("key").requiredFormat(checkEnvName);
  const sources = ENV_SOURCES.filter((name) => from.value?.[name]);
  const whole = from.with("");
  if (sources.length === 0) {
    whole.absent("must have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef");
  } else if (variable.value.value !== undefined) whole.absent("must be absent when value is set");
  else if (sources.length > 1) whole.absent("must have only one source");
}

export function validateEnvFrom(sources: Field<readonly EnvFromSource[] | undefined>): void {
  for (const source of sources.items()) {
    source.field("prefix").format(checkEnvName);
    const { configMapRef, secretRef } = source.value;
    for (const kind of ["configMapRef", "secretRef"] as const) {
      const name = source.field(kind).field("name");
      if (source.value[kind] && name.value === undefined) name.required();
      else name.format(checkDnsSubdomainPrefix);
    }
    const whole = source.with("").as(sources.path);
    if (!configMapRef && !secretRef) whole.absent("must have configMapRef or secretRef");
    if (configMapRef && secretRef) whole.absent("must have only one of configMapRef and secretRef");
  }
}

/** Fields of a pod that the downward API knows; each use allows some of them. */
const KNOWN_FIELDS = [
  ...ENV_FIELDS,
  ...[
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.host",
    "status.phase",
  ],
];

export function validateFieldSelector(
  selector: Field<ObjectFieldSelector | undefined>,
  allowed: readonly string[],
): void {
  if (!selector.value) return;
  const path = selector.field("fieldPath");
  const { fieldPath, apiVersion } = selector.value;
  if (fieldPath === "") return path.required();
  if (apiVersion !== "v1") return path.invalid(`there is no version ${apiVersion} of a pod`);
  // `metadata.labels['key']`
  const open = fieldPath.indexOf("['");
  if (open >= 1 && open + 4 <= fieldPath.length && fieldPath.endsWith("']")) {
    const field = fieldPath.slice(0, open);
    const name = path.with(fieldPath.slice(open + 2, -2)).as(selector.path);
    if (field === "metadata.annotations") return name.format((text) => checkQualifiedName(text.toLowerCase()));
    if (field === "metadata.labels") return name.format(checkQualifiedName);
    return path.invalid("only metadata.labels and metadata.annotations take a ['key']");
  }
  if (!KNOWN_FIELDS.includes(fieldPath)) {
    const names = [...allowed, "metadata.labels['key']", "metadata.annotations['key']"].join(", ");
    return path.invalid(`must be one of ${names}`);
  }
  const canonical = fieldPath === "spec.host" ? "spec.nodeName" : fieldPath;
  if (!allowed.includes(canonical)) path.notSupported(allowed);
}

const RESOURCE_FIELDS = ["limits", "requests"].flatMap((list) =>
  ["cpu", "memory", "ephemeral-storage"].map((name) => `${list}.${name}`),
);
const CPU_DIVISORS = ["1m", "1"];
const BYTE_DIVISORS = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

export function validateResourceSelector(selector: Field<ResourceFieldSelector | undefined>, inVolume: boolean): void {
  if (!selector.value) return;
  const { resource, divisor, containerName } = selector.value;
  const isKnown = RESOURCE_FIELDS.includes(resource) || /^(?:limits|requests)\.hugepages-/.test(resource);
  if (inVolume && containerName === undefined) selector.field("containerName").required();
  else if (resource === "") selector.field("resource").required();
  else if (!isKnown) selector.field("resource").notSupported(RESOURCE_FIELDS);
  if (divisor === "0") return;
  const divisors = /^(?:limits|requests)\.cpu$/.test(resource) ? CPU_DIVISORS : BYTE_DIVISORS;
  if (isKnown && !divisors.includes(divisor))
    selector.field("divisor").invalid(`must be one of ${divisors.join(", ")}`);
}
