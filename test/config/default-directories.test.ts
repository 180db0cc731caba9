import { expect, test } from "bun:test";
import { defaultDirectories } from "../../src/config/default-directories.ts";

test("root has the directories of the machine, another user directories below the home directory", () => {
  expect(defaultDirectories(0, { XDG_DATA_HOME: "/data" }, "/root")).toEqual({
    rootDir: "/var/lib/kubelet",
    podLogsDir: "/var/log/pods",
    containersLogsDir: "/var/log/containers",
  });
  expect(defaultDirectories(1000, {}, "/home/edge")).toEqual({
    rootDir: "/home/edge/.local/share/kubelet-ts",
    podLogsDir: "/home/edge/.local/share/kubelet-ts/log/pods",
    containersLogsDir: "/home/edge/.local/share/kubelet-ts/log/containers",
  });
  expect(defaultDirectories(1000, { XDG_DATA_HOME: "/data" }, "/home/edge").rootDir).toBe("/data/kubelet-ts");
  expect(defaultDirectories(1000, { XDG_DATA_HOME: "data" }, "/home/edge").rootDir).toBe(
    "/home/edge/.local/share/kubelet-ts",
  );
});
