import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { containersOf, DOWNLOADED, expectPodsInOrder, outputOf, RECORDS, run, waitForPod } from "./machine.ts";

test("with a clock of 1970 the pods are back in order, and what has ended is not run again", async () => {
  const log = await outputOf("journalctl", "--no-pager", "-u", "clock-1970");
  expect(`${new Date().getUTCFullYear()} ${log}`).toStartWith("1970");
  for (const name of ["web", "db", "app"]) await waitForPod(name, "condition=Ready");
  expectPodsInOrder();
  expect(readFileSync(`${RECORDS}/once`, "utf8")).toBe("run\n");
});

test("uninstall --pods leaves no container", async () => {
  await outputOf("kubelet-ts", "uninstall", "--pods");
  expect(await outputOf("docker", "ps", "-aq", "--filter", "label=io.kubernetes.pod.name")).toBe("");
  for (const path of ["/usr/local/bin/kubelet-ts", "/etc/systemd/system/kubelet-ts.service"])
    expect(existsSync(path)).toBe(false);
  expect(existsSync("/etc/kubelet-ts/config.yaml")).toBe(true);
  expect(existsSync("/etc/kubernetes/manifests/web.yaml")).toBe(true);
});

test("uninstall twice says that there is nothing; uninstall --pods ends the pods that an uninstall left", async () => {
  const again = await run(DOWNLOADED, "uninstall");
  expect([again.exitCode, again.output]).toEqual([1, expect.stringContaining("is not installed")]);
  await outputOf(DOWNLOADED, "install");
  await waitForPod("web", "condition=Ready");
  await outputOf("kubelet-ts", "uninstall");
  expect(await containersOf("web")).toHaveLength(1);
  await outputOf(DOWNLOADED, "uninstall", "--pods");
  expect(await outputOf("docker", "ps", "-aq", "--filter", "label=io.kubernetes.pod.name")).toBe("");
});

test("install on a full disk is an error that leaves nothing", async () => {
  const directory = "/usr/local/bin";
  mkdirSync(directory, { recursive: true });
  rmSync("/etc/kubelet-ts", { recursive: true, force: true });
  await outputOf("mount", "-t", "tmpfs", "-o", "size=10m", "none", directory);
  const { exitCode, output } = await run(DOWNLOADED, "install");
  expect([exitCode, output]).toEqual([
    1,
    expect.stringContaining('"/usr/local/bin/kubelet-ts" cannot be written: the disk is full'),
  ]);
  expect(readdirSync(directory)).toEqual([]);
  for (const path of ["/etc/kubelet-ts", "/etc/systemd/system/kubelet-ts.service"])
    expect({ path, exists: existsSync(path) }).toEqual({ path, exists: false });
  await outputOf("umount", directory);
});
