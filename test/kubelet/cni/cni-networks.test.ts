import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LOCAL_TEXT_FILES } from "../../../src/base/files/whole-file.ts";
import { CniNetworks } from "../../../src/kubelet/cni/cni-networks.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const makeDirectory = tempDirs();
const LOCAL_FILES = { ...LOCAL_TEXT_FILES, removeFile: async (path: string) => rmSync(path, { force: true }) };
const SANDBOX = { id: "a".repeat(64), netns: "/proc/812/ns/net" };
const signal = new AbortController().signal;

const ANSWER =
  '{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"10.1.0.5/24","interface":0}]}';

/** Plugins are scripts that note each call, and fail while a file `fail-<type>-<command>` exists. */
function aNetwork(types: readonly string[] = ["first", "second"], version = "0.4.0") {
  const root = makeDirectory();
  const [confDir, binDir, cacheDir] = ["net.d", "bin", "cache"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const directory of [confDir, binDir]) mkdirSync(directory);
  for (const type of types) {
    const script = `#!/bin/sh
input=$(cat)
echo "${type} $CNI_COMMAND $CNI_NETNS $CNI_IFNAME $CNI_ARGS $input" >> ${root}/calls
if [ -e ${root}/fail-${type}-$CNI_COMMAND ]; then echo '{"code":100,"msg":"${type} is broken"}'; exit 1; fi
[ $CNI_COMMAND != ADD ] || echo '${ANSWER}'
`;
    writeFileSync(join(binDir, type), script);
    chmodSync(join(binDir, type), 0o755);
  }
  const plugins = types.map((type) => ({ type, capabilities: { portMappings: type === "second" } }));
  const configFile = join(confDir, "10-pods.conflist");
  writeFileSync(configFile, JSON.stringify({ cniVersion: version, name: "pods", plugins }));
  const logger = new RecordingLogger();
  const clock = new FakeClock();
  const make = (isEnabled = true) =>
    new CniNetworks({ isEnabled, confDir, binDirs: [binDir], cacheDir, files: LOCAL_FILES }, clock, logger);
  const calls = () => {
    const lines = readFileSync(join(root, "calls"), "utf8").trim().split("\n");
    return lines.map((line) => line.split(" ").slice(0, 3).join(" "));
  };
  const fail = (name: string) => writeFileSync(join(root, `fail-${name}`), "");
  return { root, clock, cacheDir, configFile, make, calls, fail, logger };
}

const pod = aPod({ containers: [aContainer({ ports: [{ containerPort: 80, hostPort: 8080, protocol: "TCP" }] })] });

