import { join } from "node:path";
import type { Container, HostAlias, Pod } from "../base/api/pod.ts";
import type { Logger } from "../base/model/logger.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { findContainer } from "../base/model/pod.ts";
import { type ContainerId, type ContainerSnapshot, isTerminated } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { computeDnsConfig, computePodHostname, type DnsConfig, formatResolvConf } from "../plan/pod-dns.ts";
import { seccompProfilePath } from "../plan/security-profiles.ts";
import { ipsOf } from "../plan/service-endpoints.ts";
import { toTerminationMessage } from "../plan/status/termination-message.ts";
import { PodStepError } from "../plan/waiting-reasons.ts";
import type { HostFiles, HostsFileRequest } from "./volumes/host-files.ts";
import { PodDirectories } from "./volumes/pod-directories.ts";
import type { VolumeManager } from "./volumes/volume-manager.ts";

const MAX_RESOLV_CONF_BYTES = 1024 * 1024;

interface PodFilesDeps {
  logger: Logger;
  options: KubeletOptions;
  node: NodeInfo;
  files: HostFiles;
  /** Names of Services for hosts files; absent: they have none. */
  serviceHosts?: ServiceNames | undefined;
  /** The last bytes of a container's log, for its termination message. */
  readLogTail: (id: ContainerId, signal: AbortSignal) => Promise<string>;
}

/** Names of Services, as `ServiceHosts` of src/controllers has them. */
interface ServiceNames {
  aliasesFor(pod: Pod): readonly HostAlias[];
  /** Resolves when their addresses may be used. */
  opened(): Promise<void>;
  /** Address of this node's DNS server for Services. */
  readonly dnsAddress: string | undefined;
}

/** Files of a pod that are not volumes: resolv.conf, hosts, termination logs, and what a container's settings come from. */
export class PodFiles {
  readonly #deps: PodFilesDeps;
  /** The read of the host's resolv.conf that is under way: pods that start at the same time share it. */
  #hostResolvConf: Promise<string | undefined> | undefined;

  constructor(deps: PodFilesDeps) {
    this.#deps = deps;
  }

