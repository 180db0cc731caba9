import { expect, test } from "bun:test";
import { parseUdpFlows, type UdpFlow } from "../../../src/base/host/udp-flows.ts";

/** Entries of TCP and of UDP, as a kernel 6.18 sent them. */
const TCP =
  "d4000000000122000000000058630000020000003400018014000180080001007f000001080002007f0000011c000280050001000600000006000200a3a8000006000300294f00003400028014000180080001007f000001080002007f0000011c000280050001000600000006000200294f000006000300a3a80000080003000000018e080008000000000008000c009cb456bb08000b00000000010800070000000062300004802c0001800500010007000000050002000a000000050003000a00000006000400230000000600050027000000";
const UDP =
  "a400000000012200000000005863000002000000340001801400018008000100ac11000108000200ac1100091c000280050001001100000006000200c4f600000600030000350000340002801400018008000100ac11000908000200ac1100011c0002800500010011000000060002000035000006000300c4f600000800030000000188080008000000000008000c00fcf63bca08000b0000000002080007000000001d";
const REFUSED = "24000000020000000000000000000000ffffffff1400000001010103000000000000000000000000";
const DONE = "1400000003000200000000005863000000000000";

function read(...messages: string[]) {
  const flows: UdpFlow[] = [];
  const removals: string[] = [];
  const isDone = parseUdpFlows(Buffer.from(messages.join(""), "hex"), (flow, removal) => {
    flows.push(flow);
    removals.push(removal().toString("hex"));
  });
  return { flows, removals, isDone };
}

test("entries of UDP are read, and the request that removes one names its original addresses and its number", () => {
  const { flows, removals, isDone } = read(TCP, UDP, TCP);
  expect(isDone).toBe(false);
  expect(flows).toEqual([{ to: "172.17.0.9:53", server: "172.17.0.9:53" }]);
  const original = UDP.slice(40, 40 + 2 * 0x34);
  const id = "08000c00fcf63bca";
  expect(removals).toEqual([`5000000002010100000000000000000002000000${original}${id}`]);
});

test("the last message ends the table", () => {
  expect(read(UDP, DONE).isDone).toBe(true);
});

test("a refusal of the kernel, or a message that is cut off, is an error", () => {
  expect(() => read(REFUSED)).toThrow("netlink: errno 1");
  expect(() => read(UDP.slice(0, 200))).toThrow("cut off");
});
