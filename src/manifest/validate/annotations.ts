import * as v from "valibot";
import { type Pod, type Toleration, TolerationSchema } from "../../base/api/pod.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "../decode/decode.ts";
import { objectShapeOf } from "../decode/shape.ts";
import type { FieldPath } from "../field-path.ts";
import { parseJson } from "../yaml/json-parser.ts";
import { type SourceNode, TextError } from "../yaml/source-node.ts";
import type { FieldErrors } from "./field-errors.ts";
import { validateDescendingPath } from "./names.ts";
import { validateTolerations } from "./scheduling.ts";

const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";
const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/";

const tolerationsShape = objectShapeOf(v.object({ items: v.optional(v.array(TolerationSchema)) }));

/** Validates annotations that have a meaning upstream. Source: core validation `ValidatePodSpecificAnnotations`. */
export function validatePodAnnotations(pod: Pod, path: FieldPath, errors: FieldErrors): void {
  const annotations = pod.metadata.annotations ?? {};
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec;
  const names = new Set([...initContainers, ...containers, ...ephemeralContainers].map((container) => container.name));
  for (const [key, value] of Object.entries(annotations)) {
    const at = path.key(key);
    if (key === TOLERATIONS) validateTolerationsText(value, path, errors);
    else if (key === SECCOMP_POD || key.startsWith(SECCOMP_CONTAINER)) {
      validateSeccompText(value, path.key(key), path.child(key), errors);
    } else if (key.startsWith(APPARMOR_CONTAINER)) {
      const name = key.slice(APPARMOR_CONTAINER.length);
      if (!names.has(name)) {
        errors.invalid(at, name, "there is no container of that name", { at, atKey: true });
      }
      if (value !== "" && value !== "runtime/default" && value !== "unconfined" && !value.startsWith("localhost/")) {
        errors.invalid(at, value, "must be runtime/default, unconfined or localhost/<profile>");
      }
    }
  }
}

/** An annotation and the field that replaced it must agree. */
export function validateProfileAnnotations(pod: Pod, specPath: FieldPath, errors: FieldErrors): void {
  const annotations = pod.metadata.annotations ?? {};
  const { spec } = pod;
  const podPath = specPath.child("securityContext").child("seccompProfile");
  matchProfile(annotations[SECCOMP_POD], spec.securityContext.seccompProfile, podPath, errors);
  for (const list of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const path = specPath.child(list).index(index).child("securityContext");
      const { seccompProfile, appArmorProfile = spec.securityContext.appArmorProfile } =
        container.securityContext ?? {};
      matchProfile(
        annotations[SECCOMP_CONTAINER + container.name],
        seccompProfile,
        path.child("seccompProfile"),
        errors,
      );
      const appArmor = annotations[APPARMOR_CONTAINER + container.name];
      matchProfile(appArmor, appArmorProfile, path.child("appArmorProfile"), errors);
    }
  }
}

const ANNOTATIONS_OF_TYPE: ReadonlyMap<string, readonly string[]> = new Map([
  ["Unconfined", ["unconfined"]],
  ["RuntimeDefault", ["runtime/default", "docker/default"]],
]);

function matchProfile(
  annotation: string | undefined,
  profile: { type: string; localhostProfile?: string | undefined } | undefined,
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (annotation === undefined || !profile) return;
  const isLocal = annotation.startsWith("localhost/");
  const sameType = profile.type === "Localhost" ? isLocal : ANNOTATIONS_OF_TYPE.get(profile.type)?.includes(annotation);
  if (sameType === false) errors.forbidden(path.child("type"), `must be what the annotation says, ${annotation}`);
  else if (profile.type === "Localhost" && annotation !== `localhost/${profile.localhostProfile ?? ""}`) {
    errors.forbidden(path.child("localhostProfile"), `must be what the annotation says, ${annotation}`);
  }
}

function validateSeccompText(value: string, at: FieldPath, path: FieldPath, errors: FieldErrors): void {
  if (["runtime/default", "docker/default", "unconfined"].includes(value)) return;
  if (value.startsWith("localhost/")) validateDescendingPath(value.slice("localhost/".length), path, errors, { at });
  else errors.invalid(path, value, "must be runtime/default, unconfined or localhost/<path>", { at });
}

/** The tolerations annotation holds a JSON list. */
function validateTolerationsText(value: string, path: FieldPath, errors: FieldErrors): void {
  if (value === "") return;
  const at = path.key(TOLERATIONS);
  try {
    const items = { keyOffset: 0, value: parseJson(value) };
    const issues: DecodeIssue[] = [];
    const wrapper: SourceNode = { kind: "map", entries: new Map([["items", items]]), offset: 0 };
    const decoded = decodeObject(wrapper, tolerationsShape, path, issues) as { items?: Toleration[] };
    const wrong = issues.find(isTypeIssue);
    if (wrong) errors.invalid(path, value, "must be a JSON list of tolerations", { at });
    else validateTolerations(decoded.items ?? [], path.child(TOLERATIONS), errors, at);
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    errors.invalid(path, value, "must be a JSON list of tolerations", { at });
  }
}
