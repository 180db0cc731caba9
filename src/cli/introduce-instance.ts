import { endpointText, parseEndpoint } from "../docker/endpoint.ts";
import { readNodeName } from "../host/node-info.ts";
import type { InstanceIntroduction } from "../host/single-instance.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import { buildInfo } from "./version.ts";

type IntroducedOptions = Pick<
  KubeletOptions,
  "hostnameOverride" | "rootDir" | "runOnce" | "readOnlyAddress" | "readOnlyPort" | "dockerEndpoint"
>;

/**
 * Who we are, for `kubelet-ts get` and its like.
 * @param environment DOCKER_HOST is read
 * @param boundPort of the read-only server; undefined while it does not answer
 */
export function introduceInstance(
  options: IntroducedOptions,
  environment: Readonly<Record<string, string | undefined>>,
  boundPort: number | undefined,
): InstanceIntroduction {
  return {
    pid: process.pid,
    version: buildInfo.version,
    nodeName: readNodeName(options.hostnameOverride),
    rootDir: options.rootDir,
    mode: options.runOnce ? "run-once" : "supervise",
    readOnlyUrl: boundPort === undefined ? undefined : toLocalUrl(options.readOnlyAddress, boundPort),
    readOnlyPort: options.readOnlyPort,
    dockerEndpoint: endpointText(parseEndpoint(options.dockerEndpoint || undefined, environment)),
  };
}

/** A server bound to all addresses is asked on the loopback. */
export function toLocalUrl(address: string, port: number): string {
  const host = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
