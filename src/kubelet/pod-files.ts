import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Container, Pod } from "../api/pod.ts";
import { readTextIfExists } from "../files/bounded-read.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import type { NodeInfo } from "../model/node.ts";
import { PodStepError } from "../model/pod-services.ts";
import { computeDnsConfig, type DnsConfig, formatResolvConf } from "../plan/dns-config.ts";
import type { HostsFileNames } from "../plan/hosts-file.ts";
import { computePodHostname } from "../plan/pod-hostname.ts";

const MAX_RESOLV_CONF_BYTES = 1024 * 1024;

export interface PodFilesDeps {
  logger: Logger;
  options: KubeletOptions;
  node: () => NodeInfo;
  /** Writes the pod's /etc/hosts and returns its path. */
  writeHostsFile: (pod: Pod, podIps: readonly string[], names: HostsFileNames) => string;
}

/** Files of a pod that are not volumes: resolv.conf, hosts, termination logs. */
export class PodFiles {
  readonly #deps: PodFilesDeps;

  constructor(deps: PodFilesDeps) {
    this.#deps = deps;
  }

  /** The pod's resolv.conf, from its spec and the host's own file. */
  computeDns(pod: Pod): ReturnType<typeof computeDnsConfig> {
    const { clusterDns, clusterDomain, resolvConf } = this.#deps.options;
    const hostResolvConf = resolvConf ? (readTextIfExists(resolvConf, MAX_RESOLV_CONF_BYTES) ?? "") : undefined;
    return computeDnsConfig(pod, { clusterDns, clusterDomain, hostResolvConf, nodeIp: this.#deps.node().ip });
  }

  /** The engine's file of the sandbox is what its containers get to see. Source: dockershim's rewriteResolvFile. */
  writeResolvConf(pod: Pod, path: string, dns: DnsConfig): void {
    if (!path) return;
    try {
      writeFileSync(path, formatResolvConf(dns));
    } catch (error) {
      const who = `${pod.metadata.namespace}/${pod.metadata.name}`;
      const why = (error as Error).message;
      this.#deps.logger.warn(`Pod "${who}" keeps the engine's DNS settings: cannot write ${path}: ${why}`);
    }
  }

  /**
   * @returns its path; undefined when the engine's own file is to stay
   * @throws PodStepError when it cannot be written
   */
  writeHostsFile(pod: Pod, podIps: readonly string[]): string | undefined {
    const names = computePodHostname(pod, this.#deps.options.clusterDomain);
    if ("problem" in names || (!pod.spec.hostNetwork && podIps.length === 0)) return undefined;
    return naming(`the hosts file of pod "${pod.metadata.namespace}/${pod.metadata.name}"`, () =>
      this.#deps.writeHostsFile(pod, podIps, names),
    );
  }

  /** Brings the hosts file of a running pod up to date; one that cannot be written stays as it is, with a warning. */
  rewriteHostsFile(pod: Pod, podIps: readonly string[]): void {
    try {
      this.writeHostsFile(pod, podIps);
    } catch (error) {
      this.#deps.logger.warn((error as Error).message);
    }
  }

  /**
   * Creates the empty termination log of one run of a container.
   * @returns its path; undefined when the container has none
   * @throws PodStepError when it cannot be made
   */
  makeTerminationLog(pod: Pod, container: Container, restartCount: number): string | undefined {
    if (!container.terminationMessagePath) return undefined;
    const path = this.#terminationLogPath(pod.metadata.uid ?? "", container.name, restartCount);
    return naming(`"${path}"`, () => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
      const umask = process.umask(0);
      try {
        // Any user of the container may write it.
        writeFileSync(path, "", { mode: 0o666 });
      } finally {
        process.umask(umask);
      }
      return path;
    });
  }

  /** The last 4 KiB of that file; undefined when it is not there. */
  readTerminationLog(uid: string, container: string, restartCount: number): string | undefined {
    return readEndIfThere(this.#terminationLogPath(uid, container, restartCount));
  }

  /** To be called when the container is removed: its message was read when it was first seen dead. */
  removeTerminationLog(uid: string, container: string, restartCount: number): void {
    rmSync(this.#terminationLogPath(uid, container, restartCount), { force: true });
  }

  #terminationLogPath(uid: string, container: string, restartCount: number): string {
    return join(this.#deps.options.rootDir, "pods", uid, "containers", container, String(restartCount));
  }
}

/** Names the file: the system's error for a full disk does not. */
function naming<T>(what: string, write: () => T): T {
  try {
    return write();
  } catch (cause) {
    const why = (cause as Error).message;
    throw new PodStepError("CreateContainerConfigError", `Cannot write ${what}: ${why}`, { cause });
  }
}

/** The last 4 KiB, which is all that counts: a container may write any amount there. */
function readEndIfThere(path: string): string | undefined {
  const limitBytes = 4096;
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return undefined;
    const bytes = Buffer.alloc(Math.min(stats.size, limitBytes));
    const length = readSync(file, bytes, 0, bytes.length, Math.max(0, stats.size - limitBytes));
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}
