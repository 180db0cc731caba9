import type { Pod } from "../../base/api/pod.ts";
import { SystemClock } from "../../base/host/system-clock.ts";
import { nearestName } from "../../base/text/nearest-name.ts";
import { findApiSocket } from "../client/api-client.ts";
import { KubeletApiError, type Tagged } from "../client/kubelet-api.ts";
import { findPod } from "../client/pod-lookup.ts";
import type { CommandIo } from "../command-io.ts";
import { labelHeaders, toLabelColumns, withLabelCells } from "../print/label-columns.ts";
import { type PrinterOptions, ResourcePrinter } from "../print/resource-printer.ts";
import {
  changesBetween,
  type ResourceFormat,
  type ResourceItem,
  type ResourceName,
  toEventItem,
  toNodeItem,
  toPodItem,
} from "../print/resource-view.ts";
import {
  findUnknownField,
  type ObjectView,
  parseFieldSelector,
  parseObjectFormat,
  parseSortBy,
} from "../print/selection.ts";
import {
  CommandError,
  type CommandRequest,
  findObject,
  needsApi,
  openReader,
  type PodReader,
  scopeOf,
  selectorOf,
  UsageError,
} from "../sub-command.ts";

/** Period of `-w`. Lists have an ETag, so an unchanged list is cheap; a node is measured at each request. */
const WATCH_PERIOD_MS: Readonly<Record<ResourceName, number>> = { pods: 500, events: 500, nodes: 5_000 };
/** A kubelet that has just started lists no pods yet: an empty list counts after this number of requests. */
const EMPTY_ANSWERS_TO_BELIEVE = 4;

/** `kubelet-ts get`. Returns the exit code; `-w` returns only when the signal aborts. */
export async function runGet(request: CommandRequest, io: CommandIo, signal?: AbortSignal): Promise<number> {
  const [written, ...names] = request.positionals;
  const view = readView(request);
  if (needsApi(request)) {
    const { getObjects } = await import("./get-objects.ts");
    await findApiSocket(request).catch((error: unknown) => {
      throw withoutApi(request, written ?? "", error as Error);
    });
    return await getObjects(request, view, await printerOptions(request), io);
  }
  const { resource, named } = parseTarget(request, written, names);
  const reader = new ResourceReader(resource, named, request, view);
  const printer = new ResourcePrinter({ ...(await printerOptions(request)), resource });
  const api = await openReader(request);
  const { items, problems, unknownField } = (await reader.read(api))!;
  if (unknownField !== undefined) throw new UsageError(unknownField);
  const isWatch = request.isOn("watch") || request.isOn("watch-only");
  if (isWatch) {
    if (problems.length > 0) throw new CommandError(problems.join("\n"));
    if (!request.isOn("watch-only")) io.stdout(printer.lines(items, io.now()));
    await watch(api, reader, items, printer, io, signal);
    return 0;
  }
  if (view.format)
    io.stdout(
      view.format(
        items.map(({ object }) => object),
        named.length === 1,
      ),
    );
  else if (items.length > 0 || !isTable(request)) io.stdout(printer.print(items, named.length === 1, io.now()));
  else if (named.length === 0) io.stderr(`${nothingFound(request)}${api.note ? ` (${api.note})` : ""}\n`);
  if (!request.isOn("ignore-not-found")) for (const problem of problems) io.stderr(`kubelet-ts get: ${problem}\n`);
  const isPodTable = resource === "pods" && [undefined, "wide"].includes(request.value("output"));
  if (isPodTable) showUnclaimed(items, io);
  if (isPodTable && named.length === 0) await showRefused(api, io);
  return problems.length > 0 && !request.isOn("ignore-not-found") ? 1 : 0;
}

/** The table has no column for it: which pods no configured source describes, and the way out. */
function showUnclaimed(items: readonly ResourceItem[], io: CommandIo): void {
  for (const { object } of items) {
    const { metadata, status } = object as Pod;
    const unclaimed = status?.conditions?.find(({ reason }) => reason === "Unclaimed");
    if (unclaimed) io.stderr(`pod "${metadata.name}" is unclaimed: ${unclaimed.message}\n`);
  }
}

/** A manifest that is refused has no row: it is named below the table. */
async function showRefused(api: PodReader, io: CommandIo): Promise<void> {
  const refused = (await api.refusedManifests?.().catch(() => [])) ?? [];
  if (refused.length === 0) return;
  const files = new Set(refused.map(({ file }) => file)).size;
  io.stderr(`${files} ${files === 1 ? "manifest" : "manifests"} refused:\n`);
  for (const { message } of refused) io.stderr(`  ${message}\n`);
}

