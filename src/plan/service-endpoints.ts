import { type EndpointSlice, type Endpoints, SERVICE_NAME_LABEL } from "../base/api/endpoints.ts";
import { hasCondition } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import type { Service, ServicePort } from "../base/api/service.ts";
import type { TypedObject } from "../base/model/desired-state.ts";
import { isSameList, memoized } from "../base/model/memoized.ts";
import { containersOf, namespaceOf, podFullName } from "../base/model/pod.ts";
import { canonicalIp, familyOf, type IpFamily } from "../base/text/ip-range.ts";

/** A port of a pod, or of a written address, behind a Service. */
export interface ServiceEndpoint {
  ip: string;
  port: number;
  /** It is no pod: it may not know the way to the addresses of clients. */
  isOutside?: true;
}

/** An address that Endpoints or an EndpointSlice of a client or manifest name. */
interface WrittenEndpoint {
  ips: readonly string[];
  hostname: string | undefined;
  ports: readonly { name?: string | undefined; protocol: string; port?: number | undefined }[];
}

/** The Endpoints and EndpointSlices among these objects. */
export const writtenEndpoints = (objects: readonly TypedObject[] = []): (Endpoints | EndpointSlice)[] =>
  objects.flatMap((it) => (it.kind === "Endpoints" || it.kind === "EndpointSlice" ? [it.object] : []));

/** A pod or an address to which clients of a Service are sent. */
export type ServiceBackend = Pod | WrittenEndpoint;

export const ipsOf = (backend: ServiceBackend): readonly string[] =>
  "ips" in backend ? backend.ips : (backend.status?.podIPs ?? []).flatMap(({ ip }) => (ip ? [ip] : []));

/** Its addresses may be those of another pod by now. */
export const isFinished = ({ status }: Pick<Pod, "status">): boolean =>
  status?.phase === "Succeeded" || status?.phase === "Failed";

/** The name of a backend below that of its Service; undefined where it has none. */
export function hostNameIn({ metadata }: Service, backend: ServiceBackend): string | undefined {
  if ("ips" in backend) return backend.hostname;
  return backend.spec.subdomain === metadata.name ? backend.spec.hostname : undefined;
}

export const hasSelector = ({ spec: { selector = {} } }: Service): boolean => Object.keys(selector).length > 0;

/** The addresses of such an object that are ready. Of several for one endpoint the first counts, as for kube-proxy. */
const writtenIn = memoized((object: Endpoints | EndpointSlice): WrittenEndpoint[] => {
  const toWritten = (ip: string | undefined, hostname: string | undefined, ports: WrittenEndpoint["ports"] = []) => {
    const canonical = canonicalIp(ip ?? "");
    return canonical === undefined ? [] : [{ ips: [canonical], hostname, ports }];
  };
  if ("addressType" in object) {
    const ready = object.endpoints.filter(({ conditions }) => conditions?.ready !== false);
    return ready.flatMap(({ addresses, hostname }) => toWritten(addresses[0], hostname, object.ports));
  }
  return (object.subsets ?? []).flatMap(({ addresses = [], ports }) =>
    addresses.flatMap(({ ip, hostname }) => toWritten(ip, hostname, ports)),
  );
});

interface Found {
  selected: readonly Pod[];
  behind: readonly ServiceBackend[];
}

/** The selector of a Service: the key of its first label, "" without one, and the other labels. */
const selectorOf = memoized((service: Service) => {
  const [first, ...others] = Object.entries(service.spec.selector ?? {});
  return { first: first ? toKey(namespaceOf(service), ...first) : "", others };
});

/** Pods by their labels, to find those behind many Services, and the endpoints that clients and manifests write. */
export class ServicePods {
  readonly #written: readonly (Endpoints | EndpointSlice)[];
  readonly #byLabel = new Map<string, Pod[]>();
  readonly #endpoints = new Map<string, Endpoints>();
  readonly #slices: ReadonlyMap<string, readonly EndpointSlice[]>;
  /** Results by the first label of the selector. */
  readonly #found = new Map<string, WeakMap<Service, Found>>();

