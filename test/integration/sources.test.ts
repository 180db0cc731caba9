import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { HOST, sleeper } from "../support/manifests.ts";

/** Manifests on a server of this test; `pods` is what it serves. */
function manifestServer(): { url: string; pods: object[]; stop: () => Promise<void> } {
  const state = { url: "", pods: [] as object[], stop: () => server.stop(true) };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: () => Response.json({ apiVersion: "v1", kind: "PodList", items: state.pods }),
  });
  state.url = `http://127.0.0.1:${server.port}/pods`;
  return state;
}

describeWithEngine("sources on a real engine", () => {
  test("a list takes only its own pods away; a box that boots without its server starts the pods it had", async () => {
    const node = testNode();
    const server = manifestServer();
    server.pods = ["one", "two", "three"].map((name) => sleeper(name, {}, HOST));
    node.writeManifest("file.json", sleeper("of-file", {}, HOST));
    const flags = [`--manifest-url=${server.url}`, "--http-check-frequency=1s"];
    const kubelet = await node.start(flags);
    await node.untilRunning(4);
    server.pods = server.pods.slice(0, 2);
    await node.until("one to go", async () => (await node.pods()).length === 3);
    const first = await node.containerIds();
    await node.until("the checkpoint", () => readdirSync(join(node.rootDir, "checkpoints")).join().includes("source-"));
    await server.stop();
    // Without the server the pods stay; without us too; and nothing restarts when we come back.
    await node.untilLogged(kubelet, "refuses the connection");
    await kubelet.kill();
    const again = await node.start(flags);
    await node.until("the pods to be shown", async () => (await node.pods()).length === 3);
    expect(await node.containerIds()).toEqual(first);
    expect(again.log).toContain("its last good response, from before this start, is used");

    // A reboot: containers are gone, only the disk remembers.
    await again.kill();
    await node.removeAll(await node.listAll());
    await node.start(flags);
    await node.untilRunning(3);
    const names = (await node.pods()).map(({ metadata }) => metadata.name).sort();
    expect(names).toEqual(["of-file", "one", "two"].map((name) => `${name}-${node.name}`));
  });

  // Oracle 28, S036.
  test("refused pods say why and come in when there is room", async () => {
    const node = testNode();
    node.writeManifest("a.json", sleeper("a", {}, HOST));
    node.writeManifest("b.json", sleeper("b", {}, HOST));
    node.writeManifest("c.json", sleeper("c", {}, { nodeSelector: { disktype: "ssd" } }));
    await node.start(["--max-pods=1"]);
    await node.untilRunning(1);
    const status = (name: string) => node.statusOf(name);
    await node.until("b to be refused", async () => (await status("b"))?.reason === "OutOfpods");
    expect(await status("b")).toMatchObject({
      phase: "Failed",
      message: "Pod Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1",
    });
    expect((await status("c"))?.phase).toBe("Failed");
    node.removeManifest("a.json");
    await node.until("b to run", async () => (await status("b"))?.phase === "Running");
    expect((await status("c"))?.reason).toBe("OutOfpods");
    node.removeManifest("b.json");
    await node.until("c to be refused for another reason", async () => (await status("c"))?.reason === "NodeAffinity");
  });

  test("an edit that cannot start costs no running pod, also over a restart, and takes effect when it can", async () => {
    const node = testNode();
    const ports = [{ containerPort: 80, hostPort: node.kubeletPort }];
    const edits: Record<string, Parameters<typeof sleeper>> = {
      image: ["image", { image: "127.0.0.1:1/none:1" }],
      secret: ["secret", { envFrom: [{ secretRef: { name: "none" } }] }],
      port: ["port", { ports }],
      selector: ["selector", {}, { nodeSelector: { disktype: "ssd" } }],
      root: ["root", { securityContext: { runAsNonRoot: true } }],
      runtime: ["runtime", {}, { runtimeClassName: "none" }],
      network: ["network", {}, {}, { annotations: { "kubelet-ts.io/network": `${node.name}-none` } }],
    };
    const names = Object.keys(edits);
    node.writeManifest("holder.json", sleeper("holder", { ports }));
    for (const name of names) node.writeManifest(`${name}.json`, sleeper(name));
    const kubelet = await node.start();
    await node.untilRunning(names.length + 1);
    const before = await node.containerIds();
    for (const name of names) node.writeManifest(`${name}.json`, sleeper(...edits[name]!));
    const isPending = async (name: string) =>
      (await node.statusOf(name))?.conditions?.some(({ reason }) => reason === "EditPending") ?? false;
    const allPending = () =>
      node.until("the edits to wait", async () => (await Promise.all(names.map(isPending))).every(Boolean));
    await allPending();
    const waited = await node.run("wait pod/image --for=condition=Ready --timeout=0s");
    expect(waited).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("the edit waits") });
    await kubelet.stop();
    await node.start();
    await allPending();
    expect(await node.containerIds()).toEqual(before);
    node.writeManifest("image.json", sleeper("image", { env: [{ name: "A", value: "1" }] }));
    node.removeManifest("holder.json");
    const isNew = (id: string) => !before.includes(id);
    await node.until("the two that can start", async () => (await node.containerIds()).filter(isNew).length === 2);
    await node.until("them to be shown", async () => !((await isPending("image")) || (await isPending("port"))));
    const restarts = async (name: string) => (await node.statusOf(name))?.containerStatuses?.[0]?.restartCount;
    const others = names.filter((name) => name !== "image" && name !== "port");
    expect(await Promise.all(others.map(restarts))).toEqual(others.map(() => 0));
    expect((await Promise.all(others.map(isPending))).every(Boolean)).toBe(true);
  });
});
