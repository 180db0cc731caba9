import { apiVersionOf } from "../../apiserver/resource-definition.ts";
import { notLive } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import { SystemClock } from "../../base/host/system-clock.ts";
import { statusesOf } from "../../base/model/pod.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { findEditThatFailed } from "../../plan/status/explain-container.ts";
import { findWaitingReason } from "../../plan/waiting-reasons.ts";
import {
  ApiClient,
  type ApiObject,
  type ApiResource,
  ApiStatusError,
  type ApiTable,
  isNamed,
} from "../client/api-client.ts";
import { choosePods, namespaceHint } from "../client/choose-pod.ts";
import { KubeletApiError } from "../client/find-kubelet.ts";
import { openReader, type PodReader } from "../client/kubelet-api.ts";
import { kindOf, readWrittenObjects, referenceOf } from "../client/object-targets.ts";
import { type JsonPath, readJsonPath, readJsonPathTemplate, toText } from "../print/json-path.ts";
import {
  type KindTable,
  type PrinterOptions,
  type ResourceFormat,
  type ResourceItem,
  type ResourceName,
  ResourcePrinter,
  toList,
  toTable,
} from "../print/resource-printer.ts";
import {
  CommandError,
  type CommandIo,
  type CommandRequest,
  needsApi,
  readNames,
  scopeOf,
  selectorOf,
  UsageError,
} from "../sub-command.ts";

/** Objects of one kind, those that were chosen as rows. */
interface SeenKind extends KindTable {
  /** Its objects, selected or not. */
  all: readonly object[];
  /** Messages about names that do not exist. */
  problems: string[];
}

/** The objects of a command line, read again for each period of a watch. */
interface ObjectSource {
  /** Period of `-w`. */
  readonly periodMs: number;
  /** An empty list counts after this number of requests. */
  readonly emptyResponsesToBelieve: number;
  /** Number of names on the command line. */
  readonly names: number;
  /** Why the engine is asked instead of a kubelet. */
  readonly note: string | undefined;
  read(now: Date): Promise<SeenKind[]>;
  /** Namespaces that have objects of these kinds. @throws KubeletApiError where a kubelet does not know any yet */
  namespaces(): Promise<string[]>;
  /** Lines below a table of these objects. */
  notes(items: readonly ResourceItem[]): Promise<string[]>;
}

/** `kubelet-ts get`. Returns the exit code; `-w` returns only when the signal aborts. */
export async function runGet(request: CommandRequest, io: CommandIo, signal?: AbortSignal): Promise<number> {
  const view = readView(request);
  const source = await (needsApi(request) ? openServedObjects(request) : openNodeObjects(request));
  const options = await printerOptions(request);
  const read = async () => (await source.read(io.now())).map((kind) => ({ ...kind, items: choose(kind.items, view) }));
  const seen = await read();
  // A misspelled field would select nothing and sort nothing.
  for (const { all } of seen.filter((kind) => kind.all.length > 0)) {
    for (const { written, path } of view.fields) {
      if (FIELDS.includes(written) || all.some((object) => path.values(object).length > 0)) continue;
      throw new UsageError(`no object has a field "${written}"${didYouMean(written, FIELDS)}`);
    }
  }
  const items = seen.flatMap((kind) => kind.items);
  const problems = seen.flatMap((kind) => kind.problems);
  if (request.isOn("watch") || request.isOn("watch-only")) {
    const [only, ...others] = seen;
    if (others.length > 0) throw new UsageError("one kind at a time can be watched");
    if (problems.length > 0) throw new CommandError(problems.join("\n"));
    const printer = new ResourcePrinter({ ...options, columns: only!.columns });
    if (!request.isOn("watch-only")) io.stdout(printer.lines(items));
    const { periodMs, emptyResponsesToBelieve } = source;
    const watched = { name: "get", periodMs, emptyResponsesToBelieve, read: async () => (await read())[0]!.items };
    await watchItems(watched, items, printer, io, signal);
    return 0;
  }
  const isOne = source.names === 1 && seen.length === 1;
  const isTable = options.format === "table" || options.format === "wide";
  if (view.render) io.stdout(view.render(isOne ? items[0]?.object : toList(items.map(({ object }) => object))));
  else if (items.length === 0 && (isTable || options.format === "name")) {
    const note = source.note === undefined ? "" : ` (${source.note})`;
    if (source.names === 0) io.stderr(`${nothingFound(request, await source.namespaces())}${note}\n`);
  } else {
    // Names, JSON and YAML of several kinds are one list.
    const parts = isTable ? seen.filter((kind) => kind.items.length > 0) : [{ columns: [], items }];
    const texts = parts.map((part) =>
      new ResourcePrinter({ ...options, columns: part.columns }).print(part.items, isOne),
    );
    io.stdout(texts.join("\n"));
  }
  if (!request.isOn("ignore-not-found")) for (const problem of problems) io.stderr(`kubelet-ts get: ${problem}\n`);
  if (isTable) for (const note of await source.notes(items)) io.stderr(`${note}\n`);
  return problems.length > 0 && !request.isOn("ignore-not-found") ? 1 : 0;
}

