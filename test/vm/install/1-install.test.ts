import { afterAll, expect, test } from "bun:test";
import * as fs from "node:fs";
import { until } from "../../support/until.ts";
import {
  containersOf,
  DOWNLOADED,
  MANIFESTS,
  outputOf,
  RECORDS,
  run,
  unitProperty,
  waitForPod,
  writeManifests,
  writePod,
} from "./machine.ts";

const CONFIG = "/etc/kubelet-ts/config.yaml";
const DROP_IN = "/etc/systemd/system/kubelet-ts.service.d";

afterAll(async () => {
  fs.rmSync(DROP_IN, { recursive: true, force: true });
});

test("install starts a service that is ready, and prints the next steps", async () => {
  const output = await outputOf(DOWNLOADED, "install");
  for (const command of ["cp pod.yaml /etc/kubernetes/manifests/", "kubelet-ts get pods", "kubelet-ts doctor"])
    expect(output).toContain(command);
  expect(output).toMatch(/^Exposure of the service: [\d.]+ [A-Z]+/m);
  expect(await unitProperty("ActiveState")).toBe("active");
  expect((await outputOf("systemctl", "is-enabled", "kubelet-ts")).trim()).toBe("enabled");
  expect(await outputOf("systemd-analyze", "verify", "/etc/systemd/system/kubelet-ts.service")).toBe("");
});

test("manifests in the directory run; the service reports to systemd how many pods are ready", async () => {
  writeManifests();
  for (const name of ["web", "db", "app"]) await waitForPod(name, "condition=Ready");
  await waitForPod("once", "jsonpath={.status.phase}=Succeeded");
  await until("the status names the pods", async () => /4 pods, 3 ready/.test(await unitProperty("StatusText")));
  expect(fs.readFileSync(`${RECORDS}/once`, "utf8")).toBe("run\n");
});

test("an upgrade and its rollback leave the pods running", async () => {
  const before = await containersOf("web");
  expect(before).toHaveLength(1);
  const installed = fs.readFileSync("/usr/local/bin/kubelet-ts");
  const newer = "/tmp/kubelet-ts-newer";
  fs.copyFileSync(DOWNLOADED, newer);
  fs.appendFileSync(newer, "\n");
  expect(await outputOf(newer, "install")).toContain("install --rollback");
  expect(fs.readFileSync("/usr/local/bin/kubelet-ts").length).toBe(installed.length + 1);
  expect(await unitProperty("ActiveState")).toBe("active");
  await outputOf("kubelet-ts", "install", "--rollback");
  expect(fs.readFileSync("/usr/local/bin/kubelet-ts").equals(installed)).toBe(true);
  await outputOf("kubelet-ts", "install", "--rollback");
  expect(fs.readFileSync("/usr/local/bin/kubelet-ts").length).toBe(installed.length + 1);
  await outputOf("kubelet-ts", "install", "--rollback");
  await outputOf("kubelet-ts", "install");
  await waitForPod("web", "condition=Ready");
  expect(await containersOf("web")).toEqual(before);
  expect(fs.readFileSync(`${RECORDS}/once`, "utf8")).toBe("run\n");
});

test("install names the program that holds a port; the port is opened when it is free", async () => {
  await outputOf("systemctl", "stop", "kubelet-ts");
  const holder = Bun.serve({ hostname: "127.0.0.1", port: 10_248, fetch: () => new Response("another program") });
  const output = await outputOf(DOWNLOADED, "install");
  expect(output).toContain("kubelet-ts is installed and runs");
  expect(output).toMatch(/^warn {2}port 10248: in use by \S+ \(pid \d+\)$/m);
  await holder.stop(true);
  await until("the port", async () => (await (await fetch("http://127.0.0.1:10248/healthz")).text()) === "ok");
});

test("without an engine install names what is missing, with the command that fixes it; a reload does not end the service", async () => {
  const engine = ["docker.socket", "docker.service"];
  await outputOf("systemctl", "mask", "--runtime", "--now", ...engine);
  const { exitCode, output } = await run(DOWNLOADED, "install");
  expect([exitCode, output]).toEqual([1, expect.stringContaining("installed and started, but it is not ready")]);
  expect(output).toMatch(/^FAIL {2}engine: .*\n {6}→ /m);
  const pid = await unitProperty("MainPID");
  await outputOf("systemctl", "reload", "kubelet-ts");
  await Bun.sleep(3_000);
  expect([await unitProperty("ActiveState"), await unitProperty("MainPID")]).toEqual(["active", pid]);
  await outputOf("systemctl", "unmask", "--runtime", ...engine);
  await outputOf("systemctl", "start", ...engine);
  await waitForPod("web", "condition=Ready");
  expect(await unitProperty("MainPID")).toBe(pid);
});

