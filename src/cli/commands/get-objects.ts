import { nearestName } from "../../base/text/nearest-name.ts";
import { ApiClient, type ApiObject, type ApiResource, ApiStatusError, type ApiTable } from "../client/api-client.ts";
import { kindOf, readWrittenObjects, referenceOf } from "../client/object-targets.ts";
import type { CommandIo } from "../command-io.ts";
import { toLabelColumns, withLabelCells } from "../print/label-columns.ts";
import { type PrinterOptions, ResourcePrinter } from "../print/resource-printer.ts";
import { changesBetween, type ResourceItem } from "../print/resource-view.ts";
import { findUnknownField, type ObjectView } from "../print/selection.ts";
import { CommandError, type CommandRequest, scopeOf, selectorOf, UsageError } from "../sub-command.ts";

const WATCH_PERIOD_MS = 1000;
const AS_TABLE = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };

/** A kind of a command line; without names all its objects. */
interface WantedKind {
  resource: ApiResource;
  names: string[];
}

/** Objects of one kind in the server's columns. */
interface SeenKind {
  resource: ApiResource;
  table: ApiTable;
  items: ResourceItem[];
  /** Messages about names that do not exist. */
  missing: string[];
  /** A field of the selection or the order that no object has. */
  unknownField: string | undefined;
}

/** `kubelet-ts get` of kinds that the local API serves, in the server's columns. Returns the exit code. */
export async function getObjects(
  request: CommandRequest,
  view: ObjectView,
  options: Omit<PrinterOptions, "resource">,
  io: CommandIo,
): Promise<number> {
  const api = await ApiClient.open(request);
  const wanted = await wantedKinds(api, request.positionals);
  const names = wanted.flatMap((kind) => kind.names);
  selectorOf(request, names);
  const hasKinds = wanted.length > 1;
  const read = (kind: WantedKind) => fetchObjects(api, kind, request, view, hasKinds);
  if (request.isOn("watch") || request.isOn("watch-only")) {
    if (hasKinds) throw new UsageError("one kind at a time can be watched");
    return await watch(() => read(wanted[0]!), request, options, io);
  }
  const seen = await Promise.all(wanted.map(read));
  const items = seen.flatMap((kind) => kind.items);
  const objects = items.map(({ object }) => object);
  for (const { unknownField } of seen) if (unknownField !== undefined) throw new UsageError(unknownField);
  const isOne = names.length === 1 && !hasKinds;
  const isTable = options.format === "table" || options.format === "wide";
  if (view.format) io.stdout(view.format(objects, isOne));
  else if (!isTable) {
    const printer = new ResourcePrinter({ ...options, resource: undefined });
    if (items.length > 0 || options.format !== "name") io.stdout(printer.print(items, isOne, io.now()));
  } else {
    const tables = seen
      .filter((kind) => kind.items.length > 0)
      .map((kind) => printerOf(kind, options).print(kind.items, isOne, io.now()));
    io.stdout(tables.join("\n"));
  }
  if (items.length === 0 && names.length === 0 && !view.format && (isTable || options.format === "name"))
    io.stderr("No resources found\n");
  const missing = request.isOn("ignore-not-found") ? [] : seen.flatMap((kind) => kind.missing);
  if (missing.length > 0) throw new CommandError(missing.join("\n"));
  return 0;
}

/** The kinds in the order in which they are written. */
async function wantedKinds(api: ApiClient, words: readonly string[]): Promise<WantedKind[]> {
  const { kinds, named, assumed } = await readWrittenObjects(api, words);
  if (assumed !== undefined) throw new UsageError(assumed);
  const wanted = new Map<ApiResource, string[]>(kinds.map((resource) => [resource, []]));
  for (const { resource, name } of named) wanted.set(resource, [...(wanted.get(resource) ?? []), name]);
  return [...wanted].map(([resource, names]) => ({ resource, names }));
}

const printerOf = ({ table }: SeenKind, options: Omit<PrinterOptions, "resource">) =>
  new ResourcePrinter({ ...options, resource: undefined, columns: (wide) => columnsOf(table, wide) });