function choose(items: readonly ResourceItem[], { matches, compare }: ObjectView): ResourceItem[] {
  const chosen = items.filter(({ object }) => matches(object));
  return compare ? chosen.sort((a, b) => compare(a.object, b.object)) : chosen;
}

const FORMATS: readonly string[] = ["wide", "json", "yaml", "name", "jsonpath="];

/** @throws UsageError */
function readView({ value, isOn }: CommandRequest): ObjectView {
  const filter = parseFieldSelector(value("field-selector") ?? "");
  if ("problem" in filter) throw new UsageError(`--field-selector: ${filter.problem}`);
  const sortBy = value("sort-by");
  const order = sortBy === undefined ? undefined : parseSortBy(sortBy);
  if (order && "problem" in order) throw new UsageError(`--sort-by: ${order.problem}`);
  const output = value("output");
  const template = output === undefined ? undefined : parseTemplate(output);
  if (template && "problem" in template) throw new UsageError(`--output: ${template.problem}`);
  if (/^(custom-columns|go-template|template)/.test(output ?? ""))
    throw new UsageError(
      `--output: ${output!.split("=", 1)[0]} is not built in: use jsonpath=, or kubectl get after: kubelet-ts kubeconfig --merge`,
    );
  if (output !== undefined && !template && !FORMATS.includes(output)) {
    const hint = didYouMean(output, FORMATS);
    throw new UsageError(`--output must be ${FORMATS.join(", ")} (found "${output}"${hint})`);
  }
  if (template && (isOn("watch") || isOn("watch-only"))) throw new UsageError(`-o ${output} cannot be watched`);
  const fields = [
    ...filter.fields,
    ...(order ? [{ written: sortBy!.replace(/^\{?\.?|\}$/g, ""), path: order.path }] : []),
  ];
  return { matches: filter.matches, fields, compare: order?.compare, render: template?.render };
}

export async function printerOptions(request: CommandRequest): Promise<Omit<PrinterOptions, "columns">> {
  const output = request.value("output");
  return {
    format: ["wide", "json", "yaml", "name"].includes(output ?? "") ? (output as ResourceFormat) : "table",
    headers: request.isOn("headers"),
    namespaceColumn: request.isOn("all-namespaces") ? true : request.value("namespace") ? false : undefined,
    toYaml: output === "yaml" ? await loadYaml() : String,
  };
}

/** Lists are not indented, as kubectl writes them. */
async function loadYaml(): Promise<(value: unknown) => string> {
  const { writeYaml } = await import("../../base/text/write-yaml.ts");
  return (value) => writeYaml(value, { indentSeq: false });
}

function nothingFound(request: CommandRequest, namespaces: readonly string[]): string {
  const { namespace } = scopeOf(request);
  if (namespace === undefined) return "No resources found";
  return `No resources found in ${namespace} namespace${namespaceHint(namespace, namespaces) || "."}`;
}

const namespacesOf = (objects: readonly ApiObject[]): string[] =>
  objects.flatMap(({ metadata }) => metadata.namespace ?? []);

/** How the kubelet is asked for each kind. */
const READ: Readonly<Record<ResourceName, (reader: PodReader) => Promise<readonly object[]>>> = {
  pods: (reader) => reader.pods(),
  nodes: async (reader) => [await reader.node()],
  events: (reader) => reader.events(),
};

