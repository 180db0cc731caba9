import { expect, test } from "bun:test";
import type { DesiredPod } from "../../../src/base/model/desired-pod.ts";
import { ClaimResolver } from "../../../src/cluster/objects/claim-resolver.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const VOLUME = "/api/v1/persistentvolumes/pv";

const aDesiredPod = (claim: object = {}): DesiredPod => ({
  pod: aPod(
    {
      containers: [aContainer({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data", ...claim } }],
    },
    { name: "web", namespace: "default", uid: "uid-web" },
  ),
  source: "api",
  origin: "the API server",
  revision: "r",
  isBound: true,
});

function aWorld(volume?: object) {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  let changes = 0;
  const bind = (source: object) => {
    api.set(CLAIM, { metadata: { uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } });
    api.set(VOLUME, { metadata: { name: "pv" }, spec: { claimRef: { uid: "claim-uid" }, ...source } });
  };
  if (volume) bind(volume);
  const node: { labels: Record<string, string> | undefined } = { labels: { "kubernetes.io/hostname": "here" } };
  const claims = new ClaimResolver({
    client: api,
    clock,
    nodeName: "here",
    nodeLabels: () => node.labels,
    onChange: () => changes++,
  });
  return { clock, api, claims, bind, node, changes: () => changes };
}

test.each([
  { kind: "hostPath", source: { hostPath: { path: "/srv/a" } }, want: { path: "/srv/a", type: "DirectoryOrCreate" } },
  {
    kind: "local",
    source: { local: { path: "/srv/b" } },
    want: { path: "/srv/b", type: "Directory", local: { readOnly: false } },
  },
])("a claim that is bound to a volume of $kind becomes a path of the host", async ({ source, want }) => {
  const { clock, claims } = aWorld(source);
  const desired = aDesiredPod();
  claims.setPods([desired]);
  expect(claims.isSettled(desired)).toBe(false);
  await clock.advance(0);
  expect(claims.isSettled(desired)).toBe(true);
  const resolved = claims.resolve(desired);
  expect(resolved.pod.spec.volumes).toEqual([{ name: "v", hostPath: want }]);
  expect(resolved.revision).not.toBe(desired.revision);
});

test("a volume of nfs keeps server and path", async () => {
  const { clock, claims } = aWorld({ nfs: { server: "10.0.0.1", path: "/export" } });
  const desired = aDesiredPod({ readOnly: true });
  claims.setPods([desired]);
  await clock.advance(0);
  const [volume] = claims.resolve(desired).pod.spec.volumes ?? [];
  expect(volume).toEqual({ name: "v", nfs: { server: "10.0.0.1", path: "/export", readOnly: true } });
});

test("mount options of the volume are those of its mount", async () => {
  for (const source of [{ nfs: { server: "10.0.0.1", path: "/export" } }, { local: { path: "/srv/b" } }]) {
    const { clock, claims } = aWorld({ ...source, mountOptions: ["noatime"] });
    const desired = aDesiredPod();
    claims.setPods([desired]);
    await clock.advance(0);
    const [volume] = claims.resolve(desired).pod.spec.volumes ?? [];
    expect(volume).toMatchObject({ ["nfs" in source ? "nfs" : "hostPath"]: {} });
    expect(JSON.stringify(volume)).toContain('"mountOptions":["noatime"]');
  }
});

const affinityTo = (hostname: string) => ({
  required: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [hostname] }] }],
  },
});

test.each([
  {
    what: "a hostPath with mount options",
    source: { hostPath: { path: "/srv/a" }, mountOptions: ["ro"] },
    want: 'MountVolume.MountOptionSupport check failed for volume "pv" : mount options are not supported for this volume type',
  },
  {
    what: "a volume of another node",
    source: { local: { path: "/srv/a" }, nodeAffinity: affinityTo("there") },
    want: 'MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms',
  },
  {
    what: "a volume of this node",
    source: { local: { path: "/srv/a" }, nodeAffinity: affinityTo("here") },
    want: undefined,
  },
])("$what: $want", async ({ source, want }) => {
  const { clock, claims } = aWorld(source);
  const desired = aDesiredPod();
  claims.setPods([desired]);
  await clock.advance(0);
  if (want === undefined) expect(claims.resolve(desired).pod.spec.volumes?.[0]?.hostPath).toBeDefined();
  else expect(claims.problemOf({ metadata: { namespace: "default" } }, "data")).toBe(want);
});

test("a claim for reading only is mounted so, whatever the kind of its volume", async () => {
  const { clock, claims } = aWorld({ local: { path: "/srv/b" } });
  const desired = aDesiredPod({ readOnly: true });
  claims.setPods([desired]);
  await clock.advance(0);
  const [container] = claims.resolve(desired).pod.spec.containers;
  expect(container?.volumeMounts).toEqual([{ name: "v", mountPath: "/v", readOnly: true }]);
  expect(desired.pod.spec.containers[0]?.volumeMounts?.[0]?.readOnly).toBeUndefined();
});

test.each(["csi", "awsElasticBlockStore", "gcePersistentDisk", "rbd"])(
  "a volume of %s is a problem that names the kind",
  async (kind) => {
    const { clock, claims } = aWorld({ [kind]: { driver: "x" }, capacity: { storage: "1Gi" } });
    const desired = aDesiredPod();
    claims.setPods([desired]);
    await clock.advance(0);
    expect(claims.isSettled(desired)).toBe(true);
    expect(claims.problemOf({ metadata: { namespace: "default" } }, "data")).toBe(
      `persistentvolume "pv" is of the kind ${kind}: kubelet-ts mounts local, hostPath and nfs volumes`,
    );
  },
);

test("a claim that is not bound yet is asked for until it is", async () => {
  const { clock, api, claims, bind, changes } = aWorld();
  const desired = aDesiredPod();
  claims.setPods([desired]);
  await clock.advance(0);
  expect(claims.problemOf({ metadata: { namespace: "default" } }, "data")).toBe(
    'persistentvolumeclaim "data" not found',
  );
  api.set(CLAIM, { metadata: { uid: "claim-uid" }, spec: {}, status: { phase: "Pending" } });
  await clock.advance(60_000);
  expect(claims.problemOf({ metadata: { namespace: "default" } }, "data")).toBe(
    'persistentvolumeclaim "data" is not bound',
  );
  bind({ hostPath: { path: "/srv/a" } });
  const before = changes();
  await clock.advance(60_000);
  expect(changes()).toBe(before + 1);
  expect(claims.resolve(desired).pod.spec.volumes?.[0]?.hostPath?.path).toBe("/srv/a");
  expect(clock.pendingTimers).toBe(0);
});

test("a volume that belongs to another claim is not mounted", async () => {
  const { clock, api, claims } = aWorld({ hostPath: { path: "/srv/a" } });
  api.set(VOLUME, { metadata: { name: "pv" }, spec: { hostPath: { path: "/a" }, claimRef: { uid: "other" } } });
  claims.setPods([aDesiredPod()]);
  await clock.advance(0);
  expect(claims.problemOf({ metadata: { namespace: "default" } }, "data")).toContain(
    'is not bound to persistentvolumeclaim "data"',
  );
});

test("claims that no pod names any more are not asked for", async () => {
  const { clock, api, claims } = aWorld();
  claims.setPods([aDesiredPod()]);
  await clock.advance(0);
  claims.setPods([]);
  const before = api.requests.length;
  await clock.advance(600_000);
  expect(api.requests).toHaveLength(before);
});
