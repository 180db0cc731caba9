import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { PodStepError } from "../../src/plan/waiting-reasons.ts";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named, stateOf, toPodRevision } from "../support/kubelet-world.ts";

let world: KubeletWorld;

beforeEach(() => {
  world = new KubeletWorld();
});

describe("an edit", () => {
  test("an edit restarts only what it touches", async () => {
    await world.started(named("web", { containers: [aContainer({ name: "a" }), aContainer({ name: "b" })] }));
    const b = world.engine.idOf("web-node1", "b");
    world.want(named("web", { containers: [aContainer({ name: "a", image: "new" }), aContainer({ name: "b" })] }));
    await world.clock.advance(100);
    expect(world.engine.idOf("web-node1", "b")).toBe(b);
    expect(world.engine.find("web-node1", "a")).toMatchObject({ container: { image: "new", state: "running" } });
    expect(world.recorder.events).toContain("web-node1 Killing Container a definition changed, will be restarted");
  });

  test("an edit of its memory takes effect in the running container", async () => {
    await world.started(named("web"));
    world.engine.calls.length = 0;
    world.want(named("web", { containers: [aContainer({ resources: { limits: { memory: "4096" } } })] }));
    await world.clock.advance(100);
    expect(world.engine.calls).toEqual(["resize app"]);
    expect(world.engine.find("web-node1", "app")).toMatchObject({
      container: { limits: { memoryBytes: 4096 }, restartCount: 0 },
    });
  });

  test("a resize that the engine refuses is reported and tried again later", async () => {
    await world.started(named("web"));
    world.engine.failures.set("resize", { error: new Error("too small"), times: 1 });
    world.want(named("web", { containers: [aContainer({ resources: { limits: { memory: "4096" } } })] }));
    await world.clock.advance(5_000);
    expect(world.engine.calls.filter((call) => call === "resize app")).toHaveLength(1);
    const message = "Cannot change the resources of container app: too small";
    expect(world.recorder.events).toContain(`web-node1 ResizeFailed ${message}`);
    const status = world.statusOf("web");
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: "PodResizeInProgress", status: "True", reason: "Error", message }),
    );
    const wanted = { limits: { memory: "4096" } };
    expect(status?.containerStatuses?.[0]).toMatchObject({ resources: wanted });
    await world.clock.advance(6_000);
    expect(world.engine.find("web-node1", "app")).toMatchObject({ container: { limits: { memoryBytes: 4096 } } });
    expect(world.statusOf("web")?.conditions?.map(({ type }) => type)).not.toContain("PodResizeInProgress");
  });

  test("a resize that the node cannot satisfy leaves the pod as it is and says why", async () => {
    const sized = (memory: string) => named("web", { containers: [aContainer({ resources: { limits: { memory } } })] });
    await world.started(sized("4096"));
    world.engine.calls.length = 0;
    const message = "Node didn't have enough capacity: memory";
    world.resizes.set("uid-web", { reason: "Infeasible", message, pod: sized("4096") });
    world.want(sized("8192"));
    await world.clock.advance(100);
    expect(world.engine.calls).toEqual([]);
    const status = world.statusOf("web");
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: "PodResizePending", status: "True", reason: "Infeasible", message }),
    );
    expect(status?.containerStatuses?.[0]?.resources).toEqual({ limits: { memory: "4096" } });
    world.want(sized("8192"));
    await world.clock.advance(100);
    const told = world.recorder.events.filter((event) => event === `web-node1 ResizeInfeasible ${message}`);
    expect(told).toHaveLength(1);
    world.resizes.clear();
    world.want(sized("8192"));
    await world.clock.advance(100);
    expect(world.engine.calls).toEqual(["resize app"]);
    expect(world.statusOf("web")?.conditions?.map(({ type }) => type)).not.toContain("PodResizePending");
  });

  test("an edit of a label restarts nothing and shows", async () => {
    await world.started(named("web"));
    world.engine.calls.length = 0;
    world.want(named("web", {}, { labels: { tier: "front" } }));
    await world.clock.advance(100);
    expect(world.engine.calls).toEqual([]);
    expect(world.kubelet.pods()[0]?.metadata.labels).toEqual({ tier: "front" });
  });

  test("an edit during a long kill counts once that is over", async () => {
    world.engine.stopTakesMs = 5_000;
    await world.started(named("web"));
    world.want(named("web", { containers: [aContainer({ image: "second" })] }));
    await world.clock.advance(1_000);
    world.want(named("web", { containers: [aContainer({ image: "third" })] }));
    await world.clock.advance(10_000);
    expect(world.engine.find("web-node1", "app")).toMatchObject({ container: { image: "third", state: "running" } });
    expect(world.engine.calls.filter((call) => call.startsWith("kill"))).toHaveLength(1);
  });

  test("volumes that an edit took out go when nothing of the old revision runs any more", async () => {
    world.engine.stopTakesMs = 5_000;
    const two = (image: string) =>
      named("web", { containers: [aContainer({ name: "a", image }), aContainer({ name: "b" })] });
    const wantRevision = (pod: Pod, objectsRevision: string) =>
      world.kubelet.workers.get("uid-web")!.setRevision({ ...toPodRevision({ pod }), objectsRevision });
    await world.started(two("old"));
    // Left by an earlier try to start it, of another revision.
    expect(world.engine.sweeps.splice(0)).toEqual(["web-node1"]);
    world.engine.failures.set("sweep", { error: new Error("in use"), times: 1 });
    wantRevision(two("new"), "2");
    await world.clock.advance(4_000);
    expect(world.engine.sweeps).toEqual([]);
    await world.clock.advance(2_000);
    expect(world.engine.sweeps).toEqual(["web-node1"]);
    await world.clock.advance(8_000);
    expect(world.engine.sweeps).toHaveLength(1);
    await world.clock.advance(20_000);
    expect(world.engine.sweeps).toHaveLength(2);
  });

  test("volumes of an edit that was rolled back before it took effect go too", async () => {
    const web = named("web");
    const wantRevision = (objectsRevision: string) =>
      world.kubelet.workers.get("uid-web")!.setRevision({ ...toPodRevision({ pod: web }), objectsRevision });
    await world.started(web);
    wantRevision("1");
    await world.clock.advance(10);
    world.engine.sweeps.length = 0;
    // Nothing is at rest while the container of the edit is killed, so its volumes are not checked.
    world.engine.stopTakesMs = 5_000;
    world.kubelet.workers.get("uid-web")!.setRevision({
      ...toPodRevision({ pod: named("web", { containers: [aContainer({ image: "other" })] }) }),
      objectsRevision: "2",
    });
    await world.clock.advance(1_000);
    wantRevision("1");
    await world.clock.advance(20_000);
    expect(world.engine.sweeps).toEqual(["web-node1"]);
  });

  test("its files are written again when the objects it uses change", async () => {
    await world.started(named("web"));
    expect(world.engine.calls).not.toContain("refresh web-node1");
    const pod = named("web");
    world.kubelet.workers.get("uid-web")!.setRevision({ ...toPodRevision({ pod }), objectsRevision: "2" });
    await world.clock.advance(10);
    expect(world.engine.calls).toContain("refresh web-node1");
  });

  test("its files are written again a minute after a disk refused them, and that is told once", async () => {
    await world.started(named("web"));
    const refreshes = () => world.engine.calls.filter((call) => call === "refresh web-node1").length;
    world.engine.failures.set("refresh", { error: new Error("EROFS"), times: 2 });
    const pod = named("web");
    world.kubelet.workers.get("uid-web")!.setRevision({ ...toPodRevision({ pod }), objectsRevision: "2" });
    await world.clock.advance(59_000);
    expect(refreshes()).toBe(1);
    await world.clock.advance(62_000);
    expect(refreshes()).toBe(3);
    await world.clock.advance(600_000);
    expect(refreshes()).toBe(3);
    expect(world.recorder.events.filter((event) => event.includes("EROFS"))).toHaveLength(1);
  });
});

