import * as v from "valibot";
import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import { isStaticPod } from "../../manifest/defaults.ts";
import { computeServiceEnvironment, type ServiceAddress } from "../../plan/service-environment.ts";
import { type ListClient, MetadataSchema, type ObjectOfApi, Reflector } from "../client/reflector.ts";

/** One list of the cluster, in the form that is stored; that of an earlier process until the API server has answered. */
class StoredList<T extends ObjectOfApi, Stored> {
  readonly #reflector: Reflector<T>;
  readonly #stored: Persisted<readonly Stored[]>;
  readonly #toStored: (object: T) => Stored;
  readonly #listed = Promise.withResolvers<void>();

  constructor(
    client: ListClient,
    clock: Clock,
    path: string,
    schema: v.GenericSchema<unknown, T>,
    stored: Persisted<readonly Stored[]>,
    toStored: (object: T) => Stored,
  ) {
    this.#stored = stored;
    this.#toStored = toStored;
    const onChange = () => {
      stored.write(this.#reflector.list().map(toStored));
      this.#listed.resolve();
    };
    this.#reflector = new Reflector<T>({ client, clock, path, schema, onChange });
  }

  get isListed(): boolean {
    return this.#reflector.isListed;
  }

  /** Resolves when the API server has answered. */
  get listed(): Promise<void> {
    return this.#listed.promise;
  }

  /** undefined: the API server has never answered. */
  get known(): readonly Stored[] | undefined {
    return this.isListed ? this.#reflector.list().map(this.#toStored) : this.#stored.read();
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    return this.#reflector.stop();
  }
}

/** The fields that are used, and no others: a cluster has thousands. */
const metadata = v.object(MetadataSchema.entries);
const text = v.exactOptional(v.string());
const port = v.object({ name: text, port: v.number(), protocol: text });
const ServiceSchema = v.object({
  metadata,
  spec: v.object({ clusterIP: v.optional(v.string()), ports: v.optional(v.array(port), []) }),
});

const toServiceAddress = ({ metadata, spec }: v.InferOutput<typeof ServiceSchema>): ServiceAddress => ({
  name: metadata.name,
  namespace: metadata.namespace ?? "",
  clusterIP: spec.clusterIP,
  ports: spec.ports,
});

/** The Services of the cluster, for the environment of containers. */
export class ClusterServices extends StoredList<v.InferOutput<typeof ServiceSchema>, ServiceAddress> {
  constructor(client: ListClient, clock: Clock, stored: Persisted<readonly ServiceAddress[]>) {
    super(client, clock, "/api/v1/services", ServiceSchema, stored, toServiceAddress);
  }

  /**
   * A static pod does not wait for the Services: it may be what makes the API server answer.
   * @throws Error while the Services are not known. Source: the kubelet's makeEnvironmentVariables
   */
  environmentOf(pod: Pod): ReadonlyMap<string, string> {
    const { metadata, spec } = pod;
    const services = this.known ?? (isStaticPod(pod) ? [] : undefined);
    if (!services) throw new Error("services have not yet been read at least once, cannot construct envvars");
    return computeServiceEnvironment(services, metadata.namespace ?? "default", spec.enableServiceLinks ?? true);
  }
}

export type RuntimeClassEntry = readonly [name: string, handler: string];

/** A class that is not known by then is a failure; the pod is tried again. */
const LIST_WITHIN_MS = 5_000;
/** Name of the default runtime of clusters on Docker. Source: dockershim. */
const DEFAULT_HANDLER = "docker";

const ClassSchema = v.object({ metadata, handler: v.string() });

/** RuntimeClasses of the cluster. They are read when the first pod names one, and watched from then on. */
export class RuntimeClasses extends StoredList<v.InferOutput<typeof ClassSchema>, RuntimeClassEntry> {
  readonly #clock: Clock;

  constructor(client: ListClient, clock: Clock, stored: Persisted<readonly RuntimeClassEntry[]>) {
    super(client, clock, "/apis/node.k8s.io/v1/runtimeclasses", ClassSchema, stored, (one) => [
      one.metadata.name,
      one.handler,
    ]);
    this.#clock = clock;
  }

  /** The engine's runtime for a pod; "" = the default one. @throws Error while there is no such class */
  async handlerOf({ spec }: Pod): Promise<string> {
    const name = spec.runtimeClassName;
    if (!name) return "";
    this.start();
    if (!this.isListed) {
      const limit = new AbortController();
      await Promise.race([this.listed, this.#clock.sleep(LIST_WITHIN_MS, limit.signal).catch(() => {})]);
      limit.abort();
    }
    const handler = this.known?.find(([known]) => known === name)?.[1];
    if (handler === undefined) {
      if (this.isListed) throw new Error(`runtimeclass.node.k8s.io "${name}" not found`);
      throw new Error(`failed to lookup RuntimeClass ${name}: the API server has not answered`);
    }
    return handler === DEFAULT_HANDLER ? "" : handler;
  }
}
