import { expect, test } from "bun:test";
import { maskUrl } from "../../../src/base/text/url.ts";

test.each([
  ["http://host/path", "http://host/path"],
  ["http://user:pass@host/path", "http://***@host/path"],
  ["https://token@host", "https://***@host"],
  ["http://host/path?token=x&y=z", "http://host/path?***"],
  ["http://host/path?a=b#c", "http://host/path?***#***"],
  ["unix:/run/s:/pods?key=1", "unix:/run/s:/pods?***"],
  ["http://host/a@b", "http://host/a@b"],
  ["http://user:a@b@host/path", "http://***@host/path"],
  ["http://user:a/b@host/path", "http://***@host/path"],
  ["http://user:a?b@host/path", "http://***@host/path"],
  ["http://user:secret@/path", "http://***@/path"],
  ["http:///user:secret@host/path", "http:///***@host/path"],
  ["http:\\\\user:secret@host/path", "http:\\\\***@host/path"],
  ["http:user:secret@host/path", "http:***@host/path"],
  ["https://host/path#token", "https://host/path#***"],
  ["user:secret@host", "user:***@host"],
])("%p is shown as %p", (url, want) => {
  expect(maskUrl(url)).toBe(want);
});
