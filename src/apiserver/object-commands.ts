import { describeIgnoredKind } from "../manifest/ignored-kinds.ts";
import type { PlainObject } from "../manifest/plain-objects.ts";
import { badRequest, notFound } from "./api-error.ts";
import { BACKGROUND, type ObjectDeleter } from "./object-deleter.ts";
import { type ApiObject, type ObjectStore, writtenPart } from "./object-store.ts";
import type { ObjectWriter, PendingStores } from "./object-writer.ts";
import { apiVersionOf, type ResourceDefinition, type ResourceRegistry } from "./resource-definition.ts";

/** The objects of the API, to be read and written. */
export interface ObjectAccess {
  readonly registry: ResourceRegistry;
  readonly store: ObjectStore;
  readonly writer: ObjectWriter;
  readonly deleter: ObjectDeleter;
  readonly storing: PendingStores;
  /** Brings the objects of a kind up to date, such as the node, which is made when it is asked for. */
  refresh(definition: ResourceDefinition): Promise<void>;
  /** Loads what writing needs, and makes sure that the disk can be written to. @throws ApiError 500 */
  prepareWrite(): Promise<void>;
}

/** Outcome of applying one object. */
interface AppliedObject {
  /** `deployment.apps/web` */
  reference: string;
  outcome: "created" | "configured" | "unchanged";
  warnings: string[];
  /** The object before; undefined: there was none. */
  before: ApiObject | undefined;
  /** The object as it is now; after a dry run, as it would be. */
  after: ApiObject;
}

const FIELD_MANAGER = "kubelet-ts";

/**
 * Applies and deletes objects for callers inside this process, as an administrator's request would. Every method throws
 * ApiError.
 */
export class ObjectCommands {
  readonly #objects: ObjectAccess;

  constructor(objects: ObjectAccess) {
    this.#objects = objects;
  }

  /** Server-side apply in which the manifest wins. Kinds that are not served are refused. */
  async apply(object: PlainObject, options: { dryRun: boolean }): Promise<AppliedObject> {
    const { registry, writer } = this.#objects;
    const { apiVersion = "", kind } = object;
    const definition = registry.findKind(apiVersion, kind);
    if (!definition)
      throw badRequest(describeIgnoredKind(kind, apiVersion) ?? unservedKind(registry, kind, apiVersion));
    const { name } = object.metadata;
    if (name === undefined) throw badRequest("metadata.name is missing");
    await this.#prepare(definition);
    const namespace = definition.namespaced ? (object.metadata.namespace ?? "default") : undefined;
    const warnings: string[] = [];
    const { before, object: after } = await writer.apply({ definition, namespace, name }, object, {
      manager: FIELD_MANAGER,
      dryRun: options.dryRun,
      fieldValidation: "Strict",
      force: true,
      warn: (message) => void warnings.push(message),
    });
    const isSame = before !== undefined && Bun.deepEquals(writtenPart(before), writtenPart(after));
    const outcome = !before ? "created" : isSame ? "unchanged" : "configured";
    const { singular, group } = definition;
    const reference = `${singular}${group && `.${group}`}/${name}`;
    return { reference, outcome, warnings, before, after };
  }

  /**
   * Begins a deletion; a pod is gone when its containers are.
   * @param plural resource of the core group, or `deployments.apps`
   * @param uid absent: any object of that name
   */
  async delete(plural: string, namespace: string | undefined, name: string, uid?: string): Promise<void> {
    const { registry, deleter, storing } = this.#objects;
    const definition = registry.get(plural);
    if (!definition) throw notFound({ group: "", plural }, name);
    await this.#prepare(definition);
    deleter.delete({ definition, namespace, name }, { ...BACKGROUND, preconditions: { uid } });
    await storing.settled();
  }

  async #prepare(definition: ResourceDefinition): Promise<void> {
    await this.#objects.refresh(definition);
    await this.#objects.prepareWrite();
  }
}

function unservedKind(registry: ResourceRegistry, kind: string, apiVersion: string): string {
  const other = registry.all().find((definition) => definition.kind === kind);
  const hint = other ? `; it serves it as ${apiVersionOf(other)}` : "";
  return `the server does not serve ${kind} of ${apiVersion || "no apiVersion"}${hint}`;
}
