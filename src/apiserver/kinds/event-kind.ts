import * as v from "valibot";
import { EVENT_FIELDS } from "../../base/api/event.ts";
import { ObjectMetaSchema } from "../../base/api/meta.ts";
import { int32, text as string, timeOmitted } from "../../base/api/scalar.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../object-store.ts";
import { EVENT_COLUMNS } from "../printers/event-row.ts";
import type { ResourceDefinition } from "../resource-definition.ts";
import { apiKind, printed } from "./define-kind.ts";

const optionalText = v.optional(string);

/** Source: core/v1 `ObjectReference`. */
const ReferenceSchema = v.object({
  kind: v.optional(string, ""),
  namespace: optionalText,
  name: v.optional(string, ""),
  uid: optionalText,
  apiVersion: optionalText,
  resourceVersion: optionalText,
  fieldPath: optionalText,
});

/** Times with fractions of seconds are texts. Source: core/v1 `Event`. */
const FIELDS = {
  involvedObject: ReferenceSchema,
  reason: optionalText,
  message: v.optional(string, ""),
  source: v.optional(v.object({ component: optionalText, host: optionalText }), {}),
  firstTimestamp: v.optional(timeOmitted),
  lastTimestamp: v.optional(timeOmitted),
  count: v.optional(int32),
  type: optionalText,
  eventTime: optionalText,
  series: v.optional(v.object({ count: v.optional(int32), lastObservedTime: optionalText })),
  action: optionalText,
  related: v.optional(ReferenceSchema),
  reportingComponent: v.optional(string, ""),
  reportingInstance: v.optional(string, ""),
};

/** Fields that events.k8s.io calls otherwise. Source: the conversion of events/v1. */
const NEW_NAMES: Readonly<Record<string, string>> = {
  involvedObject: "regarding",
  message: "note",
  reportingComponent: "reportingController",
  source: "deprecatedSource",
  firstTimestamp: "deprecatedFirstTimestamp",
  lastTimestamp: "deprecatedLastTimestamp",
  count: "deprecatedCount",
};
const OLD_NAMES = Object.fromEntries(Object.entries(NEW_NAMES).map(([old, name]) => [name, old]));

const rename = <T extends object>(object: T, names: Readonly<Record<string, string>>): T =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [names[name] ?? name, value])) as T;

/** An event of a client is in memory. */
const MAX_BYTES = 8_192;

function refuseWrong({ metadata: { managedFields: _fields, ...metadata }, ...event }: ApiObject): StatusCause[] {
  const { namespace = "" } = event.involvedObject as { namespace?: string };
  const isOfNamespace = (namespace || "default") === metadata.namespace;
  const isShort = Buffer.byteLength(JSON.stringify({ ...event, metadata })) <= MAX_BYTES;
  const why = `Invalid value: ${JSON.stringify(namespace)}: does not match event.namespace`;
  const rows: [isRight: boolean, field: string, message: string][] = [
    [isOfNamespace, "involvedObject.namespace", why],
    [isShort, "message", `Too long: the event may have at most ${MAX_BYTES} bytes`],
  ];
  return rows.flatMap(([isRight, field, message]) => (isRight ? [] : { reason: "FieldValueInvalid", field, message }));
}

const schemaOf = (fields: typeof FIELDS) => v.object({ metadata: ObjectMetaSchema, ...fields });

export const EVENT = apiKind({
  kind: "Event",
  shortNames: ["ev"],
  schema: schemaOf(FIELDS),
  otherVersions: [
    {
      group: "events.k8s.io",
      version: "v1",
      schema: schemaOf(rename(FIELDS, NEW_NAMES)),
      conversion: {
        fromPreferred: (event) => rename(event, NEW_NAMES),
        toPreferred: (event) => rename(event, OLD_NAMES),
      },
    },
  ],
  columns: printed(EVENT_COLUMNS),
  fields: EVENT_FIELDS as unknown as NonNullable<ResourceDefinition["fields"]>,
  fate: "observed",
  validateCreate: refuseWrong,
  validateUpdate: refuseWrong,
});