  /** @param before its results stay for Services whose pods are the same */
  constructor(pods: readonly Pod[], written: readonly (Endpoints | EndpointSlice)[] = [], before?: ServicePods) {
    this.#written = written;
    const slices = written.filter((it) => "addressType" in it);
    for (const it of written) if (!("addressType" in it)) this.#endpoints.set(podFullName(it.metadata), it);
    this.#slices = Map.groupBy(slices, ({ metadata: { namespace, labels } }) =>
      podFullName({ namespace, name: labels?.[SERVICE_NAME_LABEL] }),
    );
    for (const pod of pods) {
      if (ipsOf(pod).length === 0 || isFinished(pod)) continue;
      for (const [name, value] of Object.entries(pod.metadata.labels ?? {})) {
        this.#byLabel.getOrInsert(toKey(namespaceOf(pod), name, value), []).push(pod);
      }
    }
    if (!before || !isSameList(written, before.#written)) return;
    for (const [key, pods] of [["", []] as const, ...this.#byLabel]) {
      const found = before.#found.get(key);
      if (found && isSameList(pods, before.#byLabel.get(key) ?? [])) this.#found.set(key, found);
    }
  }

  /**
   * Pods that a Service selects, in the order of the pods; one that terminates only with publishNotReadyAddresses. Source: the
   * endpoints controller's `ShouldPodBeInEndpoints`.
   */
  selectedBy(service: Service): readonly Pod[] {
    return this.#find(service).selected;
  }

  /**
   * Pods that are Ready, or all of them with publishNotReadyAddresses, and written addresses: clients are sent to these.
   * Source: kube-proxy reads every slice with the label; Endpoints of a Service without a selector are mirrored into one.
   */
  behind(service: Service): readonly ServiceBackend[] {
    return this.#find(service).behind;
  }

  #find(service: Service): Found {
    const known = this.#found.getOrInsertComputed(selectorOf(service).first, () => new WeakMap());
    return known.getOrInsertComputed(service, () => this.#compute(service));
  }

  #compute(service: Service): Found {
    const { first, others } = selectorOf(service);
    const { publishNotReadyAddresses } = service.spec;
    const selected = (this.#byLabel.get(first) ?? []).filter(
      ({ metadata: { labels, deletionTimestamp } }) =>
        (publishNotReadyAddresses || deletionTimestamp === undefined) &&
        others.every(([name, value]) => labels?.[name] === value),
    );
    const pods = selected.filter((pod) => publishNotReadyAddresses || hasCondition(pod.status, "Ready"));
    const endpoints = this.endpointsOf(service);
    const slices = this.#slices.get(podFullName(service.metadata)) ?? [];
    return { selected, behind: [...pods, ...(endpoints ? writtenIn(endpoints) : []), ...slices.flatMap(writtenIn)] };
  }

  /** The Endpoints of its name that a client or manifest wrote: of a Service with a selector they have no effect. */
  endpointsOf(service: Service): Endpoints | undefined {
    return hasSelector(service) ? undefined : this.#endpoints.get(podFullName(service.metadata));
  }
}

const toKey = (namespace: string, name: string, value: string) => `${namespace}\n${name}\n${value}`;

/**
 * Number of the port that a port of a Service leads to: a pod's by `targetPort`, a written endpoint's by the name of the
 * port itself. undefined where there is none of the name.
 */
export function targetPortOf(servicePort: ServicePort, backend: ServiceBackend): number | undefined {
  const { name = "", port, targetPort, protocol } = servicePort;
  if ("ips" in backend) return backend.ports.find((it) => (it.name ?? "") === name && it.protocol === protocol)?.port;
  // 0 and "" are the default.
  if (!targetPort) return port;
  if (typeof targetPort === "number") return targetPort;
  const ports = containersOf(backend.spec).flatMap(({ ports = [] }) => ports);
  return ports.find((it) => it.name === targetPort && it.protocol === protocol)?.containerPort;
}

/** The address of a backend in a family. */
export const ipOf = (backend: ServiceBackend, family: IpFamily): string | undefined =>
  ipsOf(backend).find((ip) => familyOf(ip) === family);

/**
 * Where the connections of a port of a Service go, in one family; each address once.
 * @param backends those behind the Service
 */
export function endpointsOf(
  port: ServicePort,
  backends: readonly ServiceBackend[],
  family: IpFamily,
): ServiceEndpoint[] {
  const found = new Map<string, ServiceEndpoint>();
  for (const backend of backends) {
    const [number, ip] = [targetPortOf(port, backend), ipOf(backend, family)];
    if (number === undefined || ip === undefined || found.has(`${ip} ${number}`)) continue;
    found.set(`${ip} ${number}`, { ip, port: number, ...("ips" in backend && { isOutside: true as const }) });
  }
  return [...found.values()];
}