test("an edit that changes the QoS class is an event", async () => {
  await world.started(named("web"));
  const worker = world.kubelet.workers.get("uid-web")!;
  worker.setRevision({ ...worker.revision!, qosClass: "Burstable" });
  expect(world.recorder.events).toContainEqual(
    "web-node1 QOSClassChanged QoS class changes from BestEffort to Burstable: the pod starts again in a new sandbox",
  );
});

test("the Secret whose new value restarts a container is an event, without its value", async () => {
  const env = [{ name: "A", valueFrom: { secretKeyRef: { name: "db", key: "a" } } }];
  const pod = named("web", { containers: [aContainer({ env })] });
  await world.started(pod);
  const worker = world.kubelet.workers.get("uid-web")!;
  const holds = (a: string, containers: string) => {
    const secrets = new Map([["default/db", { metadata: { name: "db" }, data: { a, b: "x" } } as never]]);
    const revision = toPodRevision({ pod });
    const hashes = { ...revision.hashes, containers: new Map([["app", containers]]) };
    worker.setRevision({ ...revision, hashes, objects: { ...revision.objects, secrets } });
  };
  for (const [value, hash] of [
    ["old", "1"],
    ["old", "2"],
    ["new", "3"],
  ] as const)
    holds(value, hash);
  expect(world.recorder.events.filter((event) => event.includes("EnvironmentChanged"))).toEqual([
    'web-node1 EnvironmentChanged Secret "default/db" changed, whose values its environment has',
  ]);
});

