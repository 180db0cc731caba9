import { stringify } from "yaml";

/** A value of JSON as YAML for programs of any age: what YAML 1.1 would read as a time, a boolean or a number is quoted. */
export const writeYaml = (value: unknown, { indentSeq = true } = {}): string =>
  stringify(value, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false, indentSeq });
