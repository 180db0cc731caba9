import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";

describeWithEngine("volumes that cannot be mounted", () => {
  test("hostPath checks as recorded (oracle 24): each is reported once, without a sandbox, and retried until it works", async () => {
    const node = testNode();
    const dir = join(node.directory, "host");
    mkdirSync(join(dir, "dir"), { recursive: true });
    writeFileSync(join(dir, "file"), "");
    const notA = (path: string, what: string) => `hostPath type check failed: ${path} is not ${what}`;
    const failing: Record<string, [path: string, type: string, why: string]> = {
      fblk: ["/dev/null", "BlockDevice", notA("/dev/null", "a block device")],
      fchr: [`${dir}/file`, "CharDevice", notA(`${dir}/file`, "a character device")],
      fdir: [`${dir}/later`, "Directory", notA(`${dir}/later`, "a directory")],
      fdorcfile: [`${dir}/file`, "DirectoryOrCreate", notA(`${dir}/file`, "a directory")],
      ffileisdir: [`${dir}/dir`, "File", notA(`${dir}/dir`, "a file")],
      fforc: [`${dir}/nodir/file`, "FileOrCreate", `open ${dir}/nodir/file: no such file or directory`],
      fsock: [`${dir}/file`, "Socket", notA(`${dir}/file`, "a socket file")],
    };
    for (const [name, [path, type]] of Object.entries(failing)) {
      const volumes = [{ name: "v", hostPath: { path, type } }];
      node.writeManifest(
        `${name}.json`,
        sleeper(name, { name, volumeMounts: [{ name: "v", mountPath: "/m/v" }] }, { volumes }),
      );
    }
    const kubelet = node.spawn(node.flags());
    for (const [name, [, , why]] of Object.entries(failing)) {
      const message = `FailedMount: MountVolume.SetUp failed for volume "v" : ${why} pod=default/${name}-${node.name}`;
      await node.until(message, () => kubelet.log.includes(message));
    }
    expect(await node.listAll()).toEqual([]);
    mkdirSync(join(dir, "later"));
    await node.runningContainer("fdir");
    expect(await node.sandboxes()).toHaveLength(1);
  });
});
