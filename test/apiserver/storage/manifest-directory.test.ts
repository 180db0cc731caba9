import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildRegistry } from "../../../src/apiserver/kinds/served-kinds.ts";
import { ManifestDirectory } from "../../../src/apiserver/storage/manifest-directory.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { READ_OPTIONS } from "../support.ts";

const tempDir = tempDirs();

function aDirectory(rootDir = tempDir()) {
  const registry = buildRegistry();
  const logger = new RecordingLogger();
  const directory = new ManifestDirectory({ rootDir, registry, readOptions: READ_OPTIONS, logger });
  return { rootDir, directory, definition: registry.get("configmaps")!, pods: registry.get("pods")! };
}

const aConfigMap = (value: string, generation: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "c", namespace: "default", uid: "u", generation },
  data: { value },
});

test("an object whose state file cannot be written leaves its manifest as it was, and is written when it can be", () => {
  const { rootDir, directory, definition } = aDirectory();
  directory.save(definition, aConfigMap("old", 1));
  const path = join(rootDir, "manifests/default/configmap-c.yaml");
  const old = readFileSync(path, "utf8");
  // A directory in the place of the scratch file cannot be opened for writing.
  const scratch = join(rootDir, "state/api/configmaps/default_c.json.tmp");
  mkdirSync(scratch);
  writeFileSync(join(scratch, "x"), "");
  expect(() => directory.save(definition, aConfigMap("new", 2))).toThrow();
  expect(readFileSync(path, "utf8")).toBe(old);
  expect(readdirSync(join(rootDir, "manifests/default"))).toEqual(["configmap-c.yaml"]);
  expect(directory.read().files.map(({ object }) => object.data)).toEqual([{ value: "old" }]);
});

test("an object whose manifest cannot be written keeps its old manifest and state file", () => {
  const { rootDir, directory, definition } = aDirectory();
  directory.save(definition, aConfigMap("old", 1));
  const scratch = join(rootDir, "manifests/default/configmap-c.yaml.tmp");
  mkdirSync(scratch);
  writeFileSync(join(scratch, "x"), "");
  expect(() => directory.save(definition, aConfigMap("new", 2))).toThrow();
  expect(directory.read().files.map(({ object }) => [object.data, object.metadata.generation])).toEqual([
    [{ value: "old" }, 1],
  ]);
});

test("an object of thousands of values is written as JSON, which takes a tenth of the time, and read again", async () => {
  const { rootDir, directory, definition } = aDirectory();
  await directory.loadYaml();
  const object = aConfigMap("v", 1);
  const path = join(rootDir, "manifests/default/configmap-c.yaml");
  directory.save(definition, { ...object, data: { value: "line\n".repeat(5_000) } });
  expect(readFileSync(path, "utf8")).toStartWith("apiVersion: v1\n");
  const data = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, "v"]));
  directory.save(definition, { ...object, data });
  expect(readFileSync(path, "utf8")).toStartWith("{\n");
  expect(
    aDirectory(rootDir)
      .directory.read()
      .files.map((file) => file.object.data),
  ).toEqual([data]);
});
