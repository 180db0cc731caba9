import { expect, test } from "bun:test";
import { followLocation, formatUrl, type HttpLocation, toRequestTarget } from "../../../src/kubelet/prober/http-get.ts";

test.each([
  { when: "a plain path", path: "/healthz", want: "/healthz" },
  { when: "nothing", path: "", want: "/" },
  { when: "a path without its slash", path: "healthz", want: "/healthz" },
  { when: "a query", path: "/x?a=1&b=2", want: "/x?a=1&b=2" },
  { when: "a query alone", path: "?a=1", want: "/?a=1" },
  { when: "a fragment", path: "/x?a=1#part", want: "/x?a=1" },
  { when: "escapes", path: "/a%20b", want: "/a%20b" },
  { when: "a broken escape", path: "/100%?x", want: "/100%25%3Fx" },
  { when: "blanks and umlauts", path: "/grün weiß", want: "/gr%C3%BCn%20wei%C3%9F" },
  { when: "dots that a browser would resolve", path: "/a/../b/./c", want: "/a/../b/./c" },
  { when: "line breaks", path: "/x HTTP/1.1\r\nX-Evil: 1", want: "/x%20HTTP/1.1%0D%0AX-Evil:%201" },
  { when: "an authority", path: "http://elsewhere/x", want: "/x" },
  { when: "an authority without scheme", path: "//elsewhere/x", want: "/x" },
  { when: "three slashes", path: "///x", want: "///x" },
  { when: "a blank in the query", path: "/x?q=a b", want: "/x?q=a%20b" },
])("request target of $when", ({ path, want }) => {
  expect(toRequestTarget(path)).toBe(want);
});

const HERE: HttpLocation = { scheme: "http", host: "10.0.0.1", port: 80, target: "/a/b" };

test("a URL always names its port", () => {
  expect(formatUrl(HERE)).toBe("http://10.0.0.1:80/a/b");
  expect(formatUrl({ scheme: "https", host: "fd00::1", port: 8443, target: "/" })).toBe("https://[fd00::1]:8443/");
});

test.each([
  { header: "/login", want: "http://10.0.0.1:80/login" },
  { header: "c?d=1", want: "http://10.0.0.1:80/a/c?d=1" },
  { header: "https://10.0.0.1/x", want: "https://10.0.0.1:443/x" },
  { header: "//10.0.0.2:8080/x", want: "http://10.0.0.2:8080/x" },
  { header: "http://[fd00::1]:81/", want: "http://[fd00::1]:81/" },
])("Location $header leads to $want", ({ header, want }) => {
  expect(formatUrl(followLocation(HERE, header)!)).toBe(want);
});

test.each(["ftp://10.0.0.1/", "http://", "http://a b/"])("Location %s leads nowhere", (header) => {
  expect(followLocation(HERE, header)).toBeUndefined();
});
