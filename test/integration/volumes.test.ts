import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Container, Pod, Volume } from "../../src/base/api/pod.ts";
import { computeMounts } from "../../src/docker/create-bodies.ts";
import { DockerVolumes, readEngineInfo } from "../../src/docker/docker-engine.ts";
import { DockerError } from "../../src/docker/engine/docker-error.ts";
import { computeRootHash, LABEL, ownershipLabels } from "../../src/docker/labels.ts";
import { isApiAtLeast } from "../../src/docker/security.ts";
import { writeHostsFile } from "../../src/kubelet/volumes/host-files.ts";
import { aContainer, aPod } from "../support/builders.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { mounting, tempDirs } from "../support/temp-dir.ts";
import { aManager, NO_OBJECTS, SIGNAL } from "../support/volume-world.ts";

const tempDir = tempDirs();
const IMAGE = "busybox:test";
const withMounts = test.if(mounting.ok);

describeWithEngine("volumes in real containers", () => {
  const node = testNode();
  const images = { ensureImage: async () => ({ id: (await node.docker.inspectImage(IMAGE)).Id }) };
  const identity = { nodeName: node.name, rootHash: computeRootHash(node.rootDir) };
  const owner = ownershipLabels(identity);
  const engine = new DockerVolumes({ client: node.docker, owner: identity });
  const { manager } = aManager(node.rootDir, { engine, images });
  let uids = 0;

  function podWith(volumes: Volume[], mounts: NonNullable<Container["volumeMounts"]>, spec: Partial<Pod["spec"]> = {}) {
    return aPod({ containers: [aContainer({ volumeMounts: mounts })], volumes, ...spec }, { uid: `uid${++uids}` });
  }

  /** Sets the pod's volumes up and starts its one container with them. */
  async function start(pod: Pod, script: string, index = NO_OBJECTS): Promise<string> {
    await manager.setUp(pod, index, SIGNAL);
    const mounts = await manager.mountsFor(pod, pod.spec.containers[0] as Container, [], SIGNAL);
    const hosts = manager.directories(pod.metadata.uid ?? "").etcHosts;
    writeHostsFile(hosts, { spec: pod.spec, podIps: ["192.0.2.77"], names: { hostname: "web-node1", domain: "" } });
    const all = [...mounts, { type: "bind", source: hosts, target: "/etc/hosts", readOnly: false } as const];
    const HostConfig = { ...computeMounts(all, await readEngineInfo(node.docker, false)), NetworkMode: "none" };
    const Cmd = ["sh", "-c", script];
    const { Id } = await node.docker.createContainer("", { Image: IMAGE, Cmd, Labels: owner, HostConfig });
    await node.docker.startContainer(Id);
    return Id;
  }

  /** The output of a container of the pod until it ends. */
  async function outputOf(pod: Pod, script: string, index = NO_OBJECTS): Promise<string> {
    const id = await start(pod, `(${script}) 2>&1`, index);
    await node.until(
      "the container to end",
      async () => (await node.docker.inspectContainer(id)).State.Status === "exited",
    );
    return await node.logs(id);
  }

  withMounts(
    "read-only holds for what is mounted below only when asked for, whatever the engine does by default",
    async () => {
      const host = tempDir();
      const below = join(host, "below");
      mkdirSync(below);
      Bun.spawnSync(["mount", "-t", "tmpfs", "tmpfs", below]);
      try {
        const canForce = isApiAtLeast(await readEngineInfo(node.docker, false), "1.44");
        const mounts: NonNullable<Container["volumeMounts"]> = [{ name: "h", mountPath: "/top", readOnly: true }];
        if (canForce) mounts.push({ name: "h", mountPath: "/tree", readOnly: true, recursiveReadOnly: "Enabled" });
        const pod = podWith([{ name: "h", hostPath: { path: host, type: "" } }], mounts);
        const script = "touch /top/x; touch /top/below/y; ls /top/below; test -d /tree && touch /tree/below/z";
        expect((await outputOf(pod, script)).trim().split("\n")).toEqual([
          "touch: /top/x: Read-only file system",
          "y",
          ...(canForce ? ["touch: /tree/below/z: Read-only file system"] : []),
        ]);
      } finally {
        Bun.spawnSync(["umount", "--lazy", below]);
      }
    },
  );

  withMounts("a container that plants a link gets nothing of the host by it when it is made again", async () => {
    const secret = tempDir();
    writeFileSync(join(secret, "secret"), "secret");
    const pod = podWith(
      [{ name: "v", emptyDir: {} }],
      [
        { name: "v", mountPath: "/v" },
        { name: "v", mountPath: "/sub", subPath: "a/b" },
      ],
    );
    await outputOf(pod, `rm -rf /v/a; ln -s ${secret} /v/a`);
    await expect(start(pod, "cat /sub/secret")).rejects.toThrow("failed to prepare subPath");
  });

  withMounts("an emptyDir with mode, owner and mount options of the annotation", async () => {
    const pod = podWith(
      ["d", "m"].map((name) => ({ name, emptyDir: name === "m" ? { medium: "Memory", sizeLimit: "1Mi" } : {} })),
      ["d", "m"].map((name) => ({ name, mountPath: `/${name}` })),
    );
    pod.metadata.annotations = {
      "kubelet-ts.io/empty-dir-options": "d:mode=0750,uid=33,gid=34;m:mode=0700,uid=35,noexec",
    };
    const script =
      "stat -c '%a %u:%g' /d /m; printf '#!/bin/sh' > /m/x; chmod +x /m/x; /m/x || echo refused; df -k /m | tail -1";
    const [d, m, ...rest] = (await outputOf(pod, script)).split("\n");
    expect([d, m]).toEqual(["750 33:34", "700 35:0"]);
    expect(rest.join("\n")).toMatch(/Permission denied\nrefused\ntmpfs +1024 /);
  });

  test("a claim is a Docker volume that outlives the pod", async () => {
    const claimName = `claim-${node.name}`;
    const claim: Volume = { name: "p", persistentVolumeClaim: { claimName } };
    const first = podWith(
      [claim],
      [
        { name: "p", mountPath: "/p" },
        { name: "p", mountPath: "/sub", subPath: "x" },
      ],
    );
    try {
      expect(await outputOf(first, "echo kept > /p/file; touch /sub/y; find /p -type f | sort")).toBe(
        "/p/file\n/p/x/y\n",
      );
      await manager.tearDown(first.metadata.uid ?? "", SIGNAL);
      expect((await node.docker.inspectVolume(claimName)).Labels).toMatchObject(owner);
      expect(
        await outputOf(podWith([claim], [{ name: "p", mountPath: "/p", readOnly: true }]), "cat /p/file; touch /p/z"),
      ).toBe("kept\ntouch: /p/z: Read-only file system\n");
    } finally {
      await node.removeAll(await node.listAll());
      await node.docker.removeVolume(claimName);
    }
  });

  test("nfs: the engine is asked to mount it, and what it says is the container's error", async () => {
    const pod = podWith(
      [{ name: "n", nfs: { server: "127.0.0.1", path: "/export" } }],
      [{ name: "n", mountPath: "/n" }],
    );
    const error = await start(pod, "true").catch((thrown) => thrown);
    expect(error).toBeInstanceOf(DockerError);
    expect(error.message).toContain(":/export");
    await node.removeAll(await node.listAll());
    const uid = pod.metadata.uid ?? "";
    await manager.tearDown(uid, SIGNAL);
    expect(
      await node.docker.listVolumes({ label: [`io.kubernetes.pod.uid=${uid}`, `${LABEL.node}=${node.name}`] }),
    ).toEqual([]);
  });

  test("everything of the pods goes, while their containers still hold the mounts", async () => {
    for (const uid of await manager.listPodDirs()) await manager.tearDown(uid, SIGNAL);
    expect(await manager.listPodDirs()).toEqual([]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(node.rootDir);
  });
});