/** Prints changes until it is interrupted. A kubelet that restarts is waited for. */
async function watch(
  read: () => Promise<SeenKind>,
  request: CommandRequest,
  options: Omit<PrinterOptions, "resource">,
  io: CommandIo,
): Promise<never> {
  const first = await read();
  if (first.missing.length > 0) throw new CommandError(first.missing.join("\n"));
  const printer = printerOf(first, options);
  if (!request.isOn("watch-only")) io.stdout(printer.lines(first.items, io.now()));
  let before = first.items;
  for (let isLost = false; ; ) {
    await Bun.sleep(WATCH_PERIOD_MS);
    try {
      const after = (await read()).items;
      if (isLost) io.stderr("kubelet-ts get: the local API answers again\n");
      isLost = false;
      const { changed, gone } = changesBetween(before, after, printer.format);
      before = after;
      io.stdout(printer.lines(changed, io.now()) + printer.lines(gone, io.now(), true));
    } catch (error) {
      if (!(error instanceof CommandError) || (error instanceof ApiStatusError && error.code < 500)) throw error;
      if (!isLost) io.stderr(`kubelet-ts get: ${error.message}; waiting for it\n`);
      isLost = true;
    }
  }
}

async function fetchObjects(
  api: ApiClient,
  { resource, names }: WantedKind,
  request: CommandRequest,
  { matches, compare, fields }: ObjectView,
  showKind: boolean,
): Promise<SeenKind> {
  const { namespace } = scopeOf(request);
  const query = new URLSearchParams({ includeObject: "Object" });
  const selector = request.value("selector");
  if (selector) query.set("labelSelector", selector);
  const table = await api.json<ApiTable>("GET", `${api.pathOf(resource, namespace)}?${query}`, undefined, AS_TABLE);
  const columns = toLabelColumns(request.value("label-columns"), request.isOn("show-labels"));
  const all = (table.rows ?? []).map((row) => toItem(row, resource, table, showKind));
  const named = names.length === 0 ? all : all.filter((item) => names.some((name) => isNamed(item, name)));
  const items = named.filter(({ object }) => matches(object)).map((item) => withLabelCells(item, columns));
  if (compare) items.sort((a, b) => compare(a.object, b.object));
  const missing = names
    .filter((name) => !named.some((item) => isNamed(item, name)))
    .map((name) => {
      const near = nearestName(name, all.map(nameOf));
      return `${kindOf(resource)} "${name}" not found${near === undefined ? "" : `; did you mean "${near}"?`}`;
    });
  const unknownField = findUnknownField(
    fields,
    all.map(({ object }) => object),
  );
  return { resource, table, items, missing, unknownField };
}

const nameOf = ({ object }: ResourceItem): string => (object as ApiObject).metadata.name ?? "";

/** The node's name at the end of a pod's may be left out. */
function isNamed(item: ResourceItem, name: string): boolean {
  const { kind, spec } = item.object as ApiObject;
  const found = nameOf(item);
  return (
    found === name ||
    (kind === "Pod" && found === `${name}-${(spec as { nodeName?: string } | undefined)?.nodeName ?? ""}`)
  );
}

const columnsOf = ({ columnDefinitions }: ApiTable, wide: boolean): string[] =>
  columnDefinitions.filter(({ priority }) => wide || priority === 0).map(({ name }) => name.toUpperCase());

/** @param showKind names are written with their kind, as in a list of several kinds */
function toItem(
  { cells, object }: ApiTable["rows"][number],
  resource: ApiResource,
  table: ApiTable,
  showKind: boolean,
): ResourceItem {
  const { metadata } = object;
  const reference = referenceOf(resource, metadata.name ?? "");
  const row = (_now: Date, wide: boolean) =>
    cells.flatMap((cell, index) => {
      const column = table.columnDefinitions[index];
      if (!wide && column?.priority !== 0) return [];
      if (showKind && column?.name === "Name") return [reference];
      return [cell === null || cell === undefined || cell === "" ? "<none>" : String(cell)];
    });
  const apiVersion = resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
  return {
    key: metadata.uid ?? `${metadata.namespace}/${metadata.name}`,
    reference,
    namespace: metadata.namespace,
    labels: metadata.labels ?? {},
    // Objects of a table carry no kind.
    object: { ...object, apiVersion, kind: resource.kind },
    row,
    fingerprint: (wide) => {
      const withoutAge = (_: string, index: number) => table.columnDefinitions[index]?.name !== "Age";
      return JSON.stringify(row(new Date(0), wide).filter(withoutAge));
    },
  };
}
