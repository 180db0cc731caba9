import { expect, test } from "bun:test";
import { ObjectCommands } from "../../src/apiserver/object-commands.ts";
import { writtenPart } from "../../src/apiserver/object-store.ts";
import { aConfigMap, anApiServer, aPod } from "./support.ts";

test("apply creates, changes and leaves alone; delete begins a deletion", async () => {
  const { store, registry, writer, deleter, storing } = anApiServer();
  const prepared: string[] = [];
  const refresh = async ({ plural }: { plural: string }) => void prepared.push(plural);
  const prepareWrite = async () => {};
  const commands = new ObjectCommands({ store, registry, writer, deleter, storing, refresh, prepareWrite });

  expect(await commands.apply(aConfigMap("a"), { dryRun: true })).toMatchObject({ outcome: "created" });
  expect(store.get("configmaps", "default", "a")).toBeUndefined();
  expect(await commands.apply(aConfigMap("a"), { dryRun: false })).toMatchObject({
    reference: "configmap/a",
    outcome: "created",
    warnings: [],
  });
  expect((await commands.apply(aConfigMap("a"), { dryRun: false })).outcome).toBe("unchanged");
  expect((await commands.apply(aConfigMap("a", { a: "2" }), { dryRun: true })).outcome).toBe("configured");
  expect((await commands.apply(aConfigMap("a", { a: "2" }), { dryRun: false })).outcome).toBe("configured");
  await commands.delete("configmaps", "default", "a");
  expect(store.get("configmaps", "default", "a")).toBeUndefined();

  await commands.apply(aPod("web"), { dryRun: false });
  await commands.delete("pods", "default", "web");
  expect(store.get("pods", "default", "web")?.metadata.deletionTimestamp).toBeDefined();
  expect(new Set(prepared)).toEqual(new Set(["configmaps", "pods"]));

  const unknown = { ...aConfigMap("a"), metadata: { name: "b" }, color: "red" };
  expect(commands.apply(unknown, { dryRun: false })).rejects.toThrow('unknown field "color"');
  expect(commands.apply({ ...aConfigMap("a"), apiVersion: "v2" }, { dryRun: false })).rejects.toThrow(
    "does not serve ConfigMap of v2; it serves it as v1",
  );
  expect(commands.delete("pods", "default", "none")).rejects.toThrow('pods "none" not found');
});

test("a status that changes between a read and an apply is no change of what was written", () => {
  const pod = aPod("web");
  const later = { ...pod, metadata: { ...pod.metadata, resourceVersion: "7" }, status: { phase: "Running" } };
  expect(writtenPart(later)).toEqual(writtenPart(pod));
});
