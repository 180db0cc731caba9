import { describe, expect, test } from "bun:test";
import type { PersistentVolume } from "../../src/base/api/persistent-volume.ts";
import type { Pod, Volume } from "../../src/base/api/pod.ts";
import type { PersistentVolumeClaim } from "../../src/base/api/workload.ts";
import { bindClaims, computeClaimBytes, resolveClaims, usesClaim } from "../../src/controllers/claims.ts";
import { aPod } from "../support/builders.ts";
import { manifest, podTemplate, readObjects } from "./workload-world.ts";

const volume = (name: string, storage: string, spec: object = {}) =>
  readObjects(
    manifest(
      "PersistentVolume",
      { name },
      { capacity: { storage }, accessModes: ["ReadWriteOnce"], hostPath: { path: `/srv/${name}` }, ...spec },
    ),
  )[0]!.object as PersistentVolume;

const claim = (name: string, storage: string, spec: object = {}) =>
  readObjects(
    manifest(
      "PersistentVolumeClaim",
      { name },
      { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } }, ...spec },
    ),
  )[0]!.object as PersistentVolumeClaim;

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
  ])("%s", (_what, wanted, want) => {
    expect(bindClaims([wanted], volumes, {})).toEqual({ "default/c": want });
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
  const claim = (name: string, storage: string) =>
    manifest(
      "PersistentVolumeClaim",
      { name },
      { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
    );
  const objects = readObjects(
    claim("data", "1Mi"),
    manifest(
      "StatefulSet",
      { name: "db" },
      {
        serviceName: "db",
        selector: { matchLabels: { app: "web" } },
        template: podTemplate(),
        volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claim("x", "2Ki").spec }],
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

describe("a pod uses a claim", () => {
  const mounted = { name: "v", persistentVolumeClaim: { claimName: "data" } } as Volume;
  const { metadata, spec } = aPod();
  const withVolumes = (volumes: Volume[], namespace = "default") => ({
    metadata: { ...metadata, namespace },
    spec: { ...spec, volumes },
  });
  test.each([
    { when: "it mounts it", pod: withVolumes([mounted]), replaced: undefined, want: true },
    { when: "the bound volume replaces it", pod: withVolumes([]), replaced: { v: "data" }, want: true },
    { when: "it mounts another one: not", pod: withVolumes([mounted]), replaced: {}, name: "other", want: false },
    { when: "it is of another namespace: not", pod: withVolumes([mounted], "other"), replaced: undefined, want: false },
    { when: "it has no volumes: not", pod: withVolumes([]), replaced: undefined, want: false },
  ])("when $when", ({ pod, replaced, name = "data", want }) => {
    expect(usesClaim(pod, replaced, { name })).toBe(want);
  });
});
