import { expect, test } from "bun:test";
import { linkSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildRegistry } from "../../../src/apiserver/kinds/served-kinds.ts";
import { type ApiObject, ObjectStore, RevisionClock } from "../../../src/apiserver/object-store.ts";
import { resourceId } from "../../../src/apiserver/resource-definition.ts";
import { ManifestDirectory } from "../../../src/apiserver/storage/manifest-directory.ts";
import { SubmittedObjects } from "../../../src/apiserver/storage/submitted-objects.ts";
import { FileSlot } from "../../../src/base/concurrency/worker-pool.ts";
import type { DesiredPod } from "../../../src/base/model/desired-state.ts";
import { readPlainObjects } from "../../../src/manifest/plain-objects.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";
import type { SourceSet } from "../../../src/sources/source-set.ts";
import { aPod } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { memoryMark, READ_OPTIONS } from "../support.ts";

const tempDir = tempDirs();

/** The parts of a process that starts in a root directory. */
function aStart(rootDir: string, clock = new FakeClock()) {
  const registry = buildRegistry();
  const logger = new RecordingLogger();
  const store = new ObjectStore(new RevisionClock(memoryMark()));
  const directory = new ManifestDirectory({ rootDir, registry, readOptions: READ_OPTIONS, logger });
  const slot = new FileSlot(clock);
  const submitted = new SubmittedObjects({ store, registry, directory, slot, nodeName: "node1", clock, logger });
  return { clock, directory, registry, store, submitted };
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

test("an edit of which no event tells is seen within a minute", async () => {
  const rootDir = tempDir();
  const { clock, directory, registry, submitted, store } = aStart(rootDir);
  submitted.load();
  const configMaps = registry.get("configmaps")!;
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "default", uid: "c" } };
  submitted.save(configMaps, object);
  store.put("configmaps", object);
  await clock.advance(1_000);
  // The kernel reports a write for the name by which the file was opened.
  const otherName = join(rootDir, "c");
  linkSync(directory.pathOf(configMaps, object.metadata), otherName);
  writeFileSync(otherName, JSON.stringify({ ...object, data: { edited: "yes" } }));
  const edited = () => store.get("configmaps", "default", "c")?.data !== undefined;
  await clock.advance(58_000);
  expect(edited()).toBe(false);
  await clock.advance(1_000);
  await until("the look", async () => {
    await clock.advance(20);
    return edited();
  });
  await submitted.stop();
});

/** Work takes time that no timer shows. */
class BusyClock extends FakeClock {
  busyMs = 0;

  override monotonicMs() {
    return super.monotonicMs() + this.busyMs;
  }
}

test("a pod that is shown without its node, because a cordon holds it, is wanted on this node all the time", async () => {
  const { clock, registry, submitted, store } = aStart(tempDir());
  const { metadata, spec } = aPod({ nodeName: "node1" }, { name: "web", namespace: "default", uid: "u" });
  const pod = { apiVersion: "v1", kind: "Pod", metadata, spec } as unknown as ApiObject;
  submitted.save(registry.get("pods")!, pod);
  store.put("pods", pod);
  const wanted: DesiredPod[] = [];
  submitted.start(({ pods }) => void wanted.push(...pods));
  const { nodeName: _node, ...unassigned } = spec;
  store.put("pods", { ...pod, spec: unassigned });
  await clock.advance(0);
  const seen = wanted.map((one) => `${one.pod.spec.nodeName} ${one.revision}`);
  expect(seen).toEqual([`node1 ${wanted[0]?.revision}`, seen[0]!]);
  await submitted.stop();
});

test("an object whose owners have changed is handed on again; until then a controller does not know it", async () => {
  const { clock, registry, submitted, store } = aStart(tempDir());
  const { metadata, spec } = aPod({ nodeName: "node1" }, { name: "web", namespace: "default", uid: "u" });
  const pod = { apiVersion: "v1", kind: "Pod", metadata, spec } as unknown as ApiObject;
  const pods = registry.get("pods")!;
  submitted.save(pods, pod);
  store.put("pods", pod);
  let sets = 0;
  submitted.start(() => void sets++);
  const status = store.put("pods", { ...pod, status: { phase: "Running" } });
  expect(submitted.isHandedOn(pods, status)).toBe(true);
  const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "own", uid: "c" }];
  const owned = store.put("pods", { ...status, metadata: { ...status.metadata, ownerReferences } });
  expect(submitted.isHandedOn(pods, owned)).toBe(false);
  await clock.advance(0);
  expect([submitted.isHandedOn(pods, owned), sets]).toEqual([true, 2]);
  await submitted.stop();
});

