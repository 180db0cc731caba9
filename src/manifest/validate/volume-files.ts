import type { DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource } from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import { validateFieldSelector, validateResourceSelector } from "./environment.ts";
import { checkUnreservedPath } from "./names.ts";
import { validateLabelSelector } from "./scheduling.ts";

const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;

/** Modes are written in octal in YAML (0644), in decimal in JSON (420). */
export function checkMode(mode: number): string[] {
  return mode >= 0 && mode <= 0o777 ? [] : [`must be between 0 and 0777 (octal; this is 0${mode.toString(8)})`];
}

/** Validates files made from keys of a ConfigMap or Secret. */
export function validateItems(items: Field<readonly KeyToPath[] | undefined>): void {
  for (const item of items.items()) {
    if (item.value.key === "") item.field("key").required();
    if (item.value.path === "") item.field("path").required();
    item.field("path").format(checkUnreservedPath);
    item.field("mode").format(checkMode);
  }
}

const VOLUME_FIELDS = ["name", "namespace", "labels", "annotations", "uid"].map((name) => `metadata.${name}`);

/** Validates files made from fields of the pod. Upstream reports them on the source, without the index of the item. */
export function validateDownwardItems(
  source: Field<{ items?: DownwardAPIVolumeFile[] | undefined } | undefined>,
): void {
  for (const indexed of source.field("items").items()) {
    const item = indexed.as(source.path);
    const { path, fieldRef, resourceFieldRef } = item.value;
    if (path === "") item.field("path").required();
    item.field("path").format(checkUnreservedPath);
    validateFieldSelector(item.field("fieldRef"), VOLUME_FIELDS);
    if (fieldRef) {
      if (resourceFieldRef) item.with("resource").invalid("must have only one of fieldRef and resourceFieldRef");
    } else if (resourceFieldRef) validateResourceSelector(item.field("resourceFieldRef"), true);
    else item.required("must have fieldRef or resourceFieldRef");
    item.field("mode").format(checkMode);
  }
}

/** Validates several sources in one directory: their files must not collide. */
export function validateProjected(projected: Field<ProjectedVolumeSource>): void {
  projected.field("defaultMode").format(checkMode);
  const taken = new Set<string>();
  const claim = (file: Field<string>) => {
    if (file.value !== "" && taken.has(file.value)) file.as(projected.path).invalid("two sources make the same file");
    taken.add(file.value);
  };
  for (const source of projected.field("sources").items()) {
    for (const kind of ["secret", "configMap"] as const) {
      const object = source.field(kind);
      if (!object.value) continue;
      if (object.value.name === undefined) object.field("name").required();
      validateItems(object.field("items"));
      for (const item of object.field("items").items()) claim(item.field("path"));
    }
    validateDownwardItems(source.field("downwardAPI"));
    for (const item of source.field("downwardAPI").field("items").items()) claim(item.field("path"));
    validateToken(source.field("serviceAccountToken"), projected);
    const bundle = source.field("clusterTrustBundle");
    if (bundle.value) {
      validateTrustBundle(bundle.with(bundle.value));
      claim(bundle.field("path").with(bundle.value.path));
    }
    const kinds = Object.keys(source.value);
    if (kinds.length > 1) source.forbidden(`must have only one source (found ${kinds.join(", ")})`);
  }
}

type Projection = ProjectedVolumeSource["sources"][number];

function validateToken(token: Field<Projection["serviceAccountToken"]>, projected: Field): void {
  const seconds = token.field("expirationSeconds");
  if (seconds.value! < MIN_TOKEN_SECONDS) seconds.invalid(`must be at least ${MIN_TOKEN_SECONDS}`);
  if (seconds.value! > MAX_TOKEN_SECONDS) seconds.invalid(`must be at most ${MAX_TOKEN_SECONDS}`);
  token.field("path").as(projected.path.child("path")).requiredFormat(checkUnreservedPath);
}

function validateTrustBundle(bundle: Field<NonNullable<Projection["clusterTrustBundle"]>>): void {
  const { name, signerName, labelSelector } = bundle.value;
  if (name !== undefined && signerName !== undefined) {
    bundle.with(name).invalid("must have only one of name and signerName");
  } else if (name === undefined && signerName === undefined) bundle.required("must have name or signerName");
  if (name === "") bundle.field("name").required();
  if (signerName === "") bundle.field("signerName").required();
  const selector = bundle.field("labelSelector");
  if (labelSelector && name !== undefined) selector.invalid("must be absent when name is set");
  else validateLabelSelector(selector);
  if (bundle.value.path === "") bundle.field("path").required();
  bundle.field("path").format(checkUnreservedPath);
}
