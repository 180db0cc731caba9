import type * as v from "valibot";
import type { StatusCause } from "./api-error.ts";
import type { ApiObject, ObjectStore, ResourceId } from "./object-store.ts";

/** One column of `kubectl get`. Source: meta/v1 `TableColumnDefinition`. */
export interface Column {
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "date";
  /** `name` marks the column that names the object. */
  format?: string;
  /** Above 0: shown only with `-o wide`. */
  priority?: number;
  /** A `date` column holds the age as text, e.g. `5m`. */
  value: (object: ApiObject, now: Date) => string | number | boolean | null;
}

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

export const ALL_VERBS: readonly Verb[] = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
];

export const READ_VERBS: readonly Verb[] = ["get", "list", "watch"];

/** A subresource that is part of the object: `status` replaces `status` alone, `scale` shows `spec.replicas`. */
type PlainSubresource = "status" | "scale" | "ephemeralcontainers";

export type Schema = v.GenericSchema<unknown, unknown>;

/** Facts that reading an object depends on besides its text. */
export interface ReadOptions {
  nodeName: string;
  allowPrivileged: boolean;
}

/** A decoded object, its errors, and its fields outside the schema. */
export interface Decoded {
  /** Defaults filled in; fields outside the schema are omitted. */
  object: ApiObject;
  /** Each becomes a cause of a 422. */
  causes: readonly StatusCause[];
  /** e.g. `unknown field "spec.foo"`: refused, returned as a warning, or ignored, depending on `fieldValidation`. */
  unknown: readonly string[];
  /** Returned as warnings regardless of `fieldValidation`. */
  warnings: readonly string[];
}

/**
 * Fate of an object. The first four are kept in `<root-dir>/manifests`, read back at the next start, and given to
 * the kubelet as that part of a set of manifests. `kept`: in a file too, and nothing runs by it. `observed`: shown as the
 * kubelet has it, and lost with the process. `node`: as `observed`, and a write becomes a setting of the node.
 */
export type Fate = "pods" | "configMaps" | "secrets" | "objects" | "kept" | "observed" | "node";

const IS_KEPT: Readonly<Record<Fate, boolean>> = {
  pods: true,
  configMaps: true,
  secrets: true,
  objects: true,
  kept: true,
  observed: false,
  node: false,
};

/** Whether objects of a kind are kept in files. */
export const isKept = ({ fate }: Pick<ResourceDefinition, "fate">): boolean => IS_KEPT[fate];

/** A version of older clients, or of another group, with what it has of its own. */
type OtherVersion = Pick<ResourceDefinition, "version" | "schema" | "deprecation" | "conversion" | "orphansByDefault"> &
  Partial<Pick<ResourceDefinition, "group">>;

