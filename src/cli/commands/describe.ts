import { formatLongTime, type NodeObject } from "../../apiserver/printers/rows.ts";
import type { EndpointSlice, Endpoints } from "../../base/api/endpoints.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Service } from "../../base/api/service.ts";
import { ServicePods } from "../../plan/service-endpoints.ts";
import { ApiClient, type ApiObject, type ApiResource } from "../client/api-client.ts";
import { choosePods, podsOfObject } from "../client/choose-pod.ts";
import { locateKubelet } from "../client/find-kubelet.ts";
import { type KeptObjects, locationOfObject, locationOfPod, readKeptObjects } from "../client/kept-pods.ts";
import { KubeletApi, openReader } from "../client/kubelet-api.ts";
import { readWrittenObjects } from "../client/object-targets.ts";
import { readWrittenEndpoints } from "../client/written-endpoints.ts";
import { describeObject } from "../print/describe-object.ts";
import { type DescribeTimes, describeNode, describePod } from "../print/describe-pods-and-nodes.ts";
import {
  CommandError,
  type CommandIo,
  type CommandRequest,
  needsApi,
  readNames,
  requireNode,
  scopeOf,
  selectorOf,
  UsageError,
} from "../sub-command.ts";

/** Objects to describe, and the lists that surround them, each read once. */
interface Found {
  /** Each with its kind, which the items of a list lack. */
  objects: ApiObject[];
  /** The node is described with what its pods request, where that is all that is named. */
  node?: NodeObject;
  /** Messages about names that do not exist. */
  problems: string[];
  /** Oldest first. */
  events: readonly CoreEvent[];
  pods: readonly Pod[];
  replicaSets: readonly ApiObject[];
  endpoints?: readonly (Endpoints | EndpointSlice)[];
}

/** `kubelet-ts describe`. Returns the exit code. */
export async function runDescribe(request: CommandRequest, io: CommandIo): Promise<number> {
  const found = needsApi(request) ? await findServed(request) : await findOwn(request);
  const toText: DescribeTimes["toText"] = (time) => formatLongTime(time, io.offsetMinutes);
  const times = { now: io.now(), toText };
  if (found.node) {
    const own = found.events.filter(({ involvedObject }) => involvedObject.kind === "Node");
    io.stdout(describeNode(found.node, found.pods, own, times));
    return 0;
  }
  // The checkpoints of another machine are not here.
  const kept = request.value("server") ? undefined : readKeptObjects((await locateKubelet(request)).rootDir);
  const texts = found.objects.map((object) => describeOne(object, found, kept, times));
  io.stdout(texts.join("\n\n"));
  if (found.problems.length > 0) throw new CommandError(found.problems.join("\n"));
  if (texts.length === 0) io.stderr("No resources found\n");
  return 0;
}

/** Pods or the node, by the kubelet's read-only routes, or while none runs by the engine. */
async function findOwn(request: CommandRequest): Promise<Found> {
  const { object, names } = readNames(request);
  const reader = await openReader(request);
  // Events are known to a running kubelet alone.
  const events = reader instanceof KubeletApi ? await reader.events() : [];
  const pods = await reader.pods();
  const lists = { events, pods, replicaSets: [] };
  if (object === "nodes") {
    const node = await reader.node();
    requireNode(node, names);
    return { objects: [], node, problems: [], ...lists };
  }
  const { chosen, problems } = choosePods(request, pods, names);
  return {
    objects: chosen.map((pod) => ({ ...pod, apiVersion: "v1", kind: "Pod" }) as unknown as ApiObject),
    problems,
    ...lists,
  };
}

/** Objects of any kinds, by the local API. */
async function findServed(request: CommandRequest): Promise<Found> {
  const api = await ApiClient.open(request);
  const { kinds, named, assumed } = await readWrittenObjects(api, request.positionals);
  if (assumed !== undefined) throw new UsageError(assumed);
  const names = named.map(({ name }) => name);
  selectorOf(request, names);
  const { namespace } = scopeOf(request);
  const objects: ApiObject[] = [];
  const problems: string[] = [];
  const add = ({ kind }: ApiResource, object: ApiObject) => objects.push({ ...object, kind });
  for (const { resource, name } of named) {
    try {
      add(resource, await findOne(api, resource, namespace, name));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      problems.push(error.message);
    }
  }
  const selector = request.value("selector");
  for (const resource of kinds) {
    const query = { ...(selector && { labelSelector: selector }) };
    for (const object of await api.list(resource, namespace, query)) add(resource, object);
  }
  const itemsOf = async <T>(path: string) => (await api.json<{ items: T[] | null }>("GET", path)).items ?? [];
  const [events, pods, replicaSets, endpoints] = await Promise.all([
    itemsOf<CoreEvent>("/api/v1/events"),
    itemsOf<Pod>("/api/v1/pods"),
    itemsOf<ApiObject>("/apis/apps/v1/replicasets"),
    objects.some(({ kind }) => kind === "Service") ? readWrittenEndpoints(api) : [],
  ]);
  const time = ({ lastTimestamp }: CoreEvent) => Date.parse(lastTimestamp) || 0;
  return { objects, problems, events: events.toSorted((a, b) => time(a) - time(b)), pods, replicaSets, endpoints };
}

/** @param namespace undefined: the only one that has an object of that name, else `default` */
async function findOne(api: ApiClient, resource: ApiResource, namespace: string | undefined, name: string) {
  if (namespace !== undefined || !resource.namespaced)
    return await api.requireObject(resource, namespace ?? "default", name);
  const namesakes = (await api.list(resource, undefined)).filter(({ metadata }) => metadata.name === name);
  const spaces = namesakes.map(({ metadata }) => metadata.namespace);
  if (spaces.length > 1)
    throw new CommandError(
      `there are ${resource.name} "${name}" in the namespaces ${spaces.join(", ")}: choose one with -n`,
    );
  return await api.requireObject(resource, spaces[0] ?? "default", name);
}

function describeOne(
  object: ApiObject,
  { events, pods, replicaSets, endpoints = [] }: Found,
  kept: KeptObjects | undefined,
  times: DescribeTimes,
): string {
  const { kind, metadata } = object;
  if (kind === "Pod") {
    const pod = object as unknown as Pod;
    const own = events.filter(({ involvedObject }) => involvedObject.uid === pod.metadata.uid);
    return describePod(pod, own, times, kept && locationOfPod(pod, kept));
  }
  const inNamespace = <T extends { metadata: { namespace?: string | undefined } }>(all: readonly T[]) =>
    all.filter((it) => (it.metadata.namespace ?? "default") === metadata.namespace);
  const hasSelector = (object.spec as { selector?: object } | undefined)?.selector !== undefined;
  return describeObject(object, {
    events: events.filter(
      ({ involvedObject }) =>
        involvedObject.kind === kind &&
        involvedObject.name === metadata.name &&
        (metadata.namespace === undefined || involvedObject.namespace === metadata.namespace),
    ),
    pods: hasSelector ? podsOfObject(object, inNamespace(pods)) : [],
    ...(kind === "Service" && {
      backends: new ServicePods(pods, endpoints).behind(object as unknown as Service),
    }),
    replicaSets: inNamespace(replicaSets).filter((set) =>
      set.metadata.ownerReferences?.some(({ kind: of, name }) => of === kind && name === metadata.name),
    ),
    manifest: kept && locationOfObject(kind, metadata, kept),
    times,
  });
}
