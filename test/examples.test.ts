import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writeYaml } from "../src/base/text/write-yaml.ts";
import { importCompose } from "../src/cli/import/compose.ts";
import { readManifest } from "../src/manifest/read-manifest.ts";

const EXAMPLES = join(import.meta.dir, "..", "examples");
const files = readdirSync(EXAMPLES).filter((name) => name.endsWith(".yaml"));

test("there are examples", () => {
  expect(files).toContain("nginx-log.yaml");
});

test.each(files)("examples/%s contains a pod or a workload, without findings", (file) => {
  const { pods, objects, findings, results } = readManifest(readFileSync(join(EXAMPLES, file)), {
    file,
    nodeName: "node1",
    source: "file",
    strictness: "strict",
  });
  // Fields without effect on one node are warnings; a manifest that shows everything may have some.
  expect(findings.filter(({ code }) => code !== "ignored")).toEqual([]);
  expect(results.every((result) => result.ok)).toBe(true);
  expect(pods.length + objects.length).toBeGreaterThan(0);
});

test("examples/compose-import.yaml is the import of examples/compose/compose.yaml", () => {
  const directory = join(EXAMPLES, "compose");
  const { manifests } = importCompose({
    files: [join(directory, "compose.yaml")],
    project: "compose",
    directory,
    environment: new Map(),
    readFile: (path) => readFileSync(path, "utf8"),
    findDevices: () => [],
  });
  const withoutComment = readFileSync(join(EXAMPLES, "compose-import.yaml"), "utf8").replace(/^(?:#.*\n)+/, "");
  expect(manifests.map((manifest) => writeYaml(manifest)).join("---\n")).toBe(withoutComment);
});