test("a set that takes long is made at once after a rest, and then in a tenth of the time", async () => {
  const clock = new BusyClock();
  const { registry, submitted, store } = aStart(tempDir(), clock);
  let sets = 0;
  submitted.start(() => {
    clock.busyMs += 50;
    sets++;
  });
  const configMaps = registry.get("configmaps")!;
  const write = async (name: string) => {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default", uid: name } };
    submitted.save(configMaps, object);
    store.put("configmaps", object);
    await clock.advance(0);
    return sets;
  };
  expect(await write("a")).toBe(2);
  await clock.advance(500);
  expect(await write("b")).toBe(3);
  expect(await write("c")).toBe(3);
  await clock.advance(499);
  expect(await write("d")).toBe(3);
  await clock.advance(1);
  expect(sets).toBe(4);
  await submitted.stop();
});

const examples = join(import.meta.dir, "../../../examples");
const files = readdirSync(examples, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".yaml"));
test.each(files)(
  "what the kubelet gets of a submitted object is what the reader makes of its manifest: %s",
  async (file) => {
    const read = readPlainObjects(readFileSync(join(examples, file)));
    const { registry, store, submitted, clock } = aStart(tempDir());
    let set: SourceSet | undefined;
    submitted.start((emitted) => {
      set = emitted;
    });
    const texts: object[] = [];
    for (const { metadata, ...rest } of "objects" in read ? read.objects : []) {
      const definition = registry.findKind(rest.apiVersion ?? "", rest.kind);
      if (!definition) continue;
      const uid = `uid of ${metadata.name}`;
      const stored = {
        ...metadata,
        name: metadata.name ?? "",
        uid,
        ...(definition.namespaced && { namespace: "default" }),
      };
      const decoded = definition.decode?.(
        { ...rest, apiVersion: rest.apiVersion ?? "", metadata: stored },
        READ_OPTIONS,
      );
      if (!decoded || decoded.causes.length > 0) continue;
      submitted.save(definition, decoded.object);
      store.put(resourceId(definition), decoded.object);
      const { status: _status, ...text } = decoded.object;
      texts.push(text);
    }
    await clock.advance(0);
    const manifest = readManifest(Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "List", items: texts })), {
      file: "request",
      nodeName: "node1",
      source: "api",
      strictness: "warn",
    });
    const plain = ({ pods, objects }: Pick<SourceSet, "pods" | "objects">): unknown[] => {
      const found = [...pods, ...(objects ?? [])].map((one) => {
        const { origin, location, sourceId, resourceVersion, ...rest } = one as DesiredPod;
        return rest;
      });
      return (JSON.parse(JSON.stringify(found)) as { revision: string }[]).sort((a, b) =>
        a.revision < b.revision ? -1 : 1,
      );
    };
    expect(plain(set!)).toEqual(plain(manifest));
    await submitted.stop();
  },
);

test.each<{ finalizers: string[]; fed: string[] }>([
  { finalizers: ["orphan"], fed: ["web"] },
  { finalizers: ["example.com/x"], fed: ["web"] },
  { finalizers: ["foregroundDeletion"], fed: [] },
])("a Deployment in deletion with $finalizers is wanted: $fed", async ({ finalizers, fed }) => {
  const { registry, directory, submitted } = aStart(tempDir());
  const definition = registry.findKind("apps/v1", "Deployment")!;
  const metadata = {
    name: "web",
    namespace: "default",
    uid: "u",
    deletionTimestamp: "2026-01-01T00:00:00Z",
    finalizers,
  };
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  const spec = { selector: { matchLabels: { app: "web" } }, template };
  directory.save(definition, { apiVersion: "apps/v1", kind: "Deployment", metadata, spec } as never);
  const sets: SourceSet[] = [];
  submitted.start((set) => void sets.push(set));
  expect(sets[0]?.objects?.map(({ object }) => object.metadata.name ?? "")).toEqual(fed);
  await submitted.stop();
});

test.each([
  ["Deployment", undefined],
  ["ReplicaSet", { "deployment.kubernetes.io/revision": "4" }],
])("the revision of a submitted %s is %j for the controllers", async (kind, expected) => {
  const { registry, directory, submitted } = aStart(tempDir());
  const annotations = { "deployment.kubernetes.io/revision": "4" };
  const metadata = { name: "web", namespace: "default", uid: "u", annotations };
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  const spec = { selector: { matchLabels: { app: "web" } }, template };
  directory.save(registry.findKind("apps/v1", kind)!, { apiVersion: "apps/v1", kind, metadata, spec } as never);
  const sets: SourceSet[] = [];
  submitted.start((set) => void sets.push(set));
  expect(sets[0]?.objects?.map(({ object }) => object.metadata.annotations)).toEqual([expected as never]);
  await submitted.stop();
});
