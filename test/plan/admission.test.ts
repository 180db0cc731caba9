import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { DesiredPod } from "../../src/base/model/desired-state.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import {
  type AdmissionNode,
  admitPods,
  computeKubepodsBounds,
  computeNodeAllocatable,
  NodeAdmission,
  type StoredAllocations,
} from "../../src/plan/admission.ts";
import { computeNodeLabels, matchesNode, matchesOnlyNode } from "../../src/plan/node-affinity.ts";
import { aContainer, aPod } from "../support/builders.ts";

/** The machine of oracle case 28. */
const NODE: AdmissionNode = {
  name: "node1",
  labels: computeNodeLabels("node1", "amd64", {}),
  maxPods: 110,
  cpuMillis: 2000,
  memoryBytes: 25_276_502_016 - 100 * 1024 * 1024,
};

interface Wish {
  cpu?: string;
  memory?: string;
  hostPort?: number;
  hostIP?: string;
  critical?: boolean;
  spec?: Partial<Pod["spec"]>;
}

function desired(name: string, { cpu, memory, hostPort, hostIP, critical, spec }: Wish = {}): DesiredPod {
  const requests = { ...(cpu ? { cpu } : {}), ...(memory ? { memory } : {}) };
  const ports = hostPort
    ? [{ containerPort: 80, hostPort, protocol: "TCP" as const, ...(hostIP ? { hostIP } : {}) }]
    : [];
  const pod = aPod(
    {
      containers: [aContainer({ resources: { requests }, ports })],
      ...(critical ? { priorityClassName: "system-node-critical" } : {}),
      ...spec,
    },
    { name, uid: name },
  );
  return { pod, source: "file", origin: `${name}.yaml`, revision: "r" };
}

function admit(
  pods: DesiredPod[],
  options: { running?: string[]; refused?: string[]; held?: DesiredPod[]; node?: Partial<AdmissionNode> } = {},
) {
  const held = new Map((options.held ?? []).map(({ pod }) => [pod.metadata.uid!, pod]));
  const running = new Set([...(options.running ?? []), ...held.keys()]);
  const refused = new Set(options.refused);
  const node = { ...NODE, ...options.node };
  return Object.fromEntries(admitPods({ pods, running, refused, held, node }).rejections);
}

/** A file of allocations; `written` is what it holds. */
function aFile(written: StoredAllocations = {}) {
  const file = {
    written,
    writes: 0,
    read: () => file.written,
    write: (value: StoredAllocations) => {
      file.writes++;
      file.written = JSON.parse(JSON.stringify(value));
    },
  };
  return file;
}

const aged = (name: string, creationTimestamp: string, resourceVersion: number): DesiredPod => {
  const one = desired(name, { hostPort: 8080 });
  return { ...one, pod: { ...one.pod, metadata: { ...one.pod.metadata, creationTimestamp } }, resourceVersion };
};
test.each([
  ["another second", aged("z", "2026-01-01T00:00:00Z", 9), aged("a", "2026-01-01T00:00:01Z", 1)],
  ["the same second", aged("z", "2026-01-01T00:00:00Z", 1), aged("a", "2026-01-01T00:00:00Z", 2)],
  ["a pod of a manifest", desired("z", { hostPort: 8080 }), aged("a", "2026-01-01T00:00:00Z", 1)],
])("of two pods for one port the older one runs, whatever their names are: %s", (_when, first, second) => {
  expect(reasons([second, first])).toEqual({ a: "NodePorts" });
  expect(reasons([second, first], { running: ["a"] })).toEqual({ z: "NodePorts" });
});

const reasons = (...given: Parameters<typeof admit>) =>
  Object.fromEntries(Object.entries(admit(...given)).map(([uid, { reason }]) => [uid, reason]));

