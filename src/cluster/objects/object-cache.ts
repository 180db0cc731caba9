import * as v from "valibot";
import type { ConfigMap, Secret } from "../../base/api/config-objects.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import { memoized } from "../../base/model/memoized.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import { podFullName } from "../../base/model/pod.ts";
import { isStaticPod } from "../../manifest/defaults.ts";
import type { ObjectReference } from "../../plan/object-references.ts";
import { computeServiceEnvironment, type ServiceAddress } from "../../plan/service-environment.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { type ListClient, MetadataSchema, type ObjectOfApi, Reflector, texts } from "../client/reflector.ts";

interface ObjectCacheDeps {
  client: ClusterClient;
  clock: Clock;
  /** An object is there, changed or gone. */
  onChange: () => void;
}

/** An object that was not answered for within this time holds back its pod no longer: the pod says what is missing. */
const SETTLE_MS = 10_000;
/**
 * A deleted object counts for this long: the end of a namespace deletes the objects of pods a moment before the pods, which
 * then have nothing to miss.
 */
const GONE_MS = 10_000;

const DataSchema = v.object({
  metadata: v.object(MetadataSchema.entries),
  immutable: v.exactOptional(v.boolean()),
  type: v.exactOptional(v.string()),
  data: texts,
  binaryData: texts,
});
type DataObject = v.InferOutput<typeof DataSchema>;

interface Entry {
  reference: ObjectReference;
  reflector: Reflector<DataObject>;
  sinceMs: number;
  /** As it was seen last: in a checkpoint until the API server has answered, and for a while after its deletion. */
  object: DataObject | undefined;
  isFrozen: boolean;
}

/**
 * ConfigMaps and Secrets that pods of this node name, and no others: a node may read nothing else. Each is listed and
 * watched by its name; an immutable one is read once. While the API server is unreachable they stay as they were last.
 */
export class ObjectCache {
  readonly #deps: ObjectCacheDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #restored = new Map<string, DataObject>();

  constructor(deps: ObjectCacheDeps) {
    this.#deps = deps;
  }

  /** Objects that an earlier process knew, used until the API server has answered. */
  restore(configMaps: readonly ConfigMap[], secrets: readonly Secret[]): void {
    for (const one of configMaps) this.#restored.set(keyOf("ConfigMap", podFullName(one.metadata)), one as DataObject);
    for (const one of secrets) this.#restored.set(keyOf("Secret", podFullName(one.metadata)), one as DataObject);
  }

  /** Sets all references of all pods. Objects that are no longer named are forgotten. */
  setReferences(references: Iterable<ObjectReference>): void {
    const wanted = new Map([...references].map((one) => [keyOf(one.kind, one.fullName), one]));
    for (const [key, entry] of this.#entries) {
      if (wanted.has(key)) continue;
      void entry.reflector.stop();
      this.#entries.delete(key);
    }
    for (const [key, reference] of wanted) if (!this.#entries.has(key)) this.#add(key, reference);
  }

  /** Whether the API server has said what the object is, or that there is none, or has not answered for a while. */
  isSettled({ kind, fullName }: ObjectReference): boolean {
    const entry = this.#entries.get(keyOf(kind, fullName));
    if (!entry) return false;
    return entry.reflector.isListed || this.#deps.clock.monotonicMs() - entry.sinceMs >= SETTLE_MS;
  }

  configMaps(): ConfigMap[] {
    return this.#objectsOf("ConfigMap") as unknown as ConfigMap[];
  }

  secrets(): Secret[] {
    return this.#objectsOf("Secret") as unknown as Secret[];
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ reflector }) => reflector.stop()));
  }

  #objectsOf(kind: ObjectReference["kind"]): DataObject[] {
    return [...this.#entries.values()]
      .filter(({ reference }) => reference.kind === kind)
      .flatMap(({ object }) => (object ? [withoutBookkeeping(object)] : []));
  }

  #add(key: string, reference: ObjectReference): void {
    const { client, clock, onChange } = this.#deps;
    const [namespace = "", name = ""] = reference.fullName.split("/");
    const plural = reference.kind === "ConfigMap" ? "configmaps" : "secrets";
    const entry: Entry = {
      reference,
      sinceMs: clock.monotonicMs(),
      object: this.#restored.get(key),
      isFrozen: false,
      reflector: new Reflector<DataObject>({
        client,
        clock,
        schema: DataSchema,
        path: `/api/v1/namespaces/${namespace}/${plural}`,
        query: { fieldSelector: `metadata.name=${name}` },
        onChange: (reflector) => {
          const [object] = reflector.list();
          if (object) entry.object = object;
          else this.#dropLater(entry);
          if (!entry.isFrozen && object?.immutable === true) {
            entry.isFrozen = true;
            void reflector.stop();
          }
          onChange();
        },
      }),
    };
    this.#entries.set(key, entry);
    entry.reflector.start();
    // Pods that wait for a response are checked again.
    clock.schedule(SETTLE_MS, () => {
      if (this.#entries.get(key) === entry && !entry.reflector.isListed) onChange();
    });
  }

  #dropLater(entry: Entry): void {
    const { object } = entry;
    if (!object) return;
    this.#deps.clock.schedule(GONE_MS, () => {
      if (entry.object !== object || entry.reflector.list().length > 0) return;
      entry.object = undefined;
      this.#deps.onChange();
    });
  }
}

/** The object without what only the API server needs; the same object each time, so that digests stay cheap. */
const withoutBookkeeping = memoized(({ metadata: { name, namespace }, ...data }: DataObject) => ({
  metadata: { name, ...(namespace !== undefined && { namespace }) },
  ...data,
}));

const keyOf = (kind: string, fullName: string) => `${kind} ${fullName}`;

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