test("a process that hangs is restarted by the watchdog; pods do not notice", async () => {
  const before = await containersOf("web");
  fs.mkdirSync(DROP_IN, { recursive: true });
  fs.writeFileSync(`${DROP_IN}/watchdog.conf`, "[Service]\nWatchdogSec=10s\n");
  await outputOf("systemctl", "daemon-reload");
  await outputOf("systemctl", "restart", "kubelet-ts");
  const pid = await unitProperty("MainPID");
  process.kill(Number(pid), "SIGSTOP");
  await until("systemd has started another process", async () => {
    const now = await unitProperty("MainPID");
    return now !== "0" && now !== pid && (await unitProperty("ActiveState")) === "active";
  });
  expect(await containersOf("web")).toEqual(before);
  fs.rmSync(DROP_IN, { recursive: true });
  await outputOf("systemctl", "daemon-reload");
});

test("settings that are wrong end the service, which is not restarted; pods keep running", async () => {
  const before = await containersOf("web");
  const settings = fs.readFileSync(CONFIG, "utf8");
  fs.writeFileSync(CONFIG, `${settings}noSuchField: 1\n`);
  const { exitCode } = await run("systemctl", "restart", "kubelet-ts");
  expect(exitCode).not.toBe(0);
  expect(await unitProperty("ExecMainStatus")).toBe("2");
  await Bun.sleep(5_000);
  expect(await unitProperty("ActiveState")).toBe("failed");
  expect(await outputOf("journalctl", "--no-pager", "-u", "kubelet-ts", "-n", "20")).toContain("noSuchField");
  fs.writeFileSync(CONFIG, settings);
  await outputOf("systemctl", "start", "kubelet-ts");
  await waitForPod("web", "condition=Ready");
  expect(await containersOf("web")).toEqual(before);
});

test("a configuration with which the engine is not found is rolled back, by the same process", async () => {
  const settings = fs.readFileSync(CONFIG, "utf8");
  const withTrial = (more: string) =>
    fs.writeFileSync(CONFIG, `${settings}kubeletTs:\n  configTrialPeriod: 2s\n${more}`);
  const tried = () => fs.readFileSync("/var/lib/kubelet/config/.cur", "utf8");
  withTrial("");
  await outputOf("systemctl", "restart", "kubelet-ts");
  const before = await containersOf("web");
  await until("it is the last known good one", async () =>
    fs.readFileSync("/var/lib/kubelet/config/.lkg", "utf8").includes("configTrialPeriod"),
  );
  withTrial("  dockerEndpoint: unix:///run/none.sock\n");
  await outputOf("systemctl", "restart", "kubelet-ts");
  const pid = await unitProperty("MainPID");
  await until("it is rejected", async () => /"rejected":"No Docker engine/.test(tried()));
  await until("the pods are supervised again", async () => /ready/.test(await unitProperty("StatusText")));
  expect([await unitProperty("ActiveState"), await unitProperty("MainPID")]).toEqual(["active", pid]);
  expect(await containersOf("web")).toEqual(before);
  const { output } = await run("kubelet-ts", "doctor");
  expect(output).toContain("the last known good one is used: No Docker engine");
  fs.writeFileSync(CONFIG, settings);
  await outputOf("systemctl", "restart", "kubelet-ts");
});

test("with --log-format=journald the journal has a field for each part of a message", async () => {
  const settings = fs.readFileSync(CONFIG, "utf8");
  fs.writeFileSync(CONFIG, `${settings}logging:\n  format: journald\n`);
  await outputOf("systemctl", "restart", "kubelet-ts");
  writePod("journal", {});
  await waitForPod("journal", "condition=Ready");
  const filter = ["SYSLOG_IDENTIFIER=kubelet-ts", "CONTAINER=journal", "_SYSTEMD_UNIT=kubelet-ts.service"];
  await until("the journal has it", async () => {
    const entries = await outputOf("journalctl", "--no-pager", "-o", "verbose", ...filter);
    return /PRIORITY=6/.test(entries) && /POD=default\/journal-/.test(entries) && /MESSAGE=Started: /.test(entries);
  });
  fs.rmSync(`${MANIFESTS}/journal.yaml`);
  fs.writeFileSync(CONFIG, settings);
  await outputOf("systemctl", "restart", "kubelet-ts");
});

test("a Secret takes its value from a credential of systemd", async () => {
  fs.writeFileSync("/etc/db-token", "s3cret-of-systemd", { mode: 0o600 });
  fs.mkdirSync(DROP_IN, { recursive: true });
  fs.writeFileSync(`${DROP_IN}/credential.conf`, "[Service]\nLoadCredential=db-token:/etc/db-token\n");
  await outputOf("systemctl", "daemon-reload");
  await outputOf("systemctl", "restart", "kubelet-ts");
  const annotations = { "kubelet-ts.io/secret-from": "token=credential:db-token" };
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "db", annotations } };
  fs.writeFileSync(`${MANIFESTS}/db-secret.yaml`, JSON.stringify(secret));
  writePod("reader", { env: [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "db", key: "token" } } }] });
  await waitForPod("reader", "condition=Ready");
  const [reader = ""] = await containersOf("reader");
  expect((await outputOf("docker", "exec", reader, "sh", "-c", "echo $TOKEN")).trim()).toBe("s3cret-of-systemd");
  for (const file of ["reader.yaml", "db-secret.yaml"]) fs.rmSync(`${MANIFESTS}/${file}`);
  fs.rmSync(DROP_IN, { recursive: true });
  await outputOf("systemctl", "daemon-reload");
  await outputOf("systemctl", "restart", "kubelet-ts");
});

