import * as v from "valibot";
import { type ConfigMap, ConfigMapSchema } from "../base/api/config-map.ts";
import type { ObjectMeta } from "../base/api/meta.ts";
import { text } from "../base/api/scalar.ts";
import { type Secret, SecretSchema } from "../base/api/secret.ts";
import { type DecodeIssue, decodeObject } from "./decode/decode.ts";
import { objectShapeOf } from "./decode/shape.ts";
import type { ObjectReading } from "./object-reading.ts";
import { isEngineName } from "./podman-names.ts";
import { validateConfigMap, validateSecret } from "./validate/config-objects.ts";
import type { FieldError } from "./validate/field-errors.ts";
import type { MapNode } from "./yaml/source-node.ts";

const typeFields = { apiVersion: v.optional(text), kind: v.optional(text) };
const configMapShape = objectShapeOf(v.object({ ...typeFields, ...ConfigMapSchema.entries }));
const secretShape = objectShapeOf(v.object({ ...typeFields, ...SecretSchema.entries }));

/** Adds a ConfigMap to the result when it has no errors. */
export function readConfigMap(node: MapNode, reading: ObjectReading): void {
  const issues: DecodeIssue[] = [];
  const decoded = decodeObject(node, configMapShape, reading.path, issues);
  const {
    apiVersion: _apiVersion,
    kind: _kind,
    ...configMap
  } = decoded as ConfigMap & { apiVersion?: string; kind?: string };
  if (!reading.addDecodeIssues(issues)) return;
  configMap.metadata.namespace ??= "default";
  addObjectErrors(validateConfigMap(configMap, reading.path).list, configMap.metadata, reading);
  if (!reading.ok) return;
  reading.noteLocation("ConfigMap", configMap.metadata, node);
  reading.context.result.configMaps.push(configMap);
}

/** Adds a Secret to the result when it has no errors. */
export function readSecret(node: MapNode, reading: ObjectReading): void {
  const issues: DecodeIssue[] = [];
  const decoded = decodeObject(node, secretShape, reading.path, issues);
  const {
    apiVersion: _apiVersion,
    kind: _kind,
    ...secret
  } = decoded as Secret & { apiVersion?: string; kind?: string };
  if (!reading.addDecodeIssues(issues, () => true)) return;
  secret.metadata.namespace ??= "default";
  mergeStringData(secret);
  addObjectErrors(validateSecret(secret, reading.path).list, secret.metadata, reading);
  if (!reading.ok) return;
  reading.noteLocation("Secret", secret.metadata, node);
  reading.context.result.secrets.push(secret);
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

/** Objects that are only referred to by name keep names that Kubernetes refuses and podman accepts. */
export function addObjectErrors(errors: readonly FieldError[], metadata: ObjectMeta, reading: ObjectReading): void {
  const namePath = reading.path.child("metadata").child("name");
  const isAccepted = reading.acceptsPodman && isEngineName(metadata.name ?? "");
  const isOfName = ({ path }: FieldError) => isAccepted && path.toString() === namePath.toString();
  reading.addFieldErrors(errors.filter((error) => !isOfName(error)));
  if (errors.some(isOfName)) reading.addDeviation(namePath, "is not a DNS subdomain, which Kubernetes requires");
}