describe("an edit that cannot start costs no running pod", () => {
  const web = (image: string, metadata: Partial<Pod["metadata"]> = {}) =>
    named("web", { containers: [aContainer({ image })] }, metadata);
  const runs = (image: string) =>
    expect(world.engine.find("web-node1", "app")).toMatchObject({ container: { image, state: "running" } });
  const pendingEdit = () => world.statusOf("web")?.conditions?.find(({ reason }) => reason === "EditPending")?.message;
  const fails = (times: number, message = "no such image") =>
    world.engine.failures.set("prepare app", { error: new PodStepError("ErrImagePull", message), times });

  test("its image cannot be pulled: the pod runs on, says why, and takes the edit once it can", async () => {
    await world.started(web("1"));
    const id = world.engine.idOf("web-node1", "app");
    fails(2);
    world.submit(web("2"));
    await world.clock.advance(1_000);
    expect(world.engine.idOf("web-node1", "app")).toBe(id);
    expect(pendingEdit()).toBe(
      "the edit waits, and the pod keeps running with its earlier manifest: no such image. Fix: check name and tag of the image; docker pull shows the same response",
    );
    expect(world.recorder.events.filter((event) => event.includes("EditPending"))).toHaveLength(1);
    await world.clock.advance(20_000);
    runs("2");
    expect(pendingEdit()).toBeUndefined();
  });

  test.each([
    { when: "its container is renamed", containers: [aContainer({ name: "other" })] },
    {
      when: "a container comes and another one is edited",
      containers: [aContainer({ image: "2" }), aContainer({ name: "other" })],
    },
  ])("$when, and the image of the new one cannot be pulled", async ({ containers: [...containers] }) => {
    await world.started(web("1"));
    world.engine.failures.set("prepare other", { error: new PodStepError("ErrImagePull", "no such image"), times: 2 });
    world.submit(named("web", { containers }));
    await world.clock.advance(1_000);
    runs("1");
    await world.clock.advance(20_000);
    expect(world.engine.find("web-node1", "other")).toMatchObject({ container: { state: "running" } });
  });

  test("another edit takes its place, also the one back", async () => {
    await world.started(web("1"));
    const id = world.engine.idOf("web-node1", "app");
    fails(1000);
    world.submit(web("2"));
    await world.clock.advance(1_000);
    world.want(web("1"));
    await world.clock.advance(1_000);
    expect(pendingEdit()).toBeUndefined();
    expect(world.engine.idOf("web-node1", "app")).toBe(id);
    world.submit(web("3"));
    await world.clock.advance(1_000);
    world.engine.failures.clear();
    world.submit(web("4"));
    await world.clock.advance(1_000);
    runs("4");
  });

  test("a slow pull is shown, and stops nothing", async () => {
    await world.started(web("1"));
    world.engine.takesMs.set("prepare app", 60_000);
    world.want(web("2"));
    await world.clock.advance(10_000);
    runs("1");
    expect(pendingEdit()).toEndWith("its images are being pulled");
    expect(world.kubelet.workers.get("uid-web")!.rollout).toBe("pending");
    await world.clock.advance(60_000);
    runs("2");
  });

  test.each(["before", "after"])(
    "a pod that crashed %s the edit starts again by its earlier manifest",
    async (when) => {
      await world.started(web("1"));
      if (when === "before") await world.exit("web", "app", 1, 1);
      fails(1000);
      world.submit(web("2"));
      await world.clock.advance(1_000);
      if (when === "after") await world.exit("web", "app", 1, 15_000);
      runs("1");
    },
  );

  test("a pod that a power cut ended starts again by its earlier manifest, also in a new process", async () => {
    await world.started(web("1"));
    fails(1000);
    world.submit(web("2"));
    await world.clock.advance(1_000);
    world.kubelet.stop();
    world.engine.exit(world.engine.idOf("web-node1", "app"), 137);
    world.engine.exit(world.engine.idOf("web-node1", "POD"), 137);
    world.renew();
    world.kubelet.start();
    world.submit(web("2"));
    await world.clock.advance(30_000);
    runs("1");
    expect(pendingEdit()).toStartWith("the edit waits");
  });

  test("in a new process that has not read every source, it waits on", async () => {
    const pod = (image: string, secret: object) =>
      named("web", { initContainers: [aContainer({ name: "init", ...secret })], containers: [aContainer({ image })] });
    await world.started(pod("1", {}));
    await world.exit("web", "init", 0, 1_000);
    const id = world.engine.idOf("web-node1", "app");
    fails(99);
    const edited = pod("2", { envFrom: [{ secretRef: { name: "missing" } }] });
    world.submit(edited);
    await world.clock.advance(1_000);
    world.kubelet.stop();
    world.renew();
    world.kubelet.start();
    world.kubelet.setDesired(
      stateOf([edited], { completeSources: new Set() }, { source: "file", revision: "2" }),
      false,
    );
    await world.clock.advance(1_000);
    world.submit(edited);
    await world.clock.advance(60_000);
    expect(world.engine.idOf("web-node1", "app")).toBe(id);
    expect(world.engine.calls.filter((call) => call.startsWith("kill"))).toEqual([]);
    expect(pendingEdit()).toStartWith("the edit waits");
  });

  test("the node refuses it", async () => {
    await world.started(web("1"));
    const id = world.engine.idOf("web-node1", "app");
    world.refuses = (pods) =>
      pods.flatMap(({ pod }) => (pod.spec.containers[0]!.image === "2" ? [pod.metadata.uid!] : []));
    world.submit(web("2"));
    await world.clock.advance(1_000);
    expect(world.engine.idOf("web-node1", "app")).toBe(id);
    expect(pendingEdit()).toContain("manifest: the node refuses it. Fix: ");
    expect(world.statusOf("web")?.phase).toBe("Running");
    world.submit(web("3"));
    await world.clock.advance(1_000);
    runs("3");
  });

  test.each([
    ["made before its start, and refused by the node", true, true],
    ["made before its start", true, false],
    ["made while none ran", false, false],
  ])("a new process keeps the pod too: an edit %s", async (_, isMadeBefore, isRefused) => {
    await world.started(web("1"));
    const id = world.engine.idOf("web-node1", "app");
    if (isRefused) world.refuses = (pods) => pods.map(({ pod }) => pod.metadata.uid!);
    else fails(1000);
    if (isMadeBefore) world.submit(web("2"));
    await world.clock.advance(1_000);
    expect(world.earlierManifests).toHaveLength(isMadeBefore ? 1 : 0);
    world.renew();
    world.kubelet.start();
    world.submit(web("2"));
    await world.clock.advance(30_000);
    expect(world.engine.idOf("web-node1", "app")).toBe(id);
    expect(pendingEdit()).toStartWith("the edit waits");
    world.engine.failures.clear();
    world.refuses = undefined;
    world.submit(web("3"));
    await world.clock.advance(1_000);
    runs("3");
    expect(world.earlierManifests).toEqual([]);
  });

  test("a pod that has never run has nothing to lose", async () => {
    world.engine.failures.set("start app", { error: new PodStepError("RunContainerError", "no"), times: 1000 });
    await world.started(web("1"));
    fails(1000);
    world.submit(web("2"));
    await world.clock.advance(1);
    expect(pendingEdit()).toBeUndefined();
  });
});

