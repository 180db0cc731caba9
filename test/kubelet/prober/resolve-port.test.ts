import { expect, test } from "bun:test";
import { joinHostPort, PortError, resolvePort } from "../../../src/kubelet/prober/resolve-port.ts";

const PORTS = [
  { name: "web", containerPort: 8000, protocol: "TCP" as const },
  { name: "admin", containerPort: 9000, protocol: "TCP" as const },
];

test.each([
  { port: 80, want: 80 },
  { port: "8080", want: 8080 },
  { port: "web", want: 8000 },
  { port: "admin", want: 9000 },
])("$port is port $want", ({ port, want }) => {
  expect(resolvePort(port, PORTS)).toBe(want);
});

test.each([
  { port: "nope", message: 'port "nope" not found' },
  { port: 0, message: "invalid port number: 0" },
  { port: 65536, message: "invalid port number: 65536" },
  { port: "-1", message: "invalid port number: -1" },
])("$port is refused", ({ port, message }) => {
  expect(() => resolvePort(port, PORTS)).toThrow(new PortError(message));
});

test("IPv6 addresses get brackets", () => {
  expect(joinHostPort("fd00::1", 80)).toBe("[fd00::1]:80");
  expect(joinHostPort("10.0.0.1", 80)).toBe("10.0.0.1:80");
});
