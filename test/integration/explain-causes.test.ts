import { expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { askApi } from "../support/local-api.ts";
import { object, STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import { isReady, RUN_ID, type TestNode } from "../support/test-node.ts";
import { freePorts } from "../support/test-servers.ts";

/** Fields of a pod that differ from those of `sleeper`. */
interface Fields {
  container?: Record<string, unknown>;
  spec?: Record<string, unknown>;
  annotations?: object;
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
const [HELD, FREE, PUBLISHED, TWICE] = freePorts(4) as [number, number, number, number];
const hostPort = (more: object) => ({ container: { ports: [{ containerPort: 80, hostPort: PUBLISHED, ...more }] } });
const closed = { tcpSocket: { port: 80 }, periodSeconds: 1, failureThreshold: 1 };
const fine = { exec: { command: ["true"] }, periodSeconds: 1 };
const image = (name: string, imagePullPolicy = "Never") => ({ container: { image: name, imagePullPolicy } });
const EATER = "dd if=/dev/zero of=/dev/null bs=40M count=1";
const DOWN = "ip link set lo down";
/** A network that is made for the second part of the test. */
const NETWORK = `late-${RUN_ID}-${process.pid}`;
/** A file that is written for the second part. */
const LATE_FILE = join(tmpdir(), `${NETWORK}.key`);
const inNetwork = { annotations: { "kubelet-ts.io/network": NETWORK } };
const scripts = (command: string, more: object = {}, mountPath = "/v") => ({
  container: { command: [command], volumeMounts: [{ name: "v", mountPath }] },
  spec: { volumes: [{ name: "v", configMap: { name: "conf", ...more } }] },
});
const byShell = (program: string) => {
  const { spec, container } = scripts(program, { defaultMode: 0o755 });
  return { spec, container: { ...container, ...shell(`exec ${program}`) } };
};
/** Begins as a program, for a processor that is nowhere. */
const FOREIGN = Buffer.from("\x7fELF".padEnd(120, "\0"), "latin1").toString("base64");
const subPath = (name: string) => ({
  container: {
    ...shell(`cat /etc/app.conf || exit 1; ${STOPPABLE}`),
    volumeMounts: [{ name: "v", mountPath: "/etc/app.conf", subPath: name }],
  },
  spec: { volumes: [{ name: "v", configMap: { name: "conf" } }] },
});
const memory = (sizeLimit: string) => ({
  container: {
    ...shell(`dd if=/dev/zero of=/v/x bs=1M count=20 || exit 1; ${STOPPABLE}`),
    volumeMounts: [{ name: "v", mountPath: "/v" }],
  },
  spec: { volumes: [{ name: "v", emptyDir: { medium: "Memory", sizeLimit } }] },
});
const twoServers = (port: number) => {
  const server = (name: string, number: number, pause: string) => ({
    name,
    image: "busybox:test",
    ...shell(`${pause}exec httpd -f -p ${number} -h /etc`),
  });
  return { spec: { containers: [server("app", 80, ""), server("other", port, "sleep 1; ")] } };
};
const after = (name: string) => ({ annotations: { "kubelet-ts.io/depends-on": `default/${name}=Ready` } });

/**
 * Pods that do not become Ready: their true cause, a fix for it, and the pod with which they become Ready: that of the fix; where
 * it needs another machine, a pod without what it asked for. Causes whose words are our own have rows in explain-pod.test.ts.
 */
const BROKEN: Readonly<Record<string, [problem: string, fix: string, broken: Fields, fixed?: Fields]>> = {
  // Refusals of the engine and the kernel.
  gpu: ["no driver for GPUs", "nvidia-ctk", limits({ "nvidia.com/gpu": 1 })],
  network: [`"${NETWORK}" does not exist`, `docker network create ${NETWORK}`, inNetwork, inNetwork],
  "sysctl-value": [
    "sysctl kernel.shm_rmid_forced",
    "its name and value",
    { spec: { securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced", value: "zzz" }] } } },
    { spec: { securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced", value: "1" }] } } },
  ],
  "mount-on-file": [
    "one is a directory, the other one a file",
    "mount a directory on a directory",
    volume({ hostPath: { path: "/tmp" } }, "/etc/passwd"),
    volume({ hostPath: { path: "/tmp" } }),
  ],
  tiny: ["too low to start", "raise", limits({ memory: "1Mi" }), limits({ memory: "64Mi" })],
  "host-ip": ["10.99.99.99", "hostIP", hostPort({ hostIP: "10.99.99.99" }), hostPort({})],
  capability: [
    'no capability "NOPE"',
    "securityContext.capabilities",
    user({ capabilities: { add: ["NOPE"] } }),
    user({ capabilities: { add: ["NET_ADMIN"] } }),
  ],
  "work-dir": [
    "not a directory",
    "workingDir",
    { container: { workingDir: "/etc/passwd" } },
    { container: { workingDir: "/etc" } },
  ],
  "lacks-chown": [
    "exit code 1",
    "capabilities.add: CHOWN",
    script("chown 5 /tmp", { securityContext: { capabilities: { drop: ["ALL"] } } }),
    script("chown 5 /tmp", { securityContext: { capabilities: { drop: ["ALL"], add: ["CHOWN"] } } }),
  ],
  "lacks-net-admin": [
    "exit code 1",
    "NET_ADMIN for networks",
    script(DOWN),
    script(DOWN, { securityContext: { capabilities: { add: ["NET_ADMIN"] } } }),
  ],
  // Refusals of the node.
  runtime: ["cannot run the pod", "daemon.json", { spec: { runtimeClassName: "kata" } }],
  deadline: [
    "activeDeadlineSeconds",
    "raise",
    { spec: { activeDeadlineSeconds: 1 } },
    { spec: { activeDeadlineSeconds: 9999 } },
  ],
  // Missing objects, files and images.
  "secret-file": [
    `the file "${LATE_FILE}"`,
    `write the file ${LATE_FILE}`,
    env({ secretKeyRef: { name: "filed", key: "k" } }),
    env({ secretKeyRef: { name: "filed", key: "k" } }),
  ],
  "host-path": [
    "volume cannot be made ready",
    "make that file",
    volume({ hostPath: { path: "/tmp/nope/x", type: "File" } }),
    volume({ hostPath: { path: "/etc/passwd", type: "File" } }),
  ],
  "no-registry": [
    "cannot be pulled",
    "the registry cannot be reached",
    image("localhost:1/nope:1", "Always"),
    image("busybox:test", "IfNotPresent"),
  ],
  "image-name": ["is not an image name", "image", image("NOPE:1"), image("busybox:test")],
  program: ["cannot be started", '"nope" exists in the image', { container: { command: ["nope"] } }],
  "shell-line": [
    "cannot be started",
    '["sh", "-c", "sleep 1000"]',
    { container: { command: ["sleep 1000"] } },
    { container: { command: ["sh", "-c", "sleep 1000"] } },
  ],
  "windows-lines": [
    "exit code",
    "Windows line ends",
    scripts("/v/crlf.sh", { defaultMode: 0o755 }),
    scripts("/v/run.sh", { defaultMode: 0o755 }),
  ],
  "not-executable": [
    "cannot be started",
    "defaultMode: 0755",
    scripts("/v/run.sh"),
    scripts("/v/run.sh", { defaultMode: 0o755 }),
  ],
  "no-interpreter": [
    "exit code 1",
    "add #!/bin/sh",
    scripts("/v/plain", { defaultMode: 0o755 }),
    scripts("/v/run.sh", { defaultMode: 0o755 }),
  ],
  processor: [
    "exit code",
    "processor of this machine",
    scripts("/v/foreign", { defaultMode: 0o755 }),
    scripts("/v/run.sh", { defaultMode: 0o755 }),
  ],
  "processor-by-shell": ["exit code", "processor of this machine", byShell("/v/foreign"), byShell("/v/run.sh")],
  "sub-path": ["exit code 1", "volume v has no file nope.conf", subPath("nope.conf"), subPath("k")],
  hidden: [
    "cannot be started",
    "volume v hides what the image has in /bin",
    scripts("/bin/sh", {}, "/bin"),
    scripts("/w/run.sh", { defaultMode: 0o755 }, "/w"),
  ],
  "memory-volume": ["exit code 1", "sizeLimit of v at /v (4Mi)", memory("4Mi"), memory("64Mi")],
  dependency: ['no pod "default/nope"', "correct its name in the annotation", after("nope"), after("tiny")],
  // Users and files.
  "read-only": [
    "exit code 1",
    "readOnlyRootFilesystem: false",
    script("touch /x", { securityContext: { readOnlyRootFilesystem: true } }),
    script("touch /x", { securityContext: { readOnlyRootFilesystem: false } }),
  ],
  // Programs, probes and hooks.
  oom: [
    "its limit of 16Mi",
    "raise resources.limits.memory",
    script(EATER, { resources: { limits: { memory: "16Mi" } } }),
    script(EATER, { resources: { limits: { memory: "128Mi" } } }),
  ],
  live: ["liveness", "port", { container: { livenessProbe: closed } }, { container: { livenessProbe: fine } }],
  "probe-command": [
    "readiness probe fails",
    '"nope" is not in the image',
    { container: { readinessProbe: { exec: { command: ["nope"] }, periodSeconds: 1 } } },
    { container: { readinessProbe: fine } },
  ],
  bash: ["cannot be started", "write sh", { container: { command: ["/bin/bash", "-c", "sleep 9"] } }],
  "same-port": ["exit code 1", "give each its own", twoServers(80), twoServers(81)],
  hook: [
    "postStart hook failed",
    "lifecycle.postStart",
    { container: { lifecycle: { postStart: { exec: { command: ["false"] } } } } },
    { container: { lifecycle: { postStart: { exec: { command: ["true"] } } } } },
  ],
  init: [
    "wait for it (exit code 1)",
    "log",
    { spec: { initContainers: [{ name: "i", image: "busybox:test", command: ["false"] }] } },
    { spec: { initContainers: [{ name: "i", image: "busybox:test", command: ["true"] }] } },
  ],
};

const template = (name: string, container: object, spec: object = {}) => ({
  metadata: { labels: { app: name } },
  spec: { containers: [{ name: "app", image: "busybox:test", ...shell(STOPPABLE), ...container }], ...spec },
});
const workload = (kind: string, name: string, spec: object, container: object = {}, pod: object = {}) =>
  object(kind, name, {
    spec: { selector: { matchLabels: { app: name } }, template: template(name, container, pod), ...spec },
  });
const ONCE = { restartPolicy: "Never", hostNetwork: true };
const job = (name: string, spec: object, ...first: string[]) =>
  object("Job", name, {
    spec: { ...spec, template: template(name, shell(first.join(" ")), ONCE) },
  });
const service = (name: string, spec: object) => object("Service", name, { spec: { ports: [{ port: 80 }], ...spec } });
const named = { ports: [{ containerPort: 80, name: "http" }] };
const cronJob = (
  name: string,
  { schedule = "0 3 1 1 *", suspend = false, command = "true", concurrencyPolicy = "Allow" },
) =>
  object("CronJob", name, {
    spec: {
      concurrencyPolicy,
      suspend,
      schedule,
      jobTemplate: { spec: { backoffLimit: 0, template: template(name, shell(command), ONCE) } },
    },
  });
const nodePort = (nodePort: number) => ({
  type: "NodePort",
  selector: { app: "target" },
  ports: [{ port: 80, targetPort: "http", nodePort }],
});
const twice = { ports: [{ containerPort: 80, hostPort: TWICE }] };
const ingress = (name: string, more: object, to = "target") => {
  const backend = { service: { name: to, port: { number: 80 } } };
  const rules = [{ host: `${name}.test`, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }];
  return object("Ingress", name, { apiVersion: "networking.k8s.io/v1", spec: { rules, ...more } });
};

/** Workloads, Jobs, Services and Ingresses, by their kind and name: the true cause, a fix for it, and the object with that fix. */
const BROKEN_OBJECTS: Readonly<Record<string, [problem: string, fix: string, broken: object, fixed: object]>> = {
  "deployment/zero": [
    "no pods are wanted",
    "spec.replicas",
    workload("Deployment", "zero", { replicas: 0 }),
    workload("Deployment", "zero", { replicas: 1 }),
  ],
  "deployment/paused": [
    "paused",
    "spec.paused",
    workload("Deployment", "paused", { paused: true }),
    workload("Deployment", "paused", { paused: false }),
  ],
  "deployment/late": [
    "ProgressDeadlineExceeded",
    "do not become Ready",
    workload("Deployment", "late", { progressDeadlineSeconds: 2 }, { readinessProbe: closed }),
    workload("Deployment", "late", { progressDeadlineSeconds: 600 }, { readinessProbe: fine }),
  ],
  "daemonset/elsewhere": [
    "nodeSelector",
    "spec.template.spec.nodeSelector",
    workload("DaemonSet", "elsewhere", {}, {}, { nodeSelector: { disk: "ssd" } }),
    workload("DaemonSet", "elsewhere", {}),
  ],
  "job/failing": [
    "BackoffLimitExceeded",
    "delete the Job",
    job("failing", { backoffLimit: 0 }, "exit 3"),
    job("failing", { backoffLimit: 0 }, "true"),
  ],
  "job/slow": [
    "DeadlineExceeded",
    "spec.activeDeadlineSeconds",
    job("slow", { activeDeadlineSeconds: 2 }, "sleep 5"),
    job("slow", { activeDeadlineSeconds: 600 }, "sleep 5"),
  ],
  "job/asleep": [
    "suspended",
    "spec.suspend",
    job("asleep", { suspend: true }, "true"),
    job("asleep", { suspend: false }, "true"),
  ],
  "job/trying": [
    " failed",
    "spec.backoffLimit",
    job("trying", { backoffLimit: 9 }, "exit 3"),
    job("trying", { backoffLimit: 9 }, "true"),
  ],
  "job/unbegun": [
    "its pods have not begun",
    "kubelet-ts explain",
    object("Job", "unbegun", {
      spec: {
        template: template("unbegun", { image: "nope:1", imagePullPolicy: "Never" }, ONCE),
      },
    }),
    job("unbegun", {}, "true"),
  ],
  "cronjob/stuck": [
    "concurrencyPolicy Forbid skips",
    "explain job/stuck-",
    cronJob("stuck", { schedule: "@every 2s", command: "sleep 1000", concurrencyPolicy: "Forbid" }),
    cronJob("stuck", { schedule: "@every 2s", concurrencyPolicy: "Forbid" }),
  ],
  "cronjob/asleep": ["suspended", "spec.suspend", cronJob("asleep", { suspend: true }), cronJob("asleep", {})],
  "cronjob/never": [
    'no day is in its schedule "0 0 31 2 *"',
    "spec.schedule",
    cronJob("never", { schedule: "0 0 31 2 *" }),
    cronJob("never", { schedule: "0 0 28 2 *" }),
  ],
  "cronjob/failing": [
    "failed: BackoffLimitExceeded",
    "spec.jobTemplate",
    cronJob("failing", { schedule: "@every 2s", command: "false" }),
    cronJob("failing", { schedule: "@every 2s" }),
  ],
  "deployment/twice": [
    `all its pods ask for port ${TWICE}`,
    "spec.replicas to 1",
    workload("Deployment", "twice", { replicas: 2 }, twice),
    workload("Deployment", "twice", { replicas: 1 }, twice),
  ],
  "service/alone": [
    "matches no pod",
    "spec.selector",
    service("alone", { selector: { app: "nothing" } }),
    service("alone", { selector: { app: "target" } }),
  ],
  "service/port": [
    'a port called "web"',
    "targetPort",
    service("port", { selector: { app: "target" }, ports: [{ port: 80, targetPort: "web" }] }),
    service("port", { selector: { app: "target" }, ports: [{ port: 80, targetPort: "http" }] }),
  ],
  "service/published": [
    "PortNotAllocated",
    "another nodePort",
    service("published", nodePort(HELD)),
    service("published", nodePort(FREE)),
  ],
  "service/nowhere": [
    "none of its pods is Ready",
    "what its pods say",
    service("nowhere", { selector: { app: "unready" } }),
    service("nowhere", { selector: { app: "target" } }),
  ],
  "ingress/backend": [
    'no Service "default/nope"',
    "name and the port",
    ingress("backend", {}, "nope"),
    ingress("backend", {}),
  ],
  "ingress/certificate": [
    'no Secret "default/nope"',
    "kubernetes.io/tls",
    ingress("certificate", { tls: [{ secretName: "nope" }] }),
    ingress("certificate", {}),
  ],
  "ingress/pods": ["no pod of Service", "explain service", ingress("pods", {}, "idle"), ingress("pods", {})],
  "ingress/class": [
    "no server on this node",
    "ingressClassName",
    ingress("class", { ingressClassName: "nope" }),
    ingress("class", { ingressClassName: "nginx" }),
  ],
};

const NAMES = Object.keys(BROKEN);
/** Pods whose cause or fix is in their own network; without one a pod costs the machine two thirds. */
const OWN_NETWORK = ["network", "sysctl-value", "host-ip", "capability", "lacks-net-admin", "live", "same-port"];

function write(node: TestNode, name: string, { container = {}, spec = {}, annotations = {} }: Fields = {}) {
  const hostNetwork = !OWN_NETWORK.includes(name);
  node.writeManifest(`${name}.json`, sleeper(name, container, { hostNetwork, ...spec }, { annotations }));
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
  test(`${NAMES.length} broken pods have their true causes, and become ready when they are fixed`, async () => {
    const node = testNode();
    const data = {
      k: "v",
      "run.sh": "#!/bin/sh\nexec sleep 1000\n",
      plain: "exec sleep 1000\n",
      "crlf.sh": "#!/bin/sh\r\nexec sleep 1000\r\n",
    };
    node.writeManifest("conf.json", object("ConfigMap", "conf", { data, binaryData: { foreign: FOREIGN } }));
    const annotations = { "kubelet-ts.io/secret-from": `k=file:${LATE_FILE}` };
    node.writeManifest("filed.json", object("Secret", "filed", {}, { annotations }));
    for (const [name, [, , broken]] of Object.entries(BROKEN)) write(node, name, broken);
    const kubelet = await node.start();

    const explained = new Set<string>();
    let causes = new Map<string, Explanation["causes"]>();
    // A container that is started again has another cause for a moment: each is waited for alone.
    const unexplained = async () => {
      causes = await explainAll(node);
      for (const [name, [problem, fix]] of Object.entries(BROKEN)) {
        const found = causes.get(name)?.some((cause) => cause.problem.includes(problem) && cause.fix.includes(fix));
        if (found) explained.add(name);
      }
      return NAMES.filter((name) => !explained.has(name));
    };
    await node.until("the causes", async () => (await unexplained()).length === 0, 120_000).catch(() => {});
    expect((await unexplained()).map((name) => [name, causes.get(name)])).toEqual([]);

    for (const [name, [, , , fixed]] of Object.entries(BROKEN)) write(node, name, fixed);
    await node.docker.createNetwork({ Name: NETWORK });
    writeFileSync(LATE_FILE, "v");
    await kubelet.stop();
    await node.start();
    const unready = async () => {
      const ready = (await node.pods()).filter(isReady).map(({ metadata }) => metadata.name);
      return NAMES.filter((name) => !ready.includes(`${name}-${node.name}`));
    };
    await node.until("the fixed pods", async () => (await unready()).length === 0, 120_000).catch(() => {});
    const left = await unready();
    causes = await explainAll(node);
    expect(left.map((name) => [name, causes.get(name)])).toEqual([]);
    await node.cleanUp();
    await node.docker.removeNetwork(NETWORK);
    rmSync(LATE_FILE);
  }, 300_000);

  test("broken workloads, Jobs and Services have their true causes, and are ready when they are fixed", async () => {
    const node = testNode();
    const names = Object.keys(BROKEN_OBJECTS);
    const fileOf = (name: string) => `${name.replace("/", "-")}.json`;
    node.writeManifest("target.json", workload("Deployment", "target", {}, named));
    node.writeManifest("unready.json", workload("Deployment", "unready", {}, { readinessProbe: closed }));
    node.writeManifest("service.json", service("target", { selector: { app: "target" } }));
    // The first by name has the port.
    node.writeManifest("owner.json", service("owner", nodePort(HELD)));
    node.writeManifest("idle.json", service("idle", { selector: { app: "unready" } }));
    for (const [name, [, , broken]] of Object.entries(BROKEN_OBJECTS)) node.writeManifest(fileOf(name), broken);
    const ports = `--ingress-ports=${node.kubeletPort},${node.cadvisorPort}`;
    const flags = ["--cadvisor-port=0", "--ingress-image=nginx:1.22", ports];
    const kubelet = await node.start(flags);
    const explain = async (name: string) => {
      const { stdout, exitCode } = await node.run(`explain ${name} -o json`);
      const [first] = stdout.startsWith("[") ? (JSON.parse(stdout) as (Explanation & { isReady: boolean })[]) : [];
      return { exitCode, isReady: first?.isReady, causes: first?.causes ?? [] };
    };
    for (const [name, [problem, fix]] of Object.entries(BROKEN_OBJECTS)) {
      let seen = await explain(name);
      const isTold = () => seen.causes.some((cause) => cause.problem.includes(problem) && cause.fix.includes(fix));
      await node
        .until(`the cause of ${name}`, async () => {
          seen = await explain(name);
          return isTold();
        })
        .catch(() => {});
      expect({ name, seen, isTold: isTold() }).toMatchObject({
        name,
        isTold: true,
        seen: { isReady: false, exitCode: 1 },
      });
    }
    expect(await explain("node")).toMatchObject({ isReady: true, exitCode: 0 });
    const cordon = (unschedulable: boolean) =>
      askApi(node, "PATCH", `/api/v1/nodes/${node.name}`, { spec: { unschedulable } }, "application/merge-patch+json");
    await cordon(true);
    const cordoned = await explain("node");
    expect(cordoned).toMatchObject({ isReady: false, exitCode: 1, causes: [{ fix: "kubectl uncordon" }] });
    await cordon(false);
    expect(await explain("node")).toMatchObject({ isReady: true, exitCode: 0 });
    for (const name of names) node.removeManifest(fileOf(name));
    for (const name of names) {
      await node.until(`${name} to be gone`, async () => (await node.run(`get ${name}`)).exitCode !== 0);
    }
    for (const [name, [, , , fixed]] of Object.entries(BROKEN_OBJECTS)) node.writeManifest(fileOf(name), fixed);
    for (const name of names) {
      await node.until(`${name} to be ready`, async () => (await explain(name)).isReady === true, 60_000);
    }
    await kubelet.stop();
    // Every disk is fuller than this.
    const full = await node.start([...flags, "--eviction-hard=nodefs.available<99%"]);
    await node.until("the node to say that its disk is full", async () => (await explain("node")).causes.length > 0);
    expect(await explain("node")).toMatchObject({
      exitCode: 1,
      causes: [{ problem: expect.stringContaining("DiskPressure"), fix: expect.stringContaining("--eviction-hard") }],
    });
    await full.stop();
    await node.start([...flags, "--eviction-pressure-transition-period=0s"]);
    await node.until("the node to be ready", async () => (await explain("node")).isReady === true);
  }, 300_000);
});
