import * as v from "valibot";
import type { ConfigMap, Secret } from "../../base/api/config-objects.ts";
import type { Clock } from "../../base/model/clock.ts";
import { memoized } from "../../base/model/memoized.ts";
import { podFullName } from "../../base/model/pod.ts";
import type { ObjectReference } from "../../plan/object-references.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { MetadataSchema, Reflector, texts } from "../client/reflector.ts";

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
