import type { ConfigMap } from "../../base/api/config-map.ts";
import type { Secret } from "../../base/api/secret.ts";
import type { DesiredObject } from "../../base/model/desired-object.ts";
import { canonicalJson } from "../../base/text/canonical-json.ts";

/** An object of any kind but Pod, as it is compared. */
export interface PlainObject {
  kind: string;
  metadata: {
    name?: string | undefined;
    namespace?: string | undefined;
    labels?: Readonly<Record<string, string>> | undefined;
    annotations?: Readonly<Record<string, string>> | undefined;
  };
  [field: string]: unknown;
}

/** Objects other than pods, each with its kind. */
export function plainObjects({
  configMaps,
  secrets,
  objects,
}: {
  configMaps: readonly ConfigMap[];
  secrets: readonly Secret[];
  objects: readonly DesiredObject[];
}): PlainObject[] {
  return [
    ...configMaps.map((object) => ({ ...object, kind: "ConfigMap" })),
    ...secrets.map((object) => ({ ...object, kind: "Secret" })),
    ...objects.map(({ kind, object }) => ({ ...object, kind })),
  ] as PlainObject[];
}

/** The fields of both that users write. Values of Secrets are hidden, but differing ones are shown as different. */
export function shownObjects(before: PlainObject | undefined, after: PlainObject): [object | undefined, object] {
  return [
    before && shown(before, before.kind === "Secret" ? maskedData(before, after, "*** (before)") : {}),
    shown(after, after.kind === "Secret" ? maskedData(after, before, "*** (after)") : {}),
  ];
}

function shown(
  { kind, metadata, status: _status, apiVersion: _version, ...rest }: PlainObject,
  masked: object,
): object {
  const { name, namespace = "default", labels, annotations } = metadata;
  const own = { name, namespace, ...(labels && { labels }), ...(annotations && { annotations }) };
  return { kind, metadata: own, ...sorted({ ...rest, ...masked }) };
}

/** Without an order of fields that depends on who wrote them. */
const sorted = (value: unknown): object => JSON.parse(canonicalJson(value)) as object;

type Data = Readonly<Record<string, unknown>> | undefined;

/** @param changed replaces a value that the other object has not, or has otherwise */
function maskedData(object: PlainObject, other: PlainObject | undefined, changed: string): object {
  const mask = (field: string) => {
    const [own, others] = [object[field] as Data, other?.[field] as Data];
    if (own === undefined) return {};
    const values = Object.entries(own).map(([key, value]) => [
      key,
      JSON.stringify(value) === JSON.stringify(others?.[key]) ? "***" : changed,
    ]);
    return { [field]: Object.fromEntries(values) as Record<string, string> };
  };
  return { ...mask("data"), ...mask("stringData") };
}

/** Effects of an edit of a workload on its pods. */
export function describeObjectEffects(before: PlainObject | undefined, after: PlainObject): string[] {
  const [was, is] = [before?.spec, after.spec] as ({ template?: unknown; replicas?: number } | undefined)[];
  if (is?.template === undefined) return [];
  const count = is.replicas;
  if (was === undefined) return [count === undefined ? "starts its pods" : `starts ${pods(count)}`];
  const effects: string[] = [];
  if (canonicalJson(was.template) !== canonicalJson(is.template)) {
    effects.push(
      after.kind === "Job"
        ? "the pods of a Job are not replaced: delete it and apply it again"
        : "replaces its pods by new ones",
    );
  }
  const more = (count ?? 1) - (was.replicas ?? 1);
  if (more !== 0) effects.push(`${more > 0 ? "starts" : "stops"} ${pods(Math.abs(more))}`);
  return effects;
}

const pods = (count: number): string => `${count} ${count === 1 ? "pod" : "pods"}`;