describe("reasons and messages are upstream's", () => {
  const lacks = (what: string) => `Pod Node didn't have enough resource: ${what}`;
  const noVictim = (what: string) =>
    `Pod Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: ${what}), ]`;
  const bigInit = [aContainer({ name: "i", resources: { requests: { cpu: "3" } } })];
  test.each<[what: string, Wish, reason: string, message: string]>([
    ["too many CPUs", { cpu: "100" }, "OutOfcpu", lacks("cpu, requested: 100000, used: 0, capacity: 2000")],
    ["too many CPUs, critical", { cpu: "100", critical: true }, "UnexpectedAdmissionError", noVictim("cpu, q: 98000")],
    [
      "too much memory, critical",
      { memory: "100Gi", critical: true },
      "UnexpectedAdmissionError",
      noVictim("memory, q: 82202537984"),
    ],
    [
      "an init container alone too big",
      { spec: { initContainers: bigInit } },
      "OutOfcpu",
      lacks("cpu, requested: 3000, used: 0, capacity: 2000"),
    ],
    [
      "a nodeSelector that does not match",
      { spec: { nodeSelector: { disktype: "ssd" } } },
      "NodeAffinity",
      "Pod Predicate NodeAffinity failed: the labels of this node (see --node-labels) do not match its nodeSelector or node affinity; --node-labels=disktype=ssd gives the node what the nodeSelector asks for",
    ],
    [
      "another OS",
      { spec: { os: { name: "windows" } } },
      "PodOSNotSupported",
      "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS: spec.os.name is windows, this node runs linux",
    ],
  ])("%s", (_what, wish, reason, message) => {
    expect(admit([desired("a", wish)]).a).toMatchObject({ reason, message });
  });

  test("a pod that fits is not refused", () => {
    const fine: Wish[] = [
      {},
      { cpu: "2" },
      { spec: { nodeSelector: { "kubernetes.io/hostname": "node1" } } },
      { spec: { nodeName: "othernode" } },
      { spec: { os: { name: "linux" } } },
      { spec: { containers: [aContainer({ resources: { limits: { "nvidia.com/gpu": "1" } } })] } },
    ];
    for (const wish of fine) expect(admit([desired("a", wish)])).toEqual({});
  });

  test("a host port clash names the holder", () => {
    const message = 'Pod Predicate NodePorts failed: host port 18080/TCP is held by pod "default/holder"';
    const pods = ["holder", "late"].map((name) => desired(name, { hostPort: 18080 }));
    expect(admit(pods)).toEqual({ late: { reason: "NodePorts", message } });
  });
});

describe("--max-pods", () => {
  const THREE = ["a", "b", "c"].map((name) => desired(name));
  test("pods beyond the limit are refused with OutOfpods, in their order", () => {
    const message = "Pod Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2";
    expect(admit(THREE, { node: { maxPods: 2 } })).toEqual({ c: { reason: "OutOfpods", message } });
    expect(Object.keys(admit(THREE, { node: { maxPods: 0 } }))).toEqual(["a", "b", "c"]);
  });

  test("a pod that runs keeps its place before one that sorts first", () => {
    expect(reasons(THREE, { running: ["b", "c"], node: { maxPods: 2 } })).toEqual({ a: "OutOfpods" });
  });

  test("pods that run keep their places on a node that offers less than before", () => {
    const node = { maxPods: 1, cpuMillis: 10 };
    const pods = [desired("a", { cpu: "1" }), desired("b", { cpu: "1" }), desired("c")];
    expect(reasons(pods, { running: ["a", "b"], node })).toEqual({ c: "OutOfpods" });
  });

  test("a refused pod takes nothing from the next", () => {
    const pods = [desired("a", { cpu: "3" }), desired("b", { cpu: "2" }), desired("c", { cpu: "1" })];
    expect(reasons(pods)).toEqual({ a: "OutOfcpu", c: "OutOfcpu" });
  });
});

