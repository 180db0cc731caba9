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
const hostPath = (path: string, type = "", mountPath = "/v") => volume({ hostPath: { path, type } }, mountPath);
const user = (securityContext: object) => ({ container: { securityContext } });
const env = (valueFrom: object) => ({ container: { env: [{ name: "A", valueFrom }] } });
const script = (first: string, more: object = {}) => ({
  container: { ...shell(`${first} || exit 1; ${STOPPABLE}`), ...more },
});
const byUser = (first: string, securityContext?: object) => script(first, { securityContext });
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

type Case<Broken> = [problem: string, fix: string, broken: Broken, fixed: Broken];
type Row<Args> = [problem: string, fix: string, broken: Args, fixed?: Args];
const EXECUTABLE = { defaultMode: 0o755 };
const RUN: Parameters<typeof scripts> = ["/v/run.sh", EXECUTABLE];
const FILED = { secretKeyRef: { name: "filed", key: "k" } };

/** Rows of pods of one form. */
const pods = <Args extends unknown[]>(make: (...args: Args) => Fields, rows: Readonly<Record<string, Row<Args>>>) =>
  Object.entries(rows).map(([name, [problem, fix, broken, fixed]]): [string, Case<Fields>] => [
    name,
    [problem, fix, make(...broken), fixed ? make(...fixed) : {}],
  ]);

/**
 * Pods that do not become Ready: their true cause, a fix for it, and the pod with which they become Ready: that of the fix; where
 * it needs another machine, a pod without what it asked for. Causes whose words are our own have rows in explain-pod.test.ts.
 */
