import { expect, test } from "bun:test";
import { isInRange, isOverlapping, parseIpv4Range, rangeOfAddress } from "../../../src/base/text/ipv4-range.ts";

const NONE = "10.96.0.0 10.96.0.1/16 10.96.0.0/33 10.96.0/16 10.96.0.256/32 ::/0 10.96.0.0/ 010.96.0.0/16".split(" ");
test.each([...NONE, "10.96.0.0/16/x\n-A INPUT", ""])("%p is no range", (text) => {
  expect(parseIpv4Range(text)).toBeUndefined();
});

test("an address lies in the range of its prefix", () => {
  expect(rangeOfAddress("172.17.4.1/16")?.text).toBe("172.17.0.0/16");
  expect(rangeOfAddress("192.0.2.130/25")?.text).toBe("192.0.2.128/25");
  expect(rangeOfAddress("fe80::1/64")).toBeUndefined();
});

test.each([
  ["10.96.0.0/16", "10.96.8.0/24", true],
  ["10.96.8.0/24", "10.96.0.0/16", true],
  ["10.96.0.0/16", "10.97.0.0/16", false],
  ["0.0.0.0/0", "10.97.0.0/16", true],
])("%s and %s overlap: %p", (a, b, want) => {
  expect(isOverlapping(parseIpv4Range(a)!, parseIpv4Range(b)!)).toBe(want);
});

test("addresses of a range are in it", () => {
  const range = parseIpv4Range("10.96.0.0/24")!;
  const addresses = ["10.96.0.0", "10.96.0.255", "10.96.1.0", "db"];
  expect(addresses.filter((address) => isInRange(address, range))).toEqual(["10.96.0.0", "10.96.0.255"]);
});
