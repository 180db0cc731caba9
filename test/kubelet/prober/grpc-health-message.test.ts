import { expect, test } from "bun:test";
import {
  decodeHealthCheckResponse,
  encodeHealthCheckRequest,
} from "../../../src/kubelet/prober/grpc-health-message.ts";

const frame = (...message: number[]) => Buffer.from([0, 0, 0, 0, message.length, ...message]);

test("a request without a service is empty", () => {
  expect(encodeHealthCheckRequest("")).toEqual(frame());
});

test("a service is field 1, with a length of more than one byte where needed", () => {
  expect(encodeHealthCheckRequest("db")).toEqual(frame(0x0a, 2, 0x64, 0x62));
  const long = encodeHealthCheckRequest("x".repeat(300));
  expect(long.readUInt32BE(1)).toBe(303);
  expect([...long.subarray(5, 8)]).toEqual([0x0a, 0xac, 0x02]);
});

test.each([
  { when: "nothing", bytes: frame(), want: "UNKNOWN" },
  { when: "1", bytes: frame(0x08, 1), want: "SERVING" },
  { when: "2", bytes: frame(0x08, 2), want: "NOT_SERVING" },
  { when: "3", bytes: frame(0x08, 3), want: "SERVICE_UNKNOWN" },
  { when: "a status not known yet", bytes: frame(0x08, 0x96, 0x01), want: "150" },
  { when: "other fields around it", bytes: frame(0x12, 1, 0x41, 0x08, 1, 0x1d, 1, 2, 3, 4), want: "SERVING" },
  { when: "a compressed frame", bytes: Buffer.from([1, 0, 0, 0, 0]), want: undefined },
  { when: "half a frame", bytes: Buffer.from([0, 0, 0, 0, 2, 8]), want: undefined },
  { when: "half a number", bytes: frame(0x08, 0x80), want: undefined },
  { when: "a field longer than the message", bytes: frame(0x12, 9), want: undefined },
  { when: "no frame at all", bytes: Buffer.alloc(0), want: undefined },
])("an answer of $when is $want", ({ bytes, want }) => {
  expect(decodeHealthCheckResponse(bytes)).toBe(want);
});
