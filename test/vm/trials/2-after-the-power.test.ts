import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { until } from "../../support/until.ts";
import { containersOf, outputOf, RECORDS, run, unitProperty } from "../install/machine.ts";
import { CONFIG, CONFIGURATIONS, updateOf } from "./trials.ts";

const LIMIT = { limitMs: 600_000 };

test("the service is back, and the time of the next look-up, its random delay included, is the same", async () => {
  await until("the service is active", async () => (await unitProperty("ActiveState")) === "active");
  await until("its pods are known", async () => (await updateOf("updated")) !== undefined);
  const before = JSON.parse(readFileSync(`${RECORDS}/update`, "utf8")) as object;
  expect(await updateOf("updated")).toMatchObject(before);
});

test("the edit on trial is rolled back at the end of its deadline", async () => {
  await until("the event", async () => (await outputOf("kubelet-ts", "events")).includes("RolledBack"), LIMIT);
  await until("the previous revision runs", async () => {
    const [id = ""] = await containersOf("guarded");
    return !(await outputOf("docker", "inspect", "--format", "{{.Config.Env}}", id)).includes("EDIT=2");
  });
  expect((await run("kubelet-ts", "wait", "pod/guarded", "--for=condition=Ready")).exitCode).toBe(3);
});

test("the image on trial is rolled back, and is not tried again", async () => {
  await until("it has failed", async () => (await updateOf("updated"))?.state === "failed", LIMIT);
  const { current } = JSON.parse(readFileSync(`${RECORDS}/update`, "utf8")) as { current: string };
  expect(await updateOf("updated")).toMatchObject({ current, rejected: [{ why: expect.any(String) }] });
  await until("the previous image runs", async () => (await containersOf("updated")).length === 1);
});

test("the configuration on trial becomes the last known good one", async () => {
  await until(
    "it is",
    () => readFileSync(`${CONFIGURATIONS}/.lkg`, "utf8").includes("imageGCHighThresholdPercent: 71"),
    LIMIT,
  );
  expect(await outputOf("kubelet-ts", "events")).toContain("KubeletConfigGood");
  expect(readFileSync(CONFIG, "utf8")).toContain("71");
});
