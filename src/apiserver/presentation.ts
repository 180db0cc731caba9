import { memoized } from "../base/model/memoized.ts";
import { parseMediaTypes } from "../base/text/media-types.ts";
import { badRequest, notAcceptable } from "./api-error.ts";
import type { ApiRequest } from "./api-request.ts";
import { text } from "./kinds/define-kind.ts";
import { LAST_APPLIED } from "./managed-fields.ts";
import { type ApiObject, jsonOf } from "./object-store.ts";
import { formatSince } from "./printers/rows.ts";
import { apiVersionOf, type Column, type ResourceDefinition, servedVersions } from "./resource-definition.ts";

/** Form of a response. */
interface WantedForm {
  shape: "object" | "table" | "metadata";
  /** Group and version of tables and metadata. */
  metaApiVersion?: string;
}

/** The first form an `Accept` header names that can be served; undefined: none can (406). */
export function negotiateForm(accept: string | null): WantedForm | undefined {
  const wanted = parseMediaTypes(accept ?? "");
  if (wanted.length === 0) return { shape: "object" };
  for (const { type, parameters } of wanted) {
    if (type !== "application/json" && type !== "*/*" && type !== "application/*") continue;
    const { as, g = "meta.k8s.io", v = "v1" } = parameters;
    if (as === undefined) return { shape: "object" };
    if (g !== "meta.k8s.io" || (v !== "v1" && v !== "v1beta1")) continue;
    if (as === "Table") return { shape: "table", metaApiVersion: `${g}/${v}` };
    if (/^PartialObjectMetadata(List)?$/.test(as)) return { shape: "metadata", metaApiVersion: `${g}/${v}` };
  }
  return undefined;
}

const NAME: Column = { ...text("Name", ({ metadata }) => metadata.name), format: "name" };
const AGE = text("Age", ({ metadata }, now) => formatSince(metadata.creationTimestamp, now));

function columnsOf({ columns }: ResourceDefinition): readonly Column[] {
  const names = columns.map(({ name }) => name);
  // Columns that have an age of their own stay as declared.
  if (names.includes("Last Seen")) return columns;
  const wide = columns.filter(({ priority = 0 }) => priority > 0);
  const narrow = columns.filter(({ priority = 0 }) => priority === 0);
  const absent = (column: Column) => (names.includes(column.name) ? [] : [column]);
  return [...absent(NAME), ...narrow, ...absent(AGE), ...wide];
}

/** How a response shows objects: in the version, the form and the detail that the client asked for and may see. */
export class Presentation {
  /** The kind in the version of the request. */
  readonly kind: ResourceDefinition;
  /** An object as this user sees it; the same for the same object. */
  readonly show: (object: ApiObject) => ApiObject;
  readonly #form: WantedForm;
  /** The object that each row of a table carries. Source: meta/v1 `IncludeObjectPolicy`. */
  readonly #includeObject: string;
  readonly #now: () => Date;

