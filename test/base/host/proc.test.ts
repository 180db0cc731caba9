import { expect, test } from "bun:test";
import {
  parseBootTimeSeconds,
  parseDefaultInterface,
  parseDiskstats,
  parseIpv6Routes,
  parseNetDev,
  parseOpenFilesLimit,
  parseProcessState,
  parseRoutes,
  parseTaskCount,
} from "../../../src/base/host/proc.ts";

const NET_DEV = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     840      10    0    0    0     0          0         0      840      10    0    0    0     0       0          0
  eth0:  109528    1411    2    1    0     0          0         0 52538332    3120    4    3    0     0       0          0
veth12ab:1234567890123 1 0 0 0 0 0 0 5 6 0 0 0 0 0 0
docker0:   83946     995    0    0    0     0          0         0    87120    1045    0    2    0     0       0          0
ens5:1029974580 1 0 0 0 0 0 0 5 6 0 0 0 0 0 0
`;

test("interfaces without the loopback and the host's ends of containers, also where a number touches the colon", () => {
  const interfaces = parseNetDev(NET_DEV);
  expect(interfaces.map(({ name }) => name)).toEqual(["eth0", "ens5"]);
  expect(interfaces[0]).toEqual({
    name: "eth0",
    rxBytes: 109_528,
    rxPackets: 1411,
    rxErrors: 2,
    rxDropped: 1,
    txBytes: 52_538_332,
    txPackets: 3120,
    txErrors: 4,
    txDropped: 3,
  });
  expect(interfaces[1]?.rxBytes).toBe(1_029_974_580);
  expect(parseNetDev("")).toEqual([]);
});

test("routes of IPv6", () => {
  const [none, lan] = ["0".repeat(32), `fd00${"0".repeat(28)}`];
  const rest = `${none} 00 ${none} 00000100 00000001 00000000 00000001 eth0`;
  expect(parseIpv6Routes(`${lan} 40 ${rest}\n${none} 00 ${rest}\n`)).toEqual([
    { device: "eth0", subnet: "fd00::/64", isDirect: true },
    { device: "eth0", subnet: "::/0", isDirect: true },
  ]);
});

test("routes, and the interface of the default one", () => {
  const header = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
  const local = "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
  const route = "ens5\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
  expect(parseDefaultInterface(header + local + route)).toBe("ens5");
  expect(parseDefaultInterface(header + local)).toBeUndefined();
  const near = "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  expect(parseRoutes(header + local + route + near)).toEqual([
    { device: "docker0", subnet: "172.17.0.0/16", isDirect: true },
    { device: "ens5", subnet: "0.0.0.0/0", isDirect: false },
    { device: "eth0", subnet: "192.0.2.0/24", isDirect: true },
  ]);
});

test.each([
  ["1 (a) S 0", "sleeping"],
  ["1 (kworker/0:1) I 0", "sleeping"],
  ["1 (a (b) R) R 0", "running"],
  ["1 (a) D 0", "uninterruptible"],
  ["1 (a) T 0", "stopped"],
  ["1 (a) t 0", "stopped"],
  ["1 (a) Z 0", undefined],
  ["", undefined],
])("%p is %p", (stat, want) => expect(parseProcessState(stat)).toBe(want as never));

test("limits of open files, unlimited is -1", () => {
  const line = (soft: string) =>
    `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}            1048576              files \n`;
  expect(parseOpenFilesLimit(line("20000"))).toEqual({ soft: 20_000, hard: 1_048_576 });
  expect(parseOpenFilesLimit(line("unlimited"))?.soft).toBe(-1);
  expect(parseOpenFilesLimit("")).toBeUndefined();
});

test("boot time and tasks", () => {
  expect(parseBootTimeSeconds("cpu 1 2\nbtime 1795238040\n")).toBe(1_795_238_040);
  expect(parseBootTimeSeconds("")).toBeUndefined();
  expect(parseTaskCount("0.21 0.18 0.07 1/130 16059\n")).toBe(130);
  expect(parseTaskCount("")).toBeUndefined();
});

test("disks, also of a kernel with more columns", () => {
  const text =
    " 259       0 nvme0n1 40111 911 1781924 54947 90111 15713 4125674 8968 1 9708 64393 5377 34 163952 379 2735 97\n   7 0 short\n";
  expect(parseDiskstats(text)).toEqual([
    {
      major: 259,
      minor: 0,
      name: "nvme0n1",
      reads: 40_111,
      readsMerged: 911,
      sectorsRead: 1_781_924,
      readMilliseconds: 54_947,
      writes: 90_111,
      writesMerged: 15_713,
      sectorsWritten: 4_125_674,
      writeMilliseconds: 8968,
      inProgress: 1,
      ioMilliseconds: 9708,
      weightedIoMilliseconds: 64_393,
    },
  ]);
});
