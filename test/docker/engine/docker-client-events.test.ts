import { expect, test } from "bun:test";
import { parseEvent } from "../../../src/docker/engine/docker-client.ts";
import { DockerProtocolError } from "../../../src/docker/engine/docker-error.ts";

/** As Docker 20.10 sent it. */
const OF_1_41 =
  '{"status":"die","id":"8c1047","from":"busybox:test","Type":"container","Action":"die","Actor":{"ID":"8c1047","Attributes":{"exitCode":"137","image":"busybox:test","name":"k"}},"scope":"local","time":1795240707,"timeNano":1795240707356780819}';
/** The same without what API 1.52 dropped. */
const OF_1_52 =
  '{"Type":"container","Action":"die","Actor":{"ID":"8c1047","Attributes":{"exitCode":"137","image":"busybox:test","name":"k"}},"scope":"local","time":1795240707,"timeNano":1795240707356780819}';

test.each([OF_1_41, OF_1_52])("both shapes of an event mean the same: %s", (line) => {
  expect(parseEvent(line)).toEqual({
    action: "die",
    id: "8c1047",
    attributes: { exitCode: "137", image: "busybox:test", name: "k" },
    // Exact to the nanosecond, which a JavaScript number could not hold.
    cursor: "1795240707.356780819",
  });
});

test.each([
  { Action: "health_status: healthy", action: "health_status" },
  { Action: "exec_start: sh -c echo a: b", action: "exec_start" },
  { Action: "start", action: "start" },
])("$Action", ({ Action, action }) => {
  expect(parseEvent(JSON.stringify({ Type: "container", Action, time: 5 }))).toMatchObject({
    action,
    cursor: "5.000000000",
  });
});

test("what is not an event is a protocol error", () => {
  expect(() => parseEvent("<html>")).toThrow(DockerProtocolError);
  expect(() => parseEvent('{"Action":5}')).toThrow(DockerProtocolError);
});