describe("pods of one workload take turns", () => {
  const names = ["db-2", "db-9", "db-10"] as const;
  const probed = { readinessProbe: { exec: { command: ["ok"] } } as never };
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "uid-set", controller: true };
  const pods = (image: string, uids: Partial<Record<string, string>> = {}, probes: object = probed) =>
    names.map((name) =>
      named(
        name,
        { containers: [aContainer({ image, ...probes })] },
        { ownerReferences: [{ ...owner, uid: uids[name] ?? owner.uid }] },
      ),
    );
  const images = () =>
    names.map((name) => {
      const it = world.engine.find(`${name}-node1`, "app");
      return it?.kind === "container" && it.container.state === "running" ? it.container.image : "";
    });
  const setReady = async (isReady: boolean, ...those: string[]) => {
    for (const name of those) {
      const containerId = world.engine.idOf(`${name}-node1`, "app");
      world.probes.set(`uid-${name}`, new Map([["app", { containerId, started: true, ready: isReady }]]));
      world.kubelet.workers.get(`uid-${name}`)?.wake();
    }
    await world.clock.advance(1_000);
  };
  const edit = async (image: string) => {
    world.submit(...pods(image));
    await world.clock.advance(1_000);
  };
  const whyNot = (name: string) =>
    world.statusOf(name)?.conditions?.find(({ reason }) => reason === "EditPending")?.message;

  beforeEach(async () => {
    await world.started(...pods("1"));
    await setReady(true, ...names);
  });

  test("the highest ordinal first, the next one when it is Ready again, and a new process keeps to that", async () => {
    await edit("2");
    expect(images()).toEqual(["1", "1", "2"]);
    expect(whyNot("db-2")).toBe(
      'the edit waits, and the pod keeps running with its earlier manifest: pod "db-10-node1" of the same workload goes first. Fix: if it does not become Ready, kubelet-ts explain pod db-10-node1 says why',
    );
    expect(world.recorder.events.filter((event) => event.includes("EditPending"))).toEqual([]);
    await world.clock.advance(600_000);
    expect(images()).toEqual(["1", "1", "2"]);
    world.renew();
    world.kubelet.start();
    await edit("2");
    await world.clock.advance(600_000);
    expect(images()).toEqual(["1", "1", "2"]);
    await setReady(true, "db-10");
    expect(images()).toEqual(["1", "2", "2"]);
    await setReady(true, "db-9");
    expect(images()).toEqual(["2", "2", "2"]);
    expect(names.map(whyNot)).toEqual([undefined, undefined, undefined]);
  });

  test("an edit that breaks the first one stops there, and the next edit begins with that one", async () => {
    await edit("bad");
    await world.exit("db-10", "app", 1, 60_000);
    expect(images()).toEqual(["1", "1", "bad"]);
    await edit("good");
    expect(images()).toEqual(["1", "1", "good"]);
    await setReady(true, "db-10");
    await setReady(true, "db-9");
    expect(images()).toEqual(["good", "good", "good"]);
  });

  test.each([
    { when: "becomes not Ready", isRenewed: false, exitCode: undefined, kept: "1" },
    { when: "ends without an error", isRenewed: false, exitCode: 0, kept: "1" },
    { when: "crashes", isRenewed: false, exitCode: 1, kept: "1" },
    { when: "is not Ready after our restart", isRenewed: true, exitCode: undefined, kept: "1" },
    // The earlier values are not known any more: it has what its label says.
    { when: "crashes after our restart", isRenewed: true, exitCode: 1, kept: "bad" },
  ])("while the first one with a bad edit is not available, one that $when keeps what it ran", async (row) => {
    await edit("bad");
    await world.exit("db-10", "app", 1, 60_000);
    if (row.isRenewed) {
      world.renew();
      world.kubelet.start();
      await edit("bad");
    }
    if (row.exitCode === undefined) await setReady(false, "db-9");
    else await world.exit("db-9", "app", row.exitCode, 2_000);
    await world.clock.advance(600_000);
    expect(images()).toEqual(["1", row.kept, "bad"]);
    await edit("1");
    await setReady(true, "db-10", "db-9");
    expect(images()).toEqual(["1", "1", "1"]);
    await edit("good");
    for (const name of names.toReversed()) await setReady(true, name);
    expect(images()).toEqual(["good", "good", "good"]);
  });

  test("an edit during the turn of another pod waits for the end of that, and an edit undone is no edit", async () => {
    world.engine.stopTakesMs = 5_000;
    await edit("2");
    await edit("3");
    expect(images()).toEqual(["1", "1", "1"]);
    await world.clock.advance(10_000);
    expect(images()).toEqual(["1", "1", "3"]);
    await edit("1");
    await world.clock.advance(10_000);
    expect(images()).toEqual(["1", "1", "1"]);
    expect(world.engine.calls.filter((call) => call.startsWith("kill") && !call.includes("POD"))).toHaveLength(2);
  });

  test("without a readiness probe the next one goes ten seconds after a pod is Ready, a crash in that time stops it", async () => {
    await world.restarted(...pods("1", {}, {}));
    await world.clock.advance(20_000);
    world.submit(...pods("bad", {}, {}));
    await world.clock.advance(2_000);
    for (let crash = 0; crash < 4; crash++) {
      await world.exit("db-10", "app", 1, 1_000 + 12_000 * crash);
      expect(images().slice(0, 2)).toEqual(["1", "1"]);
    }
    world.submit(...pods("good", {}, {}));
    await world.clock.advance(9_000);
    expect(images()).toEqual(["1", "1", "good"]);
    await world.clock.advance(3_000);
    expect(images()).toEqual(["1", "good", "good"]);
    await world.clock.advance(11_000);
    expect(images()).toEqual(["good", "good", "good"]);
  });

  test("a pod is not Ready while an edit stops it, unless it is the only one", async () => {
    world.engine.stopTakesMs = 5_000;
    world.submit(...pods("2", { "db-10": "other" }));
    await world.clock.advance(1_000);
    const ready = (name: string) => world.statusOf(name)?.conditions?.find(({ type }) => type === "Ready")?.status;
    expect(names.map(ready)).toEqual(["True", "False", "True"]);
    await world.clock.advance(10_000);
    expect(images()).toEqual(["1", "2", "2"]);
  });

  test("a pod that is not Ready waits for no other; one that cannot be edited holds up no other", async () => {
    await setReady(false, "db-9");
    await edit("2");
    expect(images()).toEqual(["1", "2", "1"]);
    await setReady(true, "db-9");
    expect(images()).toEqual(["1", "2", "2"]);
    await setReady(true, "db-10");
    expect(images()).toEqual(["2", "2", "2"]);
    await setReady(true, ...names);
    world.refuses = () => ["uid-db-10"];
    await edit("3");
    expect(images()).toEqual(["2", "3", "2"]);
  });

  test("pods of other workloads, and one that is removed, are no reason to wait", async () => {
    world.submit(...pods("2", { "db-2": "other" }));
    await world.clock.advance(1_000);
    expect(images()).toEqual(["2", "1", "2"]);
    world.submit(...pods("2", { "db-2": "other" }).slice(0, 2));
    await world.clock.advance(1_000);
    expect(images()).toEqual(["2", "2", ""]);
  });
});

test("the rollout of an edit is live when the successor runs", async () => {
  await world.started(named("web"));
  const worker = world.kubelet.workers.get("uid-web")!;
  expect(worker.rollout).toBe("live");
  world.engine.stopTakesMs = 5_000;
  world.want(named("web", { containers: [aContainer({ image: "new" })] }));
  expect(worker.rollout).toBe("pending");
  await world.clock.advance(1_000);
  expect(worker.rollout).toBe("progressing");
  await world.clock.advance(5_000);
  expect(worker.rollout).toBe("live");
});
