import { hasCondition } from "../base/api/conditions.ts";
import type { Pod } from "../base/api/pod.ts";
import type { Service, ServicePort } from "../base/api/service.ts";
import { namespaceOf } from "../base/model/identity.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import { familyOf, type IpFamily } from "../base/text/ip-range.ts";

/** A port of a pod behind a Service. */
export interface ServiceEndpoint {
  ip: string;
  port: number;
}

export const ipsOf = ({ status }: Pod): string[] => (status?.podIPs ?? []).flatMap(({ ip }) => (ip ? [ip] : []));

/** Pods by their labels, to find those behind many Services. */
export class ServicePods {
  readonly #byLabel = new Map<string, Pod[]>();

  constructor(pods: readonly Pod[]) {
    for (const pod of pods) {
      if (ipsOf(pod).length === 0 || pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") continue;
      for (const [name, value] of Object.entries(pod.metadata.labels ?? {})) {
        const key = toKey(namespaceOf(pod), name, value);
        const known = this.#byLabel.get(key);
        if (known) known.push(pod);
        else this.#byLabel.set(key, [pod]);
      }
    }
  }

  /**
   * Pods that a Service selects, in the order of the pods; one that terminates only with publishNotReadyAddresses. Source:
   * the endpoints controller's `ShouldPodBeInEndpoints`.
   */
  selectedBy(service: Service): Pod[] {
    const { selector = {}, publishNotReadyAddresses } = service.spec;
    const [first, ...others] = Object.entries(selector);
    if (!first) return [];
    return (this.#byLabel.get(toKey(namespaceOf(service), ...first)) ?? []).filter(
      ({ metadata: { labels, deletionTimestamp } }) =>
        (publishNotReadyAddresses || deletionTimestamp === undefined) &&
        others.every(([name, value]) => labels?.[name] === value),
    );
  }

  /** Pods that clients are sent to: those that are Ready, or all of them with publishNotReadyAddresses. */
  behind(service: Service): Pod[] {
    const { publishNotReadyAddresses } = service.spec;
    return this.selectedBy(service).filter((pod) => publishNotReadyAddresses || hasCondition(pod.status, "Ready"));
  }
}

const toKey = (namespace: string, name: string, value: string) => `${namespace}\n${name}\n${value}`;

/** Number of the port of a pod that a port of a Service leads to; undefined where the pod has none of the name. */
export function targetPortOf({ port, targetPort, protocol }: ServicePort, { spec }: Pod): number | undefined {
  // 0 and "" are the default.
  if (!targetPort) return port;
  if (typeof targetPort === "number") return targetPort;
  const ports = containersOf(spec).flatMap(({ ports = [] }) => ports);
  return ports.find((it) => it.name === targetPort && it.protocol === protocol)?.containerPort;
}

/** The address of a pod in a family. */
export const ipOf = (pod: Pod, family: IpFamily): string | undefined =>
  ipsOf(pod).find((ip) => familyOf(ip) === family);

/** Where the connections of a port of a Service go, in one family. @param pods those behind the Service */
export const endpointsOf = (port: ServicePort, pods: readonly Pod[], family: IpFamily): ServiceEndpoint[] =>
  pods.flatMap((pod) => {
    const [number, ip] = [targetPortOf(port, pod), ipOf(pod, family)];
    return number === undefined || ip === undefined ? [] : [{ ip, port: number }];
  });