/** Pods, the node or events, by the kubelet's read-only routes, or while none runs by the engine. @throws UsageError, CommandError */
async function openNodeObjects(request: CommandRequest): Promise<ObjectSource> {
  const { object, names } = readNames(request);
  const kind = object as ResourceName;
  const reader = await openReader(request);
  return {
    names: names.length,
    note: reader.note,
    // A list is rendered once while it is the same; a node is measured at each request.
    periodMs: kind === "nodes" ? 5_000 : 500,
    // A kubelet that has just started lists no pods yet.
    emptyResponsesToBelieve: 4,
    read: async (now) => {
      const all = await READ[kind](reader);
      const { chosen, problems } =
        kind === "pods"
          ? choosePods(request, all as readonly Pod[], names)
          : chooseOthers(request, kind, all as readonly ApiObject[], names);
      return [{ ...toTable(kind, chosen, now), all, problems }];
    },
    namespaces: async () => namespacesOf((await READ[kind](reader)) as readonly ApiObject[]),
    notes: async (items) => (kind === "pods" ? await podNotes(reader, items, names.length > 0) : []),
  };
}

/** Words for the reasons of {@link notLive} that a line below the table tells. */
const NOT_LIVE: Readonly<Record<string, string>> = {
  Unclaimed: " is unclaimed",
  EditPending: "",
  Deferred: ": its new resources wait",
  Infeasible: ": its new resources are not possible",
  RolledBack: "",
  RolloutPaused: ": the edit waits",
};

/** One line for a pod or workload that does not follow the newest manifest of a configured source. */
function notLiveNote({ object }: ResourceItem): string[] {
  const { kind = "Pod", metadata, status } = object as Partial<ApiObject> & Pick<Pod, "metadata" | "status">;
  const found = notLive(status);
  const words = NOT_LIVE[found?.reason ?? ""];
  return words === undefined ? [] : [`${kind.toLowerCase()} "${metadata.name}"${words}: ${found?.message}`];
}

/** One line for each pod that was Ready until an edit, and has a container that cannot run. */
async function failedEditNotes(reader: PodReader, pods: readonly Pod[]): Promise<string[]> {
  const failing = pods.filter(({ status }) =>
    statusesOf(status).some(({ state }) => findWaitingReason(state.waiting?.reason)?.isHopeless),
  );
  const events = failing.length > 0 ? await reader.events().catch(() => []) : [];
  return failing.flatMap((pod) => {
    const { name, uid } = pod.metadata;
    const own = events.filter(({ involvedObject }) => involvedObject.uid === uid);
    const edit = findEditThatFailed(pod, own);
    const way = `undo the edit to go back; kubelet-ts explain pod ${name} says why`;
    return edit === undefined ? [] : [`pod "${name}" was Ready until its edit of ${edit}: ${way}`];
  });
}

/** A manifest that is not in force has no column, and one that is refused no row. */
async function podNotes(reader: PodReader, items: readonly ResourceItem[], isNamed: boolean): Promise<string[]> {
  const pods = items.map(({ object }) => object as Pod);
  const notes = [...items.flatMap(notLiveNote), ...(await failedEditNotes(reader, pods))];
  const { engine, refused } = await reader.health();
  if (engine !== undefined) notes.push(`pods may not be as shown: ${engine}`);
  if (isNamed || refused.length === 0) return notes;
  const files = new Set(refused.map(({ file }) => file)).size;
  const head = `${files} ${files === 1 ? "manifest" : "manifests"} refused:`;
  return [...notes, head, ...refused.map(({ message }) => `  ${message}`)];
}

/** Events, or the node, which has no namespace. */
function chooseOthers(request: CommandRequest, kind: string, all: readonly ApiObject[], names: readonly string[]) {
  const { namespace } = scopeOf(request);
  const matches = selectorOf(request);
  const known = all.filter(
    ({ metadata }) =>
      (namespace === undefined || (metadata.namespace ?? namespace) === namespace) && matches(metadata.labels ?? {}),
  );
  const there = known.map(({ metadata }) => metadata.name ?? "");
  return {
    chosen: names.length === 0 ? known : known.filter(({ metadata }) => names.includes(metadata.name ?? "")),
    problems: names
      .filter((name) => !there.includes(name))
      .map((name) => `${kind.slice(0, -1)} "${name}" not found; there are ${there.join(", ")}`),
  };
}

