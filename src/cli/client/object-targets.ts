import type { ResourceDefinition } from "../../apiserver/resource-definition.ts";
import { type CommandRequest, UsageError } from "../sub-command.ts";
import { type ApiClient, type ApiResource, UnservedKindError } from "./api-client.ts";
import { readManifestObjects } from "./manifest-inputs.ts";

/** An object that a command is about. */
export interface ObjectTarget {
  resource: ApiResource;
  namespace: string;
  name: string;
}

/** Kinds and names of a command line. */
interface WrittenObjects {
  /** Kinds without names: `pods`, `po,svc`. Empty when objects are named. */
  kinds: ApiResource[];
  named: Pick<ObjectTarget, "resource" | "name">[];
  /** No kind was written, so the names are those of pods; the message refuses the first word as a kind. */
  assumed?: string;
}

/** `pod a b`, `pod/a svc/b`, `po,svc`, `po,svc a`, or names of pods. @throws UsageError */
export async function readWrittenObjects(
  api: Pick<ApiClient, "findResource" | "findResources">,
  words: readonly string[],
): Promise<WrittenObjects> {
  const [first, ...rest] = words;
  if (first === undefined) return { kinds: [], named: [] };
  if (first.includes("/")) {
    const named = await Promise.all(
      words.map(async (word) => {
        const [kind = "", name = "", ...more] = word.split("/");
        if (name === "" || kind === "" || more.length > 0)
          throw new UsageError(`"${word}" must be KIND/NAME, as in pod/web`);
        return { resource: await api.findResource(kind), name };
      }),
    );
    return { kinds: [], named };
  }
  let kinds: ApiResource[];
  try {
    kinds = await api.findResources(first);
  } catch (error) {
    // A first word that is no kind is the name of a pod.
    if (!(error instanceof UsageError) || first.includes(",")) throw error;
    const resource = await api.findResource("pods");
    const named = words.map((name) => ({ resource, name }));
    return { kinds: [], named, assumed: error.message };
  }
  if (rest.length === 0) return { kinds, named: [] };
  const named = await Promise.all(
    rest.flatMap((word) =>
      kinds.map(async (resource) => {
        const at = word.indexOf("/");
        if (at >= 0 && (await api.findResource(word.slice(0, at))) !== resource)
          throw new UsageError(`"${word}" is none of the ${resource.name}`);
        return { resource, name: word.slice(at + 1) };
      }),
    ),
  );
  return { kinds: [], named };
}

/**
 * Objects by `-f` where a command takes it, by names, or all of kinds by `--all` and `--selector`.
 * @param verb for messages: `delete`
 * @param onUnserved gets each object of a kind that is not served, which is left out; without it that is thrown
 * @throws UsageError, CommandError
 */
export async function selectObjects(
  api: ApiClient,
  request: CommandRequest,
  {
    takesFiles,
    verb,
    onUnserved,
  }: { takesFiles: boolean; verb: string; onUnserved?: ((problem: string) => void) | undefined },
): Promise<ObjectTarget[]> {
  const { positionals, values, value, isOn } = request;
  const files = takesFiles ? values("filename") : [];
  const selector = value("selector");
  const fieldSelector = value("field-selector");
  const isSelected = isOn("all") || selector !== undefined || fieldSelector !== undefined;
  const namespace = value("namespace") || "default";
  if (files.length > 0) {
    if (positionals.length > 0 || isSelected) throw new UsageError("give names, -f, --all or --selector");
    const targets: ObjectTarget[] = [];
    for (const { file, object } of await readManifestObjects(files, isOn("recursive"))) {
      const { namespace: own = namespace, name = "" } = object.metadata;
      try {
        targets.push({ resource: await api.resourceOf(object), namespace: own, name });
      } catch (error) {
        if (!(error instanceof UnservedKindError) || !onUnserved) throw error;
        onUnserved(`${file}: ${object.kind} "${name}": ${error.message}`);
      }
    }
    return targets;
  }
  const { kinds, named, assumed } = await readWrittenObjects(api, positionals);
  if (named.length > 0) {
    if (isSelected) throw new UsageError("give names, --all or --selector, not both");
    if (isOn("all-namespaces")) throw new UsageError("an object is named in one namespace: give -n, not -A");
    const targets = named.map((target) => ({ ...target, namespace }));
    // `delete srv web`: a misspelled kind must not leave a pod "web" to be deleted.
    const [first, ...others] = targets;
    if (assumed !== undefined && others.length > 0 && !(await api.findObject(first!.resource, namespace, first!.name)))
      throw new UsageError(`${assumed}; nothing was changed`);
    return targets;
  }
  if (kinds.length === 0 && isOn("all"))
    throw new UsageError(
      `a kubelet runs: name a kind with --all, as in: ${verb} pods --all; or stop the kubelet first`,
    );
  if (kinds.length === 0)
    throw new UsageError(`name what to ${verb}, as in: ${verb} pod/web${takesFiles ? ", or give -f FILE" : ""}`);
  if (!isSelected) {
    const [kind] = kinds;
    throw new UsageError(
      `name what to ${verb}, as in: ${verb} ${kind!.singularName || kind!.name} NAME; or give --all or --selector`,
    );
  }
  const scope = isOn("all-namespaces") ? undefined : namespace;
  const query = { ...(selector && { labelSelector: selector }), ...(fieldSelector && { fieldSelector }) };
  const lists = await Promise.all(
    kinds.map(async (resource) => {
      const items = await api.list(resource, scope, query);
      return items.map(({ metadata }) => ({
        resource,
        namespace: metadata.namespace ?? namespace,
        name: metadata.name ?? "",
      }));
    }),
  );
  return lists.flat();
}

/**
 * Refuses to submit what runs from a manifest already. A pod has the name of its node appended there: it would run twice.
 * @param isNew the object is created, not changed
 * @throws ApiStatusError 403 that names the manifest
 */
export async function refuseSecond(api: ApiClient, { resource, namespace, name }: ObjectTarget, isNew: boolean) {
  if (!resource.namespaced || (resource.kind !== "Pod" && !isNew)) return;
  const found = (await api.findObject(resource, namespace, name))?.metadata.name;
  if (found === undefined || (found === name && !isNew)) return;
  // The server knows where an object comes from, and tells who would change it: an empty patch is no change.
  const headers = { "Content-Type": "application/merge-patch+json" };
  const change = { metadata: { labels: { "kubelet-ts.io/submitted": "" } } };
  await api.json("PATCH", `${api.pathOf(resource, namespace, found)}?dryRun=All`, change, headers);
}

/** `pod/web`, `deployment.apps/web`, as kubectl prints it. */
export const referenceOf = (resource: ApiResource, name: string): string => `${kindOf(resource)}/${name}`;

/** `pod`, `deployment.apps`. */
export const kindOf = ({ singularName, name, group }: ApiResource): string =>
  `${singularName || name}${group && `.${group}`}`;

/** Every kind that a kubelet of this version serves; works without a running kubelet. */
export async function loadServedKinds(): Promise<readonly ResourceDefinition[]> {
  const { SERVED_KINDS } = await import("../../apiserver/kinds/served-kinds.ts");
  return SERVED_KINDS;
}

/** Names of a kind: `pods`, `pod`, `po`. */
export const kindNames = ({ plural, singular, kind, shortNames = [] }: ResourceDefinition): string[] => [
  ...new Set([plural, singular, kind.toLowerCase(), ...shortNames]),
];
