import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { object, STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

interface Broken {
  name: string;
  container?: Record<string, unknown>;
  spec?: Record<string, unknown>;
  annotations?: object;
  problem: string;
  fix: string;
  /** With it the pod becomes Ready: the fix; where that needs another machine or flag, the pod without what it asked for. */
  mended: Pick<Broken, "container" | "spec" | "annotations">;
}

const volume = (source: object, mountPath = "/v") => ({
  container: { volumeMounts: [{ name: "v", mountPath }] },
  spec: { volumes: [{ name: "v", ...source }] },
});
const user = (securityContext: object) => ({ container: { securityContext } });
const env = (valueFrom: object) => ({ container: { env: [{ name: "A", valueFrom }] } });
const script = (first: string, more: object = {}) => ({
  container: { ...shell(`${first} || exit 1; ${STOPPABLE}`), ...more },
});
const limits = (resources: object) => ({ container: { resources: { limits: resources } } });
const hostPort = (more: object) => ({ container: { ports: [{ containerPort: 80, hostPort: 45_871, ...more }] } });
const closed = { tcpSocket: { port: 80 }, periodSeconds: 1, failureThreshold: 1 };
const fine = { exec: { command: ["true"] }, periodSeconds: 1 };
const image = (name: string, imagePullPolicy = "Never") => ({ container: { image: name, imagePullPolicy } });
const EATER = "dd if=/dev/zero of=/dev/null bs=40M count=1";
const DOWN = "ip link set lo down";
const gone = (name: string) => ({ annotations: { "kubelet-ts.io/network": name } });

/** Pods that do not become Ready, each with its true cause and a fix. */
const BROKEN: Broken[] = [
  // Refusals of the engine and the kernel.
  { name: "gpu", ...limits({ "nvidia.com/gpu": 1 }), problem: "no driver for GPUs", fix: "nvidia-ctk", mended: {} },
  {
    name: "network",
    ...gone("nonet"),
    problem: '"nonet" does not exist',
    fix: "docker network create nonet",
    mended: {},
  },
  {
    name: "sysctl-value",
    spec: { securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced", value: "zzz" }] } },
    problem: "sysctl kernel.shm_rmid_forced",
    fix: "its name and value",
    mended: { spec: { securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced", value: "1" }] } } },
  },
  {
    name: "mount-on-file",
    ...volume({ hostPath: { path: "/tmp" } }, "/etc/passwd"),
    problem: "one is a directory, the other one a file",
    fix: "mount a directory on a directory",
    mended: volume({ hostPath: { path: "/tmp" } }),
  },
  {
    name: "tiny",
    ...limits({ memory: "1Mi" }),
    problem: "too low to start",
    fix: "raise",
    mended: limits({ memory: "64Mi" }),
  },
  {
    name: "host-ip",
    ...hostPort({ hostIP: "10.99.99.99" }),
    problem: "10.99.99.99",
    fix: "hostIP",
    mended: hostPort({}),
  },
  {
    name: "capability",
    ...user({ capabilities: { add: ["NOPE"] } }),
    problem: 'no capability "NOPE"',
    fix: "securityContext.capabilities",
    mended: user({ capabilities: { add: ["NET_ADMIN"] } }),
  },
  {
    name: "work-dir",
    container: { workingDir: "/etc/passwd" },
    problem: "not a directory",
    fix: "workingDir",
    mended: { container: { workingDir: "/etc" } },
  },
  {
    name: "seccomp",
    ...user({ seccompProfile: { type: "Localhost", localhostProfile: "x.json" } }),
    problem: "seccomp profile is not on this machine",
    fix: "RuntimeDefault",
    mended: user({ seccompProfile: { type: "RuntimeDefault" } }),
  },
  {
    name: "lacks-chown",
    ...script("chown 5 /tmp", { securityContext: { capabilities: { drop: ["ALL"] } } }),
    problem: "exit code 1",
    fix: "capabilities.add: CHOWN",
    mended: script("chown 5 /tmp", { securityContext: { capabilities: { drop: ["ALL"], add: ["CHOWN"] } } }),
  },
  {
    name: "lacks-net-admin",
    ...script(DOWN),
    problem: "exit code 1",
    fix: "NET_ADMIN for networks",
    mended: script(DOWN, { securityContext: { capabilities: { add: ["NET_ADMIN"] } } }),
  },
  // Refusals of the node.
  {
    name: "sysctl",
    spec: { securityContext: { sysctls: [{ name: "net.core.somaxconn", value: "100" }] } },
    problem: "sets a sysctl",
    fix: "--allowed-unsafe-sysctls=net.core.somaxconn",
    mended: {},
  },
  {
    name: "runtime",
    spec: { runtimeClassName: "kata" },
    problem: "cannot run the pod",
    fix: "daemon.json",
    mended: {},
  },
  {
    name: "selector",
    spec: { nodeSelector: { a: "b" } },
    problem: "labels of the node",
    fix: "--node-labels",
    mended: {},
  },
  {
    name: "cpu",
    container: { resources: { requests: { cpu: "1000" } } },
    problem: "more than the node has left",
    fix: "more than the whole node has",
    mended: { container: { resources: { requests: { cpu: "1m" } } } },
  },
  { name: "deadline", spec: { activeDeadlineSeconds: 1 }, problem: "activeDeadlineSeconds", fix: "raise", mended: {} },
  // Missing objects, files and images.
  {
    name: "config-key",
    ...env({ configMapKeyRef: { name: "conf", key: "no" } }),
    problem: 'key "no" is missing in ConfigMap',
    fix: "correct its name",
    mended: env({ configMapKeyRef: { name: "conf", key: "k" } }),
  },
  {
    name: "secret",
    ...env({ secretKeyRef: { name: "nope", key: "k" } }),
    problem: 'Secret "nope" is missing',
    fix: "mark the reference optional",
    mended: env({ secretKeyRef: { name: "nope", key: "k", optional: true } }),
  },
  {
    name: "secret-file",
    ...env({ secretKeyRef: { name: "filed", key: "k" } }),
    problem: 'the file "/nope/k"',
    fix: "write the file /nope/k",
    mended: env({ secretKeyRef: { name: "filed", key: "k", optional: true } }),
  },
  {
    name: "config-volume",
    ...volume({ configMap: { name: "nope" } }),
    problem: "volume cannot be made ready",
    fix: 'add the ConfigMap "nope"',
    mended: volume({ configMap: { name: "conf" } }),
  },
  {
    name: "host-path",
    ...volume({ hostPath: { path: "/tmp/nope/x", type: "File" } }),
    problem: "volume cannot be made ready",
    fix: "make that file",
    mended: volume({ hostPath: { path: "/etc/passwd", type: "File" } }),
  },
  {
    name: "no-image",
    ...image("nope:1"),
    problem: '"nope:1" is not on this machine',
    fix: "docker load",
    mended: image("busybox:test"),
  },
  {
    name: "no-registry",
    ...image("localhost:1/nope:1", "Always"),
    problem: "cannot be pulled",
    fix: "the registry cannot be reached",
    mended: image("busybox:test", "IfNotPresent"),
  },
  {
    name: "image-name",
    ...image("NOPE:1"),
    problem: "is not an image name",
    fix: "image",
    mended: image("busybox:test"),
  },
  {
    name: "program",
    container: { command: ["nope"] },
    problem: "cannot be started",
    fix: '"nope" exists in the image',
    mended: {},
  },
  {
    name: "shell-line",
    container: { command: ["sleep 1000"] },
    problem: "cannot be started",
    fix: '["sh", "-c", "sleep 1000"]',
    mended: { container: { command: ["sh", "-c", "sleep 1000"] } },
  },
  // Users and files.
  {
    name: "non-root",
    ...user({ runAsNonRoot: true }),
    problem: "runs as root",
    fix: "runAsUser",
    mended: user({ runAsNonRoot: true, runAsUser: 1000 }),
  },
  {
    name: "user-0",
    ...user({ runAsNonRoot: true, runAsUser: 0 }),
    problem: "runAsUser is 0",
    fix: "other than 0",
    mended: user({ runAsNonRoot: true, runAsUser: 1000 }),
  },
  {
    name: "read-only",
    ...script("touch /x", { securityContext: { readOnlyRootFilesystem: true } }),
    problem: "exit code 1",
    fix: "readOnlyRootFilesystem: false",
    mended: script("touch /x", { securityContext: { readOnlyRootFilesystem: false } }),
  },
  {
    name: "permission",
    ...script("touch /x", { securityContext: { runAsUser: 1000 } }),
    problem: "exit code 1",
    fix: "runAsUser",
    mended: script("touch /x", { securityContext: { runAsUser: 0 } }),
  },
  // Programs, probes and hooks.
  { name: "success", container: { command: ["true"] }, problem: "ended with success", fix: "foreground", mended: {} },
  {
    name: "oom",
    ...script(EATER, { resources: { limits: { memory: "16Mi" } } }),
    problem: "its limit of 16Mi",
    fix: "raise resources.limits.memory",
    mended: script(EATER, { resources: { limits: { memory: "128Mi" } } }),
  },
  {
    name: "live",
    container: { livenessProbe: closed },
    problem: "liveness",
    fix: "port",
    mended: { container: { livenessProbe: fine } },
  },
  {
    name: "start",
    container: { startupProbe: closed },
    problem: "startup",
    fix: "port",
    mended: { container: { startupProbe: fine } },
  },
  {
    name: "ready",
    container: { readinessProbe: closed },
    problem: "readiness",
    fix: "0.0.0.0",
    mended: { container: { readinessProbe: fine } },
  },
  {
    name: "probe-command",
    container: { readinessProbe: { exec: { command: ["nope"] }, periodSeconds: 1 } },
    problem: "readiness probe fails",
    fix: '"nope" is not in the image',
    mended: { container: { readinessProbe: fine } },
  },
  {
    name: "hook",
    container: { lifecycle: { postStart: { exec: { command: ["false"] } } } },
    problem: "postStart hook failed",
    fix: "lifecycle.postStart",
    mended: { container: { lifecycle: { postStart: { exec: { command: ["true"] } } } } },
  },
  {
    name: "init",
    spec: { initContainers: [{ name: "i", image: "busybox:test", command: ["false"] }] },
    problem: "wait for it (exit code 1)",
    fix: "log",
    mended: { spec: { initContainers: [{ name: "i", image: "busybox:test", command: ["true"] }] } },
  },
  {
    name: "gate",
    spec: { readinessGates: [{ conditionType: "x/y" }] },
    problem: "x/y",
    fix: "spec.readinessGates",
    mended: {},
  },
];

function write(node: TestNode, name: string, { container = {}, spec = {}, annotations = {} }: Partial<Broken>) {
  node.writeManifest(`${name}.json`, sleeper(name, container, spec, { annotations }));
}

interface Explanation {
  name: string;
  causes: { problem: string; fix: string }[];
}

/** The causes of all pods that are not ready, by the name of the pod. */
async function explainAll(node: TestNode): Promise<Map<string, Explanation["causes"]>> {
  const { stdout } = await node.run("explain -o json");
  const all = stdout.startsWith("[") ? (JSON.parse(stdout) as Explanation[]) : [];
  return new Map(all.map(({ name, causes }) => [name.replace(`-${node.name}`, ""), causes]));
}

describeWithEngine("explain", () => {
  test(`${BROKEN.length} broken pods have their true causes, and become ready when they are mended`, async () => {
    const node = testNode();
    node.writeManifest("conf.json", object("ConfigMap", "conf", { data: { k: "v" } }));
    const annotations = { "kubelet-ts.io/secret-from": "k=file:/nope/k" };
    node.writeManifest("filed.json", object("Secret", "filed", {}, { annotations }));
    for (const { name, ...fields } of BROKEN) write(node, name, fields);
    await node.start();

    const told = new Set<string>();
    let causes = new Map<string, Explanation["causes"]>();
    // A container that is started again has another cause for a moment: each is waited for alone.
    const untold = async () => {
      causes = await explainAll(node);
      for (const { name, problem, fix } of BROKEN) {
        const isTrue = (cause: { problem: string; fix: string }) =>
          cause.problem.includes(problem) && cause.fix.includes(fix);
        if (causes.get(name)?.some(isTrue)) told.add(name);
      }
      return BROKEN.map(({ name }) => name).filter((name) => !told.has(name));
    };
    await node.until("the causes", async () => (await untold()).length === 0, 60_000).catch(() => {});
    expect((await untold()).map((name) => [name, causes.get(name)])).toEqual([]);

    for (const { name, mended } of BROKEN) write(node, name, mended);
    const unready = async () => {
      const pods = await node.pods();
      const isReady = ({ name }: Broken) =>
        pods
          .find(({ metadata }) => metadata.name === `${name}-${node.name}`)
          ?.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
      return BROKEN.filter((broken) => !isReady(broken)).map(({ name }) => name);
    };
    await node.until("the mended pods", async () => (await unready()).length === 0, 120_000).catch(() => {});
    const left = await unready();
    causes = await explainAll(node);
    expect(left.map((name) => [name, causes.get(name)])).toEqual([]);
  }, 300_000);
});
