import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

const container = (name: string, script: string, securityContext?: object) => ({
  name,
  image: "busybox:test",
  ...shell(`${script}; echo done; ${STOPPABLE}`),
  ...(securityContext && { securityContext }),
});

/** The output of a container before it reported that it was done. */
const printedBy = (node: TestNode, name: string) =>
  node.until(`the output of "${name}"`, async () => {
    const [found] = await node.containers(name);
    const log = found ? await node.logs(found.Id) : "";
    return log.includes("done") && log.replace("done\n", "");
  });

describeWithEngine("the kernel enforces what the manifest says", () => {
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
    const local = (localhostProfile: string) => ({ seccompProfile: { type: "Localhost", localhostProfile } });
    const bare = { capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] }, allowPrivilegeEscalation: false };
    const containers = [
      container("plain", `${status("Seccomp")}; ${status("NoNewPrivs")}; grep -c " /proc/" /proc/mounts`),
      container("unconfined", status("Seccomp"), { seccompProfile: { type: "Unconfined" } }),
      container("localhost", "mkdir /tmp/x 2>&1", local("no-mkdir.json")),
      container("missing", "true", local("missing.json")),
      container("bare", `${status("CapEff")}; ${status("NoNewPrivs")}`, bare),
      container("unmasked", 'grep -c " /proc/" /proc/mounts', { procMount: "Unmasked" }),
      container("sysctls", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/net/core/somaxconn"),
      container("nonroot", "true", { runAsNonRoot: true }),
    ];
    node.writeManifest("pod.yaml", sleeper("security", {}, { containers, securityContext: { sysctls } }));
    await node.start(["--allowed-unsafe-sysctls=net.core.*", "--pod-max-pids=64"]);

    const plain = (await printedBy(node, "plain")).split("\n");
    expect(plain.slice(0, 2)).toEqual(["Seccomp:\t2", "NoNewPrivs:\t0"]);
    expect(Number(plain[2])).toBeGreaterThan(0);
    expect(await printedBy(node, "unconfined")).toBe("Seccomp:\t0\n");
    expect(await printedBy(node, "localhost")).toContain("Operation not permitted");
    expect(await printedBy(node, "bare")).toBe("CapEff:\t0000000000000400\nNoNewPrivs:\t1\n");
    expect((await printedBy(node, "unmasked")).trim()).toBe("0");
    expect(await printedBy(node, "sysctls")).toBe("81\n321\n");

    const [plainContainer] = await node.containers("plain");
    expect((await node.docker.inspectContainerRaw(plainContainer!.Id)).HostConfig).toMatchObject({ PidsLimit: 64 });
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
});
