import type { DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource } from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import { validateFieldSelector, validateResourceSelector } from "./environment.ts";
import type { FieldErrors } from "./field-errors.ts";
import { validateUnreservedPath } from "./names.ts";
import { validateLabelSelector } from "./scheduling.ts";

const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;

/** Modes are written in octal in YAML (0644), in decimal in JSON (420). */
export function validateMode(mode: number | undefined, path: FieldPath, errors: FieldErrors, at?: FieldPath): void {
  if (mode === undefined || (mode >= 0 && mode <= 0o777)) return;
  const message = `must be between 0 and 0777 (octal; this is 0${mode.toString(8)})`;
  errors.invalid(path, mode, message, at ? { at } : undefined);
}

/** Validates files made from keys of a ConfigMap or Secret. */
export function validateItems(items: readonly KeyToPath[], path: FieldPath, errors: FieldErrors): void {
  for (const [index, item] of items.entries()) {
    const itemPath = path.index(index);
    if (item.key === "") errors.required(itemPath.child("key"));
    if (item.path === "") errors.required(itemPath.child("path"));
    validateUnreservedPath(item.path, itemPath.child("path"), errors);
    validateMode(item.mode, itemPath.child("mode"), errors);
  }
}

const VOLUME_FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.labels",
  "metadata.annotations",
  "metadata.uid",
];

/** Validates files made from fields of the pod. Upstream reports them on the source, without the index of the item. */
export function validateDownwardItems(
  items: readonly DownwardAPIVolumeFile[],
  path: FieldPath,
  errors: FieldErrors,
): void {
  for (const [index, item] of items.entries()) {
    const at = path.child("items").index(index);
    if (item.path === "") errors.required(path.child("path"), "", { at: at.child("path") });
    validateUnreservedPath(item.path, path.child("path"), errors, { at: at.child("path") });
    if (item.fieldRef) {
      const position = { at: at.child("fieldRef").child("fieldPath") };
      validateFieldSelector(item.fieldRef, VOLUME_FIELDS, path.child("fieldRef"), errors, position);
      if (item.resourceFieldRef)
        errors.invalid(path, "resource", "must have only one of fieldRef and resourceFieldRef", { at });
    } else if (item.resourceFieldRef) {
      const position = { at: at.child("resourceFieldRef") };
      validateResourceSelector(item.resourceFieldRef, path.child("resourceFieldRef"), errors, true, position);
    } else errors.required(path, "must have fieldRef or resourceFieldRef", { at });
    validateMode(item.mode, path.child("mode"), errors, at.child("mode"));
  }
}

/** Validates several sources in one directory: their files must not collide. */
export function validateProjected(projected: ProjectedVolumeSource, path: FieldPath, errors: FieldErrors): void {
  validateMode(projected.defaultMode, path.child("defaultMode"), errors);
  const taken = new Set<string>();
  const claim = (file: string, at: FieldPath) => {
    if (file !== "" && taken.has(file)) errors.invalid(path, file, "two sources make the same file", { at });
    taken.add(file);
  };
  for (const [index, source] of projected.sources.entries()) {
    const sourcePath = path.child("sources").index(index);
    for (const kind of ["secret", "configMap"] as const) {
      const object = source[kind];
      if (!object) continue;
      const objectPath = sourcePath.child(kind);
      if (object.name === undefined) errors.required(objectPath.child("name"));
      validateItems(object.items ?? [], objectPath.child("items"), errors);
      for (const [item, { path: file }] of (object.items ?? []).entries()) {
        claim(file, objectPath.child("items").index(item).child("path"));
      }
    }
    if (source.downwardAPI) {
      const downwardPath = sourcePath.child("downwardAPI");
      validateDownwardItems(source.downwardAPI.items ?? [], downwardPath, errors);
      for (const [item, { path: file }] of (source.downwardAPI.items ?? []).entries()) {
        claim(file, downwardPath.child("items").index(item).child("path"));
      }
    }
    validateToken(source.serviceAccountToken, sourcePath.child("serviceAccountToken"), path, errors);
    if (source.clusterTrustBundle) {
      const bundlePath = sourcePath.child("clusterTrustBundle");
      validateTrustBundle(source.clusterTrustBundle, bundlePath, errors);
      claim(source.clusterTrustBundle.path, bundlePath.child("path"));
    }
    const kinds = Object.keys(source);
    if (kinds.length > 1) errors.forbidden(sourcePath, `must have only one source (found ${kinds.join(", ")})`);
  }
}

type Projection = ProjectedVolumeSource["sources"][number];

function validateToken(
  token: Projection["serviceAccountToken"],
  tokenPath: FieldPath,
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (!token) return;
  const secondsPath = tokenPath.child("expirationSeconds");
  if (token.expirationSeconds < MIN_TOKEN_SECONDS) {
    errors.invalid(secondsPath, token.expirationSeconds, `must be at least ${MIN_TOKEN_SECONDS}`);
  }
  if (token.expirationSeconds > MAX_TOKEN_SECONDS) {
    errors.invalid(secondsPath, token.expirationSeconds, `must be at most ${MAX_TOKEN_SECONDS}`);
  }
  const position = { at: tokenPath.child("path") };
  if (token.path === "") errors.required(path.child("path"), "", position);
  else validateUnreservedPath(token.path, path.child("path"), errors, position);
}

function validateTrustBundle(
  bundle: NonNullable<Projection["clusterTrustBundle"]>,
  path: FieldPath,
  errors: FieldErrors,
): void {
  const { name, signerName } = bundle;
  if (name !== undefined && signerName !== undefined) {
    errors.invalid(path, name, "must have only one of name and signerName");
  } else if (name === undefined && signerName === undefined) errors.required(path, "must have name or signerName");
  if (name === "") errors.required(path.child("name"));
  if (signerName === "") errors.required(path.child("signerName"));
  if (bundle.labelSelector) {
    const selectorPath = path.child("labelSelector");
    if (name !== undefined) errors.invalid(selectorPath, bundle.labelSelector, "must be absent when name is set");
    else validateLabelSelector(bundle.labelSelector, selectorPath, errors);
  }
  if (bundle.path === "") errors.required(path.child("path"));
  validateUnreservedPath(bundle.path, path.child("path"), errors);
}
