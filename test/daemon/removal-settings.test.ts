import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { describeOtherRoot, readRemovalSettings, writeRemovalSettings } from "../../src/daemon/removal-settings.ts";
import { computeRootHash } from "../../src/docker/labels.ts";
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

const owned = (rootDir: string, type = "container", isRunning = true) => ({
  id: `${type} of ${rootDir}`,
  isRunning,
  labels: {
    "kubelet-ts.io/root": computeRootHash(rootDir),
    "io.kubernetes.docker.type": type,
    "io.kubernetes.pod.uid": `a pod of ${rootDir}`,
  },
});
const former = [owned("/srv/a", "podsandbox"), owned("/srv/a")];

test.each<[string, ReturnType<typeof owned>[], string[], string | undefined]>([
  [
    "a new one, next to a former one",
    former,
    ["/x/pods/y:/z", "/srv/a/pods/1/etc-hosts:/etc/hosts"],
    "--root-dir=/srv/a,",
  ],
  ["a new one, without a mount of the former one", former, ["/x/pods/y"], "--root-dir=DIRECTORY,"],
  ["a new one, when nothing of the former one runs", [owned("/srv/a", "container", false)], [], undefined],
  ["one that has containers", [...former, owned("/srv/b", "container", false)], [], undefined],
  ["the only one", [owned("/srv/b")], [], undefined],
  ["the first one", [], [], undefined],
])("a root directory: %s", async (_, listed, Binds, fix) => {
  const inspectContainer = async (id: string) => (id === "container of /srv/a" ? { HostConfig: { Binds } } : undefined);
  const owner = { nodeName: "n", rootHash: computeRootHash("/srv/b") };
  const engine = { listOwned: async () => listed, inspectContainer };
  const told = await describeOtherRoot(engine, owner, new AbortController().signal);
  if (told !== undefined) expect(told).toStartWith(`Pods of node "n" (1) run from the root directory`);
  expect(told === undefined || fix === undefined ? told : told.includes(fix)).toBe(fix && true);
});
