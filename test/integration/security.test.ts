import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, hasNetworkNames, testNode } from "../support/engine.ts";
import type { TestNode } from "../support/test-node.ts";

interface ContainerSpec {
  name: string;
  command: string[];
  securityContext?: object;
}

const SLEEP = "sleep 3600";

const podOf = (name: string, containers: ContainerSpec[], spec: object = {}, annotations: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, annotations },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: containers.map((one) => ({ image: "busybox:test", ...one })),
    ...spec,
  },
});

const shell = (name: string, script: string, securityContext?: object): ContainerSpec => ({
  name,
  command: ["sh", "-c", `${script}; echo done; ${SLEEP}`],
  ...(securityContext && { securityContext }),
});

/** The output of a container before it reported that it was done. */
const printedBy = (node: TestNode, name: string) =>
  node.until(`the output of "${name}"`, async () => {
    const [container] = await node.containers(name);
    const log = container ? await node.logs(container.Id) : "";
    return log.includes("done") && log.replace("done\n", "");
  });

describeWithEngine("what the API says is what the kernel enforces", () => {
  test("seccomp, capabilities, privileges, masks, sysctls, pids", async () => {
    const node = testNode();
    mkdirSync(join(node.rootDir, "seccomp"));
    const profile = {
      defaultAction: "SCMP_ACT_ALLOW",
      syscalls: [{ names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO" }],
    };
    writeFileSync(join(node.rootDir, "seccomp", "no-mkdir.json"), JSON.stringify(profile));
    const status = (field: string) => `grep ^${field}: /proc/self/status`;
    const sysctls = [
      { name: "net.ipv4.ip_unprivileged_port_start", value: "81" },
      { name: "net.core.somaxconn", value: "321" },
    ];
    node.writeManifest(
      "pod.yaml",
      podOf(
        "security",
        [
          shell("plain", `${status("Seccomp")}; ${status("NoNewPrivs")}; grep -c " /proc/" /proc/mounts`),
          shell("unconfined", status("Seccomp"), { seccompProfile: { type: "Unconfined" } }),
          shell("localhost", "mkdir /tmp/x 2>&1", {
            seccompProfile: { type: "Localhost", localhostProfile: "no-mkdir.json" },
          }),
          shell("missing", "true", { seccompProfile: { type: "Localhost", localhostProfile: "missing.json" } }),
          shell("bare", `${status("CapEff")}; ${status("NoNewPrivs")}`, {
            capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] },
            allowPrivilegeEscalation: false,
          }),
          shell("unmasked", 'grep -c " /proc/" /proc/mounts', { procMount: "Unmasked" }),
          shell("sysctls", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/net/core/somaxconn"),
          shell("nonroot", "true", { runAsNonRoot: true }),
        ],
        { securityContext: { sysctls } },
      ),
    );
    await node.start(["--allowed-unsafe-sysctls=net.core.*", "--pod-max-pids=64"]);

    const plain = (await printedBy(node, "plain")).split("\n");
    expect(plain.slice(0, 2)).toEqual(["Seccomp:\t2", "NoNewPrivs:\t0"]);
    expect(Number(plain[2])).toBeGreaterThan(0);
    expect(await printedBy(node, "unconfined")).toBe("Seccomp:\t0\n");
    expect(await printedBy(node, "localhost")).toContain("Operation not permitted");
    expect(await printedBy(node, "bare")).toBe("CapEff:\t0000000000000400\nNoNewPrivs:\t1\n");
    expect((await printedBy(node, "unmasked")).trim()).toBe("0");
    expect(await printedBy(node, "sysctls")).toBe("81\n321\n");

    const [container] = await node.containers("plain");
    expect((await node.docker.inspectContainerRaw(container?.Id ?? "")).HostConfig).toMatchObject({ PidsLimit: 64 });
    const waiting = await node.until("what cannot be created to say why", async () => {
      const [pod] = await node.pods();
      const states = new Map(pod?.status.containerStatuses?.map(({ name, state }) => [name, state?.waiting]));
      const [missing, nonroot] = [states.get("missing"), states.get("nonroot")];
      return missing?.message && nonroot?.message ? { missing, nonroot } : undefined;
    });
    expect(waiting.missing.reason).toBe("CreateContainerError");
    expect(waiting.missing.message).toContain(`cannot load seccomp profile "${node.rootDir}/seccomp/missing.json"`);
    expect(waiting.nonroot.reason).toBe("CreateContainerConfigError");
    expect(waiting.nonroot.message).toContain("container has runAsNonRoot and image will run as root");
  });

  test.each([
    [
      "privileged without --allow-privileged",
      /privileged containers are not allowed on this node/,
      [shell("c", "true", { privileged: true })],
      {},
    ],
    [
      "a sysctl of the whole machine",
      /forbidden sysctl: "kernel.msgmax"/,
      [shell("c", "true")],
      { securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } },
    ],
    [
      "supplementalGroupsPolicy Strict",
      /only Merge is possible/,
      [shell("c", "true")],
      { securityContext: { supplementalGroupsPolicy: "Strict" } },
    ],
    [
      "a request for more disk than there is",
      /OutOfephemeral-storage: Pod Node didn't have enough resource: ephemeral-storage, requested: \d+, used: 0, capacity: \d+/,
      [{ ...shell("c", "true"), resources: { requests: { "ephemeral-storage": "900Ti" } } }],
      {},
    ],
  ] as const)("%s is refused before anything is created", async (_, message, containers, spec) => {
    const node = testNode();
    const manifest = node.writeManifest("pod.yaml", podOf("refused", [...containers], spec));
    const outcome = await node.runOnce([manifest, "--timeout=20s"]);
    expect(outcome.exitCode).not.toBe(0);
    expect(outcome.stdout + outcome.stderr).toMatch(message);
    expect(await node.listAll()).toEqual([]);
  });
});

describeWithEngine("a Docker network by annotation", () => {
  test.skipIf(!hasNetworkNames)("pods of one network reach each other by name", async () => {
    const node = testNode();
    const network = `net-${node.name}`;
    await node.docker.createNetwork({ Name: network });
    try {
      const annotations = { "kubelet-ts.io/network": network };
      node.writeManifest(
        "a.yaml",
        podOf(
          "alpha",
          [{ name: "web", command: ["sh", "-c", "echo hi > /tmp/i; httpd -f -p 8000 -h /tmp"] }],
          {},
          annotations,
        ),
      );
      const ask = "until wget -q -O - http://alpha:8000/i; do sleep 0.2; done; cat /etc/resolv.conf";
      const dns = { dnsConfig: { searches: ["lan.example"], options: [{ name: "timeout", value: "1" }] } };
      node.writeManifest("b.yaml", podOf("beta", [shell("client", ask)], dns, annotations));
      await node.start();
      const printed = await printedBy(node, "client");
      expect(printed).toMatch(/^hi$/m);
      expect(printed).toContain("nameserver 127.0.0.11\n");
      expect(printed).toMatch(/^search .*lan\.example$/m);
      expect(printed).toMatch(/^options .*timeout:1/m);
    } finally {
      await node.cleanUp();
      await node.docker.removeNetwork(network);
    }
  });
});
