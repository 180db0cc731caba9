import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { outputOf, RECORDS, waitForPod } from "./machine.ts";
import { expectPodsInOrder } from "./order.ts";

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
