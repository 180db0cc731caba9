import { describe, expect, test } from "bun:test";
import type { DesiredState } from "../../src/base/model/desired-pod.ts";
import { WorkloadManager } from "../../src/controllers/workload-manager.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { type KeptState, managerDeps, manifest, podTemplate, readObjects } from "./workload-world.ts";

const claimSpec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };

const statefulSet = (replicas = 1, storage: object = claimSpec) =>
  manifest(
    "StatefulSet",
    { name: "db" },
    {
      replicas,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: { app: "web" } },
      template: podTemplate(),
      volumeClaimTemplates: [{ metadata: { name: "data" }, spec: storage }],
    },
  );

const claim = (name: string) => manifest("PersistentVolumeClaim", { name }, claimSpec);

const volume = (name: string) =>
  manifest(
    "PersistentVolume",
    { name },
    { capacity: { storage: "5Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: `/srv/${name}` } },
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
    ...managerDeps(new FakeClock(), kept),
    kubelet: { pods: () => [], isGone: () => true, isSynced: false, onChange: () => () => {} },
    publish: (state) => void published.push(state),
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

  test("are deleted only while no pod uses them", () => {
    const { set, claims, manager } = aManager();
    set(statefulSet());
    expect(manager.userOfClaim("default/data-db-0")).toBe("db-0");
    expect(manager.deleteClaim("default/data-db-0")).toBe(false);
    set();
    expect(manager.userOfClaim("default/data-db-0")).toBeUndefined();
    expect(manager.deleteClaim("default/data-db-0")).toBe(true);
    expect(manager.deleteClaim("default/data-db-0")).toBe(false);
    expect(claims()).toEqual([]);
    set(statefulSet());
    expect(claims()).toEqual(["data-db-0"]);
  });

  test("are bound to PersistentVolumes", () => {
    const { set, volumes } = aManager();
    set(statefulSet(), volume("disk"));
    expect(volumes()).toEqual([{ name: "data", hostPath: { path: "/srv/disk", type: "DirectoryOrCreate" } }]);
  });

  test("of a release that did not record them stay Docker volumes", () => {
    const kept: KeptState = { state: undefined };
    aManager(kept).set(statefulSet());
    const { claimRecords: _claims, volumes: _volumes, ...state } = kept.state!;
    kept.state = { ...state, claims: {} };
    const { set, volumes, claims } = aManager(kept);
    set(statefulSet(), volume("disk"));
    expect(claims()).toEqual(["data-db-0"]);
    expect(volumes()).toEqual([{ name: "data", persistentVolumeClaim: { claimName: "data-db-0" } }]);
  });

  test("are not listed twice when a manifest describes them", () => {
    const { set, claims } = aManager();
    set(statefulSet(), claim("data-db-0"));
    expect(claims()).toEqual([]);
  });
});

describe("a claim that pods use keeps its volume", () => {
  const DISK = [{ name: "v", hostPath: { path: "/srv/disk", type: "DirectoryOrCreate" } }];

  test("when its text is removed, and loses it when no pod uses it any more", () => {
    const { set, volumes } = aManager();
    set(deploymentWith("c"), claim("c"), volume("disk"));
    expect(volumes()).toEqual(DISK);
    set(deploymentWith("c"), volume("disk"));
    expect(volumes()).toEqual(DISK);
    set(volume("disk"));
    set(deploymentWith("c"), volume("disk"));
    expect(volumes()).toEqual([{ name: "v", persistentVolumeClaim: { claimName: "c" } }]);
  });

  test("when the text of the volume is removed, also in another process", () => {
    const kept = { state: undefined };
    const first = aManager(kept);
    first.set(deploymentWith("c"), claim("c"), volume("disk"));
    first.set(deploymentWith("c"), claim("c"));
    expect(first.volumes()).toEqual(DISK);
    const second = aManager(kept);
    second.set(deploymentWith("c"), claim("c"));
    expect(second.volumes()).toEqual(DISK);
  });
});

test("a PersistentVolume shows the claim that is bound to it", () => {
  const { set, manager } = aManager();
  set(claim("c"), volume("disk"), volume("other"));
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
