import { didYouMean } from "../../base/text/nearest-name.ts";
import { type JsonPath, readJsonPath, readJsonPathTemplate, toText } from "./json-path.ts";

/** Whether an object is meant. */
type ObjectFilter = (object: object) => boolean;

/**
 * `status.phase=Running,metadata.name!=web`. A field that is absent counts as empty.
 * @returns what is wrong with it as `problem`
 */
export function parseFieldSelector(
  text: string,
): { matches: ObjectFilter; fields: { written: string; path: JsonPath }[] } | { problem: string } {
  const terms: ObjectFilter[] = [];
  const fields: { written: string; path: JsonPath }[] = [];
  for (const term of text.split(",").filter((part) => part.trim() !== "")) {
    const match = /^\s*([\w.[\]-]+?)\s*(!=|==?)\s*(.*?)\s*$/.exec(term);
    const path = match ? readJsonPath(`.${match[1]}`) : { problem: "it has no operator" };
    if (!match || "problem" in path) return { problem: `"${term}" must be field=value or field!=value` };
    const [, written = "", operator, wanted] = match;
    fields.push({ written, path });
    terms.push((object) => (toText(path.values(object)[0]) === wanted) === (operator !== "!="));
  }
  return { fields, matches: (object) => terms.every((term) => term(object)) };
}

/** Fields that selectors may name although objects may lack them. */
const FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.serviceAccountName",
  "spec.hostNetwork",
  "status.phase",
  "status.podIP",
  "status.reason",
  "involvedObject.name",
  "involvedObject.kind",
  "involvedObject.namespace",
  "involvedObject.uid",
  "type",
  "reason",
];

/**
 * A misspelt field would select nothing and sort nothing.
 * @param objects all of them, selected or not
 * @returns the message for the user
 */
export function findUnknownField(
  fields: readonly { written: string; path: JsonPath }[],
  objects: readonly object[],
): string | undefined {
  if (objects.length === 0) return undefined;
  const unknown = fields.find(
    ({ written, path }) => !FIELDS.includes(written) && objects.every((object) => path.values(object).length === 0),
  );
  if (!unknown) return undefined;
  return `no object has a field "${unknown.written}"${didYouMean(unknown.written, FIELDS)}`;
}

/**
 * Order of `--sort-by`: numbers by value, everything else as text; what has no value comes first.
 * @returns what is wrong with the path as `problem`
 */
export function parseSortBy(
  text: string,
): { compare: (a: object, b: object) => number; path: JsonPath } | { problem: string } {
  const path = readJsonPath(text);
  if ("problem" in path) return path;
  const keyOf = (object: object): unknown => path.values(object)[0];
  return {
    path,
    compare: (a, b) => {
      const [left, right] = [keyOf(a), keyOf(b)];
      if (typeof left === "number" && typeof right === "number") return left - right;
      return toText(left).localeCompare(toText(right), "en", { numeric: true });
    },
  };
}

/**
 * The template of `-o jsonpath=`.
 * @returns undefined for another format, what is wrong with it as `problem`
 */
export function parseTemplate(output: string): ReturnType<typeof readJsonPathTemplate> | undefined {
  const [name, template] = output.split(/=(.*)/s, 2);
  if (name !== "jsonpath") return undefined;
  if (!template) return { problem: "jsonpath needs a template, as in jsonpath={.items[*].metadata.name}" };
  return readJsonPathTemplate(template);
}

/** Selection, order and format by `--field-selector`, `--sort-by` and `-o`. */
export interface ObjectView {
  matches: ObjectFilter;
  /** Fields of the selection and the order, as written. */
  fields: readonly { written: string; path: JsonPath }[];
  compare: ((a: object, b: object) => number) | undefined;
  /** Prints a List, or the one object that was named; undefined: a table, JSON, YAML or names. */
  render: ((object: unknown) => string) | undefined;
}
