import { expect, test } from "bun:test";
import type { DesiredPod } from "../../../src/base/model/desired-state.ts";
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

/** The claim of a pod, bound to this volume, when the API server has answered. */
async function settled(source: object, claim: object = {}) {
  const { clock, claims } = aWorld(source);
  const desired = aDesiredPod(claim);
  claims.setPods([desired]);
  expect(claims.isSettled(desired)).toBe(false);
  await clock.advance(0);
  expect(claims.isSettled(desired)).toBe(true);
  const resolved = claims.resolve(desired);
  return { claims, desired, resolved, volume: resolved.pod.spec.volumes?.[0] };
}

const LOCAL = { path: "/srv/b", type: "Directory", local: { readOnly: false } };
const NFS = { server: "10.0.0.1", path: "/export" };
const NOATIME = { mountOptions: ["noatime"] };

test.each<[what: string, source: object, claim: object, want: object]>([
  [
    "a hostPath is a path of the host",
    { hostPath: { path: "/srv/a" } },
    {},
    { hostPath: { path: "/srv/a", type: "DirectoryOrCreate" } },
  ],
  ["a local volume is one too", { local: { path: "/srv/b" } }, {}, { hostPath: LOCAL }],
  ["nfs keeps server and path", { nfs: NFS }, { readOnly: true }, { nfs: { ...NFS, readOnly: true } }],
])("a claim becomes the volume that it is bound to: %s", async (_, source, claim, want) => {
  const { volume, resolved, desired } = await settled(source, claim);
  expect(volume as object).toEqual({ name: "v", ...want });
  expect(resolved.revision).not.toBe(desired.revision);
});

test.each([{ nfs: NFS }, { local: { path: "/srv/b" } }])(
  "mount options of the volume are those of its mount: %j",
  async (source) => {
    const { volume } = await settled({ ...source, ...NOATIME });
    expect(volume).toMatchObject({ ["nfs" in source ? "nfs" : "hostPath"]: {} });
    expect(JSON.stringify(volume)).toContain('"mountOptions":["noatime"]');
  },
);

const affinityTo = (hostname: string) => ({
  required: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [hostname] }] }],
  },
});

const LOCAL_TO = (hostname: string) => ({ local: { path: "/srv/a" }, nodeAffinity: affinityTo(hostname) });
const isOfKind = (kind: string) => `is of the kind ${kind}: kubelet-ts mounts local, hostPath and nfs volumes`;

test.each<[source: object, want: string]>([
  [
    { hostPath: { path: "/srv/a" }, mountOptions: ["ro"] },
    'MountVolume.MountOptionSupport check failed for volume "pv" : mount options are not supported for this volume type',
  ],
  [LOCAL_TO("there"), 'MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms'],
  ...["csi", "awsElasticBlockStore", "gcePersistentDisk", "rbd"].map((kind): [object, string] => [
    { [kind]: { driver: "x" }, capacity: { storage: "1Gi" } },
    `persistentvolume "pv" ${isOfKind(kind)}`,
  ]),
])("a volume that cannot be mounted here is a problem: %j", async (source, want) => {
  const { claims } = await settled(source);
  expect(claims.problemOf({ metadata: { namespace: "default" } }, "data")).toBe(want);
});

test("a volume of this node is mounted", async () => {
  expect((await settled(LOCAL_TO("here"))).volume?.hostPath).toBeDefined();
});

test("a claim for reading only is mounted so, whatever the kind of its volume", async () => {
  const { desired, resolved } = await settled({ local: { path: "/srv/b" } }, { readOnly: true });
  const [container] = resolved.pod.spec.containers;
  expect(container?.volumeMounts).toEqual([{ name: "v", mountPath: "/v", readOnly: true }]);
  expect(desired.pod.spec.containers[0]?.volumeMounts?.[0]?.readOnly).toBeUndefined();
});

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
