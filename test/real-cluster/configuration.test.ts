import { expect, test } from "bun:test";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { FaultyProxy } from "../support/cluster/faulty-proxy.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import { object } from "../support/manifests.ts";

describeCluster("ConfigMaps and Secrets of a cluster", () => {
  let proxy: FaultyProxy;
  const { kubectl, node } = useCluster(
    async ({ plane, node }) => {
      proxy = new FaultyProxy(plane, node.name);
      await node.join({ server: proxy.url });
    },
    { tearDown: () => proxy?.close() },
  );

  const inPod = (pod: string, command: string) => kubectl.exec(pod, "sh", "-c", command);
  const patch = (object: string, data: object) =>
    kubectl.output(["patch", object, "--type=merge", "-p", JSON.stringify(data)]);
  const base64 = (text: string) => Buffer.from(text).toString("base64");

  test("edits reach the files of a running pod, and nothing else of it", async () => {
    const volume = (name: string, configMap: object) => ({ name, configMap: { name, ...configMap } });
    await kubectl.apply(
      object("ConfigMap", "settings", { data: { color: "blue" } }),
      object("ConfigMap", "fixed", { data: { color: "blue" }, immutable: true }),
      object("Secret", "pass", { stringData: { word: "first" } }),
      aClusterPod(
        "reader",
        {
          env: [{ name: "COLOR", valueFrom: { configMapKeyRef: { name: "settings", key: "color" } } }],
          volumeMounts: [
            { name: "settings", mountPath: "/settings" },
            { name: "settings", mountPath: "/single", subPath: "color" },
            { name: "fixed", mountPath: "/fixed" },
            { name: "later", mountPath: "/later" },
            { name: "pass", mountPath: "/pass" },
          ],
        },
        {
          volumes: [
            volume("settings", {}),
            volume("fixed", {}),
            volume("later", { optional: true }),
            { name: "pass", secret: { secretName: "pass" } },
          ],
        },
      ),
    );
    await kubectl.readyPod("reader");
    const [before] = await node.containers("app");
    const all = "cat /settings/color /single /fixed/color /pass/word; echo $COLOR; ls /later";
    expect(await inPod("reader", all)).toBe("bluebluebluefirstblue");
    await patch("configmap/settings", { data: { color: "red" } });
    await kubectl.until("the edited file", async () => (await inPod("reader", "cat /settings/color")) === "red");
    await patch("secret/pass", { data: { word: base64("second") } });
    await kubectl.words("create configmap later --from-literal=now=here");
    await kubectl.until(
      "the other files",
      async () => (await inPod("reader", "cat /pass/word /later/now")) === "secondhere",
    );
    // A mount of a single file and the environment stay as the container started with them.
    expect(await inPod("reader", all)).toBe("redbluebluesecondblue\nnow");
    await kubectl.words("delete configmap later");
    await kubectl.until("no file", async () => (await inPod("reader", "ls /later")) === "");
    expect((await node.containers("app")).map(({ Id }) => Id)).toEqual([before!.Id]);
  });

  test("what is immutable is read once, and what pods do not name is not watched", async () => {
    const watched = () => proxy.openWatches.filter((url) => /configmaps|secrets/.test(url));
    const names = () => watched().map((url) => /metadata\.name%3D([^&]*)/.exec(url)?.[1] ?? url);
    expect(names()).toContain("settings");
    expect(names()).not.toContain("fixed");
    await kubectl.words("delete configmap fixed");
    await kubectl.words("create configmap fixed --from-literal=color=green");
    await patch("configmap/settings", { data: { color: "black" } });
    await kubectl.until("the edited file", async () => (await inPod("reader", "cat /settings/color")) === "black");
    expect(await inPod("reader", "cat /fixed/color")).toBe("blue");
    await kubectl.words("delete pod reader");
    await kubectl.until("no watch of what no pod uses", async () => !names().includes("settings"));
  });

  test("a pod waits for objects that it names, and reports it", async () => {
    const env = (name: string) => [{ name: "COLOR", valueFrom: { configMapKeyRef: { name, key: "color" } } }];
    const secret = { name: "key", secret: { secretName: "key" } };
    await kubectl.apply(
      aClusterPod("by-environment", { env: env("missing") }),
      aClusterPod("by-volume", { volumeMounts: [{ name: "key", mountPath: "/key" }] }, { volumes: [secret] }),
    );
    const waiting = async (name: string) => {
      const { status } = await kubectl.pod(name);
      return status.containerStatuses?.[0].state.waiting?.reason;
    };
    await kubectl.until("the reason", async () => (await waiting("by-environment")) === "CreateContainerConfigError");
    await kubectl.untilEvent("by-volume", "FailedMount", 'secret "key" not found');
    expect(await waiting("by-volume")).toBe("ContainerCreating");
    await kubectl.words("create configmap missing --from-literal=color=blue");
    await kubectl.words("create secret generic key --from-literal=word=x");
    await kubectl.readyPod("by-environment");
    await kubectl.readyPod("by-volume");
    expect(await inPod("by-environment", "echo $COLOR")).toBe("blue");
    await kubectl.words("delete pod by-environment by-volume");
  });
});
