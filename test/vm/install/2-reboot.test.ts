import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { expectPodsInOrder, outputOf, RECORDS, unitProperty, waitForPod } from "./machine.ts";

test("after a reboot the pods are back in order, and what has ended is not run again", async () => {
  expect(await unitProperty("UnitFileState")).toBe("enabled");
  for (const name of ["web", "db", "app"]) await waitForPod(name, "condition=Ready");
  expectPodsInOrder();
  expect(readFileSync(`${RECORDS}/once`, "utf8")).toBe("run\n");
});

test("the next boot has a clock that starts in 1970", async () => {
  writeFileSync(
    "/etc/systemd/system/clock-1970.service",
    `[Unit]
DefaultDependencies=no
Before=sysinit.target docker.service kubelet-ts.service
[Service]
Type=oneshot
ExecStart=/usr/bin/date -s @60
[Install]
WantedBy=sysinit.target
`,
  );
  await outputOf("systemctl", "enable", "clock-1970.service");
  // It would set the clock to the time of the last boot.
  await outputOf("systemctl", "disable", "systemd-timesyncd.service");
});
