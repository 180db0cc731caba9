import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { list, object, podSpec, STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import { mounting } from "../support/temp-dir.ts";
import type { TestNode } from "../support/test-node.ts";

const withMounts = test.if(mounting.ok);

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

  withMounts("everything of a pod is unmounted and removed when its manifest goes", async () => {
    const node = testNode();
    const volumes = [
      { name: "m", emptyDir: { medium: "Memory" } },
      { name: "e", emptyDir: {} },
    ];
    const volumeMounts = [
      { name: "m", mountPath: "/m" },
      { name: "e", mountPath: "/sub", subPath: "a/b" },
    ];
    const writes = shell(`echo x > /m/x; echo x > /sub/x; ${STOPPABLE}`);
    node.writeManifest("gone.yaml", sleeper("gone", { ...writes, volumeMounts }, { volumes }));
    node.spawn([...node.flags(), "--file-check-frequency=1s"]);
    await node.runningContainer("app");
    expect(readFileSync("/proc/self/mountinfo", "utf8")).toContain(node.rootDir);
    node.removeManifest("gone.yaml");
    await node.until("the pod's directory to go", () => readdirSync(join(node.rootDir, "pods")).length === 0);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(node.rootDir);
  });

  test("variables as recorded (oracle 02), and one from a file that an init container wrote", async () => {
    const node = testNode();
    node.writeManifest(
      "env.yaml",
      `
apiVersion: v1
kind: Pod
metadata: {name: envpod}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: shared, emptyDir: {}}]
  initContainers:
  - name: writer
    image: busybox:test
    command: [sh, -c, "echo \\"TOKEN='from a file'\\" > /shared/env"]
    volumeMounts: [{name: shared, mountPath: /shared}]
  containers:
  - name: c
    image: busybox:test
    command: [sh, -c, 'env; echo END; sleep 3600']
    env:
    - {name: PLAIN, value: hello}
    - {name: EMPTY, value: ''}
    - {name: NOVALUE}
    - {name: REF, value: '$(PLAIN) world'}
    - {name: ESC, value: '$$(PLAIN)'}
    - {name: ESC3, value: '$$$(PLAIN)'}
    - {name: FORWARD, value: '$(LATER)'}
    - {name: LATER, value: later}
    - {name: UNDEF, value: '$(NOPE)'}
    - {name: CHAIN, value: '[$(REF)]'}
    - {name: OPEN, value: '$(PLAIN'}
    - {name: DOLLAR, value: 'a$b'}
    - {name: NUM, value: "5"}
    - {name: PATH, value: '/bin:/extra'}
    - {name: MULTI, value: "l1\\nl2"}
    - {name: PLAIN, value: again}
    - {name: FILE, valueFrom: {fileKeyRef: {volumeName: shared, path: env, key: TOKEN}}}
`,
    );
    node.spawn(node.flags());
    // Sorted: the recorded kubelet passes them in random order. HOME is set by the image.
    const lines = (await logOf(node, "c"))
      .split("\n")
      .filter((line) => !line.startsWith("HOME="))
      .sort();
    expect(lines).toEqual(
      [
        "",
        "CHAIN=[hello world]",
        "DOLLAR=a$b",
        "EMPTY=",
        "ESC3=$hello",
        "ESC=$(PLAIN)",
        "FILE=from a file",
        "FORWARD=$(LATER)",
        `HOSTNAME=envpod-${node.name}`,
        "LATER=later",
        "MULTI=l1",
        "NOVALUE=",
        "NUM=5",
        "OPEN=$(PLAIN",
        "PATH=/bin:/extra",
        "PLAIN=again",
        "PWD=/",
        "REF=hello world",
        "SHLVL=1",
        "UNDEF=$(NOPE)",
        "l2",
      ].sort(),
    );
  });
});

