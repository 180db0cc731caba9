import { expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const pod = (name: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: a, image: "b:1"}]}\n`;

test("a bug costs only the document in which it occurs", () => {
  let asked = 0;
  const options = {
    file: "f.yaml",
    source: "file" as const,
    get nodeName(): string {
      if (asked++ === 0) throw new TypeError("undefined is not an object");
      return "node1";
    },
  };
  const { pods, findings } = readManifest(Buffer.from(`${pod("one")}---\n${pod("two")}`), options);
  expect(pods.map(({ pod: { metadata } }) => metadata.name)).toEqual(["two-node1"]);
  expect(findings).toMatchObject([
    {
      severity: "error",
      file: "f.yaml",
      document: 1,
      line: 1,
      message: "cannot be read because of a bug in kubelet-ts: undefined is not an object",
    },
  ]);
});
