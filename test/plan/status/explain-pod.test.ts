import { expect, test } from "bun:test";
import type { CoreEvent } from "../../../src/base/api/event.ts";
import type { ContainerStatus, Pod } from "../../../src/base/api/pod.ts";
import { findEditThatFailed } from "../../../src/plan/status/explain-container.ts";
import { explainPod, renderExplanation, toPlainText } from "../../../src/plan/status/explain-pod.ts";
import { ago, ended, has, NOW, running, shown } from "../../cli/print/pods.ts";

const event = (reason: string, message: string, container?: string): CoreEvent =>
  ({
    reason,
    message,
    count: 3,
    lastTimestamp: ago(31),
    involvedObject: { ...(container && { fieldPath: `spec.containers{${container}}` }) },
  }) as CoreEvent;

interface Given {
  status: ContainerStatus;
  container?: object;
  events?: CoreEvent[];
  log?: string[];
  spec?: Partial<Pod["spec"]>;
}

/** Explains a pod that is alone on the node, if nothing else is given. */
const explainOf = (pod: Pod, given: Partial<Parameters<typeof explainPod>[0]> = {}) =>
  explainPod({ pod, events: [], logs: new Map(), pods: [pod], now: NOW, ...given });

function explain({ status, container = {}, events = [], log = [], spec = {} }: Given) {
  const pod = shown({ mains: [status] });
  const edited = { ...pod, spec: { ...pod.spec, ...spec, containers: [{ ...pod.spec.containers[0]!, ...container }] } };
  return explainOf(edited, { events, logs: new Map([["app", log]]) });
}

const waitingFor = (reason: string, message = "") => has("app", { waiting: { reason, message } });
const crashed = (exitCode: number, reason = "Error", more: object = {}) =>
  has(
    "app",
    { waiting: { reason: "CrashLoopBackOff", message: "back-off 1m20s restarting failed container=app" } },
    { restartCount: 4, lastState: ended(reason, exitCode, more) },
  );
const noPull = (message: string): Given => ({ status: waitingFor("ErrImagePull", message) });
const noConfig = (message: string): Given => ({ status: waitingFor("CreateContainerConfigError", message) });
const unready = (more: object = {}) => has("app", running, { ready: false, ...more });
const unhealthy = (message: string) => event("Unhealthy", message, "app");
const killed = (why: string) => event("Killing", `Container app ${why}`, "app");
const PROBE_FAILED = "failed liveness probe, will be restarted";
const failing = (...log: string[]): Given => ({ status: crashed(1), log });
const restartedAs = (lastState: ContainerStatus["lastState"], more: object = {}) =>
  unready({ restartCount: 2, lastState, ...more });
const pending = () => shown({ mains: [waitingFor("ContainerCreating")], status: { phase: "Pending" } });
const mountFailed = (message: string) => event("FailedMount", `MountVolume.SetUp failed for volume "v" : ${message}`);

const cannotRun = (message: string): Given => ({ status: crashed(128, "ContainerCannotRun", { message }) });
/** A probe of a container that is not ready, by its handler, and what it said. */
const probed = (message: string, handler: object = { httpGet: { port: 80 } }): Given => ({
  status: unready(),
  container: { readinessProbe: handler },
  events: [unhealthy(message)],
});

