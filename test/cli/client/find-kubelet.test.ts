import { expect, test } from "bun:test";
import { join } from "node:path";
import type { InstanceInfo } from "../../../src/base/host/root-directory.ts";
import {
  chooseRootDir,
  defaultContextPath,
  findKubelet,
  type InstanceFinder,
  toServerUrl,
  writeDefaultContext,
} from "../../../src/cli/client/find-kubelet.ts";
import { parseHealth } from "../../../src/cli/client/kubelet-api.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const anInstance = (over: Partial<InstanceInfo> = {}): InstanceInfo => ({
  pid: 42,
  version: "0.1.0",
  nodeName: "node1",
  rootDir: "/var/lib/kubelet",
  mode: "supervise",
  readOnlyUrl: "http://127.0.0.1:10255",
  readOnlyPort: 10255,
  socketPath: undefined,
  dockerEndpoint: "unix:///var/run/docker.sock",
  ...over,
});

/** Those that run; "unreadable" ones are given by their root directory. */
function running(...instances: readonly (InstanceInfo | string)[]): InstanceFinder {
  const known = new Map<string, InstanceInfo | "unreadable">(
    instances.map((it) => (typeof it === "string" ? [it, "unreadable"] : [it.rootDir, it])),
  );
  return {
    read: (rootDir) => known.get(rootDir),
    describeNameless: (rootDir) => (rootDir === "/removed" ? `"${rootDir}" was removed` : undefined),
    list: () => [...known.keys()],
    hasPods: () => false,
    mayUse: (path) => !path.startsWith("/root"),
  };
}

const DEFAULT = anInstance();
const OTHER = anInstance({ rootDir: "/srv/a", nodeName: "a", readOnlyUrl: "http://127.0.0.1:12345" });
const THIRD = anInstance({ rootDir: "/srv/b", nodeName: "b", readOnlyUrl: "http://127.0.0.1:12346" });
const NOTHING = { rootDir: undefined, server: undefined };

test.each([
  ["the one of the default root directory", NOTHING, [DEFAULT, OTHER], DEFAULT.readOnlyUrl],
  ["the only one there is", NOTHING, [OTHER], OTHER.readOnlyUrl],
  ["the one of --root-dir", { ...NOTHING, rootDir: "/srv/b/" }, [DEFAULT, OTHER, THIRD], THIRD.readOnlyUrl],
  ["the one at --server", { ...NOTHING, server: "10.0.0.7:10255" }, [DEFAULT], "http://10.0.0.7:10255"],
  ["by its port, as another user", NOTHING, [anInstance({ socketPath: "/root/kubelet-ts.sock" })], DEFAULT.readOnlyUrl],
] as const)("which kubelet is asked: %s", async (_, options, instances, want) => {
  expect(await findKubelet(options, running(...instances))).toMatchObject({ url: want as string });
});

test("the socket is preferred to the port", async () => {
  const socketPath = "/var/lib/kubelet/kubelet-ts.sock";
  expect(await findKubelet(NOTHING, running(anInstance({ socketPath })))).toMatchObject({ socketPath });
  const found = await findKubelet(
    NOTHING,
    running(anInstance({ socketPath, readOnlyUrl: undefined, readOnlyPort: 0 })),
  );
  expect(found).toMatchObject({ socketPath });
});

