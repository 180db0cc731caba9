import { expect, test } from "bun:test";
import { NodeEvents } from "../../../src/apiserver/node/node-events.ts";
import type { CoreEvent } from "../../../src/base/api/event.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { anApiServer } from "../support.ts";

const anEvent = (name: string, resourceVersion: string, component = "kubelet") => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: { name, namespace: "default", uid: name, resourceVersion },
  source: { component },
});

/** A node that recorded these events. */
function aNode(recorded = [anEvent("started", "1"), anEvent("pulled", "2")]) {
  const { store } = anApiServer();
  const clock = new FakeClock();
  const events = new NodeEvents(store, clock);
  const view = { events: () => ({ revision: recorded.length, items: recorded as unknown as CoreEvent[] }) };
  events.sync(view);
  const names = () => store.list("events").map(({ metadata }) => metadata.name);
  return { store, clock, events, names, recorded };
}

test("a recorded event that a client deleted is shown again at its next occurrence", () => {
  const { store, events, names, recorded } = aNode();
  events.delete(store.get("events", "default", "started")!);
  events.sync();
  expect(names()).toEqual(["pulled"]);
  recorded[0] = anEvent("started", "3");
  events.sync();
  expect(names()).toEqual(["pulled", "started"]);
});

test("events of clients are there for an hour after their last write, and never instead of recorded ones", async () => {
  const { store, clock, events, names } = aNode();
  store.put("events", anEvent("mine", "", "operator"));
  events.sync();
  await clock.advance(3_000_000);
  store.put("events", anEvent("mine", "", "operator"));
  store.put("events", anEvent("other", "", "operator"));
  events.sync();
  await clock.advance(3_000_000);
  events.sync();
  expect(names()).toEqual(["mine", "other", "pulled", "started"]);
  await clock.advance(700_000);
  events.sync();
  expect(names()).toEqual(["pulled", "started"]);
});

test("of too many events of clients the oldest go", () => {
  const { store, events, names } = aNode();
  for (let index = 0; index < 1_200; index++) store.put("events", anEvent(`e-${1_000 + index}`, "", "operator"));
  events.sync();
  expect([names().length, names()[0], names().slice(-2)]).toEqual([1_002, "e-1200", ["pulled", "started"]]);
});