/** Mistakes, each with the problem that is named, and the fix. */
const MISTAKES: [string, Given, string, string][] = [
  [
    "an image that does not exist",
    {
      status: waitingFor("ImagePullBackOff", "Back-off"),
      events: [event("Failed", 'Failed to pull image "x": manifest unknown', "app")],
    },
    "manifest unknown",
    "name and tag",
  ],
  ["a registry that wants credentials", noPull("pull access denied"), "denied", "docker login"],
  [
    "an image of podman",
    { ...noPull("refused"), container: { image: "localhost/web:1" } },
    "refused",
    "localhost/web:1 | docker load",
  ],
  ["an unreachable registry", noPull("lookup r: no such host"), "no such host", "--images-dir"],
  ["an image that is never pulled", { status: waitingFor("ErrImageNeverPull") }, "Never", "IfNotPresent"],
  ["a missing ConfigMap", noConfig('configmap "conf" not found'), 'ConfigMap "conf" is missing', "optional"],
  ["a missing key", noConfig("couldn't find key k in Secret default/s"), 'key "k" is missing', "add the key"],
  ["forbidden root", noConfig("container has runAsNonRoot and image will run as root"), "runs as root", "runAsUser"],
  ["exit code 127", { status: crashed(127) }, "exit code 127", "not in the image"],
  [
    "a program for another processor, by a shell",
    { status: crashed(127), log: ["/v/prog: line 1: \x7fELF\x02: not found"] },
    "exit code 127",
    "processor of this machine",
  ],
  [
    "too little memory",
    { status: crashed(137, "OOMKilled"), container: { resources: { limits: { memory: "16Mi" } } } },
    "16Mi",
    "raise",
  ],
  ["success that is restarted", { status: crashed(0, "Completed") }, "restartPolicy is Always", "stdin: true"],
  [
    "a restart of the engine",
    { status: crashed(0, "Completed"), events: [event("SandboxChanged", "Pod sandbox changed")] },
    "with the sandbox of its pod",
    "live-restore",
  ],
  [
    "a shell line as a command",
    { status: crashed(127, "ContainerCannotRun"), container: { command: ["a && b"] } },
    "cannot be started",
    '["sh", "-c", "a && b"]',
  ],
  [
    "a shell line as args",
    { status: crashed(127, "ContainerCannotRun"), container: { command: undefined, args: ["sleep 9"] } },
    "cannot be started",
    '["sh", "-c", "sleep 9"]',
  ],
  [
    "a failed liveness probe",
    { status: crashed(143), events: [unhealthy("Liveness probe failed: 500"), killed(PROBE_FAILED)] },
    "Liveness probe failed: 500",
    "startupProbe",
  ],
  [
    "a failed liveness probe of a program that ends with success, while it is not ready",
    {
      status: restartedAs(ended("Completed", 0)),
      container: { readinessProbe: { tcpSocket: { port: 80 } } },
      events: [
        unhealthy("Readiness probe failed: refused"),
        unhealthy("Liveness probe failed: refused"),
        killed(PROBE_FAILED),
      ],
    },
    "Liveness probe failed: refused",
    "startupProbe",
  ],
  [
    "success after an earlier run that its probe ended",
    { status: crashed(0, "Completed"), events: [{ ...killed(PROBE_FAILED), lastTimestamp: ago(90) }] },
    "restartPolicy is Always",
    "foreground",
  ],
  [
    "an edit of a container that is not ready yet",
    {
      status: restartedAs(ended("Error", 137), { started: true }),
      events: [killed("definition changed, will be restarted")],
    },
    "not ready",
    "",
  ],
  ["a port that is taken", failing("bind: address already in use"), "end of its log", "each its own"],
  ["a probe of a closed port", probed("Readiness probe failed: connection refused"), "connection refused", "0.0.0.0"],
  [
    "a startup probe of a closed port",
    {
      status: unready({ started: false }),
      container: { startupProbe: { tcpSocket: { port: 81 } } },
      events: [unhealthy("Startup probe failed: connection refused")],
    },
    "its startup probe fails",
    "0.0.0.0",
  ],
  ["a missing capability", failing("chown: /data: Operation not permitted"), "exit code 1", "capabilities.add"],
  ["a refused mount", failing("mount: permission denied (are you root?)"), "exit code 1", "capabilities.add"],
  [
    "a probe whose command is not in the image",
    probed('Readiness probe failed: exec: "nope": executable file not found in $PATH', { exec: { command: ["nope"] } }),
    "readiness probe fails",
    'command "nope" is not in the image',
  ],
  [
    "a mount that is not shared",
    cannotRun("path /srv/a is mounted on / but it is not a shared or slave mount"),
    "needs a shared mount, which / of",
    "mount --make-rshared / on",
  ],
  [
    "ulimits beyond those of the engine",
    cannotRun("error setting rlimits for ready process: error setting rlimit type 7: operation not permitted: unknown"),
    "may not set its ulimits",
    "LimitNOFILE",
  ],
  ["another refusal of the engine", cannotRun("bpf_prog_query failed"), "cannot be started", "the engine's message"],
  ["a port that is taken, as busybox says it", failing("bind: Address in use"), "end of its log", "each its own"],
  ["a script with Windows lines", failing("exec /run.sh: no such file or directory"), "end of its log", "line ends"],
  ["a reference that stayed", failing("wget: bad address '$(DB):80'"), "end of its log", "$(DB) stayed as it is"],
  ["a read-only disk", failing("touch: /x: Read-only file system"), "exit code 1", "readOnlyRootFilesystem: false"],
  [
    "a read-only volume",
    {
      ...failing("can't create /v/k: Read-only file system"),
      container: { volumeMounts: [{ name: "v", mountPath: "/v" }] },
    },
    "exit code 1",
    "volume v at /v is read-only",
  ],
  [
    "a full /dev/shm",
    failing('resize shared memory segment "/P": No space left on device'),
    "exit code 1",
    "medium: Memory",
  ],
  [
    "arguments that are too long",
    failing("exec /bin/sh: argument list too long"),
    "exit code 1",
    "file of a ConfigMap",
  ],
  [
    "a bound on processes",
    failing("sh: can't fork: Resource temporarily unavailable"),
    "exit code 1",
    "--pod-max-pids",
  ],
  ["a bound on open files", failing("accept4: too many open files"), "exit code 1", "nofile"],
  [
    "a user by name",
    noConfig("image has non-numeric user (app), by runAsNonRoot"),
    'user "app" without',
    "number of that",
  ],
  ["a file of another user", failing("touch: /x: Permission denied"), "exit code 1", "runAsUser"],
  ["a full disk", failing("dd: No space left on device"), "end of its log", "Fix: free space"],
  ["an exec that times out", probed("Readiness probe errored: the exec's time has elapsed"), "", "raise it"],
  ["a probe that times out", probed("Readiness probe failed: timed out"), "", "raise it"],
  [
    "a probe whose command fails",
    probed("Readiness probe failed: no response", { exec: { command: ["pg_isready"] } }),
    "Readiness probe failed: no response",
    "its command ends with an error",
  ],
  [
    "a probe of a port by a name that there is not",
    probed('Readiness probe errored: port "http" not found'),
    "readiness probe fails",
    "set the probe's port to its number",
  ],
  [
    "a probe by HTTPS of a program without it",
    probed("Readiness probe failed: http: server gave HTTP response to HTTPS client"),
    "readiness probe fails",
    "scheme: HTTP",
  ],
  [
    "a probe of a page that asks for a login",
    probed("Readiness probe failed: HTTP probe failed with statuscode: 401"),
    "readiness probe fails",
    "httpHeaders",
  ],
  [
    "a probe by HTTP of a program with HTTPS",
    probed("Readiness probe failed: HTTP probe failed with statuscode: 400"),
    "readiness probe fails",
    "scheme: HTTPS",
  ],
  [
    "a forbidden user 0",
    noConfig("container's runAsUser breaks non-root policy"),
    "by runAsUser or its image",
    "other than 0",
  ],
];

