import { expect, test } from "bun:test";
import { computeContainerHash, computeSandboxHash } from "../../src/kubelet/edit-rules.ts";
import { aPod, type Json } from "../docker/mapping-requests.ts";

const MEMORY = { requests: { memory: "1Mi" }, limits: { memory: "10Mi" } };
const A: Json = { name: "a", image: "i:1", volumeMounts: [{ name: "v", mountPath: "/v" }], resources: MEMORY };
const B: Json = { name: "b", image: "i:1", env: [{ name: "X", value: "1" }], resources: MEMORY };
const SPEC: Json = {
  containers: [A, B],
  volumes: [
    { name: "v", hostPath: { path: "/data" } },
    { name: "unused", emptyDir: {} },
  ],
};

interface Edit {
  spec?: Json;
  a?: Json;
  b?: Json;
  metadata?: Json;
  /** Revision of the sources of container b. */
  sourcesOfB?: string;
}

/** Restarts that an edit causes: `pod` (a new sandbox), or the containers by name; "" is nothing. */
function restartsOf(edit: Edit): string {
  const revisionsOf = ({ spec, a, b, metadata, sourcesOfB = "" }: Edit) => {
    const containers = [
      { ...A, ...a },
      { ...B, ...b },
    ];
    const pod = aPod({ spec: { ...SPEC, containers, ...spec }, metadata: metadata ?? {} });
    return {
      sandbox: computeSandboxHash(pod),
      containers: pod.spec.containers.map((one) => computeContainerHash(pod, one, one.name === "b" ? sourcesOfB : "")),
    };
  };
  const before = revisionsOf({});
  const after = revisionsOf(edit);
  if (before.sandbox !== after.sandbox) return "pod";
  return ["a", "b"].filter((_, index) => before.containers[index] !== after.containers[index]).join("+");
}

const volume = (source: Json) => ({
  spec: {
    volumes: [
      { name: "v", ...source },
      { name: "unused", emptyDir: {} },
    ],
  },
});
const RESTART_ON_RESIZE = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];

