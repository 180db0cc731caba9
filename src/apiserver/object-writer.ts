import type { Pod } from "../base/api/pod.ts";
import { nextTurn } from "../base/concurrency/turn-pace.ts";
import type { Clock } from "../base/model/clock.ts";
import { toApiTime } from "../base/text/api-time.ts";
import { isRecord } from "../base/text/json.ts";
import {
  ApiError,
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  insufficientStorage,
  internalError,
  invalid,
  notFound,
  STALE,
  type StatusCause,
} from "./api-error.ts";
import { applyConfiguration, conflictMessage, type Manager, trackUpdate } from "./managed-fields.ts";
import {
  type ApiMetadata,
  type ApiObject,
  checkObjectName,
  checkSize,
  generateName,
  MAX_WRITTEN_VALUES,
  type ObjectStore,
} from "./object-store.ts";
import {
  apiVersionOf,
  isKept,
  type ReadOptions,
  type ResourceDefinition,
  resourceId,
  type Target,
} from "./resource-definition.ts";

/** Options of a write. */
export interface WriteRequest {
  /** Manager that owns the written fields. */
  manager: string;
  dryRun: boolean;
  /** Handling of fields that the schema does not know, and of those that are {@link repeated}. */
  fieldValidation: "Strict" | "Warn" | "Ignore";
  /** e.g. `duplicate field "data.a"` */
  repeated?: readonly string[];
  /** Gets the text of each `Warning` header. */
  warn: (message: string) => void;
}

/** Keeps objects beyond the life of the process. */
export interface ObjectStorage {
  /** Returns when the object is kept whole, or throws with the old one still whole. @throws Error of the file system */
  save(definition: ResourceDefinition, object: ApiObject): void;
  /** Removing what is not there is no error. @throws Error of the file system */
  remove(definition: ResourceDefinition, object: ApiObject): void;
}

/** The node as writers and deleters of objects ask it. */
export interface ObjectRules {
  /** Why an object of the store must not be written, e.g. because it comes from a file; undefined: it may be. */
  refusalOf(definition: ResourceDefinition, object: ApiObject): string | undefined;
  /**
   * Adds what the node chooses and no manager owns: the address and node ports of a Service, the class of a new Ingress.
   * @throws ApiError 422 when what the object asks for is taken
   */
  assign(definition: ResourceDefinition, object: ApiObject): ApiObject;
  /**
   * A pod of a workload with the labels, annotations and further owners of `next`, without its controller where that does not
   * select it any more; undefined where it must not be written so.
   */
  relabelMade(definition: ResourceDefinition, live: ApiObject, next: ApiObject): ApiObject | undefined;
  /** Hands the kubelet the conditions and the end, or the ephemeral containers, that a client has written. @returns what was written */
  writePod(definition: ResourceDefinition, object: ApiObject, subresource: string): ApiObject;
  /** Makes a write to the node a setting of it. */
  writeNode(object: ApiObject): void;
  /** Whether an object of a kind with a protection is in use, so that its deletion has to wait. */
  isInUse(definition: ResourceDefinition, object: ApiObject): boolean;
  /** Whether the store has what controllers made. After a start it has not until the engine was found. */
  isMadeKnown(): boolean;
  /** Whether a controller made the object: it may be deleted, although it was not submitted. */
  isMadeByController(definition: ResourceDefinition, object: ApiObject): boolean;
  /** Deletes such an object; what takes its place is the controller's decision. @returns whether that is stored; else it was not done */
  deleteMade(object: ApiObject, graceSeconds: number): Promise<boolean>;
  /**
   * Removes an object that was not submitted: one that no configured source describes any more, the claim of a StatefulSet, the
   * Job of a CronJob, or the endpoints of a Service, which are made again. undefined for every other object.
   * @param isOrphaning what it owns must stay
   */
  removalOf(definition: ResourceDefinition, object: ApiObject, isOrphaning: boolean): Removal | undefined;
}

