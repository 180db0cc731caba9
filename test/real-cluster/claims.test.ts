import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import { claim, persistentVolume } from "../support/manifests.ts";

const aVolume = (name: string, source: object) => persistentVolume(name, { storageClassName: name, ...source });

const aClaim = (name: string) => claim(name, { storageClassName: name });

const affinityTo = (nodeName: string) => ({
  required: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [nodeName] }] }],
  },
});

describeCluster("claims of pods of a real cluster", () => {
  const { kubectl, node } = useCluster();

  /** Bound to the node by name: the scheduler would hold it back until its claim is bound. */
  const aPodOf = (name: string, { claim = {}, mount = {}, spec = {} }: Record<string, object> = {}) =>
    aClusterPod(
      name,
      { volumeMounts: [{ name: "v", mountPath: "/v", ...mount }] },
      { nodeName: node.name, volumes: [{ name: "v", persistentVolumeClaim: { claimName: name, ...claim } }], ...spec },
    );
  const aDirectory = (name: string) => {
    const directory = join(node.directory, name);
    mkdirSync(directory);
    writeFileSync(join(directory, "file"), "contents\n");
    return directory;
  };

  test("hostPath, one that is bound later, and a kind that cannot be mounted", async () => {
    const directory = aDirectory("volume");
    await kubectl.apply(
      aVolume("driver", { csi: { driver: "example.com", volumeHandle: "1" } }),
      ...["driver", "late"].map(aClaim),
      aPodOf("driver"),
      aPodOf("late", { claim: { readOnly: true } }),
    );
    await kubectl.untilEvent("driver", "FailedMount", "of the kind csi");
    await kubectl.untilEvent("late", "FailedMount", 'persistentvolumeclaim "late" is not bound');
    expect((await kubectl.pod("late")).status.phase).toBe("Pending");
    await kubectl.apply(aVolume("late", { hostPath: { path: directory } }));
    await kubectl.readyPod("late");
    expect(await kubectl.exec("late", "cat", "/v/file")).toBe("contents");
    expect((await kubectl.run("exec late -- touch /v/new".split(" "))).stderr).toContain("Read-only file system");
    await kubectl.words("delete pod driver late");
  });

  test("local volumes: the group of the pod, mount options, and a sub path", async () => {
    const [shared, bound] = [aDirectory("shared"), aDirectory("bound")];
    const onThisNode = { nodeAffinity: affinityTo(node.name) };
    await kubectl.apply(
      aVolume("grouped", { local: { path: shared }, ...onThisNode }),
      aVolume("options", { local: { path: bound }, mountOptions: ["noexec"], ...onThisNode }),
      ...["grouped", "options"].map(aClaim),
    );
    const securityContext = { runAsUser: 1000, fsGroup: 2345 };
    await kubectl.apply(
      aPodOf("grouped", { mount: { subPath: "inner" }, spec: { securityContext } }),
      aPodOf("options"),
    );
    await kubectl.readyPod("grouped");
    await kubectl.exec("grouped", "sh", "-c", "echo written > /v/new");
    expect(readFileSync(join(shared, "inner", "new"), "utf8")).toBe("written\n");
    expect(statSync(join(shared, "file"))).toMatchObject({ gid: 2345 });
    expect(statSync(shared).mode & 0o7777).toBe(0o2775);
    const path = `/api/v1/nodes/${node.name}/proxy/stats/summary`;
    const summary = async () => JSON.parse(await kubectl.words(`get --raw ${path}`));
    const volumes = await kubectl.until("volume statistics", async () => {
      const { pods } = await summary();
      const grouped = pods.find((one: { podRef: { name: string } }) => one.podRef.name === "grouped");
      return grouped?.volume?.some(({ name }: { name: string }) => name === "v") && grouped.volume;
    });
    const pvcRef = { name: "grouped", namespace: "default" };
    const usage = { usedBytes: expect.any(Number), capacityBytes: expect.any(Number), inodesFree: expect.any(Number) };
    expect(volumes).toContainEqual(expect.objectContaining({ name: "v", pvcRef, ...usage }));
    await kubectl.readyPod("options");
    expect(await kubectl.exec("options", "grep", " /v ", "/proc/mounts")).toContain("noexec");
    await kubectl.exec("options", "sh", "-c", "cp /bin/true /v/program");
    expect((await kubectl.run("exec options -- /v/program".split(" "))).code).toBe(126);
    await kubectl.words("delete pod grouped options");
    expect(readFileSync(join(bound, "file"), "utf8")).toBe("contents\n");
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(bound);
  });

  test("what cannot be mounted here says why: options of hostPath, a volume of another node, an NFS server", async () => {
    const directory = aDirectory("refused");
    const server = { server: "127.0.0.1", path: "/nothing" };
    await kubectl.apply(
      aVolume("path", { hostPath: { path: directory }, mountOptions: ["noexec"] }),
      aVolume("elsewhere", { local: { path: directory }, nodeAffinity: affinityTo("another") }),
      aVolume("export", { nfs: server, mountOptions: ["nfsvers=4.2", "soft"] }),
      ...["path", "elsewhere", "export"].map(aClaim),
      ...["path", "elsewhere", "export"].map((name) => aPodOf(name)),
    );
    await kubectl.untilEvent("path", "FailedMount", "mount options are not supported for this volume type");
    await kubectl.untilEvent("elsewhere", "FailedMount", "no matching NodeSelectorTerms");
    await kubectl.untilEvent("export", "FailedMount", "nfsvers=4.2");
    for (const name of ["path", "elsewhere"]) expect((await kubectl.pod(name)).status.phase).toBe("Pending");
    const [{ ready, state }] = (await kubectl.pod("export")).status.containerStatuses;
    expect(ready || state.running).toBeFalsy();
    await kubectl.words("delete pod path elsewhere export");
  });
});