test.each(MISTAKES)("a common mistake has a fix: %s", (_, given, problem, fix) => {
  const explanation = explain(given);
  expect(explanation.isReady).toBe(false);
  const text = renderExplanation(explanation);
  expect(text).toContain(problem);
  expect(text).toContain(fix);
});

test("the next restart is reported", () => {
  // Ended 30 s ago, back-off of 80 s.
  expect(renderExplanation(explain({ status: crashed(1) }))).toContain("restarted 4 times; next start in 50 s");
});

test.each([
  [crashed(3), ["boom"], "its log above says why; kubelet-ts logs web-node1 --container=app --previous shows"],
  [has("app", ended("Error", 3)), ["boom"], "its log above says why; kubelet-ts logs web-node1 --container=app shows"],
  [crashed(3), [], "its log says why"],
])("the log of a container that ended is found", (status, log, fix) => {
  expect(renderExplanation(explain({ status, log }))).toContain(fix);
});

test("a pod that is ready needs no explanation", () => {
  expect(renderExplanation(explainOf(shown({ ready: true })))).toBe('pod "default/web-node1" is Ready');
});

const held = shown({ mains: [], status: { phase: "Failed", reason: "NodePorts", message: "host port 80 is held" } });
const beyond = (requested: number) => {
  const message = `Pod Node didn't have enough resource: cpu, requested: ${requested}, used: 1500, capacity: 2000`;
  return { ...shown({}), status: { phase: "Failed", reason: "OutOfcpu", message } } as Pod;
};
const gated = shown({
  mains: [has("app", running, { ready: true })],
  spec: { readinessGates: [{ conditionType: "lb" }] },
  status: { conditions: [{ type: "ContainersReady", status: "True" }] },
});
const hostPath = (text: string) => [mountFailed(`hostPath type check failed: ${text}`)];
const bindFailed = event("FailedCreatePodSandBox", "listen tcp4 0.0.0.0:18082: bind: address already in use");
const portHolders = new Map([[18_082, "nginx (pid 812)"]]);
const [says, saysAll] = [expect.stringContaining, expect.arrayContaining];

