import { isRecord } from "../../base/text/json.ts";
import type { ApiObject, FieldsV1 } from "../api-object.ts";

/** Where the spec of an object's pods may be: a Pod, a workload with a template, a CronJob. */
const POD_SPECS = [["spec"], ["spec", "template", "spec"], ["spec", "jobTemplate", "spec", "template", "spec"]];

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Which objects ask for the DNS of a cluster: their author wrote `dnsPolicy: ClusterFirst`, which is also the default, so the
 * kept object does not show it. What `kubectl create` sent is kept in the state file of the object.
 */
export class ExplicitClusterDns {
  readonly #uids = new Set<string>();

  /** @param sent as the client sent it */
  note({ metadata }: ApiObject, sent: unknown): void {
    // Its author wrote no manifest: the command writes out the defaults.
    if (metadata.managedFields?.some(({ manager }) => manager === "kubectl-run")) return;
    if (metadata.uid !== undefined && writesClusterDns(sent)) this.#uids.add(metadata.uid);
  }

  /** Whether it was noted that the author of an object wrote it. */
  isNoted({ metadata }: ApiObject): boolean {
    return this.#uids.has(metadata.uid ?? "");
  }

  forget({ metadata }: ApiObject): void {
    this.#uids.delete(metadata.uid ?? "");
  }

  of(object: ApiObject): { asksForClusterDns?: true } {
    const asks = this.isNoted(object) || appliesClusterDns(object);
    return asks && writesClusterDns(object) ? { asksForClusterDns: true } : {};
  }
}

const writesClusterDns = (sent: unknown): boolean =>
  POD_SPECS.some((path) => at(sent, [...path, "dnsPolicy"]) === "ClusterFirst");

/** The annotation of `kubectl apply` and the fields owned by server-side apply show what was applied. */
function appliesClusterDns(object: ApiObject): boolean {
  const { annotations, managedFields } = object.metadata;
  const isApplied = (managedFields ?? [])
    .filter(({ operation }) => operation === "Apply")
    .some(({ fieldsV1 }) => POD_SPECS.some((path) => at(fieldsV1, [...path, "dnsPolicy"].map(toStep)) !== undefined));
  return isApplied || writesClusterDns(parse(annotations?.[LAST_APPLIED]));
}

const toStep = (name: string): keyof FieldsV1 => `f:${name}`;

function at(value: unknown, path: readonly (string | number)[]): unknown {
  let found = value;
  for (const name of path) found = isRecord(found) ? found[name] : undefined;
  return found;
}

function parse(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
