import type { Secret } from "../../base/api/config-objects.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Ingress } from "../../base/api/ingress.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Service } from "../../base/api/service.ts";
import { findPortHolders } from "../../base/host/port-holder.ts";
import { hostPortsOf, namespaceOf, podFullName } from "../../base/model/pod.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { readLogTails } from "../../daemon/log-tails.ts";
import { ServicePods } from "../../plan/service-endpoints.ts";
import {
  explainObject,
  failedRun,
  type ObjectContext,
  type ObjectExplanation,
  renderObjectExplanation,
  runningJob,
} from "../../plan/status/explain-object.ts";
import { explainPod, renderExplanation } from "../../plan/status/explain-pod.ts";
import { ApiClient, type ApiObject } from "../client/api-client.ts";
import { findPod, inScope, namespaceHint, POD_KIND, POD_WORDS, podsOfObject } from "../client/choose-pod.ts";
import { engineOf } from "../client/engine-reader.ts";
import { locateKubelet } from "../client/find-kubelet.ts";
import { KubeletApi, openReader, type RefusedText } from "../client/kubelet-api.ts";
import { kindNames, kindOf, loadServedKinds } from "../client/object-targets.ts";
import { readWrittenEndpoints } from "../client/written-endpoints.ts";
import { type DocumentedType, findField, renderFields, renderTree } from "../print/kind-fields.ts";
import {
  CommandError,
  type CommandIo,
  type CommandRequest,
  type PodScope,
  scopeOf,
  UsageError,
} from "../sub-command.ts";

const LOG_LINES = 20;

/** `kubelet-ts explain`: why pods, and objects with pods, are not ready. Returns 0 when all of them are, else 1. */
export async function runExplain(request: CommandRequest, io: CommandIo): Promise<number> {
  const isRecursive = request.isOn("recursive");
  const { instance, ...found } = await locateKubelet(request);
  // `pod` alone means all pods, `node` the only one; a pod may be called like a kind.
  const isNode = request.positionals.join() === "node" && !isRecursive && instance && !("problem" in found);
  const written = isNode ? [`node/${instance.nodeName}`] : request.positionals;
  const [only = "", ...rest] = written;
  const names = POD_WORDS.includes(only) && !isRecursive ? rest : written;
  const isField = written.length === 1 && names.length === 1 && !only.includes("/");
  if (isField && (isRecursive || !(await isPod(request, only)))) {
    const code = await explainKind(only, request, io);
    if (code !== undefined) return code;
  }
  if (isRecursive) throw new UsageError("--recursive shows the fields of one kind, as in explain pod.spec --recursive");
  const api = await openReader(request);
  const events = api instanceof KubeletApi ? await api.events() : [];
  // The node says more than its pods while no engine answers.
  const pods = isNode ? await api.pods().catch(() => []) : await api.pods();
  const scope = scopeOf(request);
  const { refused, engine } = await api.health();
  const objects = await findObjects(request, names, pods, events, refused);
  const podNames = objects.length > 0 ? names.filter((name) => POD_KIND.test(name)) : names;
  const chosen = [
    ...new Set([
      ...(names.length === 0 ? inScope(pods, scope) : podNames.map((name) => find(pods, name, scope, refused))),
      ...objects.flatMap((it) => it.pods),
    ]),
  ];
  if (names.length === 0 && chosen.length === 0) {
    if (scope.namespace === undefined) throw new CommandError("there are no pods");
    const hint = namespaceHint(scope.namespace, pods.map(namespaceOf));
    throw new CommandError(`there are no pods in namespace "${scope.namespace}"${hint}`);
  }
  const host = engineOf(request, instance?.dockerEndpoint);
  const images = await host.imageNames();
  const explanations = await Promise.all(
    chosen.map(async (pod) =>
      explainPod({
        pod,
        events: events.filter(({ involvedObject }) => involvedObject.uid === pod.metadata.uid),
        logs: await readLogTails(pod, host.containers, LOG_LINES),
        pods,
        images,
        portHolders: findPortHolders(pod.status?.phase === "Pending" ? hostPortsOf(pod.spec) : []),
        refused: refused.map(({ message }) => message),
        now: io.now(),
      }),
    ),
  );
  const all = [...objects.map((it) => it.explanation), ...explanations];
  const texts = all.map((it) => ("state" in it ? renderObjectExplanation(it) : renderExplanation(it)));
  io.stdout(`${request.value("output") === "json" ? JSON.stringify(all, null, 2) : texts.join("\n\n")}\n`);
  if (engine !== undefined && chosen.length > 0) io.stderr(`pods may not be as shown: ${engine}\n`);
  if (names.length === 0) for (const { message } of refused) io.stderr(`refused: ${message}\n`);
  return all.every(({ isReady }) => isReady) && (names.length > 0 || refused.length === 0) ? 0 : 1;
}

/**
 * The objects of `deploy/web svc/db` or `deploy web`, with their pods; none when pods are named.
 * @throws CommandError, UsageError
 */