test.each<[string, Pod, Partial<Parameters<typeof explainPod>[0]>, object]>([
  [
    "a missing volume",
    pending(),
    { events: [mountFailed('secret "tls" not found')] },
    { fix: says('Secret "tls"'), lacksObject: true },
  ],
  ["a refused host port", held, {}, { facts: ["host port 80 is held"], fix: says("hostPort") }],
  [
    "a host port of another program, which is named",
    pending(),
    { events: [bindFailed], portHolders },
    { problem: "host port 18082 is in use", facts: saysAll(["port 18082 is held by nginx (pid 812)"]) },
  ],
  ["an unmet readiness gate", gated, {}, { problem: says("lb"), fix: says("remove spec.readinessGates") }],
  ["no directory", pending(), { events: hostPath("/data is not a directory") }, { fix: says("DirectoryOrCreate") }],
  ["no file", pending(), { events: hostPath("/data is not a file") }, { fix: says("FileOrCreate") }],
  ["requests beyond the node", beyond(64_000), {}, { fix: says("more than the whole node has") }],
  ["requests beyond what is left", beyond(1_000), {}, { fix: says("remove another pod") }],
])("a cause that belongs to the pod: %s", (_, pod, given, want) => {
  expect(explainOf(pod, given).causes).toMatchObject([{ subject: "pod", ...want }]);
});

const RUNC =
  "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: ";
const noStart = (message: string): Given => ({ status: crashed(128, "ContainerCannotRun", { message }) });
const noSandbox = (message: string): Partial<Parameters<typeof explainPod>[0]> => ({
  events: [event("FailedCreatePodSandBox", message)],
});

/** Messages of engines: of 20.10 as seen here, some as its source words them, each with the problem and the fix. */
const ENGINE_MESSAGES: [string, string, string][] = [
  [
    `couldn't find key k in Secret default/s: kubelet-ts.io/secret-from reads it from file "/run/k"`,
    'the file "/run/k"',
    "write the file /run/k",
  ],
  [
    `couldn't find key k in Secret default/s: kubelet-ts.io/secret-from reads it from credential "tok"`,
    'no credential "tok"',
    "LoadCredential=tok",
  ],
  [
    'could not select device driver "" with capabilities: [[gpu]]',
    "no driver for GPUs",
    "nvidia-ctk runtime configure",
  ],
  [
    'container for pod "a" in network "n" with address 10.1.0.9: Error response from daemon: Address already in use',
    'Docker network "n"',
    "docker network inspect n shows",
  ],
  ["Error response from daemon: network nonet not found", 'network "nonet" does not', "docker network create nonet"],
  [
    `${RUNC}error during container init: write /proc/sys/kernel/shm_rmid_forced: invalid argument: unknown`,
    "sysctl kernel.shm_rmid_forced",
    "spec.securityContext.sysctls",
  ],
  [
    `${RUNC}error during container init: error mounting "/tmp" to rootfs at "/etc/passwd": not a directory: unknown`,
    '"/tmp" cannot be mounted at "/etc/passwd"',
    "subPath",
  ],
  [
    "error while mounting volume '/v/_data': failed to mount local volume: mount :/x:/v/_data: no such device",
    "file system",
    "nfs-common",
  ],
  ["failed to mount local volume: mount :/x:/v/_data: connection refused", "does not answer", "server and path"],
  [`${RUNC}container init was OOM-killed (memory limit too low?): unknown`, "memory limit", "resources.limits.memory"],
  ["listen tcp4 10.9.9.9:4599: bind: cannot assign requested address", "10.9.9.9", "hostIP"],
  ['invalid CapAdd: unknown capability: "CAP_NOPE"', 'no capability "NOPE"', "capabilities"],
  ["the working directory 'srv' is invalid, it needs to be an absolute path", '"srv" is not an absolute', "with /"],
  ["missing value for NOPE", "names NOPE, which is not set", "set NOPE in env"],
  ["Cannot mkdir: /etc/passwd is not a directory", "/etc/passwd is not a directory", "workingDir"],
  ["unable to find user app: no matching entries in passwd file", 'no user "app"', "runAsUser"],
  [`${RUNC}exec: "/app": exec format error: unknown`, "for another processor", "#!"],
  [
    'error gathering device information while adding custom device "/dev/x": no such file or directory',
    'device "/dev/x"',
    "on this machine",
  ],
  [`${RUNC}error during container init: unable to apply caps: operation not permitted: unknown`, "kernel", "privilege"],
  ['Cannot write the hosts file of pod "a": ENOSPC: no space left on device, write', "disk is full", "free space"],
  [
    'claim "c": volume "x" not found, or already bound to a different claim',
    'names the volume "x"',
    "without volumeName",
  ],
  ['cannot load seccomp profile "/k/x.json": open /k/x.json: no such file', "seccomp", "/k/x.json"],
];

