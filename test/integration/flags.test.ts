import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

/** Starts one pod by `--runonce` with these flags; gives what Docker says of its container and sandbox. */
async function startOne(
  flags: readonly string[],
  container: Record<string, unknown> = {},
  spec: Record<string, unknown> = {},
) {
  const node = testNode();
  const manifest = node.writeManifest("p.json", sleeper("p", container, spec));
  const exit = await node.runOnce([...flags, manifest]);
  const inspect = async (id: string | undefined) =>
    (id ? await node.docker.inspectContainerRaw(id) : undefined) as Inspect | undefined;
  return {
    node,
    exit,
    app: await inspect((await node.containers("app"))[0]?.Id),
    sandbox: await inspect((await node.sandboxes())[0]?.Id),
  };
}

interface Inspect {
  Name: string;
  Image: string;
  ResolvConfPath: string;
  Config: { Image: string; Env: string[]; Labels: Record<string, string> };
  HostConfig: {
    CgroupParent: string;
    CpuQuota: number;
    CpuPeriod: number;
    MemorySwap: number;
    PidsLimit: number | null;
    SecurityOpt: string[] | null;
    Sysctls: Record<string, string> | null;
    LogConfig: { Type: string; Config: Record<string, string> };
  };
}

const output = ({ exit: { stdout, stderr } }: { exit: { stdout: string; stderr: string } }) => stdout + stderr;
const limited = { resources: { limits: { cpu: "500m", memory: "64Mi" } } };

