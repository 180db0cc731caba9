import { afterAll, expect, test } from "bun:test";
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { until } from "../../support/until.ts";
import {
  containersOf,
  DOWNLOADED,
  outputOf,
  RECORDS,
  run,
  unitProperty,
  waitForPod,
  writeManifests,
} from "./machine.ts";

const CONFIG = "/etc/kubelet-ts/config.yaml";
const DROP_IN = "/etc/systemd/system/kubelet-ts.service.d";

afterAll(async () => {
  rmSync(DROP_IN, { recursive: true, force: true });
});

test("install starts a service that is ready and says how to go on", async () => {
  const output = await outputOf(DOWNLOADED, "install");
  for (const command of ["cp pod.yaml /etc/kubernetes/manifests/", "kubelet-ts get pods", "kubelet-ts doctor"])
    expect(output).toContain(command);
  expect(await unitProperty("ActiveState")).toBe("active");
  expect((await outputOf("systemctl", "is-enabled", "kubelet-ts")).trim()).toBe("enabled");
  expect(await outputOf("systemd-analyze", "verify", "/etc/systemd/system/kubelet-ts.service")).toBe("");
});

test("manifests in the directory run; the service tells systemd how many pods are ready", async () => {
  writeManifests();
  for (const name of ["web", "db", "app"]) await waitForPod(name, "condition=Ready");
  await waitForPod("once", "jsonpath={.status.phase}=Succeeded");
  await until("the status names the pods", async () => /4 pods, 3 ready/.test(await unitProperty("StatusText")));
  expect(readFileSync(`${RECORDS}/once`, "utf8")).toBe("run\n");
});

test("an upgrade and its rollback leave the pods running", async () => {
  const before = await containersOf("web");
  expect(before).toHaveLength(1);
  const installed = readFileSync("/usr/local/bin/kubelet-ts");
  const newer = "/tmp/kubelet-ts-newer";
  copyFileSync(DOWNLOADED, newer);
  appendFileSync(newer, "\n");
  expect(await outputOf(newer, "install")).toContain("install --rollback");
  expect(readFileSync("/usr/local/bin/kubelet-ts").length).toBe(installed.length + 1);
  expect(await unitProperty("ActiveState")).toBe("active");
  await outputOf("kubelet-ts", "install", "--rollback");
  expect(readFileSync("/usr/local/bin/kubelet-ts").equals(installed)).toBe(true);
  await outputOf("kubelet-ts", "install");
  await waitForPod("web", "condition=Ready");
  expect(await containersOf("web")).toEqual(before);
  expect(readFileSync(`${RECORDS}/once`, "utf8")).toBe("run\n");
});

test("a process that hangs is restarted by the watchdog; pods do not notice", async () => {
  const before = await containersOf("web");
  mkdirSync(DROP_IN, { recursive: true });
  writeFileSync(`${DROP_IN}/watchdog.conf`, "[Service]\nWatchdogSec=10s\n");
  await outputOf("systemctl", "daemon-reload");
  await outputOf("systemctl", "restart", "kubelet-ts");
  const pid = await unitProperty("MainPID");
  process.kill(Number(pid), "SIGSTOP");
  await until("systemd has started another process", async () => {
    const now = await unitProperty("MainPID");
    return now !== "0" && now !== pid && (await unitProperty("ActiveState")) === "active";
  });
  expect(await containersOf("web")).toEqual(before);
  rmSync(DROP_IN, { recursive: true });
  await outputOf("systemctl", "daemon-reload");
});

test("settings that are wrong end the service, which is not restarted; pods keep running", async () => {
  const before = await containersOf("web");
  const settings = readFileSync(CONFIG, "utf8");
  writeFileSync(CONFIG, `${settings}noSuchField: 1\n`);
  const { exitCode } = await run("systemctl", "restart", "kubelet-ts");
  expect(exitCode).not.toBe(0);
  expect(await unitProperty("ExecMainStatus")).toBe("2");
  await Bun.sleep(5_000);
  expect(await unitProperty("ActiveState")).toBe("failed");
  expect(await outputOf("journalctl", "--no-pager", "-u", "kubelet-ts", "-n", "20")).toContain("noSuchField");
  writeFileSync(CONFIG, settings);
  await outputOf("systemctl", "start", "kubelet-ts");
  await waitForPod("web", "condition=Ready");
  expect(await containersOf("web")).toEqual(before);
});

test("uninstall leaves the pods and the manifests; a new installation takes the pods over", async () => {
  const before = await containersOf("web");
  await outputOf("kubelet-ts", "uninstall");
  expect(existsSync("/usr/local/bin/kubelet-ts")).toBe(false);
  expect(await containersOf("web")).toEqual(before);
  await outputOf(DOWNLOADED, "install");
  await waitForPod("web", "condition=Ready");
  expect(await containersOf("web")).toEqual(before);
});

test("doctor finds nothing that fails on the machine", async () => {
  const { exitCode, output } = await run("kubelet-ts", "doctor");
  expect(output.split("\n").filter((line) => line.startsWith("fail"))).toEqual([]);
  expect(exitCode).toBe(0);
});
