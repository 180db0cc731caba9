import { nearestByWords } from "../../base/text/nearest-name.ts";
import type { DecodeIssue } from "./decode.ts";
import type { ObjectShape, Shape } from "./shape.ts";

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
export function addFieldHomes(issues: readonly DecodeIssue[], root: ObjectShape, decoded: object): void {
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
export function findFieldHome(name: string, root: ObjectShape): string | undefined {
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
