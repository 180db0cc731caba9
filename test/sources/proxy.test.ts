import { expect, test } from "bun:test";
import { proxyFor } from "../../src/sources/proxy.ts";

const ENV = {
  HTTP_PROXY: "http://p:3128",
  https_proxy: "secure:3129",
  NO_PROXY: "internal,.corp.example,*.lab,10.0.0.7,only:8080",
};

test.each([
  { url: "http://example.com/", want: "http://p:3128" },
  { url: "https://example.com/", want: "http://secure:3129" },
  { url: "http://internal/", want: undefined },
  { url: "http://a.internal/", want: undefined },
  { url: "http://notinternal/", want: "http://p:3128" },
  { url: "http://x.corp.example/", want: undefined },
  { url: "http://x.lab/", want: undefined },
  { url: "http://10.0.0.7/", want: undefined },
  { url: "http://only:8080/", want: undefined },
  { url: "http://only/", want: "http://p:3128" },
  { url: "http://localhost/", want: undefined },
  { url: "http://127.0.0.1:8000/", want: undefined },
])("$url goes through $want", ({ url, want }) => {
  expect(proxyFor(new URL(url), ENV)).toBe(want);
});

test("NO_PROXY=* is direct, no variable is direct", () => {
  expect(proxyFor(new URL("http://example.com/"), { ...ENV, NO_PROXY: "*" })).toBeUndefined();
  expect(proxyFor(new URL("http://example.com/"), {})).toBeUndefined();
});
