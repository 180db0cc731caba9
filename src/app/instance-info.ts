import { join } from "node:path";
import { endpointText, MAX_SOCKET_PATH_BYTES, parseEndpoint } from "../docker/endpoint.ts";
import { readNodeName } from "../host/node-info.ts";
import type { InstanceIntroduction } from "../host/root-lock.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { RunningServers } from "../server/servers.ts";
import { buildInfo } from "./version.ts";

type IntroducedOptions = Pick<
  KubeletOptions,
  | "hostnameOverride"
  | "rootDir"
  | "runOnce"
  | "readOnlyAddress"
  | "readOnlyPort"
  | "cadvisorBindAddress"
  | "dockerEndpoint"
>;

/** Where commands ask the kubelet of this root directory; undefined where the path would be too long for a socket. */
export function toCommandSocketPath(rootDir: string): string | undefined {
  const path = join(rootDir, "kubelet-ts.sock");
  return Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES ? undefined : path;
}

/**
 * Who we are, for `kubelet-ts get` and its like.
 * @param environment DOCKER_HOST is read
 * @param servers those that answer now; absent: none
 */
export function instanceInfo(
  options: IntroducedOptions,
  environment: Readonly<Record<string, string | undefined>>,
  servers: Pick<RunningServers, "ports" | "socketPath"> | undefined,
): InstanceIntroduction {
  const pagePort = servers?.ports().cadvisor;
  const boundPort = servers?.ports().readOnly;
  return {
    pid: process.pid,
    version: buildInfo.version,
    nodeName: readNodeName(options.hostnameOverride),
    rootDir: options.rootDir,
    mode: options.runOnce ? "run-once" : "supervise",
    readOnlyUrl: boundPort === undefined ? undefined : toLocalUrl(options.readOnlyAddress, boundPort),
    readOnlyPort: options.readOnlyPort,
    pageUrl: pagePort === undefined ? undefined : toLocalUrl(options.cadvisorBindAddress, pagePort),
    socketPath: servers?.socketPath(),
    dockerEndpoint: endpointText(parseEndpoint(options.dockerEndpoint || undefined, environment)),
  };
}

/** A server bound to all addresses is asked on the loopback. */
export function toLocalUrl(address: string, port: number): string {
  const host = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