/** A kind of object: its paths, and how it is read, kept and shown. */
export interface ResourceDefinition {
  /** "" for core. */
  group: string;
  version: string;
  /** Versions of older clients, and other groups, in which the same objects are served too. */
  otherVersions?: readonly OtherVersion[];
  /** Ends the warning that answers each request for this version: `v1.21+, unavailable in v1.25+`. */
  deprecation?: string;
  /** For a version with other fields than the preferred one. */
  conversion?: { fromPreferred: (object: ApiObject) => ApiObject; toPreferred: (object: ApiObject) => ApiObject };
  kind: string;
  plural: string;
  singular: string;
  shortNames?: readonly string[];
  /** e.g. `all`, so that `kubectl get all` lists it. */
  categories?: readonly string[];
  namespaced: boolean;
  verbs: readonly Verb[];
  /** Columns between NAME (first) and AGE (last), which every kind has. */
  columns: readonly Column[];
  /** Selectable fields in addition to `metadata.name` and `metadata.namespace`. */
  fields?: Readonly<Record<string, (object: ApiObject) => string>>;
  subresources?: readonly PlainSubresource[];
  /** The status of a new object, until something counts. Absent: empty. Source: fields that core/v1 always writes. */
  firstStatus?: (object: ApiObject) => object;
  /** The status is what the node observes: the subresource is read, and never written. */
  observedStatus?: true;
  /** Subresources that the node keeps: `live` with what may be written of it. @throws ApiError 422 */
  nodeWrites?: Readonly<Record<string, (written: ApiObject, live: ApiObject, options: ReadOptions) => ApiObject>>;
  fate: Fate;
  /** For OpenAPI. Absent: that of src/base/api. */
  schema?: Schema;
  /** Reads an object of a client: defaults, validation. Must not change its input. Absent: the object is taken as it is. */
  decode?: ((object: ApiObject, options: ReadOptions) => Decoded) | undefined;
  /** Adds what follows from the object and is not kept in it. Equal for the same object. */
  complete?: (object: ApiObject) => ApiObject;
  /** Causes for refusing a creation; the object was decoded. */
  validateCreate?: (object: ApiObject) => readonly StatusCause[];
  /** Restores fields that a write to the object does not change, apart from the status. */
  carryOver?: (next: ApiObject, live: ApiObject) => ApiObject;
  /** Causes for refusing an update; both objects were decoded. */
  validateUpdate?: (next: ApiObject, previous: ApiObject) => readonly StatusCause[];
  /** Text of a warning that answers the deletion of the object. */
  deletionWarning?: (object: ApiObject) => string | undefined;
  /** true: deletion waits until something else removes the object, as pods wait for their containers. */
  gracefulDeletion?: boolean;
  /** A deletion without options leaves behind what the object owns. Source: `DefaultGarbageCollectionPolicy`. */
  orphansByDefault?: true;
  /** false: an object with a `spec` has no `metadata.generation`. */
  hasGeneration?: false;
  /** Finalizer that keeps a deleted object while something uses it, as pods use claims. */
  protection?: string;
  /** Whether values must be hidden from users with read access only (Secrets). */
  isSecret?: boolean;
}

/** The object, or the kind of objects, that a request is about. */
export interface Target {
  definition: ResourceDefinition;
  /** undefined: of all namespaces, or of a kind without one. */
  namespace: string | undefined;
  /** "" for a collection, or an object to be created. */
  name: string;
  /** "" for the object itself. */
  subresource?: string;
}

export const resourceId = ({ group, plural }: { group: string; plural: string }): ResourceId =>
  group === "" ? plural : `${plural}.${group}`;

export const apiVersionOf = ({ group, version }: { group: string; version: string }): string =>
  group === "" ? version : `${group}/${version}`;

/** A definition for each version in which a kind is served, the preferred one first. */
export const servedVersions = (definition: ResourceDefinition): ResourceDefinition[] => [
  definition,
  ...(definition.otherVersions ?? []).map((other) => ({ ...definition, ...other })),
];

/** An object of the store, with its kind. */
export interface StoredObject {
  definition: ResourceDefinition;
  object: ApiObject;
}

/** The objects of several kinds. */
export const objectsOf = (
  store: Pick<ObjectStore, "list">,
  definitions: readonly ResourceDefinition[],
  namespace?: string,
): StoredObject[] =>
  definitions.flatMap((definition) =>
    store.list(resourceId(definition), namespace).map((object) => ({ definition, object })),
  );

/** Every kind that is served. Rows are registered once, before the first request. */
export class ResourceRegistry {
  readonly #byId = new Map<ResourceId, ResourceDefinition>();

  constructor(definitions: readonly ResourceDefinition[]) {
    for (const definition of definitions) this.#byId.set(resourceId(definition), definition);
  }

  all(): ResourceDefinition[] {
    return [...this.#byId.values()];
  }

  /** The kind whose objects a path has, in its preferred version. */
  find(group: string, version: string, plural: string): ResourceDefinition | undefined {
    const isServed = (it: ResourceDefinition) => it.group === group && it.version === version;
    return this.all().find((it) => it.plural === plural && servedVersions(it).some(isServed));
  }

  get(id: ResourceId): ResourceDefinition | undefined {
    return this.#byId.get(id);
  }

  findKind(apiVersion: string, kind: string): ResourceDefinition | undefined {
    return this.all().find((definition) => definition.kind === kind && apiVersionOf(definition) === apiVersion);
  }
}