describe("the networks of CNI", () => {
  test("a sandbox is attached in order, and detached in reverse order", async () => {
    const { make, calls, root, cacheDir } = aNetwork();
    const networks = make();
    await networks.attach(SANDBOX, pod, signal);
    expect(networks.ipsOf(SANDBOX.id)).toEqual(["10.1.0.5"]);
    expect(statSync(cacheDir).mode & 0o777).toBe(0o700);
    await networks.detach(SANDBOX.id, SANDBOX.netns, signal);
    const ns = SANDBOX.netns;
    expect(calls()).toEqual([`first ADD ${ns}`, `second ADD ${ns}`, `second DEL ${ns}`, `first DEL ${ns}`]);
    expect(networks.holds(SANDBOX.id)).toBe(false);
    expect(readdirSync(cacheDir)).toEqual([]);
    const [, second, del] = readFileSync(join(root, "calls"), "utf8").split("\n");
    expect(second).toContain(
      '"runtimeConfig":{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}',
    );
    expect(second).toContain('"prevResult":');
    expect(second).toContain(`eth0 IgnoreUnknown=1;K8S_POD_NAMESPACE=`);
    expect(del).toContain('"prevResult":');
  });

  test("a later process knows the addresses, and detaches with the configuration of that time", async () => {
    const { make, calls, configFile } = aNetwork();
    await make().attach(SANDBOX, pod, signal);
    writeFileSync(configFile, "{}");
    const later = make(false);
    expect(later.ipsOf(SANDBOX.id)).toEqual(["10.1.0.5"]);
    await later.detachMissing(new Set(), signal);
    expect(calls().slice(2)).toEqual(["second DEL ", "first DEL "]);
    expect(later.holds(SANDBOX.id)).toBe(false);
  });

  test("a plugin that fails is named; what was begun is known to a later process", async () => {
    const { make, fail } = aNetwork();
    fail("second-ADD");
    const networks = make();
    const attached = networks.attach(SANDBOX, pod, signal);
    await expect(attached).rejects.toThrow('plugin "second" of network "pods" failed (ADD): second is broken');
    expect(networks.ipsOf(SANDBOX.id)).toBeUndefined();
    expect(make().holds(SANDBOX.id)).toBe(true);
  });

  test("a release that fails delays nothing and is tried again", async () => {
    const { make, fail, root, clock, logger } = aNetwork();
    const networks = make();
    await networks.attach(SANDBOX, pod, signal);
    fail("first-DEL");
    await networks.detach(SANDBOX.id, "", signal);
    expect(networks.holds(SANDBOX.id)).toBe(true);
    expect(JSON.stringify(logger)).toContain("first is broken");
    rmSync(join(root, "fail-first-DEL"));
    clock.advance(60_000);
    await until("the release", () => !networks.holds(SANDBOX.id));
  });

  test("what was not made is forgotten even when its release fails", async () => {
    const { make, fail } = aNetwork();
    const networks = make();
    fail("first-ADD");
    fail("first-DEL");
    await expect(networks.attach(SANDBOX, pod, signal)).rejects.toThrow("first is broken");
    await networks.detach(SANDBOX.id, "", signal);
    expect(networks.holds(SANDBOX.id)).toBe(false);
  });

  test("a network is checked with its result, from version 0.4.0 on", async () => {
    const { make, fail, calls } = aNetwork();
    const networks = make();
    await networks.attach(SANDBOX, pod, signal);
    expect(await networks.check(SANDBOX, signal)).toBeUndefined();
    expect(calls().slice(2)).toEqual([`first CHECK ${SANDBOX.netns}`, `second CHECK ${SANDBOX.netns}`]);
    fail("first-CHECK");
    expect(await networks.check(SANDBOX, signal)).toContain("first is broken");
    const old = aNetwork(["first"], "0.3.1");
    const oldNetworks = old.make();
    await oldNetworks.attach(SANDBOX, pod, signal);
    await oldNetworks.check(SANDBOX, signal);
    expect(old.calls()).toHaveLength(1);
  });

  test("without a configuration there is a problem until one comes", async () => {
    const { make, configFile } = aNetwork();
    const text = readFileSync(configFile, "utf8");
    writeFileSync(configFile, "{");
    const networks = make();
    expect(networks.problem()).toContain("cni config uninitialized");
    await expect(networks.attach(SANDBOX, pod, signal)).rejects.toThrow("cni config uninitialized");
    expect(networks.holds(SANDBOX.id)).toBe(false);
    writeFileSync(configFile, text);
    expect(networks.problem()).toContain("cni config uninitialized");
    expect(await networks.findProblem()).toBeUndefined();
    expect(networks.problem()).toBeUndefined();
    expect(make(false).problem()).toBeUndefined();
  });

  test("a program that is missing is named", async () => {
    const { make, root } = aNetwork(["first"]);
    chmodSync(join(root, "bin", "first"), 0o644);
    await expect(make().attach(SANDBOX, pod, signal)).rejects.toThrow('plugin "first" of network "pods" failed (ADD):');
  });

  test("a damaged record is skipped with a warning", async () => {
    const { make, cacheDir, logger } = aNetwork();
    mkdirSync(cacheDir);
    writeFileSync(join(cacheDir, "b.json"), "{");
    expect(make().holds("b")).toBe(false);
    expect(JSON.stringify(logger)).toContain("b.json");
  });
});