test.each<[string, Edit, string]>([
  // Nothing restarts.
  ["no edit", {}, ""],
  ["a label", { metadata: { labels: { x: "y" } } }, ""],
  ["an annotation", { metadata: { annotations: { x: "y" } } }, ""],
  ["the restart policy", { spec: { restartPolicy: "OnFailure" } }, ""],
  ["the grace period", { spec: { terminationGracePeriodSeconds: 5 } }, ""],
  ["the deadline", { spec: { activeDeadlineSeconds: 5 } }, ""],
  ["tolerations", { spec: { tolerations: [{ operator: "Exists" }] } }, ""],
  ["a default written out", { spec: { dnsPolicy: "ClusterFirst", securityContext: {} } }, ""],
  [
    "a volume that is not mounted",
    {
      spec: {
        volumes: [
          { name: "v", hostPath: { path: "/data" } },
          { name: "more", emptyDir: {} },
        ],
      },
    },
    "",
  ],
  ["a cpu limit: resized in place", { a: { resources: { ...MEMORY, limits: { memory: "10Mi", cpu: "1" } } } }, ""],
  ["a memory limit: in place", { a: { resources: { requests: { memory: "1Mi" }, limits: { memory: "20Mi" } } } }, ""],
  ["the pull policy", { a: { imagePullPolicy: "Always" } }, ""],
  [
    "the resize policy",
    { a: { resizePolicy: RESTART_ON_RESIZE.map((one) => ({ ...one, restartPolicy: "NotRequired" })) } },
    "",
  ],
  ["an empty list", { a: { args: [] } }, ""],
  // One container restarts.
  ["the image", { a: { image: "i:2" } }, "a"],
  ["the command", { b: { command: ["x"] } }, "b"],
  ["an env variable", { b: { env: [{ name: "X", value: "2" }] } }, "b"],
  ["a ConfigMap its environment is made of", { sourcesOfB: "r2" }, "b"],
  ["the volume it mounts", volume({ hostPath: { path: "/other" } }), "a"],
  ["its security context", { a: { securityContext: { runAsUser: 1 } } }, "a"],
  ["a probe", { b: { livenessProbe: { exec: { command: ["true"] } } } }, "b"],
  ["a port without a host port", { b: { ports: [{ containerPort: 80 }] } }, "b"],
  ["a memory limit taken away", { a: { resources: { requests: { memory: "1Mi" } } } }, "a"],
  [
    "an annotation that means something for it",
    { metadata: { annotations: { "container.seccomp.security.alpha.kubernetes.io/b": "unconfined" } } },
    "b",
  ],
  // All containers restart.
  ["host aliases", { spec: { hostAliases: [{ ip: "1.2.3.4", hostnames: ["x"] }] } }, "a+b"],
  ["critical or not", { spec: { priorityClassName: "system-node-critical" } }, "a+b"],
  // The whole pod restarts, with a new sandbox.
  ["host network", { spec: { hostNetwork: true } }, "pod"],
  ["host PID", { spec: { hostPID: true } }, "pod"],
  ["host IPC", { spec: { hostIPC: true } }, "pod"],
  ["a shared process namespace", { spec: { shareProcessNamespace: true } }, "pod"],
  ["user namespace", { spec: { hostUsers: false } }, "pod"],
  ["host name", { spec: { hostname: "h" } }, "pod"],
  ["subdomain", { spec: { subdomain: "s" } }, "pod"],
  ["FQDN as host name", { spec: { setHostnameAsFQDN: true } }, "pod"],
  ["DNS policy", { spec: { dnsPolicy: "Default" } }, "pod"],
  ["DNS config", { spec: { dnsConfig: { searches: ["x"] } } }, "pod"],
  ["a host port", { a: { ports: [{ containerPort: 80, hostPort: 8080 }] } }, "pod"],
  ["a sysctl", { spec: { securityContext: { sysctls: [{ name: "net.ipv4.tcp_syncookies", value: "1" }] } } }, "pod"],
  ["the pod's user", { spec: { securityContext: { runAsUser: 1 } } }, "pod"],
  ["the runtime", { spec: { runtimeClassName: "runc" } }, "pod"],
  ["a name in the Docker network", { metadata: { annotations: { "kubelet-ts.io/network-aliases": "db" } } }, "pod"],
  ["a limit of processes", { metadata: { annotations: { "kubelet-ts.io/ulimits": "nofile=9" } } }, "pod"],
  ["log options", { metadata: { annotations: { "kubelet-ts.io/log-options": "max-size=1m" } } }, "pod"],
  ["an init process", { metadata: { annotations: { "kubelet-ts.io/init": "true" } } }, "pod"],
  ["volumes with files of the image", { metadata: { annotations: { "kubelet-ts.io/fill-volumes": "v" } } }, "pod"],
  ["probes of images", { metadata: { annotations: { "kubelet-ts.io/image-healthcheck": "readiness" } } }, "pod"],
  ["modes of emptyDirs", { metadata: { annotations: { "kubelet-ts.io/empty-dir-options": "v:mode=0700" } } }, "pod"],
  ["a Docker label", { metadata: { annotations: { "kubelet-ts.io/container-labels": "a=b" } } }, "pod"],
  ["the Docker network", { metadata: { annotations: { "kubelet-ts.io/network": "lan" } } }, "pod"],
  ["resources that change the QoS class, and so the cgroup", { a: { resources: {} }, b: { resources: {} } }, "pod"],
])("an edit of %s restarts %j", (_, edit, want) => {
  expect(restartsOf(edit)).toBe(want);
});

test("with resizePolicy RestartContainer a memory limit restarts its container", () => {
  const hashOf = (memory: string) => {
    const pod = aPod({ container: { resizePolicy: RESTART_ON_RESIZE, resources: { limits: { memory, cpu: "1" } } } });
    return computeContainerHash(pod, pod.spec.containers[0]!, "");
  };
  expect(hashOf("10Mi")).not.toBe(hashOf("20Mi"));
  expect(hashOf("10Mi")).toBe(hashOf("10Mi"));
});

test("the order of keys in a manifest does not matter", () => {
  const one = aPod({ container: { env: [{ name: "A", value: "1" }], image: "i" } });
  const other = aPod({ spec: { containers: [{ image: "i", env: [{ value: "1", name: "A" }], name: "c" }] } });
  expect(computeContainerHash(one, one.spec.containers[0]!, "")).toBe(
    computeContainerHash(other, other.spec.containers[0]!, ""),
  );
});
