import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildRegistry } from "../../../src/apiserver/kinds/served-kinds.ts";
import type { ApiObject } from "../../../src/apiserver/object-store.ts";
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

test("a pod whose author wrote dnsPolicy ClusterFirst is distinguished from one with the default, also by the next process", () => {
  const { rootDir, directory, pods } = aDirectory();
  const aPod = (name: string) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", uid: `uid of ${name}` },
    spec: { dnsPolicy: "ClusterFirst", containers: [{ name: "app", image: "busybox:1.35" }] },
  });
  directory.clusterDns.note(aPod("wrote-it"), { spec: { dnsPolicy: "ClusterFirst" } });
  for (const name of ["wrote-it", "has-the-default"]) directory.save(pods, aPod(name));
  const { uid: _uid, ...metadata } = aPod("by-hand").metadata;
  writeFileSync(join(rootDir, "manifests/default/x.yaml"), JSON.stringify({ ...aPod("by-hand"), metadata }));
  const next = aDirectory(rootDir);
  const asking = next.directory
    .read()
    .files.filter(({ object }) => next.directory.clusterDns.of(object).asksForClusterDns);
  expect(asking.map(({ object }) => object.metadata.name)).toEqual(["wrote-it", "by-hand"]);
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

const pod = (
  metadata: Partial<ApiObject["metadata"]> = {},
  spec: object = { dnsPolicy: "ClusterFirst" },
): ApiObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", uid: "1", ...metadata },
  spec,
});

const applied = (configuration: string) => ({
  annotations: { "kubectl.kubernetes.io/last-applied-configuration": configuration },
});
const owned = (operation: string, fieldsV1: object) => ({
  managedFields: [{ manager: "m", operation, fieldsV1: fieldsV1 as never }],
});
const template = { template: { spec: { dnsPolicy: "ClusterFirst" } } };

test.each([
  { when: "nothing records what was written", object: pod(), want: false },
  { when: "kubectl apply wrote it", object: pod(applied('{"spec":{"dnsPolicy":"ClusterFirst"}}')), want: true },
  { when: "kubectl apply did not write it", object: pod(applied('{"spec":{}}')), want: false },
  { when: "the annotation is damaged", object: pod(applied('{"spec":')), want: false },
  { when: "the annotation is not an object", object: pod(applied("null")), want: false },
  { when: "server-side apply owns it", object: pod(owned("Apply", { "f:spec": { "f:dnsPolicy": {} } })), want: true },
  {
    when: "an update owns it, defaults included",
    object: pod(owned("Update", { "f:spec": { "f:dnsPolicy": {} } })),
    want: false,
  },
  {
    when: "another policy is in force",
    object: pod(applied('{"spec":{"dnsPolicy":"ClusterFirst"}}'), { dnsPolicy: "Default" }),
    want: false,
  },
  {
    when: "the template of a workload says it",
    object: pod(applied(JSON.stringify({ spec: template })), template),
    want: true,
  },
])("dnsPolicy ClusterFirst when $when", ({ object, want }) => {
  expect(aDirectory().directory.clusterDns.of(object).asksForClusterDns ?? false).toBe(want);
});

test("what a client sent counts until the object is gone", () => {
  const dns = aDirectory().directory.clusterDns;
  dns.note(pod(), { spec: {} });
  expect(dns.of(pod())).toEqual({});
  dns.note(pod(), { spec: { dnsPolicy: "ClusterFirst" } });
  expect(dns.of(pod())).toEqual({ asksForClusterDns: true });
  expect(dns.of(pod({ uid: "2" }))).toEqual({});
  // It writes out every default.
  const run = pod({ uid: "3", managedFields: [{ manager: "kubectl-run", operation: "Update" }] });
  dns.note(run, run);
  expect(dns.of(run)).toEqual({});
  dns.forget(pod());
  expect(dns.of(pod())).toEqual({});
});
