import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ContainerStatus, PodStatus } from "../../src/base/api/pod.ts";
import { isNotFound } from "../../src/docker/engine/docker-error.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import { hasRegistry, TestRegistry } from "../support/registry.ts";
import { callEngine, type PodItem, type TestNode } from "../support/test-node.ts";
import { freePorts } from "../support/test-servers.ts";

const STATUS = join(import.meta.dir, "..", "fixtures", "oracle", "status");

/** One pod of the recorded cases of category B: its item of /pods, and each event once as `Type Reason Message`. */
interface RecordedStatus {
  /** `<case>/<pod>`. */
  name: string;
  podName: string;
  manifest: string;
  pod: PodItem;
  events: string[];
}

/** Every recorded pod, with the manifest it was made from. */
const RECORDED_STATUSES: RecordedStatus[] = readdirSync(STATUS).flatMap((folder) => {
  const files = readdirSync(join(STATUS, folder));
  return files
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const podName = file.replace(/\.json$/, "");
      const read = (name: string) => readFileSync(join(STATUS, folder, name), "utf8");
      const recorded = JSON.parse(read(file)) as Pick<RecordedStatus, "pod" | "events">;
      return { name: `${folder}/${podName}`, podName, manifest: read(`manifest-${podName}.yaml`), ...recorded };
    });
});

/** Where the recording's addresses are in this run. */
interface Places {
  node: TestNode;
  /** Recorded text to its replacement, e.g. `127.0.0.1:5000` to a registry's address. */
  addresses: ReadonlyMap<string, string>;
}

/** The recorded deadline is over on a loaded machine before a container has crashed twice. */
const [RECORDED_DEADLINE, DEADLINE] = [8, 16];

/** A recorded manifest for this run. */
function toManifest(text: string, { addresses }: Places): string {
  let manifest = text.replace(`activeDeadlineSeconds: ${RECORDED_DEADLINE}`, `activeDeadlineSeconds: ${DEADLINE}`);
  for (const [recorded, here] of addresses) manifest = manifest.replaceAll(recorded, here);
  return manifest;
}

/** Events of one pod so far, from a kubelet that logs JSON; each once. */
function eventsOf(kubelet: KubeletProcess, podName: string, places: Places): string[] {
  const events = new Set<string>();
  for (const line of kubelet.log.split("\n")) {
    if (!line.startsWith("{")) continue;
    const { msg = "", level, pod } = JSON.parse(line) as { msg?: string; level: string; pod?: string };
    const match = /^([A-Z][A-Za-z]+): (.*)$/s.exec(msg);
    if (!match || !pod?.endsWith(`/${podName}-${places.node.name}`)) continue;
    events.add(`${level === "warn" ? "Warning" : "Normal"} ${match[1]} ${match[2]}`);
  }
  return [...events].map((event) => toComparable(event, places));
}