test.each(ENGINE_MESSAGES)("an engine's message has its own problem and fix: %s", (message, problem, fix) => {
  const pods = [explain(noStart(message)), explain(noConfig(message)), explainOf(pending(), noSandbox(message))];
  for (const { causes } of pods) {
    expect(causes[0]?.problem).toContain(problem);
    expect(causes[0]?.fix).toContain(fix);
    expect(causes[0]?.facts.join()).toContain(message);
  }
});

const refused = (reason: string, message: string, mains: ContainerStatus[] = []) =>
  explainOf(shown({ mains, status: { phase: "Failed", reason, message } })).causes;
const low = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. ";

test.each([
  [
    "SysctlForbidden",
    'forbidden sysctl: "net.core.somaxconn" not whitelisted',
    "--allowed-unsafe-sysctls=net.core.somaxconn",
  ],
  ["SysctlForbidden", 'forbidden sysctl: "vm.swappiness" not whitelisted', "sysctl -w vm.swappiness"],
  ["SysctlForbidden", 'forbidden sysctl: "net.a" not allowed with host net enabled', "hostNetwork"],
  ["Unsupported", 'spec.runtimeClassName: the engine has no runtime "kata", only runc', "/etc/docker/daemon.json"],
  ["Unsupported", "spec.os.name: windows: this node runs Linux", "remove spec.os.name"],
  ["AppArmor", "Cannot enforce AppArmor", "appArmorProfile"],
  ["Evicted", low, "again automatically"],
  ["Evicted", low, "kubelet-ts doctor names the disk"],
  ["Evicted", "The node was low on resource: memory. ", "--eviction-hard"],
  ["Evicted", 'Usage of EmptyDir volume "v" exceeds the limit "5Mi". ', "emptyDir.sizeLimit"],
  ["Evicted", "The node had condition: [DiskPressure]. ", "again automatically"],
])("a refused or ended pod has its own fix: %s %s", (reason, message, fix) => {
  expect(refused(reason, message)).toMatchObject([{ subject: "pod", fix: says(fix), facts: [message.trim()] }]);
});

test("an eviction names the resource and its threshold", () => {
  expect(refused("Evicted", low)[0]?.problem).toContain("short of disk space (9Gi left, the threshold is 10Gi)");
  const percent = `${low.replace("10Gi", "13421772")}Container app was using 9Mi. The disk is that of the root directory. `;
  expect(refused("Evicted", percent.replace("9Gi", "0"))[0]?.problem).toContain("(0 left, the threshold is 13Mi)");
  const inodes = "The node was low on resource: inodes. Threshold quantity: 500, available: 0. ";
  expect(refused("Evicted", inodes)[0]?.problem).toContain("short of inodes (0 left, the threshold is 500)");
  expect(refused("Evicted", percent)[0]?.problem).toBe(
    "the node ran short of disk space on the disk of the root directory (9Gi left, the threshold is 13Mi) and evicted it (Evicted)",
  );
});

test("containers that the end of their pod ended have no causes of their own", () => {
  expect(refused("DeadlineExceeded", "x", [has("app", ended("Error", 137))]).map(({ subject }) => subject)).toEqual([
    "pod",
  ]);
});