const FORMATS: readonly string[] = ["wide", "json", "yaml", "name", "jsonpath=", "custom-columns="];

/** @throws UsageError */
function readView({ value, isOn }: CommandRequest): ObjectView {
  const filter = parseFieldSelector(value("field-selector") ?? "");
  if ("problem" in filter) throw new UsageError(`--field-selector: ${filter.problem}`);
  const sortBy = value("sort-by");
  const order = sortBy === undefined ? undefined : parseSortBy(sortBy);
  if (order && "problem" in order) throw new UsageError(`--sort-by: ${order.problem}`);
  const output = value("output");
  const format = output === undefined ? undefined : parseObjectFormat(output, isOn("headers"));
  if (format && "problem" in format) throw new UsageError(`--output: ${format.problem}`);
  if (output?.startsWith("go-template") || output?.startsWith("template"))
    throw new UsageError("--output: Go templates are not built in: use jsonpath= or custom-columns=");
  if (output !== undefined && !format && !FORMATS.includes(output)) {
    const near = nearestName(output, FORMATS);
    throw new UsageError(
      `--output must be ${FORMATS.join(", ")} (found "${output}"${near ? `; did you mean ${near}?` : ""})`,
    );
  }
  if (format && (isOn("watch") || isOn("watch-only"))) throw new UsageError(`-o ${output} cannot be watched`);
  const fields = [
    ...filter.fields,
    ...(order ? [{ written: sortBy!.replace(/^\{?\.?|\}$/g, ""), path: order.path }] : []),
  ];
  return { matches: filter.matches, fields, compare: order?.compare, format };
}

async function printerOptions(request: CommandRequest): Promise<Omit<PrinterOptions, "resource">> {
  const output = request.value("output");
  return {
    format: ["wide", "json", "yaml", "name"].includes(output ?? "") ? (output as ResourceFormat) : "table",
    headers: request.isOn("headers"),
    labelHeaders: labelHeaders(labelColumnsOf(request)),
    namespaceColumn: request.isOn("all-namespaces") ? true : request.value("namespace") ? false : undefined,
    toYaml: output === "yaml" ? await loadYaml() : String,
  };
}

/** Without a local API there are no further kinds. @param why there is none */
function withoutApi({ command: { objects = {} } }: CommandRequest, written: string, why: Error): Error {
  if (why instanceof UsageError) return why;
  const own = Object.entries(objects).flat(2);
  const kind = written.split("/", 1)[0]!;
  const near = own.includes(kind.toLowerCase()) ? undefined : nearestName(kind, own);
  if (near !== undefined) return new UsageError(`"${kind}" is not something get knows; did you mean ${near}?`);
  return new CommandError(`"${written}" is asked from the local API of a running kubelet: ${why.message}`);
}

const isTable = ({ value }: CommandRequest) => ["table", "wide", "name", undefined].includes(value("output"));

function nothingFound(request: CommandRequest): string {
  const { namespace } = scopeOf(request);
  return namespace === undefined ? "No resources found" : `No resources found in ${namespace} namespace.`;
}

const labelColumnsOf = (request: CommandRequest) =>
  toLabelColumns(request.value("label-columns"), request.isOn("show-labels"));

/** `pods web` and `pod/web` alike. */
function parseTarget(
  request: CommandRequest,
  written: string | undefined,
  names: readonly string[],
): { resource: ResourceName; named: string[] } {
  const [kind, name] = written?.split("/", 2) ?? [];
  const resource = findObject(request.command, kind);
  const others = names.map((other) => {
    const [otherKind, otherName] = other.split("/", 2);
    if (otherName === undefined) return other;
    if (findObject(request.command, otherKind) !== resource)
      throw new UsageError(`"${other}" is none of the ${resource}`);
    return otherName;
  });
  return { resource: resource as ResourceName, named: name ? [name, ...others] : others };
}

interface Seen {
  items: ResourceItem[];
  /** Messages about names that do not exist. */
  problems: string[];
  /** A field of the selection or the order that no object has. */
  unknownField?: string | undefined;
}

/** The objects of one command, read again for each period of a watch. */
class ResourceReader {
  readonly #resource: ResourceName;
  readonly #named: readonly string[];
  readonly #request: CommandRequest;
  readonly #view: ObjectView;
  #etag: string | undefined;

