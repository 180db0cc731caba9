import { afterAll, expect, test } from "bun:test";
import { proxyRoutes } from "../../../src/apiserver/node/pod-routes.ts";
import { anApiServer } from "../support.ts";

const PAGE = `<p><a href="/a">\u00e4</a><img src=/b.png><a href="c">c</a><a href="//d/e">d</a><form action='/f'></form></p>`;
const LONG = `<a href="/x">${"y".repeat(2_000_000)}</a>`;
const ENDLESS_TAG = `<p>begin</p><a href="/${"y".repeat(2_000_000)}`;
/** The request for the page whose end never comes has ended. */
const ended = Promise.withResolvers<void>();

async function* live(): AsyncGenerator<string> {
  yield '<a href="/first">1</a>';
  await ended.promise;
}

const pod = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url, signal }) => {
    const { pathname } = new URL(url);
    const headers = { "Content-Type": pathname === "/text" ? "text/plain" : "text/html; charset=utf-8" };
    if (pathname === "/moved") return new Response("", { status: 302, headers: { Location: "/there" } });
    if (pathname === "/live") {
      signal.addEventListener("abort", () => ended.resolve());
      return new Response(live(), { headers });
    }
    return new Response({ "/long": LONG, "/endless": ENDLESS_TAG }[pathname] ?? PAGE, { headers });
  },
});
afterAll(() => pod.stop(true));

const PROXY = `/api/v1/namespaces/default/pods/web:${pod.port}/proxy`;

async function respond(path: string) {
  const api = { find: async () => ({ spec: { containers: [] }, status: { podIP: "127.0.0.1" } }) };
  const deps = { api, random: () => 0 } as unknown as Parameters<typeof proxyRoutes>[0];
  const response = await anApiServer({ extras: proxyRoutes(deps) }).send({ path: `${PROXY}${path}` });
  if (!("chunks" in response)) throw new Error("not streamed");
  return response;
}

/** The response of the pod behind the proxy. */
async function ask(path: string): Promise<[status: number, location: string | undefined, text: string]> {
  const { status, headers, chunks } = await respond(path);
  const text = Buffer.concat(await Array.fromAsync(chunks, (chunk) => Buffer.from(chunk))).toString();
  return [status, headers.location, text];
}

test("links to the root of a pod lead below the path of the proxy, in pages of any length and redirects", async () => {
  const changed = PAGE.replace('"/a"', `"${PROXY}/a"`)
    .replace("/b.png", `"${PROXY}/b.png"`)
    .replace("'/f'", `"${PROXY}/f"`);
  expect(await ask("/")).toEqual([200, undefined, changed]);
  expect(await ask("/moved")).toEqual([302, `${PROXY}/there`, ""]);
  expect((await ask("/long"))[2] === LONG.replace("/x", `${PROXY}/x`)).toBe(true);
});

test("other texts are passed on as they are", async () => {
  expect(await ask("/text")).toEqual([200, undefined, PAGE]);
});

test("a page is passed on as it comes, and a client that leaves ends the request to the pod", async () => {
  const { chunks } = await respond("/live");
  for await (const chunk of chunks) {
    expect(Buffer.from(chunk).toString()).toBe(`<a href="${PROXY}/first">1</a>`);
    break;
  }
  await ended.promise;
});

test("a tag without an end is not held without limit", async () => {
  expect(ask("/endless")).rejects.toThrow("a tag of the page is longer than 1 MiB");
});
