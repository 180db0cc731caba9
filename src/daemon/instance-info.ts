import { join } from "node:path";
import { MAX_SOCKET_PATH_BYTES } from "../base/host/http-fetch.ts";
import { readDefaultAddress, readNodeName } from "../base/host/node-info.ts";
import { COMMAND_SOCKET, type InstanceInfo } from "../base/host/root-directory.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { dockerEndpoint } from "../docker/docker-host.ts";
import { isLoopback, toLocalHost } from "../server/request-handler.ts";
import type { Servers } from "../server/servers.ts";
import { buildInfo } from "./version.ts";

/** Socket that answers the commands of this root directory; undefined where the path is too long for a socket. */
export function toCommandSocketPath(rootDir: string): string | undefined {
  const path = join(rootDir, COMMAND_SOCKET);
  return Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES ? undefined : path;
}

/**
 * Describes this process for `kubelet-ts get` and the other client commands.
 * @param environment DOCKER_HOST is read
 * @param servers absent while there are none
 */
export function instanceInfo(
  options: KubeletOptions,
  environment: Readonly<Record<string, string | undefined>>,
  servers: Pick<Servers, "ports" | "socketPath"> | undefined,
): InstanceInfo {
  const pagePort = servers?.ports().cadvisor;
  const boundPort = servers?.ports().readOnly;
  const willHaveSocket = options.enableServer && toCommandSocketPath(options.rootDir) !== undefined;
  const isStarting = willHaveSocket && servers?.socketPath() === undefined;
  return {
    pid: process.pid,
    version: buildInfo.version,
    nodeName: readNodeName(options.hostnameOverride),
    rootDir: options.rootDir,
    manifestPaths: options.podManifestPaths,
    mode: options.runOnce ? "run-once" : "supervise",
    ...(isStarting && { isStarting }),
    readOnlyUrl: boundPort === undefined ? undefined : `http://${toLocalHost(options.readOnlyAddress, boundPort)}`,
    readOnlyPort: options.readOnlyPort,
    pageUrl: pagePort === undefined ? undefined : toPageUrl(options.cadvisorBindAddress, options.nodeIp, pagePort),
    socketPath: servers?.socketPath(),
    dockerEndpoint: dockerEndpoint({ endpoint: options.dockerEndpoint, environment }),
  };
}

/** Address of the page: on a network it needs TLS, and is reached from other machines by the node's address. */
export function toPageUrl(address: string, nodeIp: string, port: number): string {
  if (isLoopback(address)) return `http://${toLocalHost(address, port)}`;
  const host = address === "0.0.0.0" || address === "::" ? nodeIp || readDefaultAddress() : address;
  return `https://${toLocalHost(host, port)}`;
}
