import { expect, test } from "bun:test";
import type { ContainerPort, Probe } from "../../src/base/api/pod.ts";
import {
  describePort,
  describeTarget,
  describeTiming,
  formatAge,
  formatBytes,
  formatCores,
  formatPercent,
  formatUntil,
  formatWholeTime,
  splitFact,
} from "../../src/page/format.ts";

const AT = Date.parse("2026-11-22T12:53:10Z");

test.each([
  ["ended at 2026-11-22T12:53:10Z with exit code 1 (Error)", "ended at ", AT, " with exit code 1 (Error)"],
  ["last seen 2026-11-22T12:53:10Z, 3 times", "last seen ", AT, ", 3 times"],
  ["Readiness probe failed: no (2026-11-22T12:53:10Z, 3 times)", "Readiness probe failed: no (", AT, ", 3 times)"],
  ["last seen 2026-11-22T12:53:10Z, once", "last seen ", AT, ", once"],
  ["since 2026-11-22T12:53:10Z", "since ", AT, ""],
  ["its grace period of 30 s ends at 2026-11-22T12:53:10Z", "its grace period of 30 s ends at ", AT, ""],
  ["restarted 3 times; next start in 24 s", "restarted 3 times; next start in 24 s", 0, ""],
  // A line of a log.
  ["  ended at 2026-11-22T12:53:10Z with love", "  ended at 2026-11-22T12:53:10Z with love", 0, ""],
  ["", "", 0, ""],
] as const)("the time of the fact %j", (text, before, at, after) => {
  expect(splitFact(text)).toEqual({ before, at, after });
});

test("a whole time has its zone, and UTC as commands print it", () => {
  expect(formatWholeTime(AT)).toMatch(/2026.*:53:10.*\(2026-11-22T12:53:10Z\)$/);
  expect(formatWholeTime(AT + 5)).toEndWith("(2026-11-22T12:53:10.005Z)");
  expect(formatWholeTime(0)).toBe("");
});

test.each([
  [undefined, "-"],
  [null, "-"],
  [Number.NaN, "-"],
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KiB"],
  [150 * 1024, "150 KiB"],
  [64 * 2 ** 20, "64.0 MiB"],
  [1.5 * 2 ** 30, "1.5 GiB"],
  [3 * 2 ** 40, "3.0 TiB"],
  [5000 * 2 ** 40, "5000 TiB"],
])("%p bytes are %s", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test.each([
  [undefined, "-"],
  [null, "-"],
  [0, "0"],
  [0.0004, "0.4m"],
  [0.25, "250m"],
  [1, "1.00"],
  [12.345, "12.35"],
])("%p cores are %s", (cores, text) => {
  expect(formatCores(cores)).toBe(text);
});

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
test.each([
  [0, "0s"],
  [59 * SECOND, "59s"],
  [MINUTE, "1m"],
  [59 * MINUTE + 59 * SECOND, "59m"],
  [HOUR, "1h"],
  [23 * HOUR, "23h"],
  [400 * DAY, "400d"],
  // A clock that was set back.
  [-HOUR, "0s"],
])("an age of %p ms is %s", (ms, text) => {
  expect(formatAge(1e12, 1e12 + ms)).toBe(text);
});

test("an unknown age is empty; what is due is now", () => {
  expect(formatAge(0, 1e12)).toBe("");
  expect(formatUntil(1e12, 1e12)).toBe("now");
  expect(formatUntil(1e12 + 5 * HOUR, 1e12)).toBe("in 5h");
});

test("a share of nothing is unknown", () => {
  expect([formatPercent(1, 3), formatPercent(0, 5), formatPercent(5, 0)]).toEqual(["33 %", "0 %", "-"]);
});

test.each<[Partial<ContainerPort>, string]>([
  [{ containerPort: 80, hostPort: 8080, protocol: "TCP" }, "8080 → 80/TCP"],
  [{ containerPort: 53, protocol: "UDP", name: "dns" }, "53/UDP (dns)"],
])("port %j", (port, text) => {
  expect(describePort(port as ContainerPort)).toBe(text);
});

test.each<[object, string]>([
  [{ exec: { command: ["test", "-e", "/x"] } }, "exec test -e /x"],
  [{ httpGet: { port: 80, path: "/ready" } }, "http-get :80/ready"],
  [{ tcpSocket: { port: 80 } }, "tcp-socket :80"],
])("probe %j", (probe, target) => {
  expect(describeTarget(probe as Probe)).toBe(target);
  expect(describeTiming(probe as Probe)).toBe("every 10 s, timeout 1 s, fails after 3");
});