/** @returns a promise resolves when it is stored; with `false`: it could not be, and was not done */
export type Removal = () => unknown;

/** Changes that controllers and the node store because of a write, which is answered when that is done. */
export class PendingStores {
  #areStored = Promise.resolve(true);

  /** @param stored resolves with `false` when it could not be stored, and was not done */
  note(stored: unknown): void {
    this.#areStored = Promise.all([this.#areStored, stored]).then((all) => !all.includes(false));
  }

  /** @throws ApiError 507 */
  async settled(): Promise<void> {
    if (await this.#areStored) return;
    this.#areStored = Promise.resolve(true);
    throw insufficientStorage(
      "the disk of the root directory takes no writes: nothing was changed, and pods keep running; to free a full disk " +
        "delete the workload, which needs no space",
    );
  }
}

export interface ObjectWriterDeps {
  store: ObjectStore;
  storage: ObjectStorage;
  readOptions: ReadOptions;
  clock: Pick<Clock, "now">;
  newUid: () => string;
  /** In [0, 1). */
  random: () => number;
  rules: ObjectRules;
}

/** Tries to find a free name for `generateName`. */
const NAME_TRIES = 8;

/** Creates and changes objects: converts what a client sent to the stored form. Every method throws ApiError. */
export class ObjectWriter {
  /** Gets a deleted object whose last finalizer was removed. */
  onUnfinalized: (definition: ResourceDefinition, object: ApiObject) => void = () => {};
  readonly #deps: ObjectWriterDeps;

  constructor(deps: ObjectWriterDeps) {
    this.#deps = deps;
  }

