import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { readRemovalSettings, writeRemovalSettings } from "../../src/daemon/removal-settings.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

test("what a kubelet was started with is known when its pods are removed", () => {
  const rootDir = tempDir();
  expect(readRemovalSettings(rootDir)).toEqual({});
  const options = { ...DEFAULT_KUBELET_OPTIONS, rootDir, podLogsDir: "/srv/logs", cniBinDirs: ["/srv/cni"] };
  writeRemovalSettings(options, { DOCKER_HOST: "unix:///srv/docker.sock" });
  expect(readRemovalSettings(rootDir)).toMatchObject({
    podLogsDir: "/srv/logs",
    cniBinDirs: ["/srv/cni"],
    dockerEndpoint: "unix:///srv/docker.sock",
  });
});

test("a file of another shape counts as none", () => {
  const rootDir = tempDir();
  writeRemovalSettings({ ...DEFAULT_KUBELET_OPTIONS, rootDir }, {});
  for (const text of ['{"podLogsDir": 1}', "not json", "[]"]) {
    writeFileSync(join(rootDir, "state", "removal-settings.json"), text);
    expect(readRemovalSettings(rootDir)).toEqual({});
  }
});

test("a root directory that cannot be written is no error", () => {
  expect(() => writeRemovalSettings({ ...DEFAULT_KUBELET_OPTIONS, rootDir: "/proc/nowhere" }, {})).not.toThrow();
});
