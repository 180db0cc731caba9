import type { HostAlias, Pod } from "../base/api/pod.ts";
import type { Service } from "../base/api/service.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { ExternalNames } from "./external-names.ts";
import { computeEndpoints, computeServiceNames, findExternalNames, seesServices } from "./service-names.ts";

/** Writes the hosts file of a running pod again, with the lines of {@link ServiceHosts.aliasesFor}. */
export type RewriteHosts = (pod: Pod, podIps: readonly string[]) => void;

/**
 * Names of Services in the hosts files of pods. The files stay when this process ends, and change in place: neither a
 * new Service nor a pod with a new address restarts anything.
 */
export class ServiceHosts {
  readonly #clusterDomain: string;
  readonly #externalNames: ExternalNames;
  #namesIn: (namespace: string) => readonly HostAlias[] = () => [];
  readonly #written = new Map<PodUID, string>();

  /** @param clusterDomain `--cluster-domain`; "" means cluster.local */
  constructor(clusterDomain: string, externalNames: ExternalNames) {
    this.#clusterDomain = clusterDomain;
    this.#externalNames = externalNames;
  }

  /** Calls back when {@link update} would find other addresses. */
  onChange(listener: () => void): void {
    this.#externalNames.onChange(listener);
  }

  stop(): void {
    this.#externalNames.stop();
  }

  /** The lines a pod's hosts file has now. Called when it is written. */
  aliasesFor(pod: Pod): readonly HostAlias[] {
    const aliases = this.#linesFor(pod);
    this.#written.set(pod.metadata.uid ?? "", JSON.stringify(aliases));
    return aliases;
  }

  /**
   * Brings the hosts files of all running pods in line.
   * @param pods all pods with their statuses, as the engine was seen
   */
  update(services: readonly Service[], pods: readonly Pod[], rewrite: RewriteHosts): void {
    const external = this.#externalNames;
    external.setNames(findExternalNames(services, this.#clusterDomain));
    if (services.length === 0 && this.#written.size === 0) return;
    // Pods that have the names already keep them.
    if (external.isPending) return;
    const addressesOf = (name: string) => external.addressesOf(name);
    const endpoints = computeEndpoints(services, pods, { clusterDomain: this.#clusterDomain, addressesOf });
    const byNamespace = new Map<string, readonly HostAlias[]>();
    this.#namesIn = (namespace) => {
      const known = byNamespace.get(namespace) ?? computeServiceNames(endpoints, namespace, this.#clusterDomain);
      byNamespace.set(namespace, known);
      return known;
    };
    const uids = new Set(pods.map(({ metadata }) => metadata.uid ?? ""));
    for (const uid of this.#written.keys()) if (!uids.has(uid)) this.#written.delete(uid);
    for (const pod of pods) {
      const podIps = (pod.status?.podIPs ?? []).flatMap(({ ip }) => (ip ? [ip] : []));
      if (pod.status?.phase !== "Running" || podIps.length === 0) continue;
      const lines = JSON.stringify(this.#linesFor(pod));
      if (this.#written.get(pod.metadata.uid ?? "") !== lines) rewrite(pod, podIps);
    }
  }

  #linesFor(pod: Pod): readonly HostAlias[] {
    return seesServices(pod) ? this.#namesIn(pod.metadata.namespace ?? "default") : [];
  }
}
