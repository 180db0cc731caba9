import { isIP } from "node:net";
import { isLoopback } from "./host-header.ts";
import { escapeHtml, type HttpResponse, type RouteRequest } from "./http-response.ts";

/** Where the page is served. */
interface PagePort {
  address: string;
  /** 0 = off. */
  port: number;
  /** Name by which other machines may know this one. */
  nodeName: string;
}

/**
 * Address of the page as the client of another port would reach it.
 * @param host value of the Host header of that port
 * @returns undefined when the page is off or the header is malformed
 */
export function pageAddress(host: string | null, { address, port }: Omit<PagePort, "nodeName">): string | undefined {
  const name = hostName(host);
  if (port === 0 || name === undefined) return undefined;
  return isLoopback(address) ? `http://localhost:${port}/` : `https://${name}:${port}/`;
}

/** The response to a browser that opens the root of a port without a page; undefined for other clients and paths. */
export function pageHint({ method, path, header }: RouteRequest, page: PagePort): HttpResponse | undefined {
  if (path !== "/" || method !== "GET" || !/\btext\/html\b/.test(header("Accept") ?? "")) return undefined;
  const link = pageAddress(header("Host"), page);
  if (link === undefined) return undefined;
  const host = hostName(header("Host")) ?? "";
  const machine = host === "localhost" || isIP(host.replace(/[[\]]/g, "")) ? page.nodeName : host;
  const tunnel = isLoopback(page.address)
    ? `<p>From another machine: <code>ssh -L ${page.port}:localhost:${page.port} ${escapeHtml(machine)}</code></p>`
    : "";
  const headers = {
    "Content-Type": "text/html; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
  };
  return { status: 404, headers, body: toHtml(escapeHtml(link), tunnel) };
}

const hostName = (host: string | null): string | undefined =>
  /^(\[[\da-fA-F:.]+\]|[\w.-]+)(?::\d+)?$/.exec(host ?? "")?.[1];

const toHtml = (link: string, tunnel: string) => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>kubelet-ts</title>
<style>:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:40rem;padding:0 1rem}</style></head>
<body>
<h1>This port answers programs</h1>
<p>The page of this node: <a href="${link}">${link}</a></p>
${tunnel}
</body>
</html>
`;