  /** The pod's resolv.conf, from its spec and the host's own file. */
  async computeDns(pod: Pod): Promise<ReturnType<typeof computeDnsConfig>> {
    const { clusterDns, clusterDomain, resolvConf } = this.#deps.options;
    const hostResolvConf = resolvConf ? ((await this.#readHostResolvConf(resolvConf)) ?? "") : undefined;
    const { serviceHosts, node } = this.#deps;
    const ownDns = serviceHosts?.dnsAddress;
    return computeDnsConfig(pod, { clusterDns, ownDns, clusterDomain, hostResolvConf, nodeIp: node.ip });
  }

  #readHostResolvConf(path: string): Promise<string | undefined> {
    this.#hostResolvConf ??= this.#deps.files.readTextIfExists(path, MAX_RESOLV_CONF_BYTES).finally(() => {
      this.#hostResolvConf = undefined;
    });
    return this.#hostResolvConf;
  }

  /** Containers see the engine's file of their sandbox. Source: dockershim's rewriteResolvFile. */
  async writeResolvConf(pod: Pod, path: string, dns: DnsConfig): Promise<void> {
    if (!path) return;
    try {
      await this.#deps.files.overwriteFile(path, formatResolvConf(dns));
    } catch (error) {
      const who = `${pod.metadata.namespace}/${pod.metadata.name}`;
      const why = messageOf(error);
      this.#deps.logger.warn(`Pod "${who}" keeps the engine's DNS settings: cannot write ${path}: ${why}`);
    }
  }

  /**
   * @returns its path; undefined when the engine's own file is used
   * @throws PodStepError when it cannot be written
   */
  async writeHostsFile(pod: Pod, podIps: readonly string[]): Promise<string | undefined> {
    await this.#deps.serviceHosts?.opened();
    const [file] = this.#hostsFileOf(pod, podIps);
    if (!file) return undefined;
    await naming(`the hosts file of pod "${pod.metadata.namespace}/${pod.metadata.name}"`, () =>
      this.#deps.files.writeHostsFile(...file),
    );
    return file[0];
  }

  /** Brings the hosts files of running pods up to date; those that cannot be written stay as they are, with a warning. */
  async rewriteHostsFiles(pods: readonly Pod[]): Promise<void> {
    const stale = pods.flatMap((pod) => this.#hostsFileOf(pod, ipsOf(pod)));
    const problems = await this.#deps.files.writeHostsFiles(stale).catch((error) => [messageOf(error)]);
    for (const problem of problems) this.#deps.logger.warn(problem);
  }

  /** The path of a pod's hosts file, and what is written to it; none when the engine's own file is used. */
  #hostsFileOf(pod: Pod, podIps: readonly string[]): [path: string, HostsFileRequest][] {
    const { options, serviceHosts } = this.#deps;
    const names = computePodHostname(pod, options.clusterDomain);
    const { hostNetwork, hostAliases } = pod.spec;
    if ("problem" in names || (!hostNetwork && podIps.length === 0)) return [];
    const path = new PodDirectories(options.rootDir, pod.metadata.uid ?? "").etcHosts;
    const services = serviceHosts?.aliasesFor(pod) ?? [];
    return [[path, { spec: { hostNetwork, hostAliases }, podIps, names, services }]];
  }

  /**
   * Creates the empty termination log of one run of a container.
   * @returns its path; undefined when the container has none
   * @throws PodStepError when it cannot be made
   */
  async makeTerminationLog(pod: Pod, container: Container, restartCount: number): Promise<string | undefined> {
    if (!container.terminationMessagePath) return undefined;
    const path = this.#terminationLogPath(pod.metadata.uid ?? "", container.name, restartCount);
    await naming(`"${path}"`, () => this.#deps.files.makeTerminationLog(path));
    return path;
  }

  /** Termination message of a dead container, "" when it has none. */
  async readTerminationMessage(
    container: ContainerSnapshot,
    pod: Pod | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const spec = pod && findContainer(pod.spec, container.name);
    const policy = container.labels["annotation.io.kubernetes.container.terminationMessagePolicy"];
    const uid = container.labels["io.kubernetes.pod.uid"] ?? "";
    const path = this.#terminationLogPath(uid, container.name, container.restartCount);
    return toTerminationMessage({
      policy: (spec?.terminationMessagePolicy ?? policy) === "FallbackToLogsOnError" ? "FallbackToLogsOnError" : "File",
      exitCode: container.exitCode,
      file: await this.#deps.files.readTerminationLog(path),
      readLog: () => this.#deps.readLogTail(container.id, signal),
      containerCount: pod ? pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0) : 1,
    });
  }

  /**
   * Called when the container is removed; its message was read when its end was observed. That of one which was never started
   * is by then that of the next one, of the same restart count.
   */
  async removeTerminationLog(container: ContainerSnapshot): Promise<void> {
    if (container.state === "created" && !isTerminated(container)) return;
    const uid = container.labels["io.kubernetes.pod.uid"] ?? "";
    await this.#deps.files.removeFile(this.#terminationLogPath(uid, container.name, container.restartCount));
  }

  /** Reads what the environment and the security options of a container come from, for mappings that are synchronous. */
  async readContainerInputs(
    pod: Pod,
    container: Container,
    volumes: Pick<VolumeManager, "readEnvFile">,
  ): Promise<{ readEnvFile(volumeName: string, path: string): string | undefined; readProfile(path: string): string }> {
    const envFiles = new Map<string, () => string | undefined>();
    for (const { valueFrom } of container.env ?? []) {
      if (!valueFrom?.fileKeyRef) continue;
      const { volumeName, path } = valueFrom.fileKeyRef;
      envFiles.set(keyOf(volumeName, path), await outcomeOf(volumes.readEnvFile(pod, volumeName, path)));
    }
    const profile = seccompProfilePath(pod, container, this.seccompRoot);
    const takeProfile =
      profile === undefined ? undefined : await outcomeOf(this.#deps.files.readText(profile, MAX_PROFILE_BYTES));
    return {
      readEnvFile: (volumeName, path) => envFiles.get(keyOf(volumeName, path))?.(),
      readProfile: (path) => {
        if (path !== profile || !takeProfile) throw new Error(`"${path}" was not read`);
        return takeProfile();
      },
    };
  }

  get seccompRoot(): string {
    return join(this.#deps.options.rootDir, "seccomp");
  }

  #terminationLogPath(uid: string, container: string, restartCount: number): string {
    return join(this.#deps.options.rootDir, "pods", uid, "containers", container, String(restartCount));
  }
}

/** Adds the name of the file to an error: ENOSPC does not have it. */
async function naming<T>(what: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (cause) {
    throw new PodStepError("CreateContainerConfigError", `Cannot write ${what}: ${messageOf(cause)}`, { cause });
  }
}

/** Limit of a seccomp profile. */
const MAX_PROFILE_BYTES = 8 * 1024 * 1024;

const keyOf = (volumeName: string, path: string) => `${volumeName}\0${path}`;

async function outcomeOf<T>(promise: Promise<T>): Promise<() => T> {
  try {
    const value = await promise;
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