describe("host ports", () => {
  test.each([
    { a: {}, b: {}, clash: true },
    { a: { hostIP: "127.0.0.1" }, b: { hostIP: "127.0.0.2" }, clash: false },
    { a: { hostIP: "127.0.0.1" }, b: {}, clash: true },
    { a: { hostIP: "0.0.0.0" }, b: { hostIP: "10.0.0.1" }, clash: true },
  ])("$a with $b: $clash", ({ a, b, clash }) => {
    const pods = [desired("a", { hostPort: 80, ...a }), desired("b", { hostPort: 80, ...b })];
    expect(Object.keys(admit(pods))).toEqual(clash ? ["b"] : []);
  });

  test("an edit that wants a held port is refused, not the holder, whatever their order", () => {
    const [a, b] = [desired("a", { hostPort: 80 }), desired("b", { hostPort: 80 })];
    expect(reasons([a, b], { held: [desired("a"), b] })).toEqual({ a: "NodePorts" });
    expect(reasons([a, b], { held: [a, desired("b")] })).toEqual({ b: "NodePorts" });
  });

  test("a running pod whose edit is refused keeps its place by its earlier manifest, also in a new process", () => {
    const [a, b, before] = [
      desired("a", { hostPort: 80 }),
      desired("b", { hostPort: 80 }),
      desired("a", { hostPort: 81 }),
    ];
    const earlier = new Map([["a", before]]);
    const running = new Set(["a", "b"]);
    const input = { running, earlier, node: NODE };
    const { rejections, refusedEdits } = admitPods({ ...input, pods: [a, b, desired("c", { hostPort: 81 })] });
    expect([...rejections.keys()]).toEqual(["c"]);
    expect(refusedEdits.get("a")?.reason).toBe("NodePorts");
  });

  const edited = (wishes: Record<string, [Wish, Wish]>) => {
    const pods = Object.entries(wishes).map(([name, [, wish]]) => desired(name, wish));
    const earlier = new Map(Object.entries(wishes).map(([name, [wish]]) => [name, desired(name, wish)]));
    const running = new Set(earlier.keys());
    const judge = (all: Iterable<DesiredPod>) => {
      const held = new Map([...all].map(({ pod }) => [pod.metadata.uid!, pod]));
      const { rejections, refusedEdits } = admitPods({ pods, running, held, earlier, node: NODE });
      return { refused: [...rejections.keys()], waiting: [...refusedEdits.keys()] };
    };
    // At first, and when some are admitted but not yet begun.
    return [judge(earlier.values()), judge(pods)];
  };
  const [ON_80, ON_81, ON_82] = [{ hostPort: 80 }, { hostPort: 81 }, { hostPort: 82 }];
  const ELSEWHERE = { spec: { nodeSelector: { disk: "ssd" } } };
  test.each<{ when: string; edits: Record<string, [Wish, Wish]>; waiting: string[] }>([
    { when: "two that swap ports do so", edits: { a: [ON_80, ON_81], b: [ON_81, ON_80] }, waiting: [] },
    { when: "three in a ring too", edits: { a: [ON_80, ON_81], b: [ON_81, ON_82], c: [ON_82, ON_80] }, waiting: [] },
    {
      when: "one of them goes to another node",
      edits: { a: [ON_80, ON_81], b: [ON_81, { ...ON_80, ...ELSEWHERE }] },
      waiting: ["a", "b"],
    },
    { when: "one that waits holds its port", edits: { a: [ON_80, ON_81], b: [ON_81, ON_82] }, waiting: ["a"] },
    { when: "two want one port", edits: { a: [ON_80, ON_82], b: [ON_81, ON_82], c: [ON_82, ON_80] }, waiting: ["b"] },
  ])("edits: $when", ({ edits, waiting }) => {
    expect(edited(edits)).toEqual([
      { refused: [], waiting },
      { refused: [], waiting },
    ]);
  });

  test("no pod is pushed off a port, not even by a critical pod", () => {
    const pods = [desired("a", { hostPort: 80 }), desired("c", { hostPort: 80, critical: true })];
    expect(reasons(pods, { running: ["a"] })).toEqual({ c: "NodePorts" });
  });
});

describe("critical pods", () => {
  const pods = [desired("a", { cpu: "2" }), desired("c", { cpu: "1", critical: true })];

  test("take resources from others, whose rejection says why", () => {
    const a = { reason: "Preempting", message: "Preempted in order to admit critical pod" };
    expect(admit(pods, { running: ["a"] })).toEqual({ a });
  });

  test("that run already do not make others preempted", () => {
    expect(reasons(pods, { running: ["a", "c"] })).toEqual({});
    expect(reasons(pods, { running: ["a", "c"], refused: ["a"] })).toEqual({ a: "OutOfcpu" });
  });
});

