import { expect, test } from "bun:test";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

function read(resources: string, spec = "") {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: "b:1", resources: ${resources}}]\n${spec}`;
  return readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
}

test.each([
  ["{limits: {memory: 100m}}", "spec.containers[0].resources.limits[memory]", "counts as 1 byte"],
  [
    "{limits: {memory: 64Mi}, requests: {memory: 8500m}}",
    "spec.containers[0].resources.requests[memory]",
    "counts as 9 bytes",
  ],
  ["{limits: {ephemeral-storage: 5m}}", "spec.containers[0].resources.limits[ephemeral-storage]", "5Mi mebibytes"],
])("%s: a warning, and the pod runs", (resources, field, message) => {
  const { findings, pods } = read(resources);
  expect(findings).toMatchObject([{ code: "ignored", severity: "warning", field, line: 5 }]);
  expect(findings[0]?.message).toContain(message);
  expect(pods).toHaveLength(1);
});

test("of the pod as a whole, too", () => {
  const { findings } = read("{}", "  resources: {limits: {memory: 1m}}\n");
  expect(findings).toMatchObject([{ severity: "warning", field: "spec.resources.limits[memory]" }]);
});

test.each(["{limits: {cpu: 100m, memory: 1.1Mi}}", "{requests: {memory: 0}}"])("%s: not worth a word", (resources) =>
  expect(read(resources).findings).toEqual([]),
);
