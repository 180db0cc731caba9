import { describe, expect, test } from "bun:test";
import type { PersistentVolume } from "../../src/base/api/persistent-volume.ts";
import type { Pod, Volume } from "../../src/base/api/pod.ts";
import type { PersistentVolumeClaim } from "../../src/base/api/workload.ts";
import type { DesiredState } from "../../src/base/model/desired-state.ts";
import { bindClaims, computeClaimBytes, resolveClaims } from "../../src/controllers/claims.ts";
import { WorkloadManager } from "../../src/controllers/workload-manager.ts";
import { aPod } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { aContext, type KeptState, managerDeps, manifest, podTemplate, readObjects } from "./workload-world.ts";

const volumeText = (name: string, storage = "5Gi", spec: object = {}) =>
  manifest(
    "PersistentVolume",
    { name },
    { capacity: { storage }, accessModes: ["ReadWriteOnce"], hostPath: { path: `/srv/${name}` }, ...spec },
  );
const volume = (...of: Parameters<typeof volumeText>) => readObjects(volumeText(...of))[0]!.object as PersistentVolume;

const claimText = (name: string, storage = "1Gi", spec: object = {}) =>
  manifest(
    "PersistentVolumeClaim",
    { name },
    { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } }, ...spec },
  );
const claim = (...of: Parameters<typeof claimText>) =>
  readObjects(claimText(...of))[0]!.object as PersistentVolumeClaim;

describe("a claim is bound", () => {
  const volumes = [volume("big", "10Gi"), volume("small", "2Gi"), volume("fast", "5Gi", { storageClassName: "fast" })];
  test.each([
    ["to the smallest volume that fits", claim("c", "1Gi"), "small"],
    ["to one that is large enough", claim("c", "5Gi"), "big"],
    ["to one of its class", claim("c", "1Gi", { storageClassName: "fast" }), "fast"],
    ["to the one it names", claim("c", "1Gi", { volumeName: "big" }), "big"],
    ["to a Docker volume when none is large enough", claim("c", "100Gi"), ""],
    ["to a Docker volume when none allows its access mode", claim("c", "1Gi", { accessModes: ["ReadWriteMany"] }), ""],
    ["to a Docker volume when none is of its class", claim("c", "1Gi", { storageClassName: "slow" }), ""],
    ["to a Docker volume when it names that, as the API shows it", claim("c", "1Gi", { volumeName: "default_c" }), ""],
    ["to none when it names one that does not exist", claim("c", "1Gi", { volumeName: "gone" }), undefined],
    ["to none when it names one that is meant for another", claim("c", "1Gi", { volumeName: "other" }), undefined],
  ])("%s", (_what, wanted, want) => {
    const other = volume("other", "1Gi", { claimRef: { name: "x", namespace: "default" } });
    expect(bindClaims([wanted], [...volumes, other], {})).toEqual(want === undefined ? {} : { "default/c": want });
  });

  test("permanent: a volume that would fit better later changes nothing", () => {
    expect(bindClaims([claim("c", "1Gi")], volumes, { "default/c": "" })).toEqual({ "default/c": "" });
  });

  test("each to a volume of its own", () => {
    expect(bindClaims([claim("a", "1Gi"), claim("b", "1Gi")], volumes, {})).toEqual({
      "default/a": "small",
      "default/b": "big",
    });
  });

  test("to the volume that is meant for it", () => {
    const meant = volume("meant", "50Gi", { claimRef: { name: "b", namespace: "default" } });
    expect(bindClaims([claim("a", "20Gi"), claim("b", "1Gi")], [...volumes, meant], {})).toEqual({
      "default/a": "",
      "default/b": "meant",
    });
  });
});

