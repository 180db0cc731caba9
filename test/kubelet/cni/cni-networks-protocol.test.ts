import { describe, expect, test } from "bun:test";
import {
  chooseNetworkConfig,
  describePluginFailure,
  isFalseAlarm,
  parseCniResult,
  parseNetworkConfig,
  toPodIps,
} from "../../../src/kubelet/cni/cni-networks.ts";

describe("results of plugins", () => {
  test.each([
    {
      when: "1.0.0 with an interface on the host",
      result: {
        cniVersion: "1.0.0",
        interfaces: [{ name: "br0" }, { name: "eth0", sandbox: "/proc/1/ns/net" }],
        ips: [
          { address: "10.1.0.1/24", interface: 0 },
          { address: "fd00::5/64", interface: 1 },
          { address: "10.1.0.5/24", interface: 1, gateway: "10.1.0.1" },
        ],
      },
      want: ["10.1.0.5", "fd00::5"],
    },
    { when: "0.3.1, no interfaces", result: { ips: [{ version: "4", address: "10.1.0.6/24" }] }, want: ["10.1.0.6"] },
    { when: "0.2.0", result: { ip4: { ip: "10.1.0.7/24" }, ip6: { ip: "fd00::7/64" } }, want: ["10.1.0.7", "fd00::7"] },
    { when: "no addresses", result: { interfaces: [], ips: null }, want: [] },
  ])("addresses: $when", ({ result, want }) => {
    expect(toPodIps(parseCniResult(JSON.stringify(result)))).toEqual([...want]);
  });

  test.each([
    { when: "no JSON", text: "oops", want: /not JSON/ },
    { when: "ips that are not a list", text: '{"ips":5}', want: /not a result: ips/ },
  ])("refused: $when", ({ text, want }) => {
    expect(() => parseCniResult(text)).toThrow(want);
  });

  test.each([
    { when: "an error", stdout: '{"code":11,"msg":"no range","details":"full"}', stderr: "", want: "no range; full" },
    { when: "only words", stdout: "", stderr: "panic: x\n", want: "panic: x" },
    { when: "nothing", stdout: "", stderr: "", want: "exit code 3" },
  ])("a failure with $when", ({ stdout, stderr, want }) => {
    expect(describePluginFailure({ exitCode: 3, stdout, stderr })).toBe(want);
  });

  test.each([
    ["10.1.0.5/24", 'plugin "portmap" failed (CHECK): could not check ipv6 dnat: chain CNI-DN-1 not found', true],
    ["fd00::5/64", 'plugin "portmap" failed (CHECK): could not check ipv6 dnat: chain CNI-DN-1 not found', false],
    ["10.1.0.5/24", 'plugin "portmap" failed (CHECK): could not check ipv4 dnat: chain CNI-DN-1 not found', false],
  ])("address %s: %s", (address, problem, want) => {
    expect(isFalseAlarm(problem, parseCniResult(JSON.stringify({ ips: [{ address }] })))).toBe(want);
  });
});

const LIST = '{"cniVersion":"0.4.0","name":"pods","plugins":[{"type":"bridge","mtu":1400},{"type":"portmap"}]}';
const SINGLE = '{"cniVersion":"0.3.1","name":"one","type":"bridge","isGateway":true}';

describe("the configuration of the network", () => {
  test("a list keeps the fields of its plugins", () => {
    const { name, plugins, disableCheck } = parseNetworkConfig("a.conflist", LIST);
    expect({ name, plugins, disableCheck }).toEqual({
      name: "pods",
      plugins: [{ type: "bridge", mtu: 1400 }, { type: "portmap" }],
      disableCheck: false,
    });
  });

  test("the configuration of one plugin becomes a list of one", () => {
    expect(parseNetworkConfig("a.conf", SINGLE)).toEqual({
      cniVersion: "0.3.1",
      name: "one",
      disableCheck: false,
      plugins: [{ type: "bridge", isGateway: true }],
    });
  });

  test.each([
    { when: "no JSON", file: "a.conf", text: "{", want: /JSON/ },
    { when: "no plugins", file: "a.conflist", text: '{"name":"a","plugins":[]}', want: /plugins: must name a plugin/ },
    { when: "no name", file: "a.conflist", text: '{"plugins":[{"type":"x"}]}', want: /name/ },
    { when: "a path as program", file: "a.conf", text: '{"name":"a","type":"../x"}', want: /type: must be the name/ },
    {
      when: "a version of the future",
      file: "a.conf",
      text: '{"cniVersion":"9.0.0","name":"a","type":"x"}',
      want: /"9.0.0" is none of/,
    },
  ])("refused: $when", ({ file, text, want }) => {
    expect(() => parseNetworkConfig(file, text)).toThrow(want);
  });

  test("the first usable file by name counts", () => {
    const { config, problems } = chooseNetworkConfig([
      { name: "20-one.conf", text: SINGLE },
      { name: "05-broken.conflist", text: "{}" },
      { name: "10-pods.conflist", text: LIST },
    ]);
    expect(config?.name).toBe("pods");
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith("05-broken.conflist: ");
  });

  test("a missing file is not a configuration", () => {
    expect(chooseNetworkConfig([])).toEqual({ config: undefined, problems: [] });
  });
});
