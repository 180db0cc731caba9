import { expect, test } from "bun:test";
import { toUnreadSources } from "../../../src/daemon/assembly/page-source.ts";
import type { SourceStatus } from "../../../src/sources/source-set.ts";
import { BAD_TEXT } from "../../../src/sources/url-source.ts";

const source = (more: Partial<SourceStatus>): SourceStatus => ({
  kind: "file",
  name: "/pods",
  state: "ok",
  pods: 0,
  reads: 1,
  failures: 0,
  ...more,
});

test("sources that cannot be read are shown with the reason", () => {
  expect(
    toUnreadSources([
      source({}),
      source({ state: "waiting" }),
      source({ state: "failing", message: '"/pods" cannot be read: EACCES' }),
      source({ kind: "http", name: "http://h/pods", state: "restored", message: "answered 404", pods: 2 }),
      source({ kind: "http", name: "http://h/bad", state: "failing", message: BAD_TEXT }),
      source({ kind: "api", state: "failing" }),
    ]),
  ).toEqual([
    { source: "/pods", line: 0, column: 0, message: '"/pods" cannot be read: EACCES', isUnread: true },
    { source: "http://h/pods", line: 0, column: 0, message: "answered 404; its pods keep running", isUnread: true },
  ]);
});