const BROKEN: Readonly<Record<string, Case<Fields>>> = Object.fromEntries([
  // Refusals of the engine and the kernel.
  ...pods(limits, {
    gpu: ["no driver for GPUs", "nvidia-ctk", [{ "nvidia.com/gpu": 1 }]],
    tiny: ["too low to start", "raise", [{ memory: "1Mi" }], [{ memory: "64Mi" }]],
  }),
  ...pods(() => inNetwork, { network: [`"${NETWORK}" does not exist`, `docker network create ${NETWORK}`, [], []] }),
  ...pods(
    (value: string) => ({ spec: { securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced", value }] } } }),
    {
      "sysctl-value": ["sysctl kernel.shm_rmid_forced", "its name and value", ["zzz"], ["1"]],
    },
  ),
  ...pods(hostPath, {
    "mount-on-file": [
      "one is a directory, the other one a file",
      "mount a directory on a directory",
      ["/tmp", "", "/etc/passwd"],
      ["/tmp"],
    ],
    "host-path": ["volume cannot be made ready", "make that file", ["/tmp/nope/x", "File"], ["/etc/passwd", "File"]],
  }),
  ...pods(hostPort, { "host-ip": ["10.99.99.99", "hostIP", [{ hostIP: "10.99.99.99" }], [{}]] }),
  ...pods((name: string) => user({ capabilities: { add: [name] } }), {
    capability: ['no capability "NOPE"', "securityContext.capabilities", ["NOPE"], ["NET_ADMIN"]],
  }),
  ...pods((...add: string[]) => byUser("chown 5 /tmp", { capabilities: { drop: ["ALL"], add } }), {
    "lacks-chown": ["exit code 1", "capabilities.add: CHOWN", [], ["CHOWN"]],
  }),
  ...pods((...add: string[]) => byUser(DOWN, { capabilities: { add } }), {
    "lacks-net-admin": ["exit code 1", "NET_ADMIN for networks", [], ["NET_ADMIN"]],
  }),
  // Refusals of the node.
  ...pods((spec: Record<string, unknown>) => ({ spec }), {
    runtime: ["cannot run the pod", "daemon.json", [{ runtimeClassName: "kata" }]],
    deadline: ["activeDeadlineSeconds", "raise", [{ activeDeadlineSeconds: 1 }], [{ activeDeadlineSeconds: 9999 }]],
  }),
  // Missing objects, files and images.
  ...pods(env, { "secret-file": [`the file "${LATE_FILE}"`, `write the file ${LATE_FILE}`, [FILED], [FILED]] }),
  ...pods(image, {
    "no-registry": [
      "cannot be pulled",
      "the registry cannot be reached",
      ["localhost:1/nope:1", "Always"],
      ["busybox:test", "IfNotPresent"],
    ],
    "image-name": ["is not an image name", "image", ["NOPE:1"], ["busybox:test"]],
  }),
  ...pods(scripts, {
    "windows-lines": ["exit code", "Windows line ends", ["/v/crlf.sh", EXECUTABLE], RUN],
    "not-executable": ["cannot be started", "defaultMode: 0755", ["/v/run.sh"], RUN],
    "no-interpreter": ["exit code 1", "add #!/bin/sh", ["/v/plain", EXECUTABLE], RUN],
    processor: ["exit code", "processor of this machine", ["/v/foreign", EXECUTABLE], RUN],
    hidden: [
      "cannot be started",
      "volume v hides what the image has in /bin",
      ["/bin/sh", {}, "/bin"],
      ["/w/run.sh", EXECUTABLE, "/w"],
    ],
  }),
  ...pods(byShell, {
    "processor-by-shell": ["exit code", "processor of this machine", ["/v/foreign"], ["/v/run.sh"]],
  }),
  ...pods(subPath, { "sub-path": ["exit code 1", "volume v has no file nope.conf", ["nope.conf"], ["k"]] }),
  ...pods(memory, { "memory-volume": ["exit code 1", "sizeLimit of v at /v (4Mi)", ["4Mi"], ["64Mi"]] }),
  ...pods(after, { dependency: ['no pod "default/nope"', "correct its name in the annotation", ["nope"], ["tiny"]] }),
  // Users and files.
  ...pods((readOnlyRootFilesystem: boolean) => byUser("touch /x", { readOnlyRootFilesystem }), {
    "read-only": ["exit code 1", "readOnlyRootFilesystem: false", [true], [false]],
  }),
  // Programs, probes and hooks.
  ...pods((memory: string) => script(EATER, { resources: { limits: { memory } } }), {
    oom: ["its limit of 16Mi", "raise resources.limits.memory", ["16Mi"], ["128Mi"]],
  }),
  ...pods((container: Record<string, unknown>) => ({ container }), {
    "work-dir": ["not a directory", "workingDir", [{ workingDir: "/etc/passwd" }], [{ workingDir: "/etc" }]],
    live: ["liveness", "port", [{ livenessProbe: closed }], [{ livenessProbe: fine }]],
  }),
  ...pods((...command: string[]) => ({ container: { command } }), {
    program: ["cannot be started", '"nope" is a file of the image', ["nope"]],
    "shell-line": ["cannot be started", '["sh", "-c", "sleep 1000"]', ["sleep 1000"], ["sh", "-c", "sleep 1000"]],
    bash: ["cannot be started", "write sh", ["/bin/bash", "-c", "sleep 9"]],
  }),
  ...pods(
    (command: string) => ({ container: { readinessProbe: { exec: { command: [command] }, periodSeconds: 1 } } }),
    {
      "probe-command": ["readiness probe fails", '"nope" is not in the image', ["nope"], ["true"]],
    },
  ),
  ...pods(twoServers, { "same-port": ["exit code 1", "give each its own", [80], [81]] }),
  ...pods((command: string) => ({ container: { lifecycle: { postStart: { exec: { command: [command] } } } } }), {
    hook: ["postStart hook failed", "lifecycle.postStart", ["false"], ["true"]],
  }),
  ...pods(
    (command: string) => ({ spec: { initContainers: [{ name: "i", image: "busybox:test", command: [command] }] } }),
    {
      init: ["wait for it (exit code 1)", "log", ["false"], ["true"]],
    },
  ),
]);

const template = (name: string, container: object, spec: object = {}) => ({
  metadata: { labels: { app: name } },
  spec: { containers: [{ name: "app", image: "busybox:test", ...shell(STOPPABLE), ...container }], ...spec },
});
const workload = (kind: string, name: string, spec: object, container: object = {}, pod: object = {}) =>
  object(kind, name, {
    spec: { selector: { matchLabels: { app: name } }, template: template(name, container, pod), ...spec },
  });
const ONCE = { restartPolicy: "Never", hostNetwork: true };
const job = (name: string, spec: object, container: object) =>
  object("Job", name, { spec: { ...spec, template: template(name, container, ONCE) } });
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
const TO_TARGET = { selector: { app: "target" } };
const nodePort = (nodePort: number) => ({
  type: "NodePort",
  ...TO_TARGET,
  ports: [{ port: 80, targetPort: "http", nodePort }],
});
const twice = { ports: [{ containerPort: 80, hostPort: TWICE }] };
const ingress = (name: string, more: object, to = "target") => {
  const backend = { service: { name: to, port: { number: 80 } } };
  const rules = [{ host: `${name}.test`, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }];
  return object("Ingress", name, { apiVersion: "networking.k8s.io/v1", spec: { rules, ...more } });
};

/** Rows of objects of one form, by their kind and name. */
const objects = <Args extends unknown[]>(
  kind: string,
  make: (name: string, ...args: Args) => object,
  rows: Readonly<Record<string, Row<Args>>>,
) =>
  Object.entries(rows).map(([name, [problem, fix, broken, fixed = broken]]): [string, Case<object>] => [
    `${kind}/${name}`,
    [problem, fix, make(name, ...broken), make(name, ...fixed)],
  ]);
const deployment = (name: string, spec: object, container: object = {}) =>
  workload("Deployment", name, spec, container);
const onNodes = (name: string, pod: object = {}) => workload("DaemonSet", name, {}, {}, pod);
const DATE = "0 0 31 2 *";

/** Workloads, Jobs, Services and Ingresses: the true cause, a fix for it, and the object with that fix. */
const BROKEN_OBJECTS: Readonly<Record<string, Case<object>>> = Object.fromEntries([
  ...objects("deployment", deployment, {
    zero: ["no pods are wanted", "spec.replicas", [{ replicas: 0 }], [{ replicas: 1 }]],
    paused: ["paused", "spec.paused", [{ paused: true }], [{ paused: false }]],
    late: [
      "ProgressDeadlineExceeded",
      "do not become Ready",
      [{ progressDeadlineSeconds: 2 }, { readinessProbe: closed }],
      [{ progressDeadlineSeconds: 600 }, { readinessProbe: fine }],
    ],
    twice: [
      `all its pods ask for port ${TWICE}`,
      "spec.replicas to 1",
      [{ replicas: 2 }, twice],
      [{ replicas: 1 }, twice],
    ],
  }),
  ...objects("daemonset", onNodes, {
    elsewhere: ["nodeSelector", "spec.template.spec.nodeSelector", [{ nodeSelector: { disk: "ssd" } }], []],
  }),
  ...objects("job", (name, spec: object, command: string) => job(name, spec, shell(command)), {
    failing: ["BackoffLimitExceeded", "delete the Job", [{ backoffLimit: 0 }, "exit 3"], [{ backoffLimit: 0 }, "true"]],
    slow: [
      "DeadlineExceeded",
      "spec.activeDeadlineSeconds",
      [{ activeDeadlineSeconds: 2 }, "sleep 5"],
      [{ activeDeadlineSeconds: 600 }, "sleep 5"],
    ],
    asleep: ["suspended", "spec.suspend", [{ suspend: true }, "true"], [{ suspend: false }, "true"]],
    trying: [" failed", "spec.backoffLimit", [{ backoffLimit: 9 }, "exit 3"], [{ backoffLimit: 9 }, "true"]],
  }),
  ...objects("job", (name, container: object) => job(name, {}, container), {
    unbegun: [
      "its pods have not begun",
      "kubelet-ts explain",
      [{ image: "nope:1", imagePullPolicy: "Never" }],
      [shell("true")],
    ],
  }),
  ...objects("cronjob", cronJob, {
    stuck: [
      "concurrencyPolicy Forbid skips",
      "explain job/stuck-",
      [{ schedule: "@every 2s", command: "sleep 1000", concurrencyPolicy: "Forbid" }],
      [{ schedule: "@every 2s", concurrencyPolicy: "Forbid" }],
    ],
    asleep: ["suspended", "spec.suspend", [{ suspend: true }], [{}]],
    never: [`no day is in its schedule "${DATE}"`, "spec.schedule", [{ schedule: DATE }], [{ schedule: "0 0 28 2 *" }]],
    failing: [
      "failed: BackoffLimitExceeded",
      "spec.jobTemplate",
      [{ schedule: "@every 2s", command: "false" }],
      [{ schedule: "@every 2s" }],
    ],
  }),
  ...objects("service", (name, app: string) => service(name, { selector: { app } }), {
    alone: ["matches no pod", "spec.selector", ["nothing"], ["target"]],
    nowhere: ["none of its pods is Ready", "what its pods say", ["unready"], ["target"]],
  }),
  ...objects("service", (name, to: string) => service(name, { ...TO_TARGET, ports: [{ port: 80, targetPort: to }] }), {
    port: ['a port called "web"', "targetPort", ["web"], ["http"]],
  }),
  ...objects("service", (name, port: number) => service(name, nodePort(port)), {
    published: ["PortNotAllocated", "another nodePort", [HELD], [FREE]],
  }),
  ...objects("ingress", ingress, {
    backend: ['no Service "default/nope"', "name and the port", [{}, "nope"], [{}]],
    certificate: ['no Secret "default/nope"', "kubernetes.io/tls", [{ tls: [{ secretName: "nope" }] }], [{}]],
    pods: ["no pod of Service", "explain service", [{}, "idle"], [{}]],
    class: [
      "no server on this node",
      "ingressClassName",
      [{ ingressClassName: "nope" }],
      [{ ingressClassName: "nginx" }],
    ],
  }),
]);

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
