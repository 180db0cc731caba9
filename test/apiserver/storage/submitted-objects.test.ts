import { expect, test } from "bun:test";
import { ExplicitClusterDns } from "../../../src/apiserver/kinds/cluster-dns.ts";
import { buildRegistry } from "../../../src/apiserver/kinds/served-kinds.ts";
import { ObjectStore } from "../../../src/apiserver/object-store.ts";
import { RevisionClock } from "../../../src/apiserver/revision-clock.ts";
import { ManifestDirectory } from "../../../src/apiserver/storage/manifest-directory.ts";
import { SubmittedObjects } from "../../../src/apiserver/storage/submitted-objects.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { memoryMark } from "../support.ts";

const tempDir = tempDirs();

/** The parts of a process that starts in a root directory. */
function aStart(rootDir: string) {
  const read = (bytes: Uint8Array) =>
    readManifest(bytes, { file: "request", nodeName: "node1", source: "api", strictness: "warn" });
  const registry = buildRegistry(read);
  const logger = new RecordingLogger();
  const clock = new FakeClock();
  const clusterDns = new ExplicitClusterDns();
  const store = new ObjectStore(new RevisionClock(memoryMark()));
  const directory = new ManifestDirectory({ rootDir, registry, logger, toYaml: () => undefined, clusterDns });
  const onFileRemoved = () => {};
  const deps = { store, registry, directory, clusterDns, read, clock, logger, onFileRemoved };
  return { directory, registry, store, submitted: new SubmittedObjects(deps) };
}

test("a namespace that was submitted is itself after a restart, with its labels, also when there are objects in it", async () => {
  const rootDir = tempDir();
  const before = aStart(rootDir);
  const namespaces = before.registry.get("namespaces")!;
  const metadata = { name: "lab", uid: "u", labels: { team: "a" } };
  before.directory.save(namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
  const inside = { name: "c", namespace: "lab", uid: "c" };
  before.directory.save(before.registry.get("configmaps")!, { apiVersion: "v1", kind: "ConfigMap", metadata: inside });
  const { submitted, store } = aStart(rootDir);
  submitted.load();
  const found = store.get("namespaces", undefined, "lab")!;
  expect([found.metadata.uid, found.metadata.labels?.team]).toEqual(["u", "a"]);
  expect(submitted.isOwn(namespaces, found)).toBe(true);
  expect(store.get("configmaps", "lab", "c")?.metadata.uid).toBe("c");
  await submitted.stop();
});
