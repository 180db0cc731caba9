import { existsSync } from "node:fs";
import { join } from "node:path";
import type { KubeletProcess } from "./kubelet-process.ts";
import type { TestNode } from "./test-node.ts";
import { freePorts } from "./test-servers.ts";
import { until } from "./until.ts";

/** Starts a kubelet whose local API listens. @param port default: a free one */
export async function startWithApi(
  node: TestNode,
  flags: readonly string[] = [],
  port = freePorts(1)[0] ?? 0,
): Promise<{ child: KubeletProcess; port: number }> {
  const child = await node.start([`--local-api-port=${port}`, ...flags]);
  await until("the local API writes its kubeconfig", () => existsSync(join(node.rootDir, "admin.conf")));
  await until("the local API answers", async () => (await askApi(node, "GET", "/version")).status === 200);
  return { child, port };
}

/** One request to the local API over its Unix socket. */
export async function askApi(node: TestNode, method: string, path: string, body?: unknown, type = "application/json") {
  const response = await fetch(`http://node1${path}`, {
    unix: join(node.rootDir, "api.sock"),
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "Content-Type": type } }),
  } as RequestInit);
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every kind.
  return { status: response.status, json: (await response.json().catch(() => undefined)) as any };
}