/** Values that differ from run to run, replaced by the same words on both sides. */
function toComparable<T>(value: T, { node, addresses }: Places): T {
  let text = JSON.stringify(value).replaceAll(node.name, "node1");
  for (const [recorded, here] of addresses) text = text.replaceAll(here, recorded);
  text = text
    .replace(`"activeDeadlineSeconds":${DEADLINE}`, `"activeDeadlineSeconds":${RECORDED_DEADLINE}`)
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>")
    .replace(/docker:\/\/(<container-id:[^>]*>|[0-9a-f]{64})/g, "docker://<container>")
    .replace(/docker:\/\/<image-id:[^>]*>|docker:\/\/sha256:[0-9a-f]{64}/g, "docker://<image>")
    .replace(/@sha256:(<[^>]*>|[0-9a-f]{64})/g, "@sha256:<digest>")
    .replace(/<pod-ip:[^>]*>/g, "<pod-ip>")
    .replace(/"(podIP|ip)":"[\d.]+"/g, '"$1":"<pod-ip>"')
    .replace(/\((<pod-uid:[^>]*>|[0-9a-f]{32})\)/g, "(<uid>)")
    .replace(/ in [\d.]+m?s"/g, ' in <time>"')
    // The number of crashes by then depends on the time of the reading; the delays have their own test.
    .replace(/back-off \w+ restarting/g, "back-off <delay> restarting");
  return JSON.parse(text) as T;
}

/** Where /pods differs on purpose (docs/differences.md): each takes one difference out of either side. */
const INTENDED: Record<string, (pod: PodItem, isOurs: boolean) => void> = {
  "hostIP is there": ({ status }) => {
    delete status.hostIP;
    delete status.hostIPs;
  },
  "a pod in the node's network has its address": ({ spec, status }) => {
    if (!spec.hostNetwork) return;
    delete status.podIP;
    delete status.podIPs;
  },
  "PodReadyToStartContainers, of newer Kubernetes, is there": ({ status }) => {
    status.conditions = status.conditions?.filter(({ type }) => type !== "PodReadyToStartContainers") ?? [];
  },
  "resources of containers, of newer Kubernetes, are there": ({ status }) => {
    for (const container of [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])]) {
      delete container.resources;
      delete container.allocatedResources;
    }
  },
  "config.hash names the revision, no longer the pod": ({ metadata }) => {
    metadata.annotations!["kubernetes.io/config.hash"] = "hash";
    metadata.uid = "uid";
  },
  "after DeadlineExceeded the true states are reported": ({ status }, isOurs) => {
    if (status.reason !== "DeadlineExceeded") return;
    if (isOurs) {
      expect(status.conditions?.length).toBeGreaterThan(0);
      for (const { state } of status.containerStatuses!) expect(state.running).toBeUndefined();
    }
    status.conditions = [];
    status.containerStatuses = [];
  },
  "OOMKilled is reported also when the recorded kubelet inspected too early": ({ metadata, status }) => {
    if (metadata.name !== "oom-node1") return;
    for (const { state } of status.containerStatuses!) if (state.terminated) state.terminated.reason = "OOMKilled";
  },
};

/** The number of crashes depends on the time of the reading. */
function withoutCounts(status: ContainerStatus): void {
  if (status.state.waiting?.reason === "CrashLoopBackOff") status.restartCount = -1;
}

function normalize(pod: PodItem, places: Places, isOurs: boolean): PodItem {
  const copy = toComparable(structuredClone(pod), places);
  for (const remove of Object.values(INTENDED)) remove(copy, isOurs);
  copy.status.containerStatuses?.forEach(withoutCounts);
  copy.status.initContainerStatuses?.forEach(withoutCounts);
  // One image is pulled by all these names at the same time: which of them it has when it is looked up is chance.
  for (const status of copy.status.containerStatuses ?? []) {
    status.image = status.image.replace(/oracle\/app(:latest|@sha256:<digest>)?$/, "oracle/app:1");
  }
  return copy;
}

const isCompared = (podName: string) => (event: string) =>
  !(MAY_BE_PRESENT.has(podName) && /^Normal Pull/.test(event)) && !OWN_EVENTS.test(event);

/** About the machine of the recording; of the node, not of the pod, there; unknown there. */
const OWN_EVENTS = /^(Warning (MissingClusterDNS|OOMKilling)|(Warning|Normal) Exited) /;

/** IfNotPresent, and others pull the same image at the same time: whether it is there yet is chance. */
const MAY_BE_PRESENT = new Set(["pullok", "pulldigest"]);

const IMAGE_CASE = "31-pull-policies";
/**
 * Not as recorded for long: a deadline from its creation, a disk limit that evicts here (docs/differences.md) ten
 * seconds after the start, a child that runs out of memory within milliseconds of its start, which an engine under load
 * does not notice yet. They must not have to share the machine with the start of all others.
 */
const isHasty = ({ name }: RecordedStatus) => /^3(4-oomkilled\/oomchild|[67]-(deadline|eviction))/.test(name);
/** Some sixty pods start at once, on whatever else the machine has to do. */
const START_LIMIT_MS = 90_000;
const needsRegistry = ({ name, manifest }: RecordedStatus) => name.startsWith(IMAGE_CASE) || manifest.includes(":5000");

