import { afterAll, expect, test } from "bun:test";
import { proxyRoutes } from "../../../src/apiserver/node/proxy-routes.ts";
import { anApiServer } from "../support.ts";

const PAGE = `<p><a href="/a">\u00e4</a><img src=/b.png><a href="c">c</a><a href="//d/e">d</a><form action='/f'></form></p>`;
const LONG = `<a href="/x">${"y".repeat(2_000_000)}</a>`;
const pod = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url }) => {
    const { pathname } = new URL(url);
    const headers = { "Content-Type": pathname === "/text" ? "text/plain" : "text/html; charset=utf-8" };
    if (pathname === "/moved") return new Response("", { status: 302, headers: { Location: "/there" } });
    return new Response(pathname === "/long" ? LONG : PAGE, { headers });
  },
});
afterAll(() => pod.stop(true));

const PROXY = `/api/v1/namespaces/default/pods/web:${pod.port}/proxy`;

/** The response of the pod behind the proxy. */
async function ask(path: string): Promise<[status: number, location: string | undefined, text: string]> {
  const api = { find: async () => ({ spec: { containers: [] }, status: { podIP: "127.0.0.1" } }) };
  const deps = { api, random: () => 0 } as unknown as Parameters<typeof proxyRoutes>[0];
  const response = await anApiServer({ extras: proxyRoutes(deps) }).send({ path: `${PROXY}${path}` });
  if (!("chunks" in response)) throw new Error("not streamed");
  const text = Buffer.concat(await Array.fromAsync(response.chunks, (chunk) => Buffer.from(chunk))).toString();
  return [response.status, response.headers.location, text];
}

test("links to the root of a pod lead below the path of the proxy, in pages and redirects", async () => {
  const changed = PAGE.replace('"/a"', `"${PROXY}/a"`)
    .replace("/b.png", `"${PROXY}/b.png"`)
    .replace("'/f'", `"${PROXY}/f"`);
  expect(await ask("/")).toEqual([200, undefined, changed]);
  expect(await ask("/moved")).toEqual([302, `${PROXY}/there`, ""]);
});

test("other texts, and a page that is too long, are passed on as they are", async () => {
  expect(await ask("/text")).toEqual([200, undefined, PAGE]);
  expect((await ask("/long"))[2] === LONG).toBe(true);
});