test("NodeAdmission remembers what was held; a refused pod is admitted when it fits", () => {
  const admission = new NodeAdmission(NODE, aFile());
  const refused = (pods: DesiredPod[], running: string[]) => [
    ...admission.admit(pods, new Set(running), true).rejections.keys(),
  ];
  const b = desired("b", { hostPort: 80 });
  expect(refused([desired("a"), b], [])).toEqual([]);
  const edited = desired("a", { hostPort: 80 });
  expect(refused([edited, b], ["a", "b"])).toEqual(["a"]);
  expect(refused([edited], ["a"])).toEqual([]);
});

describe("an edit of resources of a running pod", () => {
  const cpu = (amount: string) => ({ cpu: amount });
  /** Reasons of refused pods; of those that wait also the message and the CPU that they keep. */
  const pending = (
    admission: NodeAdmission,
    pods: DesiredPod[],
    running = pods.map(({ pod }) => pod.metadata.uid!),
  ) => {
    const { rejections, resizes } = admission.admit(pods, new Set(running), true);
    const refused = [...rejections].map(([uid, { reason }]) => [uid, reason]);
    const waiting = [...resizes].map(
      ([
        uid,
        {
          reason,
          message,
          pod: { spec },
        },
      ]) => {
        return [uid, [reason, message, spec.containers[0]!.resources.requests?.cpu]];
      },
    );
    return Object.fromEntries([...refused, ...waiting]);
  };
  const INFEASIBLE = "Node didn't have enough capacity: cpu, requested: 20000, capacity: 2000";

  test("never costs a pod: what does not fit has to wait", () => {
    const admission = new NodeAdmission(NODE, aFile());
    const [a, b] = [desired("a", cpu("1")), desired("b", cpu("500m"))];
    expect(pending(admission, [a, b], [])).toEqual({});
    expect(pending(admission, [desired("a", cpu("20")), b])).toEqual({ a: ["Infeasible", INFEASIBLE, "1"] });
    const wish = desired("a", cpu("1600m"));
    const message = "Node didn't have enough resource: cpu, requested: 1600, used: 500, capacity: 2000";
    expect(pending(admission, [wish, b])).toEqual({ a: ["Deferred", message, "1"] });
    // A pod that goes, or shrinks, makes room; a new one comes last.
    const others = [desired("b", cpu("400m")), desired("c", cpu("100m"))];
    expect(pending(admission, [wish, ...others], ["a", "b"])).toEqual({ c: "OutOfcpu" });
  });

  test("a pod without requests may be given too many", () => {
    const admission = new NodeAdmission(NODE, aFile());
    pending(admission, [desired("a")], []);
    expect(pending(admission, [desired("a", cpu("20"))])).toEqual({ a: ["Infeasible", INFEASIBLE, undefined] });
  });

  test("outlives the process: the pod is not refused after a restart", async () => {
    const file = aFile();
    pending(new NodeAdmission(NODE, file), [desired("a", cpu("1"))], []);
    await Promise.resolve();
    expect(file.written).toEqual({ a: { app: { requests: { cpu: "1" } } } });
    const wish = desired("a", cpu("20"));
    const next = new NodeAdmission(NODE, file);
    // Before every source has answered nothing is forgotten.
    next.admit([], new Set(), false);
    expect(pending(next, [wish])).toEqual({ a: ["Infeasible", INFEASIBLE, "1"] });
    expect(pending(next, [wish])).toEqual({ a: ["Infeasible", INFEASIBLE, "1"] });
    expect(file.writes).toBe(1);
    next.admit([], new Set(), true);
    await Promise.resolve();
    expect(file.written).toEqual({});
  });
});

const expression = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, ...(values.length > 0 && { values }) }],
});
const required = (...nodeSelectorTerms: object[]) =>
  ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  }) as Partial<Pod["spec"]>;

