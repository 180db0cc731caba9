import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { readManifestObjects } from "../../../src/cli/client/manifest-inputs.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

function fileWith(text: string): string {
  const file = `${tempDir()}/file`;
  writeFileSync(file, text);
  return file;
}

test("every object of a stream and of a List, in their order", async () => {
  const file = fileWith(
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n- {apiVersion: v1, kind: Pod}\n",
  );
  const objects = await readManifestObjects([file]);
  expect(objects.map(({ object }) => [object.kind, object.metadata])).toEqual([
    ["Pod", { name: "a" }],
    ["Secret", { name: "b" }],
    ["Pod", {}],
  ]);
});

test.each([
  ["docker run nginx:1.22\n", ":1:1: this is a command line of docker"],
  ["services: {web: {image: nginx}}\n", "kubelet-ts import compose"],
  ["kind: Pod\nmetadata: {name: {{ .Values.name }}}\n", "helm template"],
  ["- a\n", "found a list"],
  ["apiVersion: v1\nmetadata: {name: a}\n", "kind: is required"],
  ["apiVersion: v1\nkind: Pod\nmetadata: {name: a\n", ":4:1: "],
  ["# later\n", "there is no object in"],
])("%j is refused as the kubelet refuses it", async (text, want) => {
  expect((await readManifestObjects([fileWith(text)]).catch(String)) as string).toContain(want);
});
