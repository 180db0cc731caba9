import { expect, test } from "bun:test";
import {
  type DocumentedType,
  findField,
  renderFields,
  renderTree,
  typeText,
} from "../../../src/cli/print/kind-fields.ts";

const DEFINITIONS: Record<string, DocumentedType> = {
  "core.v1.Pod": {
    description: "A group of containers.",
    properties: { spec: { $ref: "core.v1.PodSpec" }, kind: { type: "string" } },
  },
  "core.v1.PodSpec": {
    properties: {
      containers: { type: "array", items: { $ref: "core.v1.Container" }, description: "At least one." },
      nodeSelector: { type: "object", additionalProperties: { type: "string" } },
    },
    required: ["containers"],
  },
  "core.v1.Container": { properties: { name: { type: "string" }, next: { $ref: "core.v1.Container" } } },
};

test.each([
  [{ type: "string" }, "string"],
  [{ $ref: "#/components/schemas/core.v1.Pod" }, "Pod"],
  [{ type: "array", items: { $ref: "core.v1.Container" } }, "[]Container"],
  [{ type: "object", additionalProperties: { type: "string" } }, "map[string]string"],
  [{ type: "string", format: "int-or-string" }, "IntOrString"],
  [{ type: "object" }, "Object"],
])("%j is shown as %s", (type, text) => expect(typeText(type)).toBe(text));

test("a path goes through lists", () => {
  expect(findField(DEFINITIONS, "core.v1.Pod", ["spec", "containers", "name"])).toMatchObject({ name: "name" });
  expect(findField(DEFINITIONS, "core.v1.Pod", ["spec", "containrs"])).toEqual({
    path: "spec",
    missing: "containrs",
    known: ["containers", "nodeSelector"],
  });
});

test("fields are listed with their types", () => {
  const found = findField(DEFINITIONS, "core.v1.Pod", ["spec"]);
  if ("missing" in found) throw new Error("not found");
  expect(renderFields(DEFINITIONS, found)).toBe(`FIELD: spec <PodSpec>

DESCRIPTION:
    <empty>

FIELDS:
  containers\t<[]Container> -required-
    At least one.

  nodeSelector\t<map[string]string>
    <no description>

`);
});

test("a tree ends where a type holds itself", () => {
  const found = findField(DEFINITIONS, "core.v1.Pod", ["spec", "containers"]);
  if ("missing" in found) throw new Error("not found");
  expect(renderTree(DEFINITIONS, found)).toBe(
    "FIELD: containers <[]Container>\n\nFIELDS:\n  name\t<string>\n  next\t<Container>\n",
  );
});