describe("node affinity", () => {
  const labels = computeNodeLabels("node1", "arm64", { zone: "a", cores: "4" });
  test.each([
    { term: expression("zone", "In", "a", "b"), want: true },
    { term: expression("zone", "In", "b"), want: false },
    { term: expression("zone", "NotIn", "b"), want: true },
    { term: expression("nothing", "NotIn", "b"), want: true },
    { term: expression("zone", "Exists"), want: true },
    { term: expression("nothing", "Exists"), want: false },
    { term: expression("constructor", "Exists"), want: false },
    { term: expression("nothing", "DoesNotExist"), want: true },
    { term: expression("zone", "DoesNotExist"), want: false },
    { term: expression("cores", "Gt", "3"), want: true },
    { term: expression("cores", "Gt", "4"), want: false },
    { term: expression("cores", "Lt", "5"), want: true },
    { term: expression("zone", "Lt", "5"), want: false },
    { term: { matchFields: [{ key: "metadata.name", operator: "In", values: ["node1"] }] }, want: true },
    { term: { matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["node1"] }] }, want: false },
    { term: {}, want: false },
  ])("$term: $want", ({ term, want }) => {
    expect(matchesNode(aPod(required(term)), "node1", labels)).toBe(want);
  });

  test("terms are alternatives, expressions of a term are not", () => {
    const no = expression("zone", "In", "b");
    const yes = expression("zone", "In", "a");
    const both = { matchExpressions: [...no.matchExpressions, ...yes.matchExpressions] };
    expect(matchesNode(aPod(required(no, yes)), "node1", labels)).toBe(true);
    expect(matchesNode(aPod(required(both)), "node1", labels)).toBe(false);
  });

  test("every node has the usual labels", () => {
    const usual = { os: "linux", arch: "arm64", hostname: "node1" };
    for (const [name, value] of Object.entries(usual)) expect(labels[`kubernetes.io/${name}`]).toBe(value);
    expect(labels).toHaveProperty("zone", "a");
  });
});

describe("huge pages", () => {
  const list = { memory: "32Mi", "hugepages-2Mi": "4Mi" };
  const wish = { spec: { containers: [aContainer({ resources: { requests: list, limits: list } })] } };
  const pods = [desired("a", wish), desired("b", wish)];
  const node = (hugePageBytes: Record<string, number>) => ({ node: { hugePageBytes } });

  test("that the node does not have are refused", () => {
    const message = "Pod Node didn't have enough resource: hugepages-2Mi, requested: 4194304, used: 0, capacity: 0";
    expect(admit(pods.slice(0, 1), node({}))).toEqual({ a: { reason: "OutOfhugepages-2Mi", message } });
  });

  test("are given to pods until there are none", () => {
    expect(reasons(pods, node({ "hugepages-2Mi": 4 * 1024 * 1024 }))).toEqual({ b: "OutOfhugepages-2Mi" });
    expect(admit(pods, node({ "hugepages-2Mi": 8 * 1024 * 1024 }))).toEqual({});
  });
});

test.each<[of: string, more: Partial<DesiredPod>, afterRestart: string | undefined]>([
  ["a cluster", { isBound: true }, undefined],
  ["the local API", { source: "api" }, undefined],
  ["a file", { source: "file" }, "NodeAffinity"],
])("labels count for new pods of %s; a pod that runs stays when they change", (_, more, afterRestart) => {
  const pod = (disk = "ssd") => ({ ...desired("api", { spec: { nodeSelector: { disk } } }), ...more });
  const node = { ...NODE };
  const admission = new NodeAdmission(node, aFile());
  const reasonFor = (running: string[], wanted = pod(), by = admission) =>
    by.admit([wanted], new Set(running), true).rejections.get("api")?.reason;
  expect(reasonFor([])).toBe("NodeAffinity");
  node.labels = { ...NODE.labels, disk: "ssd" };
  expect(reasonFor([])).toBeUndefined();
  node.labels = NODE.labels;
  expect(reasonFor(["api"])).toBeUndefined();
  expect(reasonFor(["api"], pod(), new NodeAdmission(node, aFile()))).toBe(afterRestart);
  expect(reasonFor(["api"], pod("hdd"))).toBe(more.isBound ? undefined : "NodeAffinity");
});