test("a container that only waits is left out where another one has a cause", () => {
  const init = [has("init", ended("Error", 1))];
  const { causes, condition } = explainOf(
    shown({ init, mains: [waitingFor("PodInitializing")], status: { phase: "Pending" } }),
  );
  expect(causes.map(({ subject }) => subject)).toEqual(["init container init"]);
  expect(condition).toStartWith("Initialized is False");
});

test("a pod that ran before its edit is explained with what keeps its sandbox", () => {
  const given = noSandbox("Error response from daemon: network nonet not found");
  const conditions = [{ type: "PodReadyToStartContainers", status: "False" as const }];
  const status = { phase: "Running" as const, conditions };
  const edited = shown({ mains: [waitingFor("ContainerCreating", "Failed to create pod sandbox")], status });
  expect(explainOf(edited, given).causes).toMatchObject([{ subject: "pod", fix: says("docker network create") }]);
});

test("a ready pod is explained with why it was restarted a short time ago", () => {
  const events = [unhealthy("Liveness probe failed: HTTP probe failed with statuscode: 500"), killed(PROBE_FAILED)];
  const mains = [has("app", running, { ready: true, restartCount: 2, lastState: ended("Error", 137) })];
  const pod = shown({ mains, ready: true });
  const explanation = explainOf(pod, { events });
  expect([explanation.isReady, explanation.causes]).toEqual([true, []]);
  const text = renderExplanation(explanation);
  expect(text).toContain("is Ready, but:");
  expect(text).toContain("its liveness probe failed, so it was restarted");
  expect(text).toContain("statuscode: 500");
  expect(explainOf(pod, { events, now: new Date(NOW.getTime() + 3_600_000) }).recent).toEqual([]);
  const started = [
    unhealthy("Startup probe failed: cat: can't open"),
    killed(PROBE_FAILED.replace("liveness", "startup")),
  ];
  const fix = says("if the start takes long, raise its failureThreshold");
  expect(explainOf(pod, { events: started }).recent).toMatchObject([
    { problem: says("its startup probe failed"), fix },
  ]);
});

test("a ready pod is explained with what keeps it from its work: a paused container, a liveness probe that cannot run", () => {
  const mains = [has("app", running, { ready: true })];
  const status = { reason: "Paused", message: "container app is paused: docker unpause 4f2a" };
  const paused = explainOf(shown({ mains, ready: true, status }));
  expect(paused).toMatchObject({ isReady: true, recent: [{ fix: "docker unpause 4f2a" }] });
  expect(explainOf(shown({ mains, status })).causes).toEqual(paused.recent);
  const events = [unhealthy('Liveness probe errored: port "http" not found')];
  const pod = shown({ mains, ready: true });
  expect(explainOf(pod, { events }).recent).toMatchObject([{ fix: says('has the name "http"') }]);
  // Before an edit that started it again.
  expect(explainOf(pod, { events: [{ ...events[0]!, lastTimestamp: ago(61) }] }).recent).toEqual([]);
});

test.each([
  [
    "an edit",
    [killed("definition changed, will be restarted")],
    "kubelet-ts stopped it\n  Container app definition changed",
  ],
  [
    "an update of its image",
    [event("ImageUpdating", "Image web:1: updating from a to b"), killed("definition changed, will be restarted")],
    "it was restarted by an update of its image\n  Image web:1: updating from a to b",
  ],
  [
    "a new value of a Secret",
    [
      event("EnvironmentChanged", 'Secret "default/db" changed, whose values its environment has'),
      killed("definition changed, will be restarted"),
    ],
    'it was restarted by new values of its environment\n  Secret "default/db" changed',
  ],
  ["docker stop", [], "Fix: unless it was stopped from outside"],
])("a ready container that ended with 0 on its stop signal, which was sent by %s", (_, events, text) => {
  const mains = [has("app", running, { ready: true, restartCount: 1, lastState: ended("Completed", 0) })];
  const explanation = renderExplanation(explainOf(shown({ mains, ready: true }), { events }));
  expect(explanation).toContain(text);
  expect(explanation.includes("restartPolicy")).toBe(events.length === 0);
});

