import type { Pod } from "../../api/pod.ts";
import type { Clock } from "../../model/clock.ts";
import { computeServiceEnvironment } from "../../plan/service-environment.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { type ObjectOfApi, Reflector } from "../client/reflector.ts";

interface ApiService extends ObjectOfApi {
  spec: { clusterIP?: string; ports?: { name?: string; port: number; protocol?: string }[] };
}

/** The Services of the cluster, for the environment of containers. */
export class ClusterServices {
  readonly #reflector: Reflector<ApiService>;

  constructor(client: ClusterClient, clock: Clock) {
    this.#reflector = new Reflector<ApiService>({ client, clock, path: "/api/v1/services", onChange: () => {} });
  }

  start(): void {
    this.#reflector.start();
  }

  async stop(): Promise<void> {
    await this.#reflector.stop();
  }

  /** @throws Error while the Services are not known. Source: the kubelet's makeEnvironmentVariables */
  environmentOf({ metadata, spec }: Pod): ReadonlyMap<string, string> {
    if (!this.#reflector.isListed)
      throw new Error("services have not yet been read at least once, cannot construct envvars");
    const services = this.#reflector
      .list()
      .map(({ metadata: { name, namespace = "" }, spec: { clusterIP, ports = [] } }) => ({
        name,
        namespace,
        clusterIP,
        ports,
      }));
    return computeServiceEnvironment(services, metadata.namespace ?? "default", spec.enableServiceLinks ?? true);
  }
}