  /** @throws ApiError 400, 406 */
  constructor(
    { query, user, header }: Pick<ApiRequest, "query" | "user" | "header">,
    definition: ResourceDefinition,
    { group, version }: Pick<ResourceDefinition, "group" | "version">,
    now: () => Date,
  ) {
    const form = negotiateForm(header("Accept"));
    if (!form) throw notAcceptable();
    const isWanted = (it: ResourceDefinition) => it.group === group && it.version === version;
    this.kind = servedVersions(definition).find(isWanted) ?? definition;
    this.#form = form;
    this.#now = now;
    this.#includeObject = query.get("includeObject") || "Metadata";
    if (form.shape === "table" && !["None", "Metadata", "Object"].includes(this.#includeObject)) {
      throw badRequest(`includeObject: Unsupported value: "${this.#includeObject}"`);
    }
    const { complete = (object: ApiObject) => object } = definition;
    const apiVersion = apiVersionOf(this.kind);
    if (definition.isSecret && user.role !== "admin") this.show = hideSecrets;
    else if (apiVersion === apiVersionOf(definition)) this.show = complete;
    else {
      const { fromPreferred = (object: ApiObject) => object } = this.kind.conversion ?? {};
      this.show = (object) => ({ ...fromPreferred(complete(object)), apiVersion });
    }
  }

  /**
   * An object as JSON, after {@link show}.
   * @param hasColumns false leaves the columns of a table out, as later events of a watch do
   */
  text(shown: ApiObject, hasColumns = true): string | Uint8Array {
    if (this.#form.shape === "object") return jsonOf(shown);
    if (this.#form.shape === "metadata") return this.#metadataText(shown);
    const { resourceVersion } = shown.metadata;
    return [...this.#table([shown].values(), { resourceVersion }, hasColumns)].join("");
  }

  /** A list as pieces of JSON, each made when it is asked for. @param metadata of the list */
  *list(objects: readonly ApiObject[], metadata: object): Generator<string | Uint8Array> {
    const { shape } = this.#form;
    const items = objects.values().map(this.show);
    if (shape === "table") return yield* this.#table(items, metadata, true);
    const [kind, apiVersion] =
      shape === "object"
        ? [`${this.kind.kind}List`, apiVersionOf(this.kind)]
        : ["PartialObjectMetadataList", this.#form.metaApiVersion];
    const texts = items.map((item) => this.text(item));
    yield* withArray({ kind, apiVersion, metadata }, "items", texts);
  }

  #metadataText(object: ApiObject): string {
    const metadata = metadataJsonOf(object.metadata);
    return `{"kind":"PartialObjectMetadata","apiVersion":"${this.#form.metaApiVersion}","metadata":${metadata}}`;
  }

  /** Source: meta/v1 `Table`. */
  #table(objects: IteratorObject<ApiObject>, metadata: object, hasColumns: boolean): Generator<string> {
    const columns = columnsOf(this.kind);
    const definitions = columns.map(({ name, type, format = "", priority = 0 }) => ({
      name,
      type,
      format,
      description: "",
      priority,
    }));
    const now = this.#now();
    const { toPreferred = (object: ApiObject) => object } = this.kind.conversion ?? {};
    const rows = objects.map((object) => {
      const preferred = toPreferred(object);
      const cells = JSON.stringify(columns.map(({ value }) => value(preferred, now)));
      if (this.#includeObject === "None") return `{"cells":${cells}}`;
      const shown = this.#includeObject === "Object" ? JSON.stringify(object) : this.#metadataText(object);
      return `{"cells":${cells},"object":${shown}}`;
    });
    const columnDefinitions = hasColumns ? definitions : [];
    const head = { kind: "Table", apiVersion: this.#form.metaApiVersion, metadata, columnDefinitions };
    return withArray(head, "rows", rows);
  }
}

const metadataJsonOf = memoized((metadata: object) => JSON.stringify(metadata));

/** The text of an object with an array of texts as its last member, in pieces. */
function* withArray<T>(head: object, name: string, items: IteratorObject<T>): Generator<string | T> {
  let separator = `${JSON.stringify(head).slice(0, -1)},"${name}":[`;
  for (const item of items) {
    yield separator;
    yield item;
    separator = ",";
  }
  yield `${separator === "," ? "" : separator}]}`;
}

/** A Secret for users with read access only: its keys without values. */
const hideSecrets = memoized((secret: ApiObject): ApiObject => {
  const keys = Object.keys((secret.data as Record<string, string> | undefined) ?? {});
  // The last-applied annotation holds the values too.
  const { [LAST_APPLIED]: _applied, ...annotations } = secret.metadata.annotations ?? {};
  const { annotations: _annotations, ...metadata } = secret.metadata;
  return {
    ...secret,
    metadata: { ...metadata, ...(Object.keys(annotations).length > 0 && { annotations }) },
    data: Object.fromEntries(keys.map((key) => [key, ""])),
  } as ApiObject;
});
