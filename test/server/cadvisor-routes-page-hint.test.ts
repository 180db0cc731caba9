import { expect, test } from "bun:test";
import { pageAddress, pageHint } from "../../src/server/cadvisor-routes.ts";
import type { RouteRequest } from "../../src/server/http-response.ts";

const BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8";

const ask = (path: string, accept: string | null, host = "box:10255", address = "127.0.0.1", method = "GET") =>
  pageHint(
    {
      method,
      path,
      header: (name: string) => (name === "Accept" ? accept : host),
    } as RouteRequest,
    { address, port: 4194, nodeName: "node<1>" },
  );

test.each([
  { place: { address: "127.0.0.1", port: 4194 }, host: "box:10255", link: "http://localhost:4194/" },
  { place: { address: "0.0.0.0", port: 4194 }, host: "box:10255", link: "https://box:4194/" },
  { place: { address: "::", port: 4194 }, host: "[fd00::1]:10255", link: "https://[fd00::1]:4194/" },
  { place: { address: "0.0.0.0", port: 4194 }, host: "box/<b>", link: undefined },
  { place: { address: "127.0.0.1", port: 0 }, host: "box:10255", link: undefined },
])("the page on $place.address:$place.port, seen by a client of $host: $link", ({ place, host, link }) => {
  expect(pageAddress(host, place)).toBe(link as string);
});

test("a browser at the root gets a link; the status stays 404", () => {
  const answer = ask("/", BROWSER);
  expect(answer?.status).toBe(404);
  expect(String(answer?.body)).toContain('<a href="http://localhost:4194/">');
  expect(String(answer?.body)).toContain("ssh -L 4194:localhost:4194 box");
  for (const host of ["localhost:10255", "127.0.0.1:10255", "[::1]:10255"]) {
    expect(String(ask("/", BROWSER, host)?.body)).toContain("ssh -L 4194:localhost:4194 node&lt;1&gt;<");
  }
  expect(String(ask("/", BROWSER, "box:10255", "0.0.0.0")?.body)).not.toContain("ssh");
});

test.each([
  ["another path", "/pods", BROWSER, "GET"],
  ["no Accept header", "/", null, "GET"],
  ["curl", "/", "*/*", "GET"],
  ["an API client", "/", "application/json", "GET"],
  ["another method", "/", BROWSER, "POST"],
])("%s gets the answer of the port", (_, path, accept, method) => {
  expect(ask(path, accept, "box:10255", "127.0.0.1", method)).toBeUndefined();
});
