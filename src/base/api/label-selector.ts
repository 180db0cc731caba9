type Labels = Readonly<Record<string, string>>;

export type LabelFilter = (labels: Labels) => boolean;

const KEY = "[A-Za-z0-9][A-Za-z0-9._/-]*";
const SET_TERM = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const VALUE_TERM = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*([A-Za-z0-9._-]*)$`);
const KEY_TERM = new RegExp(`^(!?)\\s*(${KEY})$`);

/**
 * A label selector: `app=web,tier!=db,env in (test, live),!legacy`. Source: apimachinery's `labels.Parse`.
 * @returns what is wrong with it as `problem`
 */
export function parseLabelSelector(text: string): LabelFilter | { problem: string } {
  const filters: LabelFilter[] = [];
  for (const part of splitTerms(text)) {
    const term = part.trim();
    if (term === "" && text.trim() === "") continue;
    const filter = parseTerm(term);
    if (!filter) {
      return {
        problem: `"${term}" is not a term of a label selector: write key=value, key!=value, key in (a,b), key or !key`,
      };
    }
    filters.push(filter);
  }
  return (labels) => filters.every((matches) => matches(labels));
}

/** Splits at commas outside of parentheses. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let isInSet = false;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === "(") isInSet = true;
    else if (character === ")") isInSet = false;
    else if (character === "," && !isInSet) {
      terms.push(text.slice(start, index));
      start = index + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function parseTerm(term: string): LabelFilter | undefined {
  const has = (labels: Labels, key: string) => Object.hasOwn(labels, key);
  const set = SET_TERM.exec(term);
  if (set) {
    const [, key = "", operator, list = ""] = set;
    const values = list.split(",").map((value) => value.trim());
    // An object without the label is in no set.
    return operator === "in"
      ? (labels) => has(labels, key) && values.includes(labels[key]!)
      : (labels) => !has(labels, key) || !values.includes(labels[key]!);
  }
  const compared = VALUE_TERM.exec(term);
  if (compared) {
    const [, key = "", operator, value] = compared;
    return operator === "!="
      ? (labels) => !has(labels, key) || labels[key] !== value
      : (labels) => has(labels, key) && labels[key] === value;
  }
  const [, not, key] = KEY_TERM.exec(term) ?? [];
  return key === undefined ? undefined : (labels) => has(labels, key) === (not === "");
}