describeWithEngine("names and resolvers as recorded with cluster flags (oracle 29)", () => {
  let node: TestNode;
  const HOST = "nameserver 8.8.4.4\nnameserver 10.0.0.53\nsearch corp.example lab.example\noptions ndots:1 timeout:3\n";
  const pods: Record<string, object> = {
    cf: { dnsPolicy: "ClusterFirst" },
    cfconfig: {
      dnsConfig: {
        nameservers: ["9.9.9.9"],
        searches: ["extra.example", "svc.cluster.local"],
        options: [{ name: "ndots", value: "2" }, { name: "single-request" }],
      },
    },
    default: { dnsPolicy: "Default", hostAliases: [{ ip: "192.0.2.9", hostnames: ["nine", "neun"] }] },
    fqdn: { hostname: "hh", subdomain: "ss", setHostnameAsFQDN: true },
    hncf: { hostNetwork: true },
    hncfwhn: {
      hostNetwork: true,
      dnsPolicy: "ClusterFirstWithHostNet",
      hostAliases: [{ ip: "192.0.2.9", hostnames: ["nine"] }],
    },
    none: { dnsPolicy: "None", dnsConfig: { nameservers: ["1.1.1.1"] } },
    sub: { hostname: "hh", subdomain: "ss" },
  };
  // On the host's network the name is the host's, which need not be in any file: resolving it would fail.
  const commandOf = (spec: object) => [
    "sh",
    "-c",
    `hostname; ${"hostNetwork" in spec ? "hostname" : "hostname -f"}; cat /etc/hosts; echo --; cat /etc/resolv.conf; echo END; sleep 3600`,
  ];
  // Not earlier: what another block of this file is done with would take it along.
  beforeAll(() => {
    node = testNode();
    const resolvConf = join(node.directory, "resolv.conf");
    writeFileSync(resolvConf, HOST);
    for (const [name, spec] of Object.entries(pods)) {
      node.writeManifest(`${name}.json`, sleeper(name, { name, command: commandOf(spec) }, { ...spec }));
    }
    const cluster = ["--cluster-dns=10.96.0.10", "--cluster-domain=cluster.local"];
    node.spawn([...node.flags(), ...cluster, `--resolv-conf=${resolvConf}`]);
  });

  async function seenIn(name: string) {
    const [before = "", resolver = ""] = (await logOf(node, name)).split("--\n");
    const [hostname = "", fqdn = "", ...hosts] = before.split("\n");
    return { hostname, fqdn, hosts: hosts.join("\n"), resolver };
  }

  async function ipOf(name: string): Promise<string> {
    const sandbox = (await node.sandboxes()).find(
      ({ Labels }) => Labels["io.kubernetes.pod.name"] === `${name}-${node.name}`,
    );
    const { NetworkSettings } = await node.docker.inspectContainer(sandbox?.Id ?? "");
    return Object.values(NetworkSettings.Networks)[0]?.IPAddress ?? "";
  }

  const CLUSTER =
    "nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local corp.example lab.example\noptions ndots:5\n";
  const MANAGED =
    "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

  test.each([
    { name: "cf", resolver: CLUSTER },
    {
      name: "cfconfig",
      resolver:
        "nameserver 10.96.0.10\nnameserver 9.9.9.9\nsearch default.svc.cluster.local svc.cluster.local cluster.local corp.example lab.example extra.example\noptions ndots:2 single-request\n",
    },
    { name: "default", resolver: HOST, aliases: "\n# Entries added by HostAliases.\n192.0.2.9\tnine\tneun\n" },
    { name: "none", resolver: "nameserver 1.1.1.1\n" },
    { name: "sub", resolver: CLUSTER, hostname: "hh", fqdn: "hh.ss.default.svc.cluster.local" },
    {
      name: "fqdn",
      resolver: CLUSTER,
      hostname: "hh.ss.default.svc.cluster.local",
      fqdn: "hh.ss.default.svc.cluster.local",
    },
  ])("$name", async ({ name, resolver, aliases = "", ...names }) => {
    const hostname = names.hostname ?? `${name}-${node.name}`;
    const fqdn = names.fqdn ?? hostname;
    const seen = await seenIn(name);
    expect(seen.resolver).toBe(resolver);
    expect([seen.hostname, seen.fqdn]).toEqual([hostname, fqdn]);
    const columns = names.fqdn ? `${fqdn}\thh` : hostname;
    expect(seen.hosts).toBe(`${MANAGED}${await ipOf(name)}\t${columns}\n${aliases}`);
  });

  describe("with host networking, where we manage /etc/hosts as a cluster does", () => {
    test.each([
      { name: "hncf", resolver: HOST, aliases: "" },
      { name: "hncfwhn", resolver: CLUSTER, aliases: "\n# Entries added by HostAliases.\n192.0.2.9\tnine\n" },
    ])("$name", async ({ name, resolver, aliases }) => {
      const seen = await seenIn(name);
      expect(seen.resolver).toBe(resolver);
      expect(seen.hosts).toBe(
        `# Kubernetes-managed hosts file (host network).\n${readFileSync("/etc/hosts", "utf8")}${aliases}`,
      );
    });
  });
});
