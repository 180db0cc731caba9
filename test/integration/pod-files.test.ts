import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { list, object, podSpec, STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

const run = async (node: TestNode, id: string, script: string) =>
  (await node.docker.exec(id, ["sh", "-c", script])).output.trim();

/** The log of the first container of that name, once it has ended its script with the line `END`. */
async function logOf(node: TestNode, container: string): Promise<string> {
  const found = await node.until(`container "${container}"`, async () => (await node.containers(container))[0]);
  const log = await node.until(`the output of "${container}"`, async () => {
    const text = await node.logs(found.Id);
    return text.endsWith("END\n") && text;
  });
  return log.slice(0, -"END\n".length);
}

describeWithEngine("what a pod finds in its files and its environment", () => {
  test("files of a ConfigMap follow their document, a container that has it in its environment starts again", async () => {
    const node = testNode();
    const fieldRef = { fieldPath: "metadata.annotations['note']" };
    const volumes = [
      { name: "c", configMap: { name: "cfg" } },
      { name: "s", secret: { secretName: "sec" } },
      { name: "d", downwardAPI: { items: [{ path: "note", fieldRef }] } },
    ];
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    const env = [
      { name: "K", valueFrom: { configMapKeyRef: { name: "cfg", key: "k" } } },
      { name: "PW", valueFrom: { secretKeyRef: { name: "sec", key: "pw" } } },
    ];
    const containers = [
      { name: "files", volumeMounts },
      { name: "env", env },
    ];
    const spec = { volumes, containers: containers.flatMap((container) => podSpec(container).containers) };
    const documents = (value: string) =>
      list(
        object("ConfigMap", "cfg", { data: { k: value } }),
        object("Secret", "sec", { stringData: { pw: `secret ${value}` } }),
        sleeper("live", {}, spec, { annotations: { note: `note ${value}` } }),
      );
    node.writeManifest("live.yaml", documents("one"));
    const kubelet = node.spawn([...node.flags(), "--file-check-frequency=1s", "--v=4"]);
    const files = await node.runningContainer("files");
    const environment = await node.runningContainer("env");
    const read = () => run(node, files.Id, "cat /c/k; echo; cat /s/pw; echo; cat /d/note");
    expect(await read()).toBe("one\nsecret one\nnote one");
    expect(await run(node, environment.Id, 'echo "$K, $PW"')).toBe("one, secret one");

    node.writeManifest("live.yaml", documents("two"));
    const successor = await node.successorOf("env", environment.Id);
    expect(await run(node, successor.Id, 'echo "$K, $PW"')).toBe("two, secret two");
    await node.until("the new contents", async () => (await read()) === "two\nsecret two\nnote two");
    expect((await node.runningContainer("files")).Id).toBe(files.Id);
    expect(await node.sandboxes()).toHaveLength(1);
    expect(kubelet.log).not.toContain("secret one");
    expect(kubelet.log).not.toContain("secret two");
  });
});

describeWithEngine("a pod in the network of the node", () => {
  // As a cluster does, and unlike the recorded kubelet (oracle 29).
  test("its /etc/hosts is managed, its resolver that of its policy", async () => {
    const node = testNode();
    const resolvConf = join(node.directory, "resolv.conf");
    const resolver = "nameserver 8.8.4.4\nsearch corp.example\noptions ndots:1 timeout:3\n";
    writeFileSync(resolvConf, resolver);
    const search = "search default.svc.cluster.local svc.cluster.local cluster.local corp.example";
    const pods = {
      plain: { spec: {}, resolver, aliases: "" },
      cluster: {
        spec: { dnsPolicy: "ClusterFirstWithHostNet", hostAliases: [{ ip: "192.0.2.9", hostnames: ["nine", "neun"] }] },
        resolver: `nameserver 10.96.0.10\n${search}\noptions ndots:5\n`,
        aliases: "\n# Entries added by HostAliases.\n192.0.2.9\tnine\tneun\n",
      },
    };
    const script = shell(`cat /etc/hosts; echo --; cat /etc/resolv.conf; echo END; ${STOPPABLE}`);
    for (const [name, { spec }] of Object.entries(pods)) {
      node.writeManifest(`${name}.json`, sleeper(name, { name, ...script }, { hostNetwork: true, ...spec }));
    }
    const cluster = ["--cluster-dns=10.96.0.10", "--cluster-domain=cluster.local"];
    node.spawn([...node.flags(), ...cluster, `--resolv-conf=${resolvConf}`]);
    const managed = `# Kubernetes-managed hosts file (host network).\n${readFileSync("/etc/hosts", "utf8")}`;
    for (const [name, { resolver, aliases }] of Object.entries(pods)) {
      expect(await logOf(node, name)).toBe(`${managed}${aliases}--\n${resolver}`);
    }
  });
});