describe("labels that the template of a workload asks for", () => {
  const ofTemplate = (spec: Partial<Pod["spec"]>): DesiredPod => ({ ...desired("a", { spec }), isFromTemplate: true });

  test.each([
    [{ nodeSelector: { name: "pi" } }, true],
    [{ nodeSelector: { "node-role.kubernetes.io/master": "" } }, true],
    [{ nodeSelector: { name: "pi", "kubernetes.io/arch": "amd64" } }, true],
    [{ nodeSelector: { name: "pi", "kubernetes.io/arch": "arm64" } }, false],
    [{ nodeSelector: { "kubernetes.io/os": "windows" } }, false],
    [{ nodeSelector: { "kubernetes.io/hostname": "node2" } }, false],
    [required(expression("node-role.kubernetes.io/edge", "Exists")), true],
    [required(expression("kubernetes.io/arch", "In", "arm64")), false],
    [required(expression("kubernetes.io/arch", "In", "arm64"), expression("disk", "In", "ssd")), true],
    [required({}), false],
    [required({ matchFields: [{ key: "metadata.name", operator: "In", values: ["node2"] }] }), false],
  ])("%j: %p where the node was given none", (spec, runs) => {
    expect(admit([ofTemplate(spec)])).toEqual(runs ? {} : { a: expect.objectContaining({ reason: "NodeAffinity" }) });
  });

  test("count when the node was given some, for what comes from a URL, with --validate=strict, and for plain pods", () => {
    const spec = { nodeSelector: { disk: "ssd" } };
    const labels = computeNodeLabels("node1", "amd64", { zone: "a" });
    const refused = { a: expect.objectContaining({ reason: "NodeAffinity" }) };
    expect(admit([ofTemplate(spec)], { node: { labels } })).toEqual(refused);
    expect(admit([{ ...ofTemplate(spec), source: "http" }])).toEqual(refused);
    expect(admit([ofTemplate(spec)], { node: { comparesAllLabels: true } })).toEqual(refused);
    expect(admit([desired("a", { spec })])).toEqual(refused);
    expect(matchesOnlyNode(desired("a", { spec }).pod, "node1", NODE.labels).ignored).toEqual(["disk=ssd"]);
  });

  test("cost no running pod when the node is given labels", () => {
    const labels = computeNodeLabels("node1", "amd64", { zone: "a" });
    const running = { running: ["a"], node: { labels } };
    expect(admit([ofTemplate({ nodeSelector: { disk: "ssd" } })], running)).toEqual({});
  });
});

const MACHINE = { cpuCount: 2, memoryBytes: 25_276_502_016 };
const MI = 1024 * 1024;

test.each([
  ["nothing reserved: the recorded kubelet's figures", {}, 2000, 25_171_644_416],
  [
    "both reservations count",
    { systemReserved: { cpu: "250m", memory: "100Mi" }, kubeReserved: { cpu: "250m", memory: "28Mi" } },
    1500,
    25_171_644_416 - 128 * MI,
  ],
  ["no threshold", { evictionHard: [] }, 2000, MACHINE.memoryBytes],
  [
    "a threshold in per cent",
    { evictionHard: [{ signal: "memory.available" as const, percentage: 10 }] },
    2000,
    MACHINE.memoryBytes - 2_527_650_201,
  ],
] as const)("%s", (_when, options, cpu, memory) => {
  const allocatable = computeNodeAllocatable(MACHINE, { ...DEFAULT_KUBELET_OPTIONS, ...options });
  expect(allocatable).toEqual({ cpuMillis: cpu, memoryBytes: memory });
});

test("all pods together are bounded by what is not reserved; eviction thresholds do not count", () => {
  const node = { cpuCount: 2, memoryBytes: 8 * 1024 ** 3, pidLimit: 32768 };
  const none = { systemReserved: {}, kubeReserved: {} };
  expect(computeKubepodsBounds(node, none)).toEqual({ cpuMillis: 2000, memoryBytes: 8 * 1024 ** 3, pids: 32768 });
  const reserved = { systemReserved: { cpu: "500m", memory: "1Gi", pid: "1000" }, kubeReserved: { memory: "1Gi" } };
  expect(computeKubepodsBounds(node, reserved)).toEqual({ cpuMillis: 1500, memoryBytes: 6 * 1024 ** 3, pids: 31768 });
});
