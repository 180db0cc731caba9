import { isRecord } from "../../base/text/json.ts";
import type { ApiObject } from "../api-object.ts";

type Fields = Record<string, unknown>;

const shown = new WeakMap<ApiObject, ApiObject>();

/**
 * A Job with the selector and the labels of its pods, which its uid determines. The kept object does not have them: its
 * file is a manifest, where they must be absent. Source: batch/v1's `generateSelector`.
 */
export function showJobSelector(job: ApiObject): ApiObject {
  const spec = (job.spec ?? {}) as Fields;
  if (spec.manualSelector === true || spec.selector !== undefined || job.metadata.uid === undefined) return job;
  let whole = shown.get(job);
  if (!whole) {
    const template = fieldsOf(spec.template);
    const metadata = fieldsOf(template.metadata);
    const labels = { ...fieldsOf(metadata.labels), ...generatedLabels(job) };
    const selector = { matchLabels: { [CONTROLLER_UID]: job.metadata.uid } };
    whole = { ...job, spec: { ...spec, selector, template: { ...template, metadata: { ...metadata, labels } } } };
    shown.set(job, whole);
  }
  return whole;
}

/** A Job that a client sends back: without what {@link showJobSelector} added. */
export function withoutJobSelector(job: ApiObject): ApiObject {
  const { uid } = job.metadata;
  const { selector, ...spec } = (job.spec ?? {}) as Fields;
  const isGenerated = Bun.deepEquals(selector, { matchLabels: { [CONTROLLER_UID]: uid } });
  if (uid === undefined || !isGenerated || spec.manualSelector === true) return job;
  const template = fieldsOf(spec.template);
  const { labels, ...metadata } = fieldsOf(template.metadata);
  const generated: Fields = generatedLabels(job);
  const own = Object.entries(fieldsOf(labels)).filter(([name, value]) => generated[name] !== value);
  const rest = { ...metadata, ...(own.length > 0 && { labels: Object.fromEntries(own) }) };
  return { ...job, spec: { ...spec, template: { ...template, metadata: rest } } };
}

const CONTROLLER_UID = "batch.kubernetes.io/controller-uid";

const generatedLabels = ({ metadata: { uid, name } }: ApiObject) => ({
  "controller-uid": uid,
  "job-name": name,
  [CONTROLLER_UID]: uid,
  "batch.kubernetes.io/job-name": name,
});

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});
