import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type KeptObjects,
  locationOfObject,
  readKeptObjects,
  readKeptPods,
} from "../../../src/cli/client/kept-pods.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const temp = tempDirs();

test("the newest checkpoint comes first, whatever its name; a broken one is left out", () => {
  const rootDir = temp();
  const write = (name: string, source: string, modifiedAtSeconds: number) => {
    const path = join(rootDir, "checkpoints", `source-${name}.json`);
    const objects = { pods: [{ pod: { metadata: { name: "web", uid: "1" } }, origin: source }] };
    const body = JSON.stringify({ source, texts: { "": { ...objects, configMaps: [], secrets: [] } } });
    writeFileSync(path, `{"version":2,"sha256":"${new Bun.SHA256().update(body).digest("hex")}","body":${body}}\n`);
    utimesSync(path, modifiedAtSeconds, modifiedAtSeconds);
  };
  mkdirSync(join(rootDir, "checkpoints"));
  write("a", "/old", 1_000);
  write("b", "/new", 3_000);
  write("c", "/middle", 2_000);
  writeFileSync(join(rootDir, "checkpoints", "source-d.json"), "{");
  write("e", "/changed", 4_000);
  const changed = join(rootDir, "checkpoints", "source-e.json");
  writeFileSync(changed, readFileSync(changed, "utf8").replace('"web"', '"wet"'));
  expect(readKeptPods(rootDir).map(({ origin, sourceId }) => [origin, sourceId as string])).toEqual([
    ["/new", "/new"],
    ["/middle", "/middle"],
    ["/old", "/old"],
  ]);
});

test("the location of an object: its line, its submitted file, or that of its owner", () => {
  const rootDir = temp();
  const directory = join(rootDir, "manifests", "lab");
  mkdirSync(directory, { recursive: true });
  for (const name of ["pod-db", "deployment-web", "cronjob-tick"]) writeFileSync(join(directory, `${name}.yaml`), "");
  const kept: KeptObjects = {
    ...readKeptObjects(rootDir),
    locations: { "ConfigMap default/conf": { file: "/srv/a.yaml", line: 7 } },
  };
  const owned = (kind: string, name: string, labels = {}) => ({
    name: "x",
    namespace: "lab",
    labels,
    ownerReferences: [{ apiVersion: "v1", kind, name, uid: "1" }],
  });
  expect(locationOfObject("ConfigMap", { name: "conf" }, kept)).toBe("/srv/a.yaml:7");
  expect(locationOfObject("Pod", { name: "db", namespace: "lab" }, kept)).toBe(join(directory, "pod-db.yaml"));
  const pod = owned("ReplicaSet", "web-5d9", { "pod-template-hash": "5d9" });
  expect(locationOfObject("Pod", pod, kept)).toBe(join(directory, "deployment-web.yaml"));
  expect(locationOfObject("ReplicaSet", owned("Deployment", "web"), kept)).toBe(join(directory, "deployment-web.yaml"));
  expect(locationOfObject("Pod", owned("Job", "tick-28"), kept)).toBe(join(directory, "cronjob-tick.yaml"));
  expect(locationOfObject("Pod", { name: "other" }, kept)).toBeUndefined();
});
