import { expect, test } from "bun:test";
import { jsonResponse } from "../../src/server/http-response.ts";
import { SharedResponses } from "../../src/server/shared-responses.ts";
import { FakeClock } from "../support/fake-clock.ts";

const STAYS = new AbortController().signal;

test("one answer serves all who ask at the same time, and later ones for as long as it is good", async () => {
  const clock = new FakeClock();
  const shared = new SharedResponses(clock);
  let made = 0;
  const make = async () => jsonResponse(String(++made));
  const answers = await Promise.all(Array.from({ length: 100 }, () => shared.get("q", 1_000, STAYS, make)));
  expect(new Set(answers).size).toBe(1);
  await clock.advance(999);
  expect((await shared.get("q", 1_000, STAYS, make)).body).toBe("1");
  await clock.advance(1);
  expect((await shared.get("q", 1_000, STAYS, make)).body).toBe("2");
  await clock.advance(2_000);
  expect(clock.pendingTimers).toBe(0);
});

test("an answer without an age is shared only while it is made, and a failure is not kept", async () => {
  const shared = new SharedResponses(new FakeClock());
  let made = 0;
  const make = async () => jsonResponse(String(++made));
  await shared.get("q", 0, STAYS, make);
  expect((await shared.get("q", 0, STAYS, make)).body).toBe("2");
  const failing = async () => {
    throw new Error("broken");
  };
  await expect(shared.get("r", 1_000, STAYS, failing)).rejects.toThrow("broken");
  expect((await shared.get("r", 1_000, STAYS, make)).status).toBe(200);
});

test("too many different questions at a time are answered with 503", async () => {
  const shared = new SharedResponses(new FakeClock());
  const { promise, resolve } = Promise.withResolvers<void>();
  const make = async () => {
    await promise;
    return jsonResponse("1");
  };
  const answers = Array.from({ length: 65 }, (_, index) => shared.get(`q${index}`, 0, STAYS, make));
  expect(await answers[64]).toMatchObject({ status: 503, headers: { "Retry-After": "1" } });
  resolve();
  expect((await answers[0])!.status).toBe(200);
});
