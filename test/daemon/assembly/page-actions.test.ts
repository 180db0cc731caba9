import { expect, test } from "bun:test";
import type { LocalApi } from "../../../src/apiserver/node/local-api.ts";
import { ObjectCommands } from "../../../src/apiserver/object-commands.ts";
import type { NodeContext } from "../../../src/daemon/assembly/node-context.ts";
import { NodeActions } from "../../../src/daemon/assembly/page-actions.ts";
import { anApiServer } from "../../apiserver/support.ts";
import { KubeletWorld, named } from "../../support/kubelet-world.ts";

function world() {
  const { store, registry, writer, deleter, storing } = anApiServer();
  const kubelet = new KubeletWorld();
  const ready = { refresh: async () => {}, prepareWrite: async () => {} };
  const commands = new ObjectCommands({ store, registry, writer, deleter, storing, ...ready });
  const context = { node: { name: "node1" } } as unknown as NodeContext;
  const api = { commands, registry } as unknown as LocalApi;
  const desired = () => ({ pods: [], configMaps: new Map(), secrets: new Map() });
  return { store, kubelet, actions: new NodeActions(context, kubelet.kubelet, api, desired) };
}

const POD = (name: string) => `apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  containers:
  - {name: app, image: busybox}
`;

test("a manifest is checked, applied and its pod deleted, each object alone", async () => {
  const { store, actions } = world();
  const manifest = `${POD("a")}---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
---
${POD("b").replace("containers:", "containerz:")}`;
  const { objects, problems } = await actions.apply(manifest, true);
  expect(objects).toMatchObject([
    { reference: "pod/a", outcome: "created", warnings: [] },
    { reference: "networkpolicy/closed", outcome: "ignored", warnings: [expect.stringContaining("not filtered")] },
  ]);
  expect(problems.join("\n")).toMatch(/^line \d+, column 3: spec\.containerz: there is no field/m);
  expect(store.get("pods", "default", "a")).toBeUndefined();

  await actions.apply(POD("a"), false);
  const pod = store.get("pods", "default", "a");
  expect(await actions.delete({ ...pod, metadata: { ...pod?.metadata, uid: "other" } } as never)).toMatchObject({
    ok: false,
    message: expect.stringContaining("UID"),
  });
  expect(await actions.delete(pod as never)).toEqual({
    ok: true,
    message: 'pod "a" deleted: its containers are being stopped',
  });
  expect(store.get("pods", "default", "a")?.metadata.deletionTimestamp).toBeDefined();
});

test.each([
  ["a: [", /^line 1, column \d+: /],
  ["", /there is no object/],
  ["just text", /^line 1, column 1: /],
])("%p is refused", async (manifest, problem) => {
  expect((await world().actions.apply(manifest, false)).problems[0]).toMatch(problem);
});

test("a restart is the kubelet's", async () => {
  const { kubelet, actions } = world();
  await kubelet.started(named("web"), named("job", { restartPolicy: "Never" }));
  const [job, pod] = ["job-node1", "web-node1"].map((name) =>
    kubelet.kubelet.pods().find((it) => it.metadata.name === name),
  );
  expect(actions.restart(pod!)).toEqual({ ok: true, message: "pod/web-node1 restarted" });
  expect(actions.restart(job!)).toMatchObject({ ok: false, message: expect.stringContaining("has restartPolicy") });
});
