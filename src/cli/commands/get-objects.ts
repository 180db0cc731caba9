import { ApiClient, type ApiObject, type ApiResource, type ApiTable } from "../client/api-client.ts";
import type { CommandIo } from "../command-io.ts";
import { toLabelColumns, withLabelCells } from "../print/label-columns.ts";
import { type PrinterOptions, ResourcePrinter } from "../print/resource-printer.ts";
import { changesBetween, type ResourceItem } from "../print/resource-view.ts";
import type { ObjectView } from "../print/selection.ts";
import { CommandError, type CommandRequest, scopeOf, selectorOf } from "../sub-command.ts";

const WATCH_PERIOD_MS = 1000;
const AS_TABLE = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };

/** `kubelet-ts get` of a kind that the local API serves, in the server's columns. Returns the exit code. */
export async function getObjects(
  request: CommandRequest,
  view: ObjectView,
  options: Omit<PrinterOptions, "resource">,
  io: CommandIo,
): Promise<number> {
  const [written = "", ...rest] = request.positionals;
  const [kind = "", first] = written.split("/", 2);
  const names = (first === undefined ? rest : [first, ...rest]).map((name) => name.replace(/^[^/]*\//, ""));
  selectorOf(request, names);
  const api = await ApiClient.open(request);
  const resource = await api.findResource(kind);
  const look = () => lookAt(api, resource, names, request, view);
  const { items, table, missing } = await look();
  const printer = new ResourcePrinter({ ...options, resource: undefined, columns: (wide) => columnsOf(table, wide) });
  if (request.isOn("watch") || request.isOn("watch-only")) {
    if (missing.length > 0) throw new CommandError(missing.join("\n"));
    if (!request.isOn("watch-only")) io.stdout(printer.lines(items, io.now()));
    for (let before = items; ; ) {
      await Bun.sleep(WATCH_PERIOD_MS);
      const after = (await look()).items;
      const { changed, gone } = changesBetween(before, after, printer.format);
      before = after;
      io.stdout(printer.lines(changed, io.now()) + printer.lines(gone, io.now(), true));
    }
  }
  if (view.format)
    io.stdout(
      view.format(
        items.map(({ object }) => object),
        names.length === 1,
      ),
    );
  else if (items.length > 0 || printer.format === "json" || printer.format === "yaml") {
    io.stdout(printer.print(items, names.length === 1, io.now()));
  } else if (names.length === 0) io.stderr("No resources found\n");
  if (missing.length > 0) throw new CommandError(missing.join("\n"));
  return 0;
}

async function lookAt(
  api: ApiClient,
  resource: ApiResource,
  names: readonly string[],
  request: CommandRequest,
  { matches, compare }: ObjectView,
): Promise<{ items: ResourceItem[]; table: ApiTable; missing: string[] }> {
  const { namespace } = scopeOf(request);
  const query = new URLSearchParams({ includeObject: "Object" });
  const selector = request.value("selector");
  if (selector) query.set("labelSelector", selector);
  const table = await api.json<ApiTable>("GET", `${api.pathOf(resource, namespace)}?${query}`, undefined, AS_TABLE);
  const columns = toLabelColumns(request.value("label-columns"), request.isOn("show-labels"));
  const all = (table.rows ?? []).map((row) => toItem(row, resource, table));
  const nameOf = ({ object }: ResourceItem) => (object as ApiObject).metadata.name ?? "";
  const named = names.length === 0 ? all : all.filter((item) => names.includes(nameOf(item)));
  const items = named.filter(({ object }) => matches(object)).map((item) => withLabelCells(item, columns));
  if (compare) items.sort((a, b) => compare(a.object, b.object));
  const missing = names
    .filter((name) => !named.some((item) => nameOf(item) === name))
    .map((name) => `${resource.name} "${name}" not found`);
  return { items, table, missing };
}

const columnsOf = ({ columnDefinitions }: ApiTable, wide: boolean): string[] =>
  columnDefinitions.filter(({ priority }) => wide || priority === 0).map(({ name }) => name.toUpperCase());

function toItem({ cells, object }: ApiTable["rows"][number], resource: ApiResource, table: ApiTable): ResourceItem {
  const { metadata } = object;
  const row = (_now: Date, wide: boolean) =>
    cells
      .filter((_, index) => wide || table.columnDefinitions[index]?.priority === 0)
      .map((cell) => (cell === null || cell === undefined || cell === "" ? "<none>" : String(cell)));
  const apiVersion = resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
  const kind = resource.singularName || resource.name;
  return {
    key: metadata.uid ?? `${metadata.namespace}/${metadata.name}`,
    reference: `${kind}${resource.group && `.${resource.group}`}/${metadata.name}`,
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