const AS_TABLE = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };

/** Objects of any kinds, by the local API and in its columns. @throws UsageError, CommandError */
async function openServedObjects(request: CommandRequest): Promise<ObjectSource> {
  const api = await ApiClient.open(request).catch((error: unknown) => {
    throw withoutApi(request, error as Error);
  });
  const { kinds, named, assumed } = await readWrittenObjects(api, request.positionals);
  if (assumed !== undefined) throw new UsageError(assumed);
  // The names of each kind in the order in which the kinds are written; none: all its objects.
  const wanted = new Map<ApiResource, string[]>(kinds.map((resource) => [resource, []]));
  for (const { resource, name } of named) wanted.getOrInsert(resource, []).push(name);
  const names = [...wanted.values()].flat();
  selectorOf(request, names);
  return {
    names: names.length,
    note: undefined,
    periodMs: 1000,
    emptyResponsesToBelieve: 1,
    read: () => Promise.all([...wanted].map(([kind, of]) => readKind(api, request, kind, of, wanted.size > 1))),
    namespaces: async () => {
      await (await openReader(request)).pods();
      const lists = await Promise.all([...wanted.keys()].map((kind) => api.list(kind, undefined)));
      return namespacesOf(lists.flat());
    },
    notes: async (items) => items.flatMap(notLiveNote),
  };
}

/** @param showKind names are written with their kind, as in a list of several kinds */
async function readKind(
  api: ApiClient,
  request: CommandRequest,
  resource: ApiResource,
  names: readonly string[],
  showKind: boolean,
): Promise<SeenKind> {
  const query = new URLSearchParams({ includeObject: "Object" });
  const selector = request.value("selector");
  if (selector) query.set("labelSelector", selector);
  const path = api.pathOf(resource, scopeOf(request).namespace);
  const table = await api.json<ApiTable>("GET", `${path}?${query}`, undefined, AS_TABLE);
  const all = (table.rows ?? []).map(({ cells, object }): ResourceItem => {
    const { name, namespace, uid } = object.metadata;
    const reference = referenceOf(resource, name ?? "");
    return {
      key: uid ?? `${namespace}/${name}`,
      reference,
      namespace,
      // Objects of a table carry no kind.
      object: { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind },
      cells: cells.map((cell, index) => {
        if (showKind && table.columnDefinitions[index]?.name === "Name") return reference;
        return cell === null || cell === undefined || cell === "" ? "<none>" : String(cell);
      }),
    };
  });
  const isOf = ({ object }: ResourceItem, name: string) => isNamed(object as ApiObject, name);
  const items = names.length === 0 ? all : all.filter((item) => names.some((name) => isOf(item, name)));
  const missing = names.filter((name) => !items.some((item) => isOf(item, name)));
  const there = all.map(({ object }) => (object as ApiObject).metadata.name ?? "");
  return {
    columns: table.columnDefinitions.map(({ name, priority }) => ({
      name: name.toUpperCase(),
      isWide: priority !== 0,
    })),
    all: all.map(({ object }) => object),
    items,
    problems: missing.map((name) => `${kindOf(resource)} "${name}" not found${didYouMean(name, there, '"')}`),
  };
}

/** Without a local API there are no further kinds. @param why there is none */
function withoutApi({ command: { objects = {} }, positionals: [written = ""] }: CommandRequest, why: Error): Error {
  if (why instanceof UsageError) return why;
  const own = Object.entries(objects).flat(2);
  const kind = written.split("/", 1)[0]!;
  const hint = own.includes(kind.toLowerCase()) ? "" : didYouMean(kind, own);
  if (hint) return new UsageError(`"${kind}" is not something get knows${hint}`);
  return new CommandError(`"${written}" is asked from the local API of a running kubelet: ${why.message}`);
}

interface WatchedItems {
  /** Name of the command. */
  name: string;
  periodMs: number;
  /** An empty list counts after this number of requests. */
  emptyResponsesToBelieve?: number;
  read: () => Promise<readonly ResourceItem[]>;
}

