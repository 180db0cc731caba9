import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";

describeWithEngine("volumes that cannot be mounted", () => {
  test("hostPath checks as recorded (oracle 24): each is reported once, without a sandbox, and retried until it works", async () => {
    const node = testNode();
    const dir = join(node.directory, "host");
    mkdirSync(join(dir, "dir"), { recursive: true });
    writeFileSync(join(dir, "file"), "");
    const failing: Record<string, { path: string; type: string; why: string }> = {
      fblk: {
        path: "/dev/null",
        type: "BlockDevice",
        why: "hostPath type check failed: /dev/null is not a block device",
      },
      fchr: {
        path: `${dir}/file`,
        type: "CharDevice",
        why: `hostPath type check failed: ${dir}/file is not a character device`,
      },
      fdir: {
        path: `${dir}/later`,
        type: "Directory",
        why: `hostPath type check failed: ${dir}/later is not a directory`,
      },
      fdorcfile: {
        path: `${dir}/file`,
        type: "DirectoryOrCreate",
        why: `hostPath type check failed: ${dir}/file is not a directory`,
      },
      ffileisdir: { path: `${dir}/dir`, type: "File", why: `hostPath type check failed: ${dir}/dir is not a file` },
      fforc: {
        path: `${dir}/nodir/file`,
        type: "FileOrCreate",
        why: `open ${dir}/nodir/file: no such file or directory`,
      },
      fsock: {
        path: `${dir}/file`,
        type: "Socket",
        why: `hostPath type check failed: ${dir}/file is not a socket file`,
      },
    };
    for (const [name, { path, type }] of Object.entries(failing)) {
      node.writeManifest(`${name}.json`, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name },
        spec: {
          terminationGracePeriodSeconds: 0,
          volumes: [{ name: "v", hostPath: { path, type } }],
          containers: [
            {
              name,
              image: "busybox:test",
              command: ["sleep", "3600"],
              volumeMounts: [{ name: "v", mountPath: "/m/v" }],
            },
          ],
        },
      });
    }
    const kubelet = node.spawn(node.flags());
    for (const [name, { why }] of Object.entries(failing)) {
      const message = `FailedMount: MountVolume.SetUp failed for volume "v" : ${why} pod=default/${name}-${node.name}`;
      await node.until(message, () => kubelet.log.includes(message));
    }
    expect(await node.listAll()).toEqual([]);
    mkdirSync(join(dir, "later"));
    await node.runningContainer("fdir");
    expect(await node.sandboxes()).toHaveLength(1);
  });
});