async function findObjects(
  request: CommandRequest,
  names: readonly string[],
  pods: readonly Pod[],
  events: readonly CoreEvent[],
  refused: readonly RefusedText[],
): Promise<{ explanation: ObjectExplanation; pods: Pod[] }[]> {
  const [first = "", ...rest] = names;
  const kinds = first.includes("/") || rest.length === 0 ? [] : await loadServedKinds();
  const isKind = kinds.some((kind) => kind.plural !== "pods" && kindNames(kind).includes(first.toLowerCase()));
  if (kinds.length > 0 && !isKind && "problem" in findPod(pods, first, scopeOf(request))) {
    const hint = didYouMean(first, kinds.flatMap(kindNames));
    if (hint !== "") throw new UsageError(`there is no kind and no pod "${first}"${hint}`);
  }
  const words = isKind ? rest.map((name) => `${first}/${name}`) : names.filter((name) => name.includes("/"));
  const written = words.filter((word) => !POD_KIND.test(word));
  if (written.length === 0) return [];
  if (words.length < names.length && !isKind) throw new UsageError("give names of pods, or KIND/NAME, not both");
  const api = await ApiClient.open(request, "Without it only pods are known");
  const namespace = scopeOf(request).namespace ?? "default";
  return Promise.all(
    written.map(async (word) => {
      const [kind = "", name = "", ...more] = word.split("/");
      if (name === "" || more.length > 0) throw new UsageError(`"${word}" must be KIND/NAME, as in deploy/web`);
      const resource = await api.findResource(kind);
      const object = await api.requireObject(resource, namespace, name);
      const { ownedBy = object, ...context } = (await CONTEXTS[object.kind]?.(api, object, pods)) ?? {};
      const own = podsOfObject(ownedBy, inScope(pods, { namespace }));
      const explanation = explainObject(object.kind, {
        ...context,
        kind: kindOf(resource),
        object,
        pods: own,
        refused: refused.map(({ message }) => message),
        events: events.filter(({ involvedObject }) => involvedObject.uid === object.metadata.uid),
      });
      if (!explanation) throw new CommandError(`${word} has no state to explain: kubelet-ts describe ${word}`);
      return { explanation, pods: own };
    }),
  );
}

/** @returns also the object whose pods are meant, where it is another one */
type ReadContext = (
  api: ApiClient,
  object: ApiObject,
  pods: readonly Pod[],
) => Promise<ObjectContext & { ownedBy?: ApiObject }>;

/** Reads for some kinds the objects that their state depends on, in addition to their pods. */
const CONTEXTS: Readonly<Record<string, ReadContext>> = {
  CronJob: async (api, { metadata }) => {
    const all = await api.list(await api.findResource("jobs"), metadata.namespace);
    const jobs = all.filter((job) => job.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
    const told = failedRun(jobs)?.job ?? runningJob(jobs);
    return { jobs, ...(told && { ownedBy: told as ApiObject }) };
  },
  Service: async (api, object, pods) => {
    const endpoints = new ServicePods(pods, await readWrittenEndpoints(api));
    return { backends: endpoints.behind(object as unknown as Service) };
  },
  Ingress: async (api, { metadata }, pods) => {
    const { computeIngressConfig } = await import("../../plan/ingress-config.ts");
    const list = async <T>(kind: string) => (await api.list(await api.findResource(kind), undefined)) as unknown as T[];
    const [ingresses, services, secrets] = await Promise.all([
      list<Ingress & { status?: { loadBalancer?: object } }>("ingresses"),
      list<Service>("services"),
      list<Secret>("secrets"),
    ]);
    const { problems, waiting } = computeIngressConfig({
      // Those of other classes have no status.
      ingresses: ingresses.filter(({ status }) => status?.loadBalancer),
      services,
      secrets: new Map(secrets.map((secret) => [podFullName(secret.metadata), secret])),
      pods: new ServicePods(pods, await readWrittenEndpoints(api)),
      ports: { http: 80, https: 443 },
    });
    const name = podFullName(metadata);
    return { problems: [...(problems.get(name) ?? []), ...(waiting.get(name) ?? [])] };
  },
};

/** Whether there is a pod of that name; without a kubelet and an engine there is none. */
async function isPod(request: CommandRequest, name: string): Promise<boolean> {
  try {
    const pods = await (await openReader(request)).pods();
    return !("problem" in findPod(pods, name, scopeOf(request)));
  } catch {
    return false;
  }
}

/** @param refused a pod that is not there may be in one of these manifests */
function find(pods: readonly Pod[], name: string, scope: PodScope, refused: readonly RefusedText[]): Pod {
  const pod = findPod(pods, name, scope);
  if (!("problem" in pod)) return pod;
  const lines = refused.map(({ message }) => `\n  ${message}`);
  throw new CommandError(
    pod.problem + (lines.length > 0 ? `; manifests with mistakes are refused as a whole:${lines.join("")}` : ""),
  );
}

/**
 * `kubelet-ts explain pod.spec`: the fields of a kind, as the manifests are read. Needs no kubelet.
 * @param written a kind, and fields behind dots
 * @returns undefined when the first word is no kind
 */
async function explainKind(written: string, request: CommandRequest, io: CommandIo): Promise<number | undefined> {
  const [word = "", ...fields] = written.split(".");
  const kinds = await loadServedKinds();
  const kind = kinds.find((it) => kindNames(it).includes(word.toLowerCase()));
  if (!kind) return undefined;
  const [{ definitionName, openApiDefinitions }, { default: descriptions }] = await Promise.all([
    import("../../apiserver/openapi/definitions.ts"),
    import("../../apiserver/openapi/descriptions.json", { with: { type: "json" } }),
  ]);
  const definitions = openApiDefinitions(kinds, descriptions) as Record<string, DocumentedType>;
  const found = findField(definitions, definitionName(kind), fields);
  if ("missing" in found) {
    const hint = didYouMean(found.missing, found.known) || `; it has ${found.known.join(", ") || "no fields"}`;
    throw new UsageError(`${found.path || kind.kind} has no field "${found.missing}"${hint}`);
  }
  const head = [
    ...(kind.group === "" ? [] : [`GROUP:      ${kind.group}`]),
    `KIND:       ${kind.kind}`,
    `VERSION:    ${kind.version}`,
  ];
  const body = request.isOn("recursive") ? renderTree(definitions, found) : renderFields(definitions, found);
  io.stdout(`${head.join("\n")}\n\n${body}`);
  return 0;
}
