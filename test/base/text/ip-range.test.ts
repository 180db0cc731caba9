import { expect, test } from "bun:test";
import {
  bytesToIp,
  canonicalIp,
  isInRange,
  isOverlapping,
  parseIpRange,
  rangeOfAddress,
} from "../../../src/base/text/ip-range.ts";

const NONE =
  "10.96.0.0 10.96.0.1/16 10.96.0.0/33 10.96.0/16 10.96.0.256/32 10.96.0.0/ 010.96.0.0/16 10.96.0.0/016 fd00::1/64 fd00::/129 fe80::%1/64 ::g/0";
test.each([...NONE.split(" "), "10.96.0.0/16/x\n-A INPUT", "fd00::/64\n", ""])("%p is no range", (text) => {
  expect(parseIpRange(text)).toBeUndefined();
});

test.each([
  ["172.17.4.1/16", "172.17.0.0/16"],
  ["192.0.2.130/25", "192.0.2.128/25"],
  ["fd00:0:0:0:1::9/112", "fd00::1:0:0:0/112"],
  ["FD00:1:2:3:4:5:6:7/64", "fd00:1:2:3::/64"],
  ["::1/0", "::/0"],
])("the address %s lies in %s", (address, range) => {
  expect(rangeOfAddress(address)?.text).toBe(range);
});

test.each([
  ["10.96.0.0/16", "10.96.8.0/24", true],
  ["10.96.8.0/24", "10.96.0.0/16", true],
  ["10.96.0.0/16", "10.97.0.0/16", false],
  ["0.0.0.0/0", "10.97.0.0/16", true],
  ["0.0.0.0/0", "::/0", false],
  ["fd00::/64", "fd00::ff00/120", true],
])("%s and %s overlap: %p", (a, b, want) => {
  expect(isOverlapping(parseIpRange(a)!, parseIpRange(b)!)).toBe(want);
});

test.each([
  ["10.96.0.0/24", ["10.96.0.0", "10.96.0.255", "10.96.1.0", "db", "::1"], 2],
  ["fd00:1::/112", ["fd00:1::", "fd00:1:0::ffff", "fd00:1::1:0", "10.96.0.0"], 2],
])("addresses of %s are in it", (range, addresses, count) => {
  expect(addresses.filter((address) => isInRange(address, parseIpRange(range)!))).toEqual(addresses.slice(0, count));
});

test("an address has one text", () => {
  expect(["fd00:0:0::0A", "10.0.0.1", "010.0.0.1", "fe80::1%eth0"].map(canonicalIp)).toEqual([
    "fd00::a",
    "10.0.0.1",
    undefined,
    undefined,
  ]);
  expect(bytesToIp(Buffer.from("fd000000000000000000000000000102", "hex"))).toBe("fd00::102");
  expect(bytesToIp(Buffer.from([10, 0, 0, 1]))).toBe("10.0.0.1");
});
