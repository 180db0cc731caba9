import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Container, Pod, Volume } from "../../src/base/api/pod.ts";
import { computeMounts } from "../../src/docker/create-bodies.ts";
import { readEngineInfo } from "../../src/docker/docker-engine.ts";
import { DockerVolumes } from "../../src/docker/docker-volumes.ts";
import { DockerError } from "../../src/docker/engine/docker-error.ts";
import { computeRootHash, LABEL, ownershipLabels } from "../../src/docker/labels.ts";
import { isApiAtLeast } from "../../src/docker/security.ts";
import { writeHostsFile } from "../../src/kubelet/volumes/host-files.ts";
import { Mounter } from "../../src/kubelet/volumes/mounter.ts";
import { aContainer, aPod } from "../support/builders.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { mounting, tempDirs } from "../support/temp-dir.ts";
import { aManager, NO_OBJECTS, objects, SIGNAL } from "../support/volume-world.ts";

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
    await manager.setUp(pod, { objects: index }, SIGNAL);
    const mounts = await manager.mountsFor(pod, pod.spec.containers[0] as Container, [], SIGNAL);
    const hosts = manager.directories(pod.metadata.uid ?? "").etcHosts;
    writeHostsFile(hosts, { pod, podIps: ["192.0.2.77"], names: { hostname: "web-node1", domain: "" } });
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

  withMounts("emptyDirs as recorded (oracle 22), but sized by sizeLimit", async () => {
    const volumes: Volume[] = [
      { name: "def", emptyDir: {} },
      { name: "mem", emptyDir: { medium: "Memory" } },
      { name: "memlim", emptyDir: { medium: "Memory", sizeLimit: "10Mi" } },
    ];
    const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    const output = await outputOf(
      podWith(volumes, mounts),
      `stat -c '%A %u:%g %n' /def /mem /memlim; stat -c 'device %d' /def; grep -E ' /(def|mem|memlim) ' /proc/mounts | cut -d' ' -f2,3; df -k /memlim | tail -1 | tr -s ' ' | cut -d' ' -f2; dd if=/dev/zero of=/memlim/big bs=1M count=11`,
    );
    expect(output).toContain("drwxrwxrwx 0:0 /def\ndrwxrwxrwt 0:0 /mem\ndrwxrwxrwt 0:0 /memlim\n");
    expect(output).toContain("/mem tmpfs\n");
    expect(output).toContain("/memlim tmpfs\n");
    // The disk that has the node's files, which is memory as well where the temporary directory is.
    expect(output).toContain(`device ${statSync(node.rootDir).dev}\n`);
    expect(output).toContain("\n10240\n");
    expect(output).toContain("No space left on device");
  });

  withMounts("fsGroup owns what is made in emptyDirs (oracle 14)", async () => {
    const volumes: Volume[] = [
      { name: "e", emptyDir: {} },
      { name: "m", emptyDir: { medium: "Memory" } },
      { name: "s", secret: { secretName: "sec", defaultMode: 0o400 } },
    ];
    const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    const pod = podWith(volumes, mounts, { securityContext: { fsGroup: 3333 } });
    const script = "touch /e/f /m/f; stat -c '%A %u:%g %n' /e /m /e/f /m/f; stat -L -c '%A %u:%g %n' /s/pw";
    expect((await outputOf(pod, script, objects("x"))).trim().split("\n")).toEqual([
      "drwxrwsrwx 0:3333 /e",
      "drwxrwsrwt 0:3333 /m",
      "-rw-r--r-- 0:3333 /e/f",
      "-rw-r--r-- 0:3333 /m/f",
      "-r--r----- 0:3333 /s/pw",
    ]);
  });

  test("a running container sees new contents of a ConfigMap and a Secret, and cannot write there", async () => {
    const volumes: Volume[] = [
      { name: "c", configMap: { name: "cfg", defaultMode: 0o644 } },
      { name: "s", secret: { secretName: "sec", defaultMode: 0o400 } },
      {
        name: "p",
        projected: {
          defaultMode: 0o644,
          sources: [{ configMap: { name: "cfg", items: [{ key: "k", path: "deep/k" }] } }],
        },
      },
      { name: "e", emptyDir: {} },
    ];
    const mounts = [
      ...volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
      { name: "c", mountPath: "/single", subPath: "k" },
      { name: "e", mountPath: "/c/data" },
      { name: "s", mountPath: "/c/pw", subPath: "pw" },
    ];
    const pod = podWith(volumes, mounts);
    const id = await start(pod, "sleep 3600", objects("one"));
    const run = async (script: string) => (await node.exec(id, "sh", "-c", `(${script}) 2>&1`)).trim();
    const read = "cat /c/k /s/pw /p/deep/k /single | tr '\\n' ' '";
    expect(await run(read)).toBe("onesecret oneoneone");
    expect(await run("touch /c/x")).toContain("Read-only file system");
    expect(await run("touch /c/data/x; cat /c/pw")).toBe("secret one");
    expect((await manager.refresh(pod, objects("two"))).changed).toEqual(["c", "s", "p"]);
    // One file by subPath keeps what the container started with, as upstream.
    expect(await run(read)).toBe("twosecret twotwoone");
    expect(await run("ls /c/data; cat /c/pw")).toBe("x\nsecret one");
    await node.docker.killContainer(id, "KILL");
  });

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

  withMounts("mounts as recorded (oracle 21): read-only, sub paths of directories and files", async () => {
    const host = tempDir();
    mkdirSync(join(host, "existing"));
    writeFileSync(join(host, "file.txt"), "from the host\n");
    const volumes: Volume[] = [
      { name: "v", emptyDir: {} },
      { name: "h", hostPath: { path: host, type: "" } },
    ];
    const pod = podWith(volumes, [
      { name: "v", mountPath: "/v" },
      { name: "v", mountPath: "/ro", readOnly: true },
      { name: "v", mountPath: "/sub", subPath: "inner/dir" },
      { name: "h", mountPath: "/h2", subPath: "existing" },
      { name: "h", mountPath: "/h3", subPath: "file.txt", readOnly: true },
    ]);
    const writes = "touch /ro/x; touch /sub/a /h2/b; cat /h3; (echo x > /h3) 2>&1 | sed 's/line 0: //'";
    const reads = "stat -c '%A %n' /v/inner /v/inner/dir; ls /v/inner/dir; cat /etc/hosts | tail -1";
    expect((await outputOf(pod, `${writes}; ${reads}`)).trim().split("\n")).toEqual([
      "touch: /ro/x: Read-only file system",
      "from the host",
      "sh: can't create /h3: Read-only file system",
      "drwxr-xr-x /v/inner",
      "drwxrwxrwx /v/inner/dir",
      "a",
      "192.0.2.77\tweb-node1",
    ]);
    expect(readdirSync(join(host, "existing"))).toEqual(["b"]);
  });

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

  test("propagation on a host path that is not shared fails when the container starts (oracle 21)", async () => {
    const host = tempDir();
    const volumes = [{ name: "h", hostPath: { path: host, type: "" } }] as Volume[];
    const failure = (mountPropagation: "HostToContainer" | "Bidirectional") =>
      start(podWith(volumes, [{ name: "h", mountPath: "/h", mountPropagation }]), "true").catch((error) => error);
    const slave = await failure("HostToContainer");
    if (!(slave instanceof DockerError)) return; // a machine whose root mount is shared, as under systemd: then it works
    // Where it is mounted: `/`, or a file system of its own for /tmp.
    expect(slave.message).toMatch(new RegExp(`path ${host} is mounted on /\\S* but it is not a shared or slave mount`));
    expect((await failure("Bidirectional")).message).toMatch(
      new RegExp(`path ${host} is mounted on /\\S* but it is not a shared mount`),
    );
  });

  withMounts("on a shared host path, what is mounted later shows with HostToContainer only (oracle 57)", async () => {
    const host = tempDir();
    const share = (command: string[]) => expect(Bun.spawnSync(command).exitCode).toBe(0);
    share(["mount", "--bind", host, host]);
    share(["mount", "--make-rshared", host]);
    mkdirSync(join(host, "later"));
    const pod = podWith(
      [{ name: "h", hostPath: { path: host, type: "" } }],
      [
        { name: "h", mountPath: "/none", mountPropagation: "None" },
        { name: "h", mountPath: "/h2c", mountPropagation: "HostToContainer" },
      ],
    );
    const id = await start(pod, "sleep 3600");
    await new Mounter().mountFileSystem("tmpfs", join(host, "later"), []);
    writeFileSync(join(host, "later/seen"), "");
    expect(await node.exec(id, "sh", "-c", "ls /none/later; echo --; ls /h2c/later")).toBe("--\nseen\n");
    await node.docker.killContainer(id, "KILL");
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

  test("an image as a volume: its files, read-only", async () => {
    const pod = podWith(
      [{ name: "i", image: { reference: IMAGE, pullPolicy: "Never" } }],
      [{ name: "i", mountPath: "/img" }],
    );
    const output = await outputOf(pod, "test -x /img/bin/busybox && echo there; touch /img/x");
    expect(output).toBe("there\ntouch: /img/x: Read-only file system\n");
    await manager.tearDown(pod.metadata.uid ?? "", SIGNAL);
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