  constructor(resource: ResourceName, named: readonly string[], request: CommandRequest, view: ObjectView) {
    this.#view = view;
    this.#resource = resource;
    this.#named = named;
    this.#request = request;
    selectorOf(request, named);
  }

  get periodMs(): number {
    return WATCH_PERIOD_MS[this.#resource];
  }

  /** undefined: unchanged since the last call. */
  async read(api: PodReader): Promise<Seen | undefined> {
    const seen = await this.#fetch(api);
    const columns = labelColumnsOf(this.#request);
    const { matches, compare, fields } = this.#view;
    const items = seen?.items.filter(({ object }) => matches(object)) ?? [];
    if (compare) items.sort((a, b) => compare(a.object, b.object));
    const unknownField = findUnknownField(fields, seen?.items.map(({ object }) => object) ?? []);
    return seen && { ...seen, unknownField, items: items.map((item) => withLabelCells(item, columns)) };
  }

  async #fetch(api: PodReader): Promise<Seen | undefined> {
    switch (this.#resource) {
      case "pods": {
        const answer = this.#keep(await api.pods(this.#etag));
        return answer && this.#choosePods(answer);
      }
      case "events": {
        const answer = this.#keep(await api.events(this.#etag));
        return answer && this.#chooseOthers(answer.map(toEventItem));
      }
      case "nodes":
        return this.#chooseOthers([toNodeItem(await api.node())]);
      default:
        return this.#resource satisfies never;
    }
  }

  #keep<T>(answer: Tagged<T> | undefined): T | undefined {
    this.#etag = answer?.etag ?? this.#etag;
    return answer?.value;
  }

  #choosePods(pods: Parameters<typeof findPod>[0]): Seen {
    const scope = scopeOf(this.#request);
    if (this.#named.length === 0) return { items: this.#inScope(pods.map(toPodItem)), problems: [] };
    const found = this.#named.map((name) => findPod(pods, name, scope));
    return {
      items: found.flatMap((pod) => ("problem" in pod ? [] : toPodItem(pod))),
      problems: found.flatMap((pod) => ("problem" in pod ? pod.problem : [])),
    };
  }

  #chooseOthers(all: ResourceItem[]): Seen {
    const items = this.#inScope(all);
    if (this.#named.length === 0) return { items, problems: [] };
    const nameOf = ({ reference }: ResourceItem) => reference.slice(reference.indexOf("/") + 1);
    return {
      items: items.filter((item) => this.#named.includes(nameOf(item))),
      problems: this.#named
        .filter((name) => !items.some((item) => nameOf(item) === name))
        .map((name) => `${this.#resource.slice(0, -1)} "${name}" not found; there are ${items.map(nameOf).join(", ")}`),
    };
  }

  #inScope(items: ResourceItem[]): ResourceItem[] {
    const { namespace } = scopeOf(this.#request);
    const matches = selectorOf(this.#request);
    return items.filter(
      (item) => (namespace === undefined || (item.namespace ?? namespace) === namespace) && matches(item.labels),
    );
  }
}

/** Prints changes. Waits for a kubelet that restarts, since its pods keep running. */
async function watch(
  api: PodReader,
  reader: ResourceReader,
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
    await clock.sleep(reader.periodMs, signal).catch(() => {});
    try {
      latest = (await reader.read(api))?.items ?? latest;
      if (isLost) io.stderr("kubelet-ts get: the kubelet answers again\n");
      isLost = false;
    } catch (error) {
      if (!(error instanceof KubeletApiError)) throw error;
      if (!isLost) io.stderr(`kubelet-ts get: ${error.message}; waiting for it\n`);
      isLost = true;
      continue;
    }
    emptyResponses = latest.length === 0 ? emptyResponses + 1 : 0;
    if (emptyResponses > 0 && emptyResponses < EMPTY_ANSWERS_TO_BELIEVE) continue;
    const { changed, gone } = changesBetween(before, latest, printer.format);
    before = latest;
    io.stdout(printer.lines(changed, io.now()) + printer.lines(gone, io.now(), true));
  }
}

/** YAML 1.1, which the kubelet reads: strings that look like times or booleans are quoted. */
async function loadYaml(): Promise<(value: unknown) => string> {
  const { stringify } = await import("yaml");
  return (value) => stringify(value, { version: "1.1", lineWidth: 0, indentSeq: false });
}
