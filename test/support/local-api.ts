import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePorts, type TestNode } from "./test-node.ts";
import { until } from "./until.ts";

/** Starts a kubelet whose local API listens. @returns its port */
export async function startWithApi(node: TestNode, flags: readonly string[] = []): Promise<number> {
  const [port = 0] = freePorts(1);
  await node.start([`--local-api-port=${port}`, ...flags]);
  await until("the local API writes its kubeconfig", () => existsSync(join(node.rootDir, "admin.conf")));
  return port;
}
