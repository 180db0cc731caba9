import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { TestRegistry } from "../../support/registry.ts";
import { until } from "../../support/until.ts";
import {
  containersOf,
  DOWNLOADED,
  MANIFESTS,
  outputOf,
  RECORDS,
  unitProperty,
  waitForPod,
  writePod,
} from "../install/machine.ts";
import { CONFIG, CONFIGURATIONS, rolloutsText, updateOf, updatesPath } from "./trials.ts";

let registry: TestRegistry | undefined;
afterAll(() => registry?.cleanUp());

test("a service runs", async () => {
  mkdirSync(RECORDS, { recursive: true });
  if (!existsSync("/usr/local/bin/kubelet-ts")) await outputOf(DOWNLOADED, "install");
});

test("an edit that does not become Ready is on trial", async () => {
  const annotations = { "kubelet-ts.io/rollback": "on-failure", "kubelet-ts.io/rollback-deadline": "90s" };
  writePod("guarded", {}, MANIFESTS, annotations);
  await waitForPod("guarded", "condition=Ready");
  await until("its revision counts as Ready", () => rolloutsText().includes("guarded"));
  const readinessProbe = { exec: { command: ["false"] } };
  writePod("guarded", { env: [{ name: "EDIT", value: "2" }], readinessProbe }, MANIFESTS, annotations);
  await until("the edit runs", async () => {
    const [id = ""] = await containersOf("guarded");
    return (await outputOf("docker", "inspect", "--format", "{{.Config.Env}}", id)).includes("EDIT=2");
  });
});

test("an image that cannot run is on trial", async () => {
  registry = await TestRegistry.start();
  const { reference } = await registry.pushRunnable("trials/app:1");
  const annotations = { "kubelet-ts.io/image-update": "digest", "kubelet-ts.io/update-deadline": "90s" };
  writePod("updated", { image: reference, imagePullPolicy: "IfNotPresent" }, MANIFESTS, annotations);
  await waitForPod("updated", "condition=Ready");
  await until("it is pinned", async () => (await updateOf("updated"))?.state === "pinned");
  await registry.push("trials/app:1");
  await outputOf("kubelet-ts", "updates", "--now", "updated");
  await until("the new image is tried", async () => (await updateOf("updated"))?.state === "trial");
  const { nextCheckAt, current } = (await updateOf("updated"))!;
  writeFileSync(`${RECORDS}/update`, JSON.stringify({ nextCheckAt, current }));
});

test("a configuration is on trial, and the machine loses its power", async () => {
  const settings = readFileSync(CONFIG, "utf8");
  const changes =
    "imageGCHighThresholdPercent: 71\nimageGCLowThresholdPercent: 20\nkubeletTs:\n  configTrialPeriod: 120s\n";
  writeFileSync(CONFIG, `${settings}${changes}`);
  await outputOf("systemctl", "restart", "kubelet-ts");
  await until("it is tried", () =>
    /"failedRuns":1\b.*71|71.*"failedRuns":1\b/s.test(readFileSync(`${CONFIGURATIONS}/.cur`, "utf8")),
  );
  expect(readFileSync(`${CONFIGURATIONS}/.lkg`, "utf8")).not.toContain("ThresholdPercent: 71");
  expect(readFileSync(updatesPath(), "utf8")).toContain('"trial"');
  // It dies as with the power: nothing is put in order, and nothing starts it again before the next boot.
  const dropIn = "/run/systemd/system/kubelet-ts.service.d";
  mkdirSync(dropIn, { recursive: true });
  writeFileSync(`${dropIn}/power.conf`, "[Service]\nRestart=no\n");
  await outputOf("systemctl", "daemon-reload");
  await outputOf("systemctl", "kill", "-s", "KILL", "kubelet-ts");
  await until("it is dead", async () => (await unitProperty("ActiveState")) === "failed");
});
