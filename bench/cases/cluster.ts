import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ETCD, KUBERNETES } from "../../test/support/cluster/cluster-tools.ts";
import { ControlPlane } from "../../test/support/cluster/control-plane.ts";
import { ClusterTestNode } from "../../test/support/cluster/use-cluster.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";
import { ClusterApi } from "../cluster-api.ts";
import { HollowEngine } from "../hollow-engine.ts";
import { measureCpuPercent, readMegabytes } from "../process-usage.ts";
import { idlePod, SETTLE_MS } from "../running-pods.ts";

const PODS = 110;
/** Pods that are started one after the other. */
const SINGLE = 15;
/** Time without changes. Unit: milliseconds. */
const REST_MS = Number(process.env.KUBELET_TS_BENCH_REST ?? 600) * 1000;
const SAMPLES = 20;
const HOLLOW_PODS = 1000;
const ENDS_PER_SECOND = 10;
const CHURN_MS = 60_000;

/** Records requests of nodes only, when they have ended. */
const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived", "ResponseStarted", "Panic"],
  rules: [{ level: "Metadata", userGroups: ["system:nodes"] }, { level: "None" }],
};

/** A pod of a cluster that is bound to a node. */
const boundPod = (name: string, nodeName: string) => {
  const { spec, ...pod } = idlePod(name);
  return { ...pod, spec: { ...spec, nodeName } };
};

interface World {
  plane: ControlPlane;
  api: ClusterApi;
  /** Requests of nodes that the API server has answered so far; watches count when they end. */
  requests: () => number;
}

/** Runs `measure` with an API server; nothing is measured where there is none. */
async function withCluster(measure: (world: World) => Promise<Measurement[]>): Promise<Measurement[]> {
  if (KUBERNETES === "" || ETCD === "") {
    console.log("  skipped: npm run test:cluster builds Kubernetes, and KUBELET_TS_ETCD names the program etcd");
    return [];
  }
  const directory = mkdtempSync(join(tmpdir(), "kubelet-ts-bench-"));
  const policy = join(directory, "policy.json");
  const audit = join(directory, "audit.log");
  writeFileSync(policy, JSON.stringify(AUDIT_POLICY));
  writeFileSync(audit, "");
  const plane = new ControlPlane({ apiServerFlags: [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`] });
  try {
    await plane.start();
    const requests = () => readFileSync(audit, "utf8").split("\n").length - 1;
    return await measure({ plane, api: new ClusterApi(plane), requests });
  } finally {
    await plane.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** kubelet-ts as the node of a real API server: from a bound pod to its report, and its cost at rest. */
async function measureCluster({ plane, api, requests }: World): Promise<Measurement[]> {
  const node = new ClusterTestNode(plane);
  try {
    const kubelet = await node.join({ flags: [`--max-pods=${PODS + SINGLE}`] });
    const { name } = node;
    await node.until("the node to be Ready", () => api.isNodeReady(name));

    const single: number[] = [];
    for (let round = 0; round < SINGLE; round++) single.push(await api.startPods([boundPod(`single-${round}`, name)]));
    await api.deletePods();
    await node.until("no container", async () => (await node.listAll()).length === 0);

    const before = requests();
    const all = await api.startPods(Array.from({ length: PODS }, (_, index) => boundPod(`p${index}`, name)));
    const perPod = (requests() - before) / PODS;

    await Bun.sleep(SETTLE_MS);
    const resident = [readMegabytes(kubelet.pid, "VmRSS")];
    const atRest = requests();
    const own = await measureCpuPercent([kubelet.pid], async () => {
      for (let sample = 0; sample < SAMPLES; sample++) {
        await Bun.sleep(REST_MS / SAMPLES);
        resident.push(readMegabytes(kubelet.pid, "VmRSS"));
      }
    });
    const minutes = REST_MS / 60_000;
    const perMinute = (requests() - atRest) / minutes;
    return [
      { what: "a pod from bound to reported as Ready", unit: "ms", value: median(single), runs: single },
      { what: `${PODS} pods from the first one bound to all reported as Ready`, unit: "ms", value: all },
      { what: "  requests to the API server for each", unit: "number", value: perPod },
      { what: `requests a minute with ${PODS} pods at rest`, unit: "number", value: perMinute, goal: { atMost: 8 } },
      {
        what: `CPU with ${PODS} pods at rest over ${minutes} min (kubelet 1.20.2: 5.5 %)`,
        unit: "%",
        value: own,
        goal: { atMost: 0.5 },
      },
      {
        what: `RSS with ${PODS} pods after ${minutes} min (kubelet 1.20.2: 135 MB)`,
        unit: "MB",
        value: resident.at(-1) ?? Number.NaN,
        runs: resident,
        goal: { atMost: 110 },
      },
    ];
  } finally {
    await node.cleanUp();
  }
}

/** A thousand pods of an engine without containers, of which some end and are started again each second. */
async function measureHollow({ plane, api, requests }: World): Promise<Measurement[]> {
  const engine = new HollowEngine();
  const node = new ClusterTestNode(plane, { socketPath: engine.socketPath });
  try {
    const kubelet = await node.join({
      flags: [`--max-pods=${HOLLOW_PODS}`, "--pod-infra-container-image=busybox:test"],
    });
    const { name } = node;
    await node.until("the node to be Ready", () => api.isNodeReady(name));
    const started = await api.startPods(Array.from({ length: HOLLOW_PODS }, (_, index) => boundPod(`h${index}`, name)));
    await Bun.sleep(SETTLE_MS);
    const rest = await measureCpuPercent([kubelet.pid], () => Bun.sleep(CHURN_MS));
    const before = requests();
    const victims = engine.running.values();
    // Each container ends once: a second end would be followed by a back-off.
    const churn = await measureCpuPercent([kubelet.pid], async () => {
      for (let count = 0; count < (CHURN_MS / 1000) * ENDS_PER_SECOND; count++) {
        const victim = victims.next().value;
        if (victim) engine.exit(victim, 0);
        await Bun.sleep(1000 / ENDS_PER_SECOND);
      }
    });
    const perSecond = (requests() - before) / (CHURN_MS / 1000);
    return [
      {
        what: `${HOLLOW_PODS} hollow pods from the first one bound to all reported as Ready`,
        unit: "ms",
        value: started,
      },
      { what: "  CPU with them at rest", unit: "%", value: rest },
      {
        what: `  CPU while ${ENDS_PER_SECOND} of their containers end and start again each second`,
        unit: "%",
        value: churn,
      },
      { what: "    requests to the API server meanwhile", unit: "per s", value: perSecond },
      { what: "  RSS after it", unit: "MB", value: readMegabytes(kubelet.pid, "VmRSS") },
    ];
  } finally {
    await node.cleanUp();
    engine.close();
  }
}

export const clusterCases: readonly BenchCase[] = [
  {
    name: "cluster",
    about: `as a node of a real API server: ${PODS} pods bound to reported, then requests, CPU and memory at rest`,
    run: () => withCluster(measureCluster),
  },
  {
    name: "hollow-pods",
    about: `${HOLLOW_PODS} pods of a real API server on an engine without containers: CPU of their status changes`,
    run: () => withCluster(measureHollow),
  },
];