describeWithEngine("/pods and events are those of the real kubelet (oracle, category B)", () => {
  const node = testNode();
  const all = RECORDED_STATUSES.filter((one) => hasRegistry || !needsRegistry(one));
  const cases = [...all.filter((one) => !isHasty(one)), ...all.filter(isHasty)];
  if (!hasRegistry) console.warn("SKIPPED cases with a registry: docker-registry is not installed");
  let registry: TestRegistry | undefined;
  let kubelet: KubeletProcess;
  let places: Places = { node, addresses: new Map() };

  beforeAll(async () => {
    const addresses = new Map<string, string>();
    if (hasRegistry) {
      registry = await TestRegistry.start();
      const digest = await pushApp(node, registry);
      addresses.set(`<digest:127.0.0.1:5000/oracle/app:1>`, digest.replace("sha256:", ""));
      addresses.set("127.0.0.1:5000", registry.address);
    }
    addresses.set("127.0.0.1:5999", `127.0.0.1:${freePorts(1)[0]}`);
    places = { node, addresses };
    for (const one of cases) if (!isHasty(one)) write(one);
    kubelet = await node.start(["--log-format=json", "--v=2"]);
  });

  const write = ({ podName, manifest }: RecordedStatus) =>
    node.writeManifest(`${podName}.yaml`, toManifest(manifest, places));

  afterAll(async () => {
    await node.cleanUp();
    if (registry) await removeImages(node, registry.address);
    await registry?.cleanUp();
  });

  test.each(cases)("$name", async (recorded) => {
    const { podName, pod, events } = recorded;
    if (isHasty(recorded)) write(recorded);
    const want = normalize(pod, places, false);
    const isAsRecorded = (seen: PodItem) =>
      Bun.deepEquals(summary(normalize(seen, places, true).status), summary(want.status));
    let last: PodItem | undefined;
    await node
      .until(
        `${podName} to be as recorded`,
        async () => {
          last = await node.pod(podName);
          return last !== undefined && isAsRecorded(last);
        },
        START_LIMIT_MS,
      )
      .catch(() => {});
    expect(last).toBeDefined();
    expect(normalize(last!, places, true)).toEqual(want);
    const wantEvents = events.map((event) => toComparable(event, places)).filter(isCompared(podName));
    const seenEvents = () => eventsOf(kubelet, podName, places).filter(isCompared(podName));
    await node
      .until(`the events of ${podName}`, () => wantEvents.every((event) => seenEvents().includes(event)))
      .catch(() => {});
    expect(seenEvents().sort()).toEqual(wantEvents.sort());
  });
});

/** The condition under which a pod has reached the recorded state. */
const summary = (status: PodStatus) => [
  status.phase,
  status.conditions?.map(({ type, status: is, reason, message }) => [type, is, reason, message]),
  [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map(({ state, ready }) => [
    state,
    ready,
  ]),
];

/** Makes the recorded `oracle/app:1` and `:latest`: busybox with one variable more. @returns its digest */
async function pushApp(node: TestNode, { address }: TestRegistry): Promise<string> {
  const { Id } = await node.docker.createContainer(`${node.bareName}-app`, {
    Image: "busybox:test",
    Labels: { "kubelet-ts.io/node": node.bareName },
  });
  const repository = `${address}/oracle/app`;
  let digest = "";
  for (const tag of ["1", "latest"]) {
    if (tag === "1") {
      const changes = encodeURIComponent(`ENV FROM_REGISTRY=${node.name}`);
      await callEngine(`/commit?container=${Id}&repo=${repository}&tag=1&changes=${changes}`);
    } else await node.docker.tagImage(`${repository}:1`, repository, tag);
    const answer = await callEngine(`/images/${repository}/push?tag=${tag}`, { "X-Registry-Auth": "e30=" });
    digest = /sha256:[0-9a-f]{64}/.exec(answer)?.[0] ?? "";
  }
  await node.docker.removeContainer(Id, { force: true });
  await removeImages(node, address);
  return digest;
}

async function removeImages(node: TestNode, address: string): Promise<void> {
  for (const tag of ["1", "latest"]) {
    try {
      await node.docker.removeImage(`${address}/oracle/app:${tag}`, { force: true });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
