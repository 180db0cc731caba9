/** A compiled expression. */
export interface JsonPath {
  /** The values it finds in an object, in order. */
  values: (object: unknown) => unknown[];
}

type Step =
  | { kind: "field"; name: string }
  | { kind: "index"; index: number }
  | { kind: "all" }
  | { kind: "descend"; name: string }
  | { kind: "filter"; path: Step[]; operator: string; value: unknown };

/** A step, with quotes, brackets and filters of kubectl's dialect. */
const STEP =
  /^(?:\.\.([\w-]+)|\.((?:\\.|[\w/-])+)|\[['"]([^'"]+)['"]\]|\[(-?\d+)\]|\.?\[?\*\]?|\[\?\(@((?:\.[\w-]+)+)\s*(==|!=)?\s*("[^"]*"|'[^']*'|[^)]*)\)\])/;

const MAX_CHARACTERS = 2_000;

/**
 * Reads a JSONPath of kubectl: `{.status.phase}`, `.items[*].metadata.name`, `[0]`, `['a.b']`, `a\.b`, `..name`,
 * `[?(@.type=="Ready")]`.
 * @returns what is wrong with it as `problem`
 */
export function readJsonPath(text: string): JsonPath | { problem: string } {
  if (text.length > MAX_CHARACTERS) return { problem: `a JSONPath has at most ${MAX_CHARACTERS} characters` };
  const inner = text
    .trim()
    .replace(/^\{(.*)\}$/s, "$1")
    .replace(/^\$/, "");
  const steps: Step[] = [];
  let rest = inner.startsWith(".") || inner.startsWith("[") || inner === "" ? inner : `.${inner}`;
  while (rest !== "" && rest !== ".") {
    const match = STEP.exec(rest);
    if (!match || match[0] === "") return { problem: `"${text}" is no JSONPath: cannot read "${rest}"` };
    const [whole, descend, field, quoted, index, filter, operator, value] = match;
    if (descend !== undefined) steps.push({ kind: "descend", name: descend });
    else if (field !== undefined) steps.push({ kind: "field", name: field.replaceAll("\\", "") });
    else if (quoted !== undefined) steps.push({ kind: "field", name: quoted });
    else if (index !== undefined) steps.push({ kind: "index", index: Number(index) });
    else if (filter !== undefined) {
      const path = filter
        .slice(1)
        .split(".")
        .map((name): Step => ({ kind: "field", name }));
      steps.push({ kind: "filter", path, operator: operator ?? "", value: literal(value ?? "") });
    } else steps.push({ kind: "all" });
    rest = rest.slice(whole.length);
  }
  return { values: (object) => run(steps, [object]) };
}

const literal = (text: string): unknown => {
  const trimmed = text.trim();
  if (/^['"].*['"]$/.test(trimmed)) return trimmed.slice(1, -1);
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  return trimmed !== "" && !Number.isNaN(Number(trimmed)) ? Number(trimmed) : trimmed;
};

function run(steps: readonly Step[], start: readonly unknown[]): unknown[] {
  return steps.reduce<unknown[]>((found, step) => found.flatMap((value) => take(step, value)), [...start]);
}

function take(step: Step, value: unknown): unknown[] {
  if (value === null || typeof value !== "object") return [];
  const children: unknown[] = Array.isArray(value) ? value : Object.values(value);
  switch (step.kind) {
    case "field":
      return Object.hasOwn(value, step.name) ? [(value as Record<string, unknown>)[step.name]] : [];
    case "index": {
      if (!Array.isArray(value)) return [];
      const found: unknown = value.at(step.index);
      return found === undefined ? [] : [found];
    }
    case "all":
      return children;
    case "descend": {
      const own = Object.hasOwn(value, step.name) ? [(value as Record<string, unknown>)[step.name]] : [];
      return [...own, ...children.flatMap((child) => take(step, child))];
    }
    case "filter":
      return children.filter((child) => {
        const [found] = run(step.path, [child]);
        if (step.operator === "") return found !== undefined;
        return step.operator === "==" ? found === step.value : found !== step.value;
      });
    default:
      return step satisfies never;
  }
}

/**
 * A template of `-o jsonpath=`: text with expressions in braces, quoted text, and `{range …}…{end}`.
 * @returns what is wrong with it as `problem`
 */
export function readJsonPathTemplate(template: string): { render: (object: unknown) => string } | { problem: string } {
  const parts = parseTemplate(/[{}]/.test(template) ? template : `{${template}}`);
  return "problem" in parts ? parts : { render: (object) => renderParts(parts.parts, object) };
}

type Part = { text: string } | { path: JsonPath } | { range: JsonPath; body: Part[] };

function parseTemplate(template: string): { parts: Part[] } | { problem: string } {
  const stack: { parts: Part[]; range?: JsonPath }[] = [{ parts: [] }];
  for (const [whole, expression] of template.matchAll(/\{((?:"[^"]*"|'[^']*'|[^{}"'])*)\}|[^{]+|\{/g)) {
    const top = stack.at(-1)!;
    if (whole === "{") return { problem: 'a "{" is never closed: its "}" is missing' };
    if (expression === undefined) {
      top.parts.push({ text: whole });
      continue;
    }
    const trimmed = expression.trim();
    const quoted = /^(["'])(.*)\1$/s.exec(trimmed);
    if (quoted) {
      top.parts.push({ text: (quoted[2] ?? "").replaceAll("\\n", "\n").replaceAll("\\t", "\t") });
    } else if (trimmed === "end") {
      const ended = stack.pop();
      if (!ended?.range || stack.length === 0) return { problem: "{end} has no {range}" };
      stack.at(-1)!.parts.push({ range: ended.range, body: ended.parts });
    } else {
      const range = /^range\s+(.*)$/s.exec(trimmed)?.[1];
      const path = readJsonPath(range ?? trimmed.replace(/^@/, ""));
      if ("problem" in path) return path;
      if (range === undefined) top.parts.push({ path });
      else stack.push({ parts: [], range: path });
    }
  }
  return stack.length === 1 ? { parts: stack[0]!.parts } : { problem: "{range} has no {end}" };
}

function renderParts(parts: readonly Part[], object: unknown): string {
  return parts
    .map((part) => {
      if ("text" in part) return part.text;
      if ("range" in part)
        return part.range
          .values(object)
          .map((item) => renderParts(part.body, item))
          .join("");
      return part.path.values(object).map(toText).join(" ");
    })
    .join("");
}

/** Strings as they are, everything else as JSON. */
export const toText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