describeWithEngine("what flags do to containers", () => {
  test("--container-log-max-size, --container-log-max-files", async () => {
    const { app } = await startOne(["--container-log-max-size=1Mi", "--container-log-max-files=3"]);
    expect(app?.HostConfig.LogConfig).toEqual({
      Type: "json-file",
      Config: { "max-file": "3", "max-size": "1048576" },
    });
  });

  test("--pod-logs-dir, --containers-logs-dir", async () => {
    const { node, app } = await startOne([]);
    const id = app?.Config.Labels["io.kubernetes.pod.uid"];
    expect(existsSync(join(node.directory, `log-pods/default_p-${node.name}_${id}/app/0.log`))).toBe(true);
  });

  test("--pod-max-pids", async () => {
    const { app } = await startOne(["--pod-max-pids=77"]);
    expect(app?.HostConfig.PidsLimit).toBe(77);
  });

  test("--seccomp-default=false gives upstream's way", async () => {
    expect((await startOne(["--seccomp-default=false"])).app?.HostConfig.SecurityOpt).toEqual(["seccomp=unconfined"]);
    expect((await startOne([])).app?.HostConfig.SecurityOpt ?? []).toEqual([]);
  });

  test("--cgroup-root and --cgroups-per-qos", async () => {
    const { app } = await startOne(["--cgroup-root=/kubelet-ts-test"]);
    expect(app?.HostConfig.CgroupParent).toMatch(/^\/kubelet-ts-test\/kubepods\/besteffort\/pod/);
    expect((await startOne(["--cgroups-per-qos=false"])).app?.HostConfig.CgroupParent).not.toContain("kubepods");
  });

  test("--cpu-cfs-quota, --cpu-cfs-quota-period", async () => {
    expect((await startOne([], limited)).app?.HostConfig).toMatchObject({ CpuQuota: 50_000, CpuPeriod: 100_000 });
    expect((await startOne(["--cpu-cfs-quota=false"], limited)).app?.HostConfig.CpuQuota).toBeLessThanOrEqual(0);
    expect((await startOne(["--cpu-cfs-quota-period=10ms"], limited)).app?.HostConfig).toMatchObject({
      CpuQuota: 5_000,
      CpuPeriod: 10_000,
    });
  });

  test("--pod-infra-container-image is pulled for the sandbox", async () => {
    const image = "127.0.0.1:1/absent/pause:9";
    const refused = await startOne(["--timeout=10s", `--pod-infra-container-image=${image}`]);
    expect(refused.exit.exitCode).toBe(1);
    expect(output(refused)).toContain("127.0.0.1:1/");
    expect(refused.sandbox).toBeUndefined();
  });

  test("--cluster-dns, --cluster-domain, --resolv-conf", async () => {
    const node = testNode();
    const base = join(node.directory, "resolv.conf");
    writeFileSync(base, "nameserver 192.0.2.53\nsearch example.com\n");
    const manifest = node.writeManifest("p.json", sleeper("p"));
    const flags = ["--cluster-dns=192.0.2.10", "--cluster-domain=edge.test", `--resolv-conf=${base}`];
    expect((await node.runOnce([...flags, manifest])).exitCode).toBe(0);
    const [container] = await node.containers("app");
    const { ResolvConfPath } = (await node.docker.inspectContainerRaw(container!.Id)) as unknown as Inspect;
    const text = readFileSync(ResolvConfPath, "utf8");
    expect(text).toContain("nameserver 192.0.2.10");
    expect(text).toContain("search default.svc.edge.test svc.edge.test edge.test example.com");
    expect(text).not.toContain("192.0.2.53");
  });

  test("--hostname-override and --node-ip reach the pod", async () => {
    const env = [
      { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      { name: "HOST", valueFrom: { fieldRef: { fieldPath: "status.hostIP" } } },
    ];
    const { node, app } = await startOne(["--node-ip=192.0.2.7"], { env });
    expect(app?.Config.Env).toEqual(expect.arrayContaining([`NODE=${node.name}`, "HOST=192.0.2.7"]));
    expect(app?.Name).toContain(`_p-${node.name}_`);
  });

  test("--allowed-unsafe-sysctls", async () => {
    const spec = { securityContext: { sysctls: [{ name: "net.core.somaxconn", value: "1024" }] } };
    const refused = await startOne(["--timeout=20s"], {}, spec);
    expect(refused.exit.exitCode).not.toBe(0);
    expect(output(refused)).toContain("net.core.somaxconn");
    const allowed = await startOne(["--allowed-unsafe-sysctls=net.core.*"], {}, spec);
    expect(allowed.sandbox?.HostConfig.Sysctls).toEqual({ "net.core.somaxconn": "1024" });
  });

  test("--allow-privileged: without it such a pod is refused", async () => {
    const refused = await startOne([], { securityContext: { privileged: true } });
    expect(refused.exit.exitCode).toBe(2);
    expect(output(refused)).toContain("privileged containers are not allowed");
    expect(refused.app).toBeUndefined();
  });

  test("--node-labels: a nodeSelector that asks for one is met", async () => {
    const spec = { nodeSelector: { disktype: "ssd" } };
    expect((await startOne(["--node-labels=disktype=ssd"], {}, spec)).exit.exitCode).toBe(0);
    const refused = await startOne(["--timeout=20s"], {}, spec);
    expect(refused.exit.exitCode).toBe(1);
    expect(output(refused)).toContain("NodeAffinity");
  });

  test("--system-reserved, --kube-reserved, --eviction-hard are kept from pods", async () => {
    const wish = { resources: { requests: { memory: "8Mi" } } };
    expect((await startOne([], wish)).exit.exitCode).toBe(0);
    const refused = await startOne(["--timeout=20s", "--system-reserved=memory=1Ei"], wish);
    expect(refused.exit.exitCode).toBe(1);
    expect(output(refused)).toContain("OutOfmemory");
    expect(output(await startOne(["--timeout=20s", "--kube-reserved=cpu=100000"], limited))).toContain("OutOfcpu");
    expect(output(await startOne(["--timeout=20s", "--eviction-hard=memory.available<1Ei"], wish))).toContain(
      "OutOfmemory",
    );
  });

  test("--validate: an unknown field is refused, warned of, ignored", async () => {
    const strict = await startOne([], { livenesProbe: {} });
    expect(strict.exit.exitCode).toBe(2);
    expect(output(strict)).toContain("livenessProbe");
    const warned = await startOne(["--validate=warn"], { livenesProbe: {} });
    expect(warned.exit.exitCode).toBe(0);
    expect(output(warned)).toContain("livenesProbe");
    const ignored = await startOne(["--validate=ignore"], { livenesProbe: {} });
    expect(ignored.exit.exitCode).toBe(0);
    expect(output(ignored)).not.toContain("livenesProbe");
  });

  test("--output, --timeout", async () => {
    const node = testNode();
    const manifest = node.writeManifest("p.json", sleeper("p", { readinessProbe: { exec: { command: ["false"] } } }));
    const { stdout } = await node.runOnce(["-o", "json", "--wait=running", manifest]);
    expect(JSON.parse(stdout).pods[0]).toMatchObject({ name: `p-${node.name}`, namespace: "default" });
    const yaml = await node.runOnce(["-o", "yaml", "--wait=running", manifest]);
    expect(yaml.stdout).toStartWith(`pods:\n  - namespace: default\n    name: p-${node.name}\n`);
    const slow = node.writeManifest("q.json", sleeper("q", { image: "192.0.2.1/never:1" }));
    expect((await node.runOnce(["--timeout=2s", slow])).exitCode).toBe(1);
  });

  test("--wait", async () => {
    const node = testNode();
    const unready = node.writeManifest(
      "p.json",
      sleeper("p", {
        command: ["sh", "-c", "echo last words; exec sleep 1000"],
        readinessProbe: { exec: { command: ["sh", "-c", "echo too early; false"] }, periodSeconds: 1 },
      }),
    );
    const late = await node.runOnce(["--timeout=4s", unready]);
    expect(late.exitCode).toBe(1);
    expect(late.stderr).toMatch(
      /✗ default\/p-.* not ready within 4 s: container \w+: not ready: Readiness probe failed: too early/,
    );
    expect(late.stderr).toContain("\n    last words\n");
    expect((await node.runOnce(["--wait=running", unready])).exitCode).toBe(0);
    const endless = await node.runOnce(["--wait=completed", unready]);
    expect(endless.stderr).toContain("never completes: its restartPolicy is Always");
    const job = (command: string) =>
      node.writeManifest("job.json", sleeper("job", { command: ["sh", "-c", command] }, { restartPolicy: "Never" }));
    expect((await node.runOnce(["--wait=completed", job("sleep 1")])).exitCode).toBe(0);
    const failed = await node.runOnce(["--wait=completed", job("sleep 1; echo no luck; exit 3")]);
    expect({ exitCode: failed.exitCode, stderr: failed.stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/✗ .*exited with code 3.*\n {4}no luck\n/),
    });
  });

  test("an edited pod that ignores TERM: the successor is waited for", async () => {
    const node = testNode();
    const write = (name: string) =>
      node.writeManifest(
        "p.json",
        sleeper(
          "p",
          { command: ["sh", "-c", `trap '' TERM; echo ${name}; while :; do sleep 1; done`] },
          { terminationGracePeriodSeconds: 3 },
        ),
      );
    expect((await node.runOnce([write("first")])).exitCode).toBe(0);
    expect((await node.runOnce([write("second")])).exitCode).toBe(0);
    const running = (await node.listAll()).filter(({ State }) => State === "running");
    expect(running).toHaveLength(2);
  });
});

