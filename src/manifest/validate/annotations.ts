import * as v from "valibot";
import { type Pod, type Toleration, TolerationSchema } from "../../base/api/pod.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "../decode/decode.ts";
import { objectShapeOf } from "../decode/shape.ts";
import { Field, type FieldError } from "../field.ts";
import { parseJson } from "../yaml/json-parser.ts";
import { type SourceNode, TextError } from "../yaml/source-node.ts";
import { checkDescendingPath } from "./names.ts";
import { validateTolerations } from "./scheduling.ts";

const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";
const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/";

const tolerationsShape = objectShapeOf(v.object({ items: v.optional(v.array(TolerationSchema)) }));

/** Validates annotations that have a meaning upstream. Source: core validation `ValidatePodSpecificAnnotations`. */
export function validatePodAnnotations(pod: Field<Pod>): void {
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.value.spec;
  const names = new Set([...initContainers, ...containers, ...ephemeralContainers].map((container) => container.name));
  const annotations = pod.field("metadata").field("annotations");
  for (const [key, annotation] of annotations.entries()) {
    const { value } = annotation;
    if (key === TOLERATIONS) validateTolerationsText(annotation.as(annotations.path));
    else if (key === SECCOMP_POD || key.startsWith(SECCOMP_CONTAINER)) {
      const reported = annotation.as(annotations.path.child(key));
      if (value.startsWith("localhost/")) reported.with(value.slice("localhost/".length)).format(checkDescendingPath);
      else if (!["runtime/default", "docker/default", "unconfined"].includes(value)) {
        reported.invalid("must be runtime/default, unconfined or localhost/<path>");
      }
    } else if (key.startsWith(APPARMOR_CONTAINER)) {
      const name = key.slice(APPARMOR_CONTAINER.length);
      if (!names.has(name)) annotation.key(name).invalid("there is no container of that name");
      if (!["", "runtime/default", "unconfined"].includes(value) && !value.startsWith("localhost/")) {
        annotation.invalid("must be runtime/default, unconfined or localhost/<profile>");
      }
    }
  }
}

/** An annotation and the field that replaced it must agree. */
export function validateProfileAnnotations(pod: Field<Pod>): void {
  const annotations = pod.value.metadata.annotations ?? {};
  const spec = pod.field("spec");
  matchProfile(annotations[SECCOMP_POD], spec.field("securityContext").field("seccompProfile"));
  for (const list of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const container of spec.field(list).items()) {
      const { name } = container.value;
      const context = container.field("securityContext");
      matchProfile(annotations[SECCOMP_CONTAINER + name], context.field("seccompProfile"));
      const own = context.field("appArmorProfile");
      const inherited = own.with(own.value ?? spec.value.securityContext.appArmorProfile);
      matchProfile(annotations[APPARMOR_CONTAINER + name], inherited);
    }
  }
}

const ANNOTATIONS_OF_TYPE: ReadonlyMap<string, readonly string[]> = new Map([
  ["Unconfined", ["unconfined"]],
  ["RuntimeDefault", ["runtime/default", "docker/default"]],
]);

type Profile = Field<{ type: string; localhostProfile?: string | undefined } | undefined>;

function matchProfile(annotation: string | undefined, profile: Profile): void {
  if (annotation === undefined || !profile.value) return;
  const { type, localhostProfile = "" } = profile.value;
  const isLocal = annotation.startsWith("localhost/");
  const sameType = type === "Localhost" ? isLocal : ANNOTATIONS_OF_TYPE.get(type)?.includes(annotation);
  const message = `must be what the annotation says, ${annotation}`;
  if (sameType === false) profile.field("type").forbidden(message);
  else if (type === "Localhost" && annotation !== `localhost/${localhostProfile}`) {
    profile.field("localhostProfile").forbidden(message);
  }
}

/** The tolerations annotation holds a JSON list. */
function validateTolerationsText(text: Field<string>): void {
  if (text.value === "") return;
  try {
    const items = { keyOffset: 0, value: parseJson(text.value) };
    const issues: DecodeIssue[] = [];
    const wrapper: SourceNode = { kind: "map", entries: new Map([["items", items]]), offset: 0 };
    const decoded = decodeObject(wrapper, tolerationsShape, text.path, issues) as { items?: Toleration[] };
    if (issues.some(isTypeIssue)) return text.invalid("must be a JSON list of tolerations");
    const errors: FieldError[] = [];
    validateTolerations(new Field(decoded.items, text.path.child(TOLERATIONS), errors));
    text.errors.push(...errors.map((error) => ({ ...error, at: text.at })));
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    text.invalid("must be a JSON list of tolerations");
  }
}
