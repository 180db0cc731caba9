import { expect, test } from "bun:test";
import { FairShare, RequestHandler, textResponse } from "../../src/server/request-handler.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

const fill = (share: FairShare, address: string, count: number) =>
  Array.from({ length: count }, () => share.enter(address)).filter((leave) => leave !== undefined);

test("one address may have all of it", () => {
  const share = new FairShare(8);
  expect(fill(share, "a", 20)).toHaveLength(8);
});

test("an address that has less than its share is let in when another one has taken all", () => {
  const share = new FairShare(8);
  const all = fill(share, "a", 8);
  expect(fill(share, "b", 20)).toHaveLength(4);
  expect(share.enter("a")).toBeUndefined();
  for (const leave of all) leave();
  expect(fill(share, "a", 20)).toHaveLength(4);
});

test("many addresses get one each", () => {
  const share = new FairShare(4);
  for (let index = 0; index < 20; index++) expect(share.enter(`address ${index}`)).toBeDefined();
  expect(share.enter("address 0")).toBeUndefined();
  expect(share.enter("honest")).toBeDefined();
});

test("what ends twice counts once", () => {
  const share = new FairShare(1);
  const leave = share.enter("a")!;
  leave();
  leave();
  expect(share.enter("a")).toBeDefined();
  expect(share.enter("a")).toBeUndefined();
});

test("of many requests that come together some begin in each turn of the loop, none is refused", async () => {
  let begun = 0;
  const route = async () => {
    begun++;
    return textResponse(200, "");
  };
  const handler = new RequestHandler({ name: "port", route, acceptsHost: () => true }, new RecordingLogger());
  const { signal } = new AbortController();
  const head = {
    method: "GET",
    header: () => "x",
    shown: undefined,
    isSecure: false,
    upgrade: "",
    sessions: 0,
    signal,
  };
  const request = { head, target: "/", address: "a", chunks: async function* () {}, awaitsBody: () => {} };
  const all = Array.from({ length: 1_000 }, () => handler.respond(request));
  await Bun.sleep(0);
  expect(begun).toBeLessThan(200);
  expect((await Promise.all(all)).map((response) => "status" in response && response.status)).toEqual(
    Array(1_000).fill(200),
  );
});