const fetchText = async (port: number, path: string) => await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
const isClosed = (port: number) =>
  fetch(`http://127.0.0.1:${port}/`).then(
    () => false,
    () => true,
  );
const withEnv = (node: TestNode) =>
  node.writeManifest("p.json", sleeper("p", { env: [{ name: "TOKEN", value: "s3cret-literal" }] }));

describeWithEngine("what flags do to the program", () => {
  test("--read-only-full: environment values are hidden unless it is set", async () => {
    const node = testNode();
    withEnv(node);
    const hidden = await node.start();
    await node.until("the pod", async () => (await node.pods()).length === 1);
    expect(await fetchText(node.readOnlyPort, "/pods")).not.toContain("s3cret-literal");
    await hidden.stop();
    await node.start(["--read-only-full"]);
    await node.until("the value", async () => (await fetchText(node.readOnlyPort, "/pods")).includes("s3cret-literal"));
  });

  test("--read-only-port=0, --cadvisor-port=0 are off; --enable-server=false leaves /healthz", async () => {
    const node = testNode();
    const first = await node.start(["--read-only-port=0", "--cadvisor-port=0"]);
    expect(await isClosed(node.readOnlyPort)).toBe(true);
    expect(await isClosed(node.cadvisorPort)).toBe(true);
    await first.stop();
    await node.start(["--enable-server=false"]);
    expect(await isClosed(node.readOnlyPort)).toBe(true);
    expect(await fetchText(node.healthzPort, "/healthz")).toBe("ok");
  });

  test("--healthz-bind-address, --read-only-bind-address, --address", async () => {
    const node = testNode();
    const first = node.spawn([...node.flags(), "--healthz-bind-address=127.0.0.2", "--address=127.0.0.3"]);
    const at = (host: string, port: number) =>
      fetch(`http://${host}:${port}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await node.until(
      "both to be served",
      async () => (await at("127.0.0.2", node.healthzPort)) && (await at("127.0.0.3", node.readOnlyPort)),
    );
    expect([await at("127.0.0.1", node.healthzPort), await at("127.0.0.1", node.readOnlyPort)]).toEqual([false, false]);
    await first.stop();
    node.spawn([...node.flags(), "--address=127.0.0.3", "--read-only-bind-address=127.0.0.4"]);
    await node.until("the other address", () => at("127.0.0.4", node.readOnlyPort));
    expect(await at("127.0.0.3", node.readOnlyPort)).toBe(false);
  });

  test("--v, --log-format, --log-dir, --logtostderr", async () => {
    const node = testNode();
    const logDir = join(node.directory, "logs");
    node.writeManifest("p.json~", "x");
    writeFileSync(join(node.manifestDir, "web.yaml.bak"), "x");
    const loud = await node.start(["--v=2", "--log-format=json", `--log-dir=${logDir}`]);
    await node.until("the debug line", () => loud.log.includes("Manifests: skipped"));
    for (const line of loud.log.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("msg");
    await loud.stop();
    expect(readFileSync(join(logDir, "kubelet-ts.log"), "utf8")).toContain("Manifests: skipped");
    const silent = await node.start([`--log-dir=${logDir}`, "--logtostderr=false"]);
    expect((await silent.stop()).stderr).toBe("");
  });

  test("--config: its values are in /configz, with secrets masked", async () => {
    const node = testNode();
    const file = join(node.directory, "k.yaml");
    writeFileSync(
      file,
      'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 7\nstaticPodURLHeader: {Authorization: ["Bearer s3cret"]}\n',
    );
    const kubelet = await node.start([`--config=${file}`, "--manifest-url=http://me:s3cret@127.0.0.1:1/?key=s3cret"]);
    const text = await fetchText(node.readOnlyPort, "/configz");
    expect(JSON.parse(text).kubeletconfig).toMatchObject({ kind: "KubeletConfiguration", maxPods: 7 });
    expect(text).not.toContain("s3cret");
    await node.until("a failed request", () => kubelet.log.includes("refuses the connection"));
    expect(kubelet.log).not.toContain("s3cret");
    expect(await fetchText(node.healthzPort, "/healthz?verbose")).toContain("refuses the connection");
  });

  test("--config: an unknown field ends the start with exit code 2", async () => {
    const node = testNode();
    const file = join(node.directory, "k.yaml");
    writeFileSync(file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nunknownField: 1\n");
    const { exitCode, stderr } = await node.spawn([...node.flags(), `--config=${file}`]).finished();
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`${file}:3:1: unknownField: no such field`);
  });

  test("--config with a directory is the manifest directory of old kubelets", async () => {
    const node = testNode();
    const old = join(node.directory, "old");
    mkdirSync(old);
    writeFileSync(join(old, "p.json"), JSON.stringify(sleeper("p")));
    await node.start([`--config=${old}`]);
    await node.runningContainer("app");
  });

  test("--file-check-frequency finds what no event reports", async () => {
    const node = testNode();
    const elsewhere = join(node.directory, "elsewhere.json");
    writeFileSync(elsewhere, JSON.stringify(sleeper("p")));
    // The edit happens in a directory that is not watched.
    symlinkSync(elsewhere, join(node.manifestDir, "p.json"));
    await node.start(["--file-check-frequency=1s"]);
    const first = await node.runningContainer("app");
    writeFileSync(elsewhere, JSON.stringify(sleeper("p", { env: [{ name: "A", value: "b" }] })));
    await node.until("the edit", async () => (await node.runningContainer("app")).Id !== first.Id);
  });

  test("--root-dir: a second kubelet-ts on it is refused, next to it is not", async () => {
    const node = testNode();
    await node.start();
    const second = await node.spawn([...node.flags()]).finished();
    expect(second.exitCode).toBe(1);
    expect(second.stderr).toContain("--root-dir");
  });
});
