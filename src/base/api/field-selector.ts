/** Fields of objects that a selector may name. */
export type SelectableFields<T> = Readonly<Record<string, (object: T) => string | undefined>>;

/**
 * A field selector, `status.phase!=Running,spec.nodeName=node1`, as a filter. Source: apimachinery's `fields`.
 * @returns what is wrong with it as `problem`, in upstream's words
 */
export function parseFieldSelector<T>(
  selector: string,
  fields: SelectableFields<T>,
): ((object: T) => boolean) | { problem: string } {
  const filters: ((object: T) => boolean)[] = [];
  // Parts at commas that no backslash escapes.
  for (const term of selector.match(/(?:\\.|[^,\\])+/gs) ?? []) {
    if (term.trim() === "") continue;
    const [, field = "", operator = "", value = ""] = /^([^=!]*)(==|=|!=)(.*)$/s.exec(term) ?? [];
    if (operator === "") return { problem: `invalid selector: '${selector}'; can't understand '${term}'` };
    if (!Object.hasOwn(fields, field)) return { problem: `field label not supported: ${field}` };
    const read = fields[field]!;
    const wanted = value.replace(/\\(.)/g, "$1");
    filters.push((object) => ((read(object) ?? "") === wanted) === (operator !== "!="));
  }
  return (object) => filters.every((matches) => matches(object));
}