test("a pod gets what its claim is bound to", () => {
  const pod = aPod({ volumes: [{ name: "data", persistentVolumeClaim: { claimName: "c" } }] });
  const resolve = (one: PersistentVolume) =>
    resolveClaims(pod, (claim) => (claim === "default/c" ? one : undefined)).spec.volumes;
  expect(resolve(volume("v", "1Gi"))).toEqual([
    { name: "data", hostPath: { path: "/srv/v", type: "DirectoryOrCreate" } },
  ]);
  const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "Exists" }];
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
  const local = { hostPath: undefined, local: { path: "/mnt/d" }, nodeAffinity };
  const resolved: Volume[] | undefined = resolve(volume("v", "1Gi", local));
  expect(resolved).toEqual([
    { name: "data", hostPath: { path: "/mnt/d", type: "Directory", local: { readOnly: false } } },
  ]);
  const nfs = { server: "nas", path: "/x" };
  expect(resolve(volume("v", "1Gi", { hostPath: undefined, nfs }))).toEqual([{ name: "data", nfs }]);
  expect(resolveClaims(pod, () => undefined)).toBe(pod);
});

describe("the storage that a claim requests", () => {
  const objects = readObjects(
    claimText("data", "1Mi"),
    manifest(
      "StatefulSet",
      { name: "db" },
      {
        serviceName: "db",
        selector: { matchLabels: { app: "web" } },
        template: podTemplate(),
        volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claimText("x", "2Ki").spec }],
      },
    ),
  );
  const pod = (name: string, owner?: string, namespace = "default") =>
    ({
      metadata: { name, namespace, ...(owner && { ownerReferences: [{ kind: "StatefulSet", name: owner }] }) },
    }) as unknown as Pod;

  test.each([
    [pod("p"), "data", 1_048_576],
    [pod("p", undefined, "other"), "data", undefined],
    [pod("p"), "none", undefined],
    [pod("db-0", "db"), "data-db-0", 2048],
    [pod("db-0", "other"), "data-db-0", undefined],
  ])("case %#", (of, name, bytes) => {
    expect(computeClaimBytes(objects, of, name)).toBe(bytes);
  });
});

const claimSpec = claimText("").spec;

const statefulSet = (replicas = 1) =>
  manifest(
    "StatefulSet",
    { name: "db" },
    {
      replicas,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: { app: "web" } },
      template: podTemplate(),
      volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claimSpec }],
    },
  );

const deploymentWith = (claimName: string) =>
  manifest(
    "Deployment",
    { name: "web" },
    {
      selector: { matchLabels: { app: "web" } },
      template: podTemplate("busybox:1", { volumes: [{ name: "v", persistentVolumeClaim: { claimName } }] }),
    },
  );

function aManager(kept: KeptState = { state: undefined }) {
  const published: DesiredState[] = [];
  const manager = new WorkloadManager({
    ...managerDeps(aContext(new FakeClock()), kept),
    kubelet: { pods: () => [], isGone: () => true, isObserved: () => false, onChange: () => () => {} },
    next: { setDesired: (state) => void published.push(state) },
  });
  return {
    manager,
    set: (...manifests: object[]) =>
      manager.setDesired(
        { pods: [], configMaps: new Map(), secrets: new Map(), objects: readObjects(...manifests) },
        true,
      ),
    /** `namespace/name` of the claims that the API lists in addition to those of the manifests. */
    claims: () =>
      manager.reader
        .derivedObjects()
        .filter(({ kind }) => kind === "PersistentVolumeClaim")
        .map(({ metadata }) => metadata.name),
    /** Volumes of all pods. */
    volumes: (): unknown[] => published.at(-1)!.pods.map(({ pod }) => pod.spec.volumes?.[0]),
    problems: () => [...(published.at(-1)!.claimProblems ?? [])],
    status: (claim: object) => manager.reader.statusOf("PersistentVolumeClaim", claim as { metadata: object }),
  };
}

