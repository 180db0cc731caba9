import { expect, test } from "bun:test";
import { EngineCheck } from "../../../src/daemon/assembly/engine-check.ts";

test("the last answer of the engine is reported, and one request at a time is under way", async () => {
  const pings: PromiseWithResolvers<void>[] = [];
  const check = new EngineCheck(() => {
    const ping = Promise.withResolvers<void>();
    pings.push(ping);
    return ping.promise;
  });
  expect([check.problem(), check.problem(), pings.length]).toEqual(["", "", 1]);
  pings[0]?.reject(new Error("no answer within 5 s"));
  await Bun.sleep(0);
  expect([check.problem(), pings.length]).toEqual(["no answer within 5 s", 2]);
  pings[1]?.resolve();
  await Bun.sleep(0);
  expect(check.problem()).toBe("");
});
