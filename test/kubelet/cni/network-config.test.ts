import { describe, expect, test } from "bun:test";
import { chooseNetworkConfig, parseNetworkConfig } from "../../../src/kubelet/cni/network-config.ts";

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
