import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import { isStaticPod } from "../../manifest/identity.ts";
import { computeServiceEnvironment, type ServiceAddress } from "../../plan/service-environment.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { type ObjectOfApi, Reflector } from "../client/reflector.ts";

interface ApiService extends ObjectOfApi {
  spec: { clusterIP?: string; ports?: { name?: string; port: number; protocol?: string }[] };
}

/** The Services of the cluster, for the environment of containers; those of an earlier process until they are listed. */
export class ClusterServices {
  readonly #reflector: Reflector<ApiService>;
  readonly #stored: Persisted<readonly ServiceAddress[]>;

  constructor(client: ClusterClient, clock: Clock, stored: Persisted<readonly ServiceAddress[]>) {
    this.#stored = stored;
    const onChange = () => stored.write(this.#list());
    this.#reflector = new Reflector<ApiService>({ client, clock, path: "/api/v1/services", onChange });
  }

  start(): void {
    this.#reflector.start();
  }

  async stop(): Promise<void> {
    await this.#reflector.stop();
  }

  /**
   * A static pod does not wait for the Services: it may be what makes the API server answer.
   * @throws Error while the Services are not known. Source: the kubelet's makeEnvironmentVariables
   */
  environmentOf(pod: Pod): ReadonlyMap<string, string> {
    const { metadata, spec } = pod;
    const known = this.#reflector.isListed ? this.#list() : this.#stored.read();
    const services = known ?? (isStaticPod(pod) ? [] : undefined);
    if (!services) throw new Error("services have not yet been read at least once, cannot construct envvars");
    return computeServiceEnvironment(services, metadata.namespace ?? "default", spec.enableServiceLinks ?? true);
  }

  #list(): ServiceAddress[] {
    return this.#reflector.list().map(({ metadata: { name, namespace = "" }, spec: { clusterIP, ports = [] } }) => ({
      name,
      namespace,
      clusterIP,
      ports: ports.map(({ name: portName, port, protocol }) => ({
        ...(portName !== undefined && { name: portName }),
        port,
        ...(protocol !== undefined && { protocol }),
      })),
    }));
  }
}
