import { expect, test } from "bun:test";
import { readRoutes, toNetworkSettings } from "../../../src/daemon/doctor/gather-facts.ts";

test("routes are those that lead to other machines", () => {
  const table = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
tun0\t000511AC\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
`;
  expect(readRoutes(table)).toEqual([
    { subnet: "192.168.0.0/24", device: "eth0", isDirect: true },
    { subnet: "172.17.5.0/24", device: "tun0", isDirect: true },
  ]);
});

test.each([
  [undefined, [], { hasProxy: true, hasIptables: true }],
  ["not JSON", [], { hasProxy: true, hasIptables: true }],
  ['{"bridge-accept-fwmark": "0x1000/0x1000"}', [], { hasProxy: true, hasIptables: true, hasMark: true }],
  ["{}", ["dockerd", "--bridge-accept-fwmark=4096"], { hasProxy: true, hasIptables: true, hasMark: true }],
  ['{"userland-proxy": false}', [], { hasProxy: false, hasIptables: true }],
  ["{}", ["dockerd", "--userland-proxy=false", "--iptables=false"], { hasProxy: false, hasIptables: false }],
])("the proxy by daemon.json %p and flags %p", (file, argv, expected) => {
  expect(toNetworkSettings(file, argv, 2)).toEqual({ hasMark: false, ...expected, proxies: 2 });
});