test.each([
  ["the edit that ended it", 62, {}, true],
  ["no edit of an hour before", 3600, {}, false],
  ["no edit that is undone automatically", 62, { annotations: { "kubelet-ts.io/rollback": "on-failure" } }, false],
])("a pod that is not Ready any more names %s", (_, seconds, metadata, isNamed) => {
  const edit = { ...killed("definition changed, will be restarted"), lastTimestamp: ago(seconds) };
  const conditions = [{ type: "Ready", status: "False", lastTransitionTime: ago(61) } as const];
  const pod = shown({ mains: [crashed(127)], metadata, status: { conditions: [...conditions] } });
  const text = renderExplanation(explainOf(pod, { events: [edit] }));
  expect(text.includes(`the pod was Ready until its edit of ${edit.lastTimestamp}: undo the edit`)).toBe(isNamed);
  const update = { ...event("ImageUpdating", "Image web:1: updating from a to b"), lastTimestamp: ago(seconds + 1) };
  const updated = renderExplanation(explainOf(pod, { events: [update, edit] }));
  expect([updated.includes("its edit"), updated.includes("is rolled back")]).toEqual([false, seconds === 62]);
  const rotated = { ...event("EnvironmentChanged", 'Secret "default/db" changed'), lastTimestamp: ago(seconds) };
  for (const cause of [update, rotated]) expect(findEditThatFailed(pod, [cause, edit])).toBeUndefined();
  const text2 = renderExplanation(explainOf(pod, { events: [rotated, edit] }));
  expect([text2.includes("its edit"), text2.includes(': Secret "default/db" changed')]).toEqual([
    false,
    seconds === 62,
  ]);
});

test("a misspelt image has a near name among those of the engine", () => {
  const waiting = shown({ mains: [waitingFor("ErrImagePull", "no such host")] });
  const pod = { ...waiting, spec: { ...waiting.spec, containers: [{ name: "app", image: "busybx:1.35" }] } } as Pod;
  const { causes } = explainOf(pod, { images: ["nginx:1.22", "busybox:1.35"] });
  expect(causes[0]?.facts).toContain('this machine has an image "busybox:1.35": is that the one?');
  const [cause] = explainOf(pod, { images: ["busybx:1.35", "busybox:1.35"] }).causes;
  expect([cause?.fix, cause?.facts.length]).toEqual([expect.stringContaining("IfNotPresent uses it"), 1]);
});

test.each([
  [
    "DependenciesMet",
    'waits for pod "default/db"',
    "False",
    /not Ready: DependenciesMet is False: waits for pod "default.db"/,
  ],
  [
    "ManifestLive",
    "waits for its turn",
    "True",
    /is Ready\n\nmanifest: its newest text is not in force\n {2}waits for its turn$/,
  ],
  ["ManifestLive", "no such image. Fix: check its name", "True", /\n {2}no such image\n {2}Fix: check its name$/],
])("a pod with %s=False says why", (type, message, ready, want) => {
  const pod = shown({ mains: [waitingFor("WaitingForDependency", "waits")] });
  const conditions = [
    { type, status: "False", message },
    { type: "ContainersReady", status: ready, message: "not ready: [app]" },
    { type: "Ready", status: ready },
  ];
  expect(renderExplanation(explainOf({ ...pod, status: { ...pod.status, conditions } } as Pod))).toMatch(want);
});

test.each([
  ["WaitingForDependency", 'waits for pod "default/db" to be Ready', "kubelet-ts explain db"],
  ["DependencyNotFound", 'there is no pod "default/db"', "add that pod"],
  ["DependencyCycle", "the dependencies form a cycle: default/a -> default/a", "take one of these pods out"],
])("%s is the problem, and has a fix", (reason, message, fix) => {
  const explanation = explain({ status: waitingFor(reason, message) });
  expect(explanation.causes.map(({ problem }) => problem)).toEqual([message]);
  expect(renderExplanation(explanation)).toContain(`Fix: ${fix}`);
});

test.each([
  ["plain\ttext\nof two lines", "plain\ttext\nof two lines"],
  ["\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b[2J", "red link"],
  ["10 %\r20 %\r\n", "10 % 20 %\n"],
  ["a\0b\x9bc\u202edesrever", "abcdesrever"],
])("%j", (text, plain) => {
  expect(toPlainText(text)).toBe(plain);
});
