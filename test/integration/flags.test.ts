import { beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { KubeletExit } from "../support/kubelet-process.ts";
import { shell, sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

interface Inspect {
  Name: string;
  ResolvConfPath: string;
  Config: { Env: string[]; Labels: Record<string, string> };
  HostConfig: { CgroupParent: string; CpuQuota: number; SecurityOpt: string[] | null };
}

type Fields = Record<string, unknown>;

/** Starts one pod by `--runonce` with these flags; gives what Docker says of its container and sandbox. */
async function startOne(flags: readonly string[], container: Fields = {}, spec: Fields = {}, node = testNode()) {
  const manifest = node.writeManifest("p.json", sleeper("p", container, spec));
  const exit = await node.runOnce([...flags, manifest]);
  const inspect = async (found: { Id: string }[]) =>
    (found[0] && (await node.docker.inspectContainerRaw(found[0].Id))) as Inspect | undefined;
  return {
    node,
    exit,
    app: await inspect(await node.containers("app")),
    sandbox: await inspect(await node.sandboxes()),
  };
}

const output = ({ stdout, stderr }: KubeletExit) => stdout + stderr;
const limited = { resources: { limits: { cpu: "500m", memory: "64Mi" } } };
const SYSCTLS = { securityContext: { sysctls: [{ name: "net.core.somaxconn", value: "1024" }] } };
const SELECTOR = { nodeSelector: { disktype: "ssd" } };

describeWithEngine("what flags do to containers", () => {
  type Started = Awaited<ReturnType<typeof startOne>>;
  let set: Started;
  let unset: Started;
  let off: Started;

  beforeAll(async () => {
    const node = testNode();
    const base = join(node.directory, "resolv.conf");
    writeFileSync(base, "nameserver 192.0.2.53\nsearch example.com\n");
    const env = [
      { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      { name: "HOST", valueFrom: { fieldRef: { fieldPath: "status.hostIP" } } },
    ];
    const flags = [
      "--container-log-max-size=1Mi",
      "--container-log-max-files=3",
      "--pod-max-pids=77",
      "--seccomp-default=false",
      "--cgroup-root=/kubelet-ts-test",
      "--cpu-cfs-quota-period=10ms",
      "--cluster-dns=192.0.2.10",
      "--cluster-domain=edge.test",
      `--resolv-conf=${base}`,
      "--node-ip=192.0.2.7",
      "--allowed-unsafe-sysctls=net.core.*",
      "--node-labels=disktype=ssd",
    ];
    [set, unset, off] = await Promise.all([
      startOne(flags, { ...limited, env }, { ...SYSCTLS, ...SELECTOR }, node),
      startOne([], limited),
      startOne(["--cgroups-per-qos=false", "--cpu-cfs-quota=false"], limited),
    ]);
    for (const { exit } of [set, unset, off]) expect(exit).toMatchObject({ exitCode: 0 });
  });

  test.each([
    {
      flags: "--container-log-max-size, --container-log-max-files",
      has: { LogConfig: { Type: "json-file", Config: { "max-file": "3", "max-size": "1048576" } } },
    },
    { flags: "--pod-max-pids", has: { PidsLimit: 77 } },
    { flags: "--seccomp-default=false: unconfined, as upstream", has: { SecurityOpt: ["seccomp=unconfined"] } },
    {
      flags: "--cgroup-root and --cgroups-per-qos",
      has: { CgroupParent: expect.stringMatching(/^\/kubelet-ts-test\/kubepods\/pod/) },
    },
    { flags: "--cpu-cfs-quota, --cpu-cfs-quota-period", has: { CpuQuota: 5_000, CpuPeriod: 10_000 } },
  ])("$flags", ({ has }) => {
    expect(set.app?.HostConfig).toMatchObject(has);
  });

  test("without them containers have the defaults", () => {
    expect(unset.app?.HostConfig.SecurityOpt ?? []).toEqual([]);
    expect(unset.app?.HostConfig).toMatchObject({ CpuQuota: 50_000, CpuPeriod: 100_000 });
    expect(off.app?.HostConfig.CgroupParent).not.toContain("kubepods");
    expect(off.app?.HostConfig.CpuQuota).toBeLessThanOrEqual(0);
  });

  test("--pod-logs-dir, --containers-logs-dir", () => {
    const id = unset.app?.Config.Labels["io.kubernetes.pod.uid"];
    expect(existsSync(join(unset.node.directory, `log-pods/default_p-${unset.node.name}_${id}/app/0.log`))).toBe(true);
  });

  test("--cluster-dns, --cluster-domain, --resolv-conf", () => {
    const text = readFileSync(set.app!.ResolvConfPath, "utf8");
    expect(text).toContain("nameserver 192.0.2.10");
    expect(text).toContain("search default.svc.edge.test svc.edge.test edge.test example.com");
    expect(text).not.toContain("192.0.2.53");
  });

  test("--hostname-override and --node-ip reach the pod", () => {
    expect(set.app?.Config.Env).toEqual(expect.arrayContaining([`NODE=${set.node.name}`, "HOST=192.0.2.7"]));
    expect(set.app?.Name).toContain(`_p-${set.node.name}_`);
  });

  test("--allowed-unsafe-sysctls", () => {
    expect(set.sandbox?.HostConfig).toMatchObject({ Sysctls: { "net.core.somaxconn": "1024" } });
  });

  const IMAGE = "127.0.0.1:1/absent/pause:9";
  const memory = { resources: { requests: { memory: "8Mi" } } };
  const RESERVED = "--system-reserved, --kube-reserved, --eviction-hard are kept from pods";

  test.concurrent.each([
    {
      why: "--pod-infra-container-image is pulled for the sandbox",
      flag: `--pod-infra-container-image=${IMAGE}`,
      says: IMAGE,
    },
    { why: "--allowed-unsafe-sysctls: none by default", spec: SYSCTLS, says: "net.core.somaxconn" },
    {
      why: "--allow-privileged: without it such a pod is refused",
      container: { securityContext: { privileged: true } },
      says: "privileged containers are not allowed",
      exitCode: 2,
    },
    {
      why: "a request for more disk than there is",
      container: { resources: { requests: { "ephemeral-storage": "900Ti" } } },
      says: "OutOfephemeral-storage: Pod Node didn't have enough resource: ephemeral-storage, requested: ",
    },
    { why: "--node-labels: a nodeSelector that asks for one is met", spec: SELECTOR, says: "NodeAffinity" },
    { why: `${RESERVED}: memory`, flag: "--system-reserved=memory=1Ei", container: memory, says: "OutOfmemory" },
    { why: `${RESERVED}: cpu`, flag: "--kube-reserved=cpu=100000", container: limited, says: "OutOfcpu" },
    {
      why: `${RESERVED}: to evict`,
      flag: "--eviction-hard=memory.available<1Ei",
      container: memory,
      says: "OutOfmemory",
    },
  ])("$why", async ({ flag, container, spec, says, exitCode = 1 }) => {
    const refused = await startOne(["--timeout=3s", ...(flag ? [flag] : [])], container, spec);
    expect(refused.exit.exitCode).toBe(exitCode);
    expect(output(refused.exit)).toContain(says);
    expect([refused.app, refused.sandbox]).toEqual([undefined, undefined]);
  });

  test.concurrent("--validate: an unknown field is refused, warned of, ignored", async () => {
    const tried = async (...flags: string[]) => (await startOne(flags, { livenesProbe: {} })).exit;
    const strict = await tried();
    expect([strict.exitCode, output(strict)]).toEqual([2, expect.stringContaining("livenessProbe")]);
    const warned = await tried("--validate=warn");
    expect([warned.exitCode, output(warned)]).toEqual([0, expect.stringContaining("livenesProbe")]);
    const ignored = await tried("--validate=ignore");
    expect([ignored.exitCode, output(ignored)]).toEqual([0, expect.not.stringContaining("livenesProbe")]);
  });

  test.concurrent("--output, --timeout", async () => {
    const node = testNode();
    const manifest = node.writeManifest("p.json", sleeper("p", { readinessProbe: { exec: { command: ["false"] } } }));
    const { stdout } = await node.runOnce(["-o", "json", "--wait=running", manifest]);
    expect(JSON.parse(stdout).pods[0]).toMatchObject({ name: `p-${node.name}`, namespace: "default" });
    const yaml = await node.runOnce(["-o", "yaml", "--wait=running", manifest]);
    expect(yaml.stdout).toStartWith(`pods:\n  - namespace: default\n    name: p-${node.name}\n`);
    const slow = node.writeManifest("q.json", sleeper("q", { image: "192.0.2.1/never:1" }));
    expect((await node.runOnce(["--timeout=2s", slow])).exitCode).toBe(1);
  });

  test.concurrent("--wait", async () => {
    const node = testNode();
    const probe = { exec: shell("echo too early; false"), periodSeconds: 1 };
    const late = { ...shell("echo last words; exec sleep 1000"), readinessProbe: probe };
    const unready = node.writeManifest("p.json", sleeper("p", late));
    const { exitCode, stderr } = await node.runOnce(["--timeout=8s", unready]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /✗ default\/p-.* not ready within 8 s: container \w+: not ready: Readiness probe failed: too early/,
    );
    expect(stderr).toContain("\n    last words\n");
    expect((await node.runOnce(["--wait=running", unready])).exitCode).toBe(0);
    const endless = await node.runOnce(["--wait=completed", unready]);
    expect(endless.stderr).toContain("never completes: its restartPolicy is Always");
    const complete = (script: string) => {
      const manifest = node.writeManifest("job.json", sleeper("job", shell(script), { restartPolicy: "Never" }));
      return node.runOnce(["--wait=completed", manifest]);
    };
    expect((await complete("sleep 1")).exitCode).toBe(0);
    const failed = await complete("sleep 1; echo no luck; exit 3");
    expect([failed.exitCode, failed.stderr]).toEqual([
      1,
      expect.stringMatching(/✗ .*exited with code 3.*\n {4}no luck\n/),
    ]);
  });

  test.concurrent("--runonce waits for the successor of a pod that ignores TERM", async () => {
    const node = testNode();
    const spec = { terminationGracePeriodSeconds: 3 };
    for (const name of ["first", "second"]) {
      const script = shell(`trap '' TERM; echo ${name}; while :; do sleep 1; done`);
      expect((await startOne([], script, spec, node)).exit.exitCode).toBe(0);
    }
    expect((await node.listAll()).filter(({ State }) => State === "running")).toHaveLength(2);
  });
});

const isOpen = (host: string, port: number) =>
  fetch(`http://${host}:${port}/`).then(
    () => true,
    () => false,
  );

const isServed = (host: string, port: number) =>
  fetch(`http://${host}:${port}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );

const KIND = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

function writeConfig(node: TestNode, body: string): string {
  const file = join(node.directory, "k.yaml");
  writeFileSync(file, KIND + body);
  return file;
}

describeWithEngine("what flags do to the program", () => {
  test.concurrent("--read-only-full: environment values are hidden unless it is set", async () => {
    const node = testNode();
    node.writeManifest("p.json", sleeper("p", { env: [{ name: "TOKEN", value: "s3cret-literal" }] }));
    const hidden = await node.start();
    await node.until("the pod", async () => (await node.pods()).length === 1);
    expect(await node.read("/pods")).not.toContain("s3cret-literal");
    await hidden.stop();
    await node.start(["--read-only-full"]);
    await node.until("the value", async () => (await node.read("/pods")).includes("s3cret-literal"));
  });

  test.concurrent("--read-only-port=0, --cadvisor-port=0 are off; --enable-server=false leaves /healthz", async () => {
    const node = testNode();
    const first = await node.start(["--read-only-port=0", "--cadvisor-port=0"]);
    const { readOnlyPort, cadvisorPort } = node;
    expect([await isOpen("127.0.0.1", readOnlyPort), await isOpen("127.0.0.1", cadvisorPort)]).toEqual([false, false]);
    await first.stop();
    await node.start(["--enable-server=false"]);
    expect(await isOpen("127.0.0.1", readOnlyPort)).toBe(false);
    expect(await node.read("/healthz", node.healthzPort)).toBe("ok");
  });

  test.concurrent("--healthz-bind-address, --read-only-bind-address, --cadvisor-bind-address, --address", async () => {
    const node = testNode();
    const { healthzPort, readOnlyPort, cadvisorPort } = node;
    const first = node.spawn([...node.flags(), "--healthz-bind-address=127.0.0.2", "--address=127.0.0.3"]);
    await node.until("its health", () => isServed("127.0.0.2", healthzPort));
    await node.until("the read-only port", () => isServed("127.0.0.3", readOnlyPort));
    expect([await isServed("127.0.0.1", healthzPort), await isServed("127.0.0.1", readOnlyPort)]).toEqual([
      false,
      false,
    ]);
    await first.stop();
    const others = ["--read-only-bind-address=127.0.0.4", "--cadvisor-bind-address=127.0.0.9"];
    node.spawn([...node.flags(), "--address=127.0.0.3", ...others]);
    await node.until("the other address", () => isServed("127.0.0.4", readOnlyPort));
    await node.until("cAdvisor's port", () => isOpen("127.0.0.9", cadvisorPort));
    expect([await isServed("127.0.0.3", readOnlyPort), await isOpen("127.0.0.1", cadvisorPort)]).toEqual([
      false,
      false,
    ]);
  });

  test.concurrent("--v, --log-format, --log-dir, --logtostderr", async () => {
    const node = testNode();
    const logDir = join(node.directory, "logs");
    node.writeManifest("p.json~", "x");
    writeFileSync(join(node.manifestDir, "web.yaml.bak"), "x");
    const loud = await node.start(["--v=2", "--log-format=json", `--log-dir=${logDir}`]);
    await node.untilLogged(loud, "Manifests: skipped");
    for (const line of loud.log.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("msg");
    await loud.stop();
    expect(readFileSync(join(logDir, "kubelet-ts.log"), "utf8")).toContain("Manifests: skipped");
    const silent = await node.start([`--log-dir=${logDir}`, "--logtostderr=false"]);
    expect((await silent.stop()).stderr).toBe("");
  });

  test.concurrent("--config: its values are in /configz, with secrets masked", async () => {
    const node = testNode();
    const file = writeConfig(node, 'maxPods: 7\nstaticPodURLHeader: {Authorization: ["Bearer s3cret"]}\n');
    const kubelet = await node.start([`--config=${file}`, "--manifest-url=http://me:s3cret@127.0.0.1:1/?key=s3cret"]);
    const text = await node.read("/configz");
    expect(JSON.parse(text).kubeletconfig).toMatchObject({ kind: "KubeletConfiguration", maxPods: 7 });
    expect(text).not.toContain("s3cret");
    await node.untilLogged(kubelet, "refuses the connection");
    expect(kubelet.log).not.toContain("s3cret");
    expect(await node.read("/healthz?verbose", node.healthzPort)).toContain("refuses the connection");
  });

  test.concurrent("--config: an unknown field ends the start with exit code 2", async () => {
    const node = testNode();
    const file = writeConfig(node, "unknownField: 1\n");
    const { exitCode, stderr } = await node.spawn([...node.flags(), `--config=${file}`]).finished();
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${file}:3:1: unknownField: no such field`)]);
  });

  test.concurrent("--config with a directory is the manifest directory of old kubelets", async () => {
    const node = testNode();
    const old = join(node.directory, "old");
    mkdirSync(old);
    writeFileSync(join(old, "p.json"), JSON.stringify(sleeper("p")));
    await node.start([`--config=${old}`]);
    await node.runningContainer("app");
  });

  test.concurrent("--file-check-frequency finds what no event reports", async () => {
    const node = testNode();
    const elsewhere = join(node.directory, "elsewhere.json");
    writeFileSync(elsewhere, JSON.stringify(sleeper("p")));
    // The edit happens in a directory that is not watched.
    symlinkSync(elsewhere, join(node.manifestDir, "p.json"));
    await node.start(["--file-check-frequency=1s"]);
    const first = await node.runningContainer("app");
    writeFileSync(elsewhere, JSON.stringify(sleeper("p", { env: [{ name: "A", value: "b" }] })));
    await node.successorOf("app", first.Id);
  });

  test.concurrent("--root-dir: a second kubelet-ts on it is refused, next to it is not", async () => {
    const node = testNode();
    await node.start();
    const second = await node.spawn(node.flags()).finished();
    expect([second.exitCode, second.stderr]).toEqual([1, expect.stringContaining("--root-dir")]);
  });
});
