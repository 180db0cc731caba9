import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import { ApiClient, type ApiList, type ApiObject, type ApiResource } from "../client/api-client.ts";
import { podsOfObject } from "../client/choose-pod.ts";
import { type KeptObjects, placeOfObject, placeOfPod } from "../client/kept-pods.ts";
import { readWrittenObjects } from "../client/object-targets.ts";
import type { CommandIo } from "../command-io.ts";
import { describeObject } from "../print/describe-object.ts";
import type { DescribedObject } from "../print/describe-pod.ts";
import { describePod } from "../print/describe-pod.ts";
import { CommandError, type CommandRequest, scopeOf, selectorOf, UsageError } from "../sub-command.ts";

/** All that one command asks the API for, each list once. */
interface Lists {
  events: readonly CoreEvent[];
  pods: readonly Pod[];
  replicaSets: readonly ApiObject[];
}

/** `kubelet-ts describe` of kinds that the local API serves. @param kept has the file of each object */
export async function describeObjects(
  request: CommandRequest,
  io: CommandIo,
  kept: KeptObjects | undefined,
): Promise<number> {
  const api = await ApiClient.open(request);
  const { kinds, named, assumed } = await readWrittenObjects(api, request.positionals);
  if (assumed !== undefined) throw new UsageError(assumed);
  selectorOf(
    request,
    named.map(({ name }) => name),
  );
  const namespace = scopeOf(request).namespace;
  const found: { resource: ApiResource; object: ApiObject }[] = [];
  const problems: string[] = [];
  for (const { resource, name } of named) {
    try {
      found.push({ resource, object: await findOne(api, resource, namespace, name) });
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      problems.push(error.message);
    }
  }
  const selector = request.value("selector");
  for (const resource of kinds) {
    const query = selector ? `?${new URLSearchParams({ labelSelector: selector })}` : "";
    const { items } = await api.json<ApiList>("GET", `${api.pathOf(resource, namespace)}${query}`);
    found.push(...(items ?? []).map((object) => ({ resource, object })));
  }
  const lists = found.length > 0 ? await readLists(api) : undefined;
  const texts = found.map(({ resource, object }) => describeOne(resource, object, lists!, kept, io));
  io.stdout(texts.join("\n\n"));
  if (problems.length > 0) throw new CommandError(problems.join("\n"));
  if (texts.length === 0) io.stderr("No resources found\n");
  return 0;
}

/** @param namespace undefined: the only one that has an object of that name, else `default` */
async function findOne(
  api: ApiClient,
  resource: ApiResource,
  namespace: string | undefined,
  name: string,
): Promise<ApiObject> {
  if (namespace !== undefined || !resource.namespaced)
    return await api.requireObject(resource, namespace ?? "default", name);
  const { items } = await api.json<ApiList>("GET", api.pathOf(resource, undefined));
  const spaces = (items ?? [])
    .filter(({ metadata }) => metadata.name === name)
    .map(({ metadata }) => metadata.namespace);
  if (spaces.length > 1)
    throw new CommandError(
      `there are ${resource.name} "${name}" in the namespaces ${spaces.join(", ")}: choose one with -n`,
    );
  return await api.requireObject(resource, spaces[0] ?? "default", name);
}

async function readLists(api: ApiClient): Promise<Lists> {
  const itemsOf = async <T>(path: string) => (await api.json<{ items: T[] | null }>("GET", path)).items ?? [];
  const [events, pods, replicaSets] = await Promise.all([
    itemsOf<CoreEvent>("/api/v1/events"),
    itemsOf<Pod>("/api/v1/pods"),
    itemsOf<ApiObject>("/apis/apps/v1/replicasets"),
  ]);
  const time = ({ lastTimestamp }: CoreEvent) => Date.parse(lastTimestamp) || 0;
  return { events: events.toSorted((a, b) => time(a) - time(b)), pods, replicaSets };
}

function describeOne(
  { kind, namespaced }: ApiResource,
  object: ApiObject,
  { events, pods, replicaSets }: Lists,
  kept: KeptObjects | undefined,
  io: CommandIo,
): string {
  const { metadata } = object;
  const isOwn = ({ involvedObject }: CoreEvent) =>
    involvedObject.kind === kind &&
    involvedObject.name === metadata.name &&
    (!namespaced || involvedObject.namespace === metadata.namespace);
  const times = { now: io.now(), offsetMinutes: io.offsetMinutes };
  const own = events.filter(isOwn);
  // Items of a list carry no kind.
  const described = { ...object, kind } as DescribedObject;
  if (kind === "Pod") {
    const pod = object as unknown as Pod;
    return describePod(pod, own, times, kept && placeOfPod(pod, kept));
  }
  const manifest = kept && placeOfObject(kind, described.metadata as Parameters<typeof placeOfObject>[1], kept);
  const inNamespace = <T extends { metadata: { namespace?: string | undefined } }>(all: readonly T[]) =>
    all.filter((it) => (it.metadata.namespace ?? "default") === metadata.namespace);
  const hasSelector = (object.spec as { selector?: object } | undefined)?.selector !== undefined;
  const sets = inNamespace(replicaSets as unknown as readonly DescribedObject[]).filter((set) =>
    set.metadata.ownerReferences?.some(({ kind: of, name }) => of === kind && name === metadata.name),
  );
  return describeObject(described, {
    events: own,
    pods: hasSelector ? podsOfObject(object, inNamespace(pods)) : [],
    replicaSets: sets,
    manifest,
    times,
  });
}