describe("claims of a StatefulSet", () => {
  test("are listed, with the labels of its selector and the Docker volume behind them", () => {
    const { set, manager } = aManager();
    set(statefulSet());
    expect(manager.reader.derivedObjects().find(({ kind }) => kind === "PersistentVolumeClaim")).toMatchObject({
      apiVersion: "v1",
      metadata: { name: "data-db-0", namespace: "default", labels: { app: "web" } },
      spec: claimSpec,
      status: {
        phase: "Bound",
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        volume: { name: "data-db-0", isDockerVolume: true },
      },
    });
  });

  test("stay when it is scaled down or deleted, also in another process", () => {
    const kept = { state: undefined };
    const first = aManager(kept);
    first.set(statefulSet(2));
    first.set(statefulSet(1));
    expect(first.claims()).toEqual(["data-db-0", "data-db-1"]);
    first.set();
    expect(first.claims()).toEqual(["data-db-0", "data-db-1"]);
    const second = aManager(kept);
    second.set();
    expect(second.claims()).toEqual(["data-db-0", "data-db-1"]);
  });

  test("that name a volume wait for it: the state says why", () => {
    const { set, volumes, problems, status } = aManager();
    const named = { ...claimText("data-db-0"), spec: { ...claimText("x").spec, volumeName: "disk" } };
    set(statefulSet(), named);
    expect([problems(), status(named)]).toEqual([
      [["default/data-db-0", expect.stringContaining('claim "data-db-0": volume "disk" not found')]],
      { phase: "Pending" },
    ]);
    set(statefulSet(), named, volumeText("disk"));
    expect([problems(), status(named)]).toMatchObject([[], { phase: "Bound" }]);
    expect(volumes()).toEqual([{ name: "data", hostPath: { path: "/srv/disk", type: "DirectoryOrCreate" } }]);
  });

  test("are deleted only while no pod uses them", async () => {
    const { set, claims, manager } = aManager();
    set(statefulSet());
    expect(manager.claims.userOf("default/data-db-0")).toBe("db-0");
    expect(manager.removalOfClaim("default/data-db-0")).toBeUndefined();
    set();
    expect(manager.claims.userOf("default/data-db-0")).toBeUndefined();
    await manager.removalOfClaim("default/data-db-0")!();
    expect(manager.removalOfClaim("default/data-db-0")).toBeUndefined();
    expect(claims()).toEqual([]);
    set(statefulSet());
    expect(claims()).toEqual(["data-db-0"]);
  });

  test("are bound to PersistentVolumes", () => {
    const { set, volumes } = aManager();
    set(statefulSet(), volumeText("disk"));
    expect(volumes()).toEqual([{ name: "data", hostPath: { path: "/srv/disk", type: "DirectoryOrCreate" } }]);
  });

  test("are not listed twice when a manifest describes them", () => {
    const { set, claims } = aManager();
    set(statefulSet(), claimText("data-db-0"));
    expect(claims()).toEqual([]);
  });
});

describe("a claim that pods use keeps its volume", () => {
  const DISK = [{ name: "v", hostPath: { path: "/srv/disk", type: "DirectoryOrCreate" } }];

  test("when its text is removed, and loses it when no pod uses it any more", () => {
    const { set, volumes } = aManager();
    set(deploymentWith("c"), claimText("c"), volumeText("disk"));
    expect(volumes()).toEqual(DISK);
    set(deploymentWith("c"), volumeText("disk"));
    expect(volumes()).toEqual(DISK);
    set(volumeText("disk"));
    set(deploymentWith("c"), volumeText("disk"));
    expect(volumes()).toEqual([{ name: "v", persistentVolumeClaim: { claimName: "c" } }]);
  });

  test("when the text of the volume is removed, also in another process", () => {
    const kept = { state: undefined };
    const first = aManager(kept);
    first.set(deploymentWith("c"), claimText("c"), volumeText("disk"));
    first.set(deploymentWith("c"), claimText("c"));
    expect(first.volumes()).toEqual(DISK);
    const second = aManager(kept);
    second.set(deploymentWith("c"), claimText("c"));
    expect(second.volumes()).toEqual(DISK);
  });
});

test("a PersistentVolume shows the claim that is bound to it", () => {
  const { set, manager } = aManager();
  set(claimText("c"), volumeText("disk"), volumeText("other"));
  const statusOf = (name: string) => manager.reader.statusOf("PersistentVolume", { metadata: { name } });
  expect([statusOf("disk"), statusOf("other")]).toContainEqual({ phase: "Available" });
  expect([statusOf("disk"), statusOf("other")]).toContainEqual({
    phase: "Bound",
    claim: { namespace: "default", name: "c" },
  });
  expect(
    manager.reader.statusOf("PersistentVolumeClaim", { metadata: { name: "unknown" }, spec: claimSpec }),
  ).toBeUndefined();
});