/** Prints changes until the signal aborts. Waits for a kubelet that restarts, since its pods keep running. */
export async function watchItems(
  { name, periodMs, emptyResponsesToBelieve = 1, read }: WatchedItems,
  seen: readonly ResourceItem[],
  printer: ResourcePrinter,
  io: CommandIo,
  signal?: AbortSignal,
): Promise<void> {
  const clock = new SystemClock();
  let before = seen;
  let latest = seen;
  let emptyResponses = 0;
  for (let isLost = false; !signal?.aborted; ) {
    await clock.sleep(periodMs, signal).catch(() => {});
    try {
      latest = await read();
      if (isLost) io.stderr(`kubelet-ts ${name}: the kubelet answers again\n`);
      isLost = false;
    } catch (error) {
      if (!isAway(error)) throw error;
      if (!isLost) io.stderr(`kubelet-ts ${name}: ${error.message}; waiting for it\n`);
      isLost = true;
      continue;
    }
    emptyResponses = latest.length === 0 ? emptyResponses + 1 : 0;
    if (emptyResponses > 0 && emptyResponses < emptyResponsesToBelieve) continue;
    io.stdout(printer.changes(before, latest));
    before = latest;
  }
}

const isAway = (error: unknown): error is Error =>
  error instanceof KubeletApiError ||
  (error instanceof CommandError && !(error instanceof ApiStatusError && error.code < 500));

/** Whether an object is meant. */
type ObjectFilter = (object: object) => boolean;

/**
 * `status.phase=Running,metadata.name!=web`. A field that is absent counts as empty.
 * @returns what is wrong with it as `problem`
 */
export function parseFieldSelector(
  text: string,
): { matches: ObjectFilter; fields: { written: string; path: JsonPath }[] } | { problem: string } {
  const terms: ObjectFilter[] = [];
  const fields: { written: string; path: JsonPath }[] = [];
  for (const term of text.split(",").filter((part) => part.trim() !== "")) {
    const match = /^\s*([\w.[\]-]+?)\s*(!=|==?)\s*(.*?)\s*$/.exec(term);
    const path = match ? readJsonPath(`.${match[1]}`) : { problem: "it has no operator" };
    if (!match || "problem" in path) return { problem: `"${term}" must be field=value or field!=value` };
    const [, written = "", operator, wanted] = match;
    fields.push({ written, path });
    terms.push((object) => (toText(path.values(object)[0]) === wanted) === (operator !== "!="));
  }
  return { fields, matches: (object) => terms.every((term) => term(object)) };
}

/** Fields that selectors may name although objects may lack them. */
const FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.serviceAccountName",
  "spec.hostNetwork",
  "status.phase",
  "status.podIP",
  "status.reason",
  "involvedObject.name",
  "involvedObject.kind",
  "involvedObject.namespace",
  "involvedObject.uid",
  "type",
  "reason",
];

/**
 * Order of `--sort-by`: numbers by value, everything else as text; what has no value comes first.
 * @returns what is wrong with the path as `problem`
 */
export function parseSortBy(
  text: string,
): { compare: (a: object, b: object) => number; path: JsonPath } | { problem: string } {
  const path = readJsonPath(text);
  if ("problem" in path) return path;
  const keyOf = (object: object): unknown => path.values(object)[0];
  return {
    path,
    compare: (a, b) => {
      const [left, right] = [keyOf(a), keyOf(b)];
      if (typeof left === "number" && typeof right === "number") return left - right;
      return toText(left).localeCompare(toText(right), "en", { numeric: true });
    },
  };
}

/**
 * The template of `-o jsonpath=`.
 * @returns undefined for another format, what is wrong with it as `problem`
 */
export function parseTemplate(output: string): ReturnType<typeof readJsonPathTemplate> | undefined {
  const [name, template] = output.split(/=(.*)/s, 2);
  if (name !== "jsonpath") return undefined;
  if (!template) return { problem: "jsonpath needs a template, as in jsonpath={.items[*].metadata.name}" };
  return readJsonPathTemplate(template);
}

/** Selection, order and format by `--field-selector`, `--sort-by` and `-o`. */
interface ObjectView {
  matches: ObjectFilter;
  /** Fields of the selection and the order, as written. */
  fields: readonly { written: string; path: JsonPath }[];
  compare: ((a: object, b: object) => number) | undefined;
  /** Prints a List, or the one object that was named; undefined: a table, JSON, YAML or names. */
  render: ((object: unknown) => string) | undefined;
}