  /** @throws ApiError 400, 404 (namespace), 409, 422, 507 */
  create(target: Target, body: unknown, request: WriteRequest, as?: Manager): ApiObject {
    const { definition, namespace } = target;
    const input = this.#readBody({ ...target, name: "" }, body);
    const { store, newUid, clock } = this.#deps;
    this.#requireNamespace(definition, input, namespace);
    const metadata: ApiMetadata = { ...input.metadata, name: this.#nameOf(definition, input) };
    if (metadata.resourceVersion) throw badRequest("resourceVersion should not be set on objects to be created");
    for (const field of ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"]) {
      delete metadata[field];
    }
    metadata.uid = newUid();
    metadata.creationTimestamp = toApiTime(clock.now());
    const { status: _status, ...rest } = input;
    const whole = { ...rest, metadata } as ApiObject;
    const decoded = decodeObject(definition, whole, request, this.#deps.readOptions, checkObjectName(metadata.name));
    refuseInvalid(definition, metadata.name, definition.validateCreate?.(decoded) ?? []);
    const live = store.get(resourceId(definition), namespace, metadata.name);
    if (live) throw alreadyExists(definition, metadata.name, live.metadata.deletionTimestamp !== undefined);
    if (definition.kind === "Pod") this.#warnOfSecond(definition, decoded, request);
    const object = hasGeneration(definition, decoded) ? withMetadata(decoded, { generation: 1 }) : decoded;
    const manager = as ?? updateManager(definition, request.manager, "");
    // The status is the server's.
    const { status: _initial, ...written } = object;
    const managedFields = as
      ? (input.metadata.managedFields ?? [])
      : trackUpdate(undefined, written, [], manager, toApiTime(clock.now()));
    const status = definition.firstStatus?.(object) ?? object.status ?? {};
    const { protection } = definition;
    // As the admission plugin StorageObjectInUseProtection: no field of the client's.
    const finalizers = protection && [...new Set(object.metadata.finalizers).add(protection)];
    const first = {
      ...withMetadata(object, { managedFields, ...(finalizers && { finalizers }) }),
      ...(hasStatus(definition) && { status }),
    };
    const owned = this.#deps.rules.assign(definition, first);
    checkSize(owned);
    return request.dryRun ? pruned(owned) : this.put(definition, owned);
  }

  /** A pod of a manifest has the name of its node appended. */
  #warnOfSecond(definition: ResourceDefinition, { metadata, spec }: ApiObject, { warn }: WriteRequest): void {
    const { store, rules } = this.#deps;
    const name = `${metadata.name}-${(spec as Pod["spec"]).nodeName}`;
    const first = store.get("pods", metadata.namespace, name);
    const refusal = first && !rules.isMadeByController(definition, first) && rules.refusalOf(definition, first);
    if (refusal) warn(`${refusal}; this is a second pod`);
  }

  /**
   * Replaces an object, or its `status` alone.
   * @param change gets the live object; what it throws is thrown
   * @throws ApiError 400, 403, 404, 409, 422, 507
   */
  update(target: Target, change: (live: ApiObject) => unknown, request: WriteRequest): ApiObject {
    const { definition, namespace, name, subresource = "" } = target;
    const live = this.#deps.store.get(resourceId(definition), namespace, name);
    if (!live) throw notFound(definition, name);
    const next = this.#readBody(target, change(live));
    const manager = updateManager(definition, request.manager, subresource);
    return this.#replace(definition, live, next, request, manager, subresource);
  }

  /**
   * Server-side apply; creates the object when there is none. Takes two turns: an object may be wide.
   * @returns the object, and what it was made of: undefined when it was created
   */
  async apply(
    target: Target,
    body: unknown,
    request: WriteRequest & { force: boolean },
  ): Promise<{ object: ApiObject; before: ApiObject | undefined }> {
    const { definition, namespace, name, subresource = "" } = target;
    const wanted = this.#readBody(target, body);
    if (wanted.metadata.managedFields) throw badRequest("metadata.managedFields must be nil");
    const manager: Manager = {
      name: request.manager,
      operation: "Apply",
      apiVersion: apiVersionOf(definition),
      ...(subresource !== "" && { subresource }),
    };
    const options = { force: request.force, time: toApiTime(this.#deps.clock.now()) };
    const find = () => this.#deps.store.get(resourceId(definition), namespace, name);
    const empty: ApiObject = { apiVersion: wanted.apiVersion, kind: wanted.kind, metadata: { name } };
    const seen = find();
    let result = applyConfiguration(seen ?? empty, wanted, manager, options);
    await nextTurn();
    const live = find();
    // Another write came in between.
    if (live !== seen) result = applyConfiguration(live ?? empty, wanted, manager, options);
    if ("conflicts" in result) {
      throw new ApiError(409, "Conflict", conflictMessage(result.conflicts), { causes: result.conflicts });
    }
    if (!live) {
      if (subresource !== "") throw notFound(definition, name);
      if (wanted.metadata.uid) {
        const why = "uid mismatch: the provided object specified a uid, and no existing object was found";
        throw conflict(definition, name, why);
      }
      return { object: this.create(target, result.object, request, manager), before: undefined };
    }
    checkSize(result.object);
    const object = this.#replace(definition, live, result.object, request, undefined, subresource);
    return { object, before: live };
  }

  /** @param manager undefined: managedFields of `next` are right already */
  #replace(
    definition: ResourceDefinition,
    live: ApiObject,
    input: ApiObject,
    request: WriteRequest,
    manager: Manager | undefined,
    subresource: string,
  ): ApiObject {
    const { name } = live.metadata;
    const isStatus = subresource === "status";
    const accept = definition.nodeWrites?.[subresource];
    const refusal = accept ? undefined : this.#deps.rules.refusalOf(definition, live);
    // A client sends back what the API has shown.
    const isSame =
      manager !== undefined &&
      subresource === "" &&
      Bun.deepEquals(input.metadata.managedFields ?? live.metadata.managedFields, live.metadata.managedFields) &&
      Bun.deepEquals(meantBy(input), meantBy(definition.complete?.(live) ?? live));
    // A terminating pod is shown with the labels of the write until it is gone; nothing is kept.
    const isLeaving = definition.gracefulDeletion === true && live.metadata.deletionTimestamp !== undefined;
    const mayRelabel = isLeaving || this.#deps.rules.isMadeByController(definition, live);
    if (refusal !== undefined && !isSame && !mayRelabel) {
      throw forbidden(definition, name, refusal);
    }
    const { uid, resourceVersion } = input.metadata;
    if (resourceVersion && resourceVersion !== live.metadata.resourceVersion) throw conflict(definition, name, STALE);
    if (uid && uid !== live.metadata.uid) {
      const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live.metadata.uid}`;
      throw conflict(definition, name, why);
    }
    if (isSame) {
      reportBadFields(definition, [], request);
      return live;
    }
    // A write to the status has labels and annotations too, but no labels of a Deployment. Source: the registry's strategies.
    const { annotations } = input.metadata;
    const { labels } = definition.kind === "Deployment" ? live.metadata : input.metadata;
    const written =
      accept?.(input, live, this.#deps.readOptions) ??
      (isStatus
        ? { ...withMetadata(live, { labels, annotations }), status: input.status }
        : withoutStatus(definition, live, input));
    const next = definition.carryOver?.(written, live) ?? written;
    const entries = manager
      ? (input.metadata.managedFields ?? live.metadata.managedFields ?? [])
      : input.metadata.managedFields;
    const settled = withMetadata(next, {
      ...systemMetadata(live.metadata),
      // The revision of the change replaces it.
      resourceVersion: live.metadata.resourceVersion,
    });
    const isRead = isStatus || accept !== undefined;
    if (isRead) reportBadFields(definition, [], request);
    const decoded = isRead ? settled : decodeObject(definition, settled, request, this.#deps.readOptions);
    if (!accept) refuseInvalid(definition, name, definition.validateUpdate?.(decoded, live) ?? []);
    const time = toApiTime(this.#deps.clock.now());
    // An empty list of entries resets what was owned.
    const base = entries?.length === 1 && Object.keys(entries[0] ?? {}).length === 0 ? [] : (entries ?? []);
    const managedFields = manager ? trackUpdate(live, decoded, base, manager, time) : base;
    const owned = withMetadata(decoded, { managedFields });
    const tracked = isStatus ? owned : this.#deps.rules.assign(definition, owned);
    const generation =
      !accept && hasGeneration(definition, tracked) && !Bun.deepEquals(live.spec, tracked.spec)
        ? (live.metadata.generation ?? 1) + 1
        : live.metadata.generation;
    let object = generation === undefined ? tracked : withMetadata(tracked, { generation });
    if (refusal !== undefined) {
      const relabeled =
        Bun.deepEquals(object.spec, live.spec) && this.#deps.rules.relabelMade(definition, live, object);
      if (!relabeled) throw forbidden(definition, name, refusal);
      object = relabeled;
    }
    if (Bun.deepEquals(clean(object), clean(live))) return live;
    checkSize(object);
    if (request.dryRun) return pruned(object);
    if (accept) return this.#deps.rules.writePod(definition, pruned(object), subresource);
    if (refusal !== undefined && isLeaving) return this.#deps.store.put(resourceId(definition), pruned(object));
    return this.put(definition, object);
  }

  /** Stores an object without a check: also for started deletions, and for writes of the process itself. */
  put(definition: ResourceDefinition, object: ApiObject): ApiObject {
    const whole = pruned(object);
    const { store, storage, rules } = this.#deps;
    if (definition.fate === "node") keep(() => rules.writeNode(whole));
    else if (isKept(definition)) keep(() => storage.save(definition, whole));
    const kept = store.put(resourceId(definition), whole);
    const { deletionTimestamp, finalizers = [] } = kept.metadata;
    if (deletionTimestamp && finalizers.length === 0) this.onUnfinalized(definition, kept);
    return kept;
  }

  #readBody({ definition, namespace, name }: Target, body: unknown): ApiObject {
    if (!isRecord(body)) throw badRequest("the body of the request is not an object");
    const metadata = isRecord(body.metadata) ? body.metadata : {};
    const { managedFields: _fields, ...written } = metadata;
    checkSize({ ...body, metadata: written }, MAX_WRITTEN_VALUES);
    const apiVersion = body.apiVersion ?? apiVersionOf(definition);
    const kind = body.kind ?? definition.kind;
    if (apiVersion !== apiVersionOf(definition) || kind !== definition.kind) {
      throw badRequest(
        `${String(kind)} of ${String(apiVersion)} was sent to the path of ${definition.kind} of ${apiVersionOf(definition)}`,
      );
    }
    if (namespace !== undefined && metadata.namespace && metadata.namespace !== namespace) {
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    }
    if (name !== "" && metadata.name !== undefined && metadata.name !== name) {
      throw badRequest(
        `the name of the object (${String(metadata.name)}) does not match the name on the URL (${name})`,
      );
    }
    return {
      ...body,
      apiVersion,
      kind,
      metadata: {
        ...metadata,
        name: name || (typeof metadata.name === "string" ? metadata.name : ""),
        ...(definition.namespaced && namespace !== undefined && { namespace }),
      },
    } as ApiObject;
  }

  #nameOf(definition: ResourceDefinition, { metadata }: ApiObject): string {
    if (metadata.name) return metadata.name;
    const prefix = metadata.generateName;
    if (!prefix) {
      const message = "Required value: name or generateName is required";
      refuseInvalid(definition, "", [{ reason: "FieldValueRequired", field: "metadata.name", message }]);
    }
    const { store, random } = this.#deps;
    for (let attempt = 0; attempt < NAME_TRIES; attempt++) {
      const name = generateName(prefix ?? "", random);
      if (!store.get(resourceId(definition), metadata.namespace, name)) return name;
    }
    throw new ApiError(409, "AlreadyExists", `no free name was found for generateName "${prefix}"; try again`);
  }

  #requireNamespace(definition: ResourceDefinition, input: ApiObject, namespace: string | undefined): void {
    if (!definition.namespaced) return;
    if (namespace === undefined || namespace === "")
      throw badRequest("an empty namespace may not be set during creation");
    const found = this.#deps.store.get("namespaces", undefined, namespace);
    if (!found) throw notFound({ group: "", plural: "namespaces" }, namespace);
    if (found.metadata.deletionTimestamp) {
      const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
      throw forbidden(definition, input.metadata.name, why);
    }
  }
}

const withMetadata = (object: ApiObject, metadata: Partial<ApiMetadata>): ApiObject => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});

/** Metadata that clients cannot change. */
function systemMetadata(live: ApiMetadata): Partial<ApiMetadata> {
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation, generateName } = live;
  return { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation, generateName };
}

const hasStatus = ({ subresources }: ResourceDefinition) => subresources?.includes("status") === true;

/** A write to the object does not change the status of kinds that have a status subresource. */
function withoutStatus(definition: ResourceDefinition, live: ApiObject, input: ApiObject): ApiObject {
  if (!hasStatus(definition) && !("status" in live)) return input;
  const { status: _status, ...rest } = input;
  return ("status" in live ? { ...rest, status: live.status } : rest) as ApiObject;
}

/** Kinds with a `metadata.generation`. */
const hasGeneration = (definition: ResourceDefinition, object: ApiObject) =>
  definition.hasGeneration !== false && "spec" in object;

/** The part of an object that its author writes. */
function meantBy({ metadata, status: _status, ...rest }: ApiObject): unknown {
  const { labels = {}, annotations = {}, ownerReferences = [], finalizers = [] } = metadata;
  return { ...rest, labels, annotations, ownerReferences, finalizers };
}

/** For comparison: without the fields that every write changes. */
function clean({ metadata, ...rest }: ApiObject): object {
  const { resourceVersion: _version, managedFields, ...others } = metadata;
  const owned = (managedFields ?? []).map(({ time: _time, ...entry }) => entry);
  return { ...rest, metadata: { ...others, owned } };
}

/** Without members that are undefined, and without empty lists in the metadata. */
function pruned(object: ApiObject): ApiObject {
  const isEmpty = (value: unknown) =>
    value === undefined || value === null || (Array.isArray(value) && value.length === 0);
  const { apiVersion, kind, metadata, ...rest } = object;
  const kept = Object.entries(metadata).filter(
    ([name, value]) => !isEmpty(value) && !(name === "namespace" && value === ""),
  );
  return { apiVersion, kind, metadata: Object.fromEntries(kept) as ApiMetadata, ...rest };
}

/** Runs a change of the storage. @throws ApiError 507 when the disk is full, else 500 */
export function keep(change: () => void): void {
  try {
    change();
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOSPC" || code === "EDQUOT") {
      throw insufficientStorage("the disk of the root directory is full: nothing was changed, and pods keep running");
    }
    throw internalError(`cannot keep the object: ${message}`);
  }
}

/**
 * Query parameters of a write.
 * @throws ApiError 400
 */
export function parseWriteRequest(
  query: URLSearchParams,
  userAgent: string | null,
  warn: (message: string) => void,
): WriteRequest {
  const dryRun = query.getAll("dryRun").filter((value) => value !== "");
  if (dryRun.some((value) => value !== "All")) {
    throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(dryRun)}: supported values: "All"`);
  }
  const fieldValidation = query.get("fieldValidation") || "Warn";
  if (fieldValidation !== "Strict" && fieldValidation !== "Warn" && fieldValidation !== "Ignore") {
    throw badRequest(
      `fieldValidation: Unsupported value: "${fieldValidation}": supported values: "Ignore", "Strict", "Warn"`,
    );
  }
  const manager = query.get("fieldManager") || (userAgent ?? "").split("/", 1)[0]!.trim() || "unknown";
  if (manager.length > 128) throw badRequest("fieldManager: Too long: may not be more than 128 bytes");
  return { manager, dryRun: dryRun.length > 0, fieldValidation, warn };
}

/** Updates of a manager. @param subresource "" for the object itself */
const updateManager = (definition: ResourceDefinition, manager: string, subresource: string): Manager => ({
  name: manager,
  operation: "Update",
  apiVersion: apiVersionOf(definition),
  ...(subresource !== "" && { subresource }),
});

/**
 * Reads an object through its schema: defaults, validation, unknown fields.
 * @throws ApiError 400 for unknown fields under `Strict`, 422 for what is wrong
 */
function decodeObject(
  definition: ResourceDefinition,
  object: ApiObject,
  request: WriteRequest,
  options: ReadOptions,
  known: readonly StatusCause[] = [],
): ApiObject {
  const { name } = object.metadata;
  if (!definition.decode) {
    reportBadFields(definition, [], request);
    refuseInvalid(definition, name, known);
    return object;
  }
  const { object: decoded, causes, unknown, warnings } = definition.decode(object, options);
  reportBadFields(definition, unknown, request);
  for (const message of warnings) request.warn(message);
  const more = causes.filter(({ field }) => !known.some((cause) => cause.field === field));
  refuseInvalid(definition, name, [...known, ...more]);
  return decoded;
}

/**
 * Handles fields that the schema does not know or that occur twice as the request wants it.
 * @throws ApiError 400 under `Strict`
 */
function reportBadFields(
  { kind, version }: ResourceDefinition,
  unknown: readonly string[],
  request: WriteRequest,
): void {
  const { fieldValidation, repeated = [], warn } = request;
  const findings = [...repeated, ...unknown];
  if (findings.length > 0 && fieldValidation === "Strict") {
    throw badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: strict decoding error: ${findings.join(", ")}`,
    );
  }
  if (fieldValidation === "Warn") for (const finding of findings) warn(finding);
}

/** @throws ApiError 422 when there is any cause */
export function refuseInvalid(definition: ResourceDefinition, name: string, causes: readonly StatusCause[]): void {
  if (causes.length > 0) throw invalid(definition.group, definition.kind, name, causes);
}