test.each([
  ["none runs", NOTHING, [], ['"/var/lib/kubelet"', "nor on any other", "--pod-manifest-path"]],
  ["one of several must be chosen", NOTHING, [OTHER, THIRD], ["--root-dir=/srv/a", "--root-dir=/srv/b", '"a"']],
  [
    "another one runs, and the default root directory has pods",
    NOTHING,
    [OTHER, "has pods"],
    ['"/var/lib/kubelet"', "--root-dir=/srv/a"],
  ],
  ["another one runs", { ...NOTHING, rootDir: "/srv/b" }, [OTHER], ['"/srv/b"', "--root-dir=/srv/a"]],
  ["its port is off", NOTHING, [anInstance({ readOnlyUrl: undefined, readOnlyPort: 0 })], ["--read-only-port=10255"]],
  [
    "its socket is another user's",
    NOTHING,
    [anInstance({ readOnlyUrl: undefined, readOnlyPort: 0, socketPath: "/root/kubelet-ts.sock" })],
    ["its read-only port off", "usually root"],
  ],
  ["it is stopped", NOTHING, [{ ...DEFAULT, isSilent: true }], ["is stopped", "kill -CONT 42"]],
  ["its directory was removed", { ...NOTHING, rootDir: "/removed" }, [], ['"/removed" was removed']],
  ["its port is taken", NOTHING, [anInstance({ readOnlyUrl: undefined })], ["another program", "10255"]],
  ["it only starts pods", NOTHING, [anInstance({ readOnlyUrl: undefined, mode: "run-once" })], ["--runonce"]],
  ["its root directory is another user's", NOTHING, ["/var/lib/kubelet"], ["--server"]],
  ["the address is none", { ...NOTHING, server: "ftp://x" }, [DEFAULT], ["--server", "ftp://x"]],
] as const)("why none can be asked: %s", async (_, options, instances, message) => {
  const [last] = instances.slice(-1);
  const finder = running(...instances.filter((it) => it !== "has pods"));
  const found = await findKubelet(options, { ...finder, hasPods: () => last === "has pods" });
  for (const part of message) expect((found as { problem: string }).problem).toContain(part);
});

test.each([
  ["10255", "http://127.0.0.1:10255"],
  ["host:1", "http://host:1"],
  ["http://[::1]:10255/", "http://[::1]:10255"],
  ["https://proxy/node1/", "https://proxy/node1"],
  ["ftp://x", undefined],
  ["a b", undefined],
])("--server %s", (text, want) => {
  expect(toServerUrl(text)).toBe(want as string);
});

test("a kubelet that is starting is waited for until it has its address", async () => {
  let reads = 0;
  const finder = running(DEFAULT);
  const read = (): InstanceInfo =>
    reads++ === 0 ? { ...anInstance({ readOnlyUrl: undefined, readOnlyPort: 0 }), isStarting: true } : DEFAULT;
  expect(await findKubelet(NOTHING, { ...finder, read })).toMatchObject({ url: DEFAULT.readOnlyUrl as string });
  expect(reads).toBe(2);
});

const tempDir = tempDirs();

test("a flag wins over the environment, the environment over the choice of the user", () => {
  const environment: NodeJS.ProcessEnv = { HOME: tempDir() };
  const path = defaultContextPath(environment);
  expect(path).toBe(join(environment.HOME!, ".config", "kubelet-ts", "root-dir"));
  expect(chooseRootDir(undefined, environment)).toBeUndefined();
  writeDefaultContext("/srv/a", path);
  expect(chooseRootDir(undefined, environment)).toEqual({ rootDir: "/srv/a", origin: "kubelet-ts use" });
  environment.KUBELET_TS_ROOT_DIR = "/srv/b";
  expect(chooseRootDir(undefined, environment)?.rootDir).toBe("/srv/b");
  expect(chooseRootDir("/srv/c", environment)).toEqual({ rootDir: "/srv/c", origin: "--root-dir" });
  writeDefaultContext(undefined, path);
  expect(chooseRootDir(undefined, { HOME: environment.HOME })).toBeUndefined();
});

test("refused manifests are read from the health checks", () => {
  const text = `[+]ping ok
[+]source file /pods ok
[+]manifest /pods/bad.yaml refused (/pods/bad.yaml:4:38: spec.containers[0].image: must be a string (found y)) ok
[+]manifest /pods/b.yaml refused (/pods/b.yaml:1:1: no such field) ok
healthz check passed
`;
  expect(parseHealth(text).refused).toEqual([
    { file: "/pods/bad.yaml", message: "/pods/bad.yaml:4:38: spec.containers[0].image: must be a string (found y)" },
    { file: "/pods/b.yaml", message: "/pods/b.yaml:1:1: no such field" },
  ]);
  expect(parseHealth("[+]ping ok\n")).toEqual({ engine: undefined, refused: [] });
});