test("uninstall leaves the pods and the manifests; a new installation takes the pods over", async () => {
  const before = await containersOf("web");
  await outputOf("kubelet-ts", "uninstall");
  expect(fs.existsSync("/usr/local/bin/kubelet-ts")).toBe(false);
  expect(await containersOf("web")).toEqual(before);
  await outputOf(DOWNLOADED, "install");
  await waitForPod("web", "condition=Ready");
  expect(await containersOf("web")).toEqual(before);
});

test("doctor finds nothing that fails on the machine", async () => {
  const { exitCode, output } = await run("kubelet-ts", "doctor");
  expect(output.split("\n").filter((line) => line.startsWith("FAIL"))).toEqual([]);
  expect(exitCode).toBe(0);
});

test("a bundle sets the machine up without a registry; one that is damaged, or without an engine, changes nothing", async () => {
  const image = "site.example/app:1";
  const site = "/srv/site";
  fs.mkdirSync(`${site}/root`, { recursive: true });
  fs.copyFileSync("/bin/busybox", `${site}/root/busybox`);
  await outputOf("sh", "-c", `tar -C ${site}/root -c . | docker import - ${image}`);
  fs.mkdirSync(`${site}/manifests`);
  const container = { image, imagePullPolicy: "IfNotPresent", command: ["/busybox", "sleep", "100000"] };
  writePod("site", container, `${site}/manifests`);
  const bundle = `${site}/site.tar`;
  expect(await outputOf("kubelet-ts", "bundle", "-f", `${site}/manifests`, "-o", bundle)).toContain("1 image,");

  fs.mkdirSync(`${site}/small`);
  await outputOf("mount", "-t", "tmpfs", "-o", "size=1m", "none", `${site}/small`);
  const full = await run("kubelet-ts", "bundle", "-f", `${site}/manifests`, "-o", `${site}/small/site.tar`);
  expect([full.exitCode, full.output]).toEqual([1, expect.stringContaining("the disk is full")]);
  expect(fs.readdirSync(`${site}/small`)).toEqual([]);
  await outputOf("umount", `${site}/small`);

  await outputOf("docker", "rmi", image);
  await outputOf("kubelet-ts", "uninstall");
  await outputOf("tar", "-C", site, "-xf", bundle, "kubelet-ts");
  const install = (file: string) => run(`${site}/kubelet-ts`, "install", "--bundle", file);
  const isAbsent = () => !fs.existsSync("/usr/local/bin/kubelet-ts") && !fs.existsSync(`${MANIFESTS}/site.yaml`);
  await outputOf("sh", "-c", `head -c 100000000 ${bundle} > ${site}/part.tar`);
  const cut = await install(`${site}/part.tar`);
  expect([cut.exitCode, cut.output, isAbsent()]).toEqual([1, expect.stringContaining("is cut off"), true]);
  await outputOf("systemctl", "stop", "docker.socket", "docker.service");
  const without = await install(bundle);
  expect([without.exitCode, isAbsent()]).toEqual([1, true]);
  expect(without.output).toContain("no Docker engine answers");
  await outputOf("systemctl", "start", "docker.socket", "docker.service");

  const installed = await install(bundle);
  expect([installed.exitCode, installed.output]).toEqual([0, expect.stringContaining(`Loaded ${image}`)]);
  await waitForPod("site", "condition=Ready");
  const again = await install(bundle);
  expect([again.exitCode, again.output.includes("Loaded")]).toEqual([0, false]);
  await waitForPod("site", "condition=Ready");
  fs.rmSync(`${MANIFESTS}/site.yaml`);
});
