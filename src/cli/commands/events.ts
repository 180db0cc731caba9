import type { CoreEvent } from "../../base/api/event.ts";
import { namespaceOf } from "../../base/model/pod.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { ApiClient } from "../client/api-client.ts";
import { findPod, POD_WORDS } from "../client/choose-pod.ts";
import { KubeletApi, openReader, type PodReader } from "../client/kubelet-api.ts";
import { type ResourceItem, ResourcePrinter, toTable } from "../print/resource-printer.ts";
import { CommandError, type CommandIo, type CommandRequest, scopeOf, UsageError } from "../sub-command.ts";
import { printerOptions, watchItems } from "./get.ts";

const WATCH_PERIOD_MS = 500;
const TYPES = ["Normal", "Warning"];

/** Which events are meant. */
type EventFilter = (event: CoreEvent) => boolean;

/** `kubelet-ts events [--for pod/NAME] [--types Warning] [-w]`, the latest last. Returns the exit code. */
export async function runEvents(request: CommandRequest, io: CommandIo, signal?: AbortSignal): Promise<number> {
  const { value, isOn } = request;
  const types = typesOf(value("types"));
  const api = await openReader(request);
  const events = await api.events();
  const matches = await filterFor(request, api, events);
  const { namespace } = scopeOf(request);
  const toItems = (all: readonly CoreEvent[]) => {
    const chosen = all.filter(
      (event) =>
        matches(event) &&
        (types === undefined || types.includes(event.type)) &&
        (namespace === undefined || event.metadata.namespace === namespace),
    );
    return toTable("events", chosen, io.now());
  };
  const { columns, items } = toItems(events);
  const printer = new ResourcePrinter({
    ...(await printerOptions(request)),
    columns,
    namespaceColumn: isOn("all-namespaces"),
  });
  if (isOn("watch")) {
    let known: readonly ResourceItem[] = items;
    const read = async () => {
      const now = toItems(await api.events()).items;
      const keys = new Set(now.map(({ key }) => key));
      // Events that were forgotten are no news.
      known = [...now, ...known.filter(({ key }) => !keys.has(key))];
      return known;
    };
    io.stdout(printer.lines(items));
    await watchItems({ name: "events", periodMs: WATCH_PERIOD_MS, read }, items, printer, io, signal);
    return 0;
  }
  if (items.length === 0 && !["json", "yaml"].includes(value("output") ?? "")) io.stderr("No events found\n");
  else io.stdout(printer.print(items, false));
  return 0;
}

/** @throws UsageError */
function typesOf(text: string | undefined): string[] | undefined {
  return text?.split(",").map((written) => {
    const type = TYPES.find((known) => known.toLowerCase() === written.trim().toLowerCase());
    if (type !== undefined) return type;
    throw new UsageError(`--types must be Normal or Warning (found "${written}"${didYouMean(written, TYPES)})`);
  });
}

/** Events of the object of `--for`: `pod/web`, `deployment/web`, or the name of a pod. Events outlive their object. */
async function filterFor(request: CommandRequest, api: PodReader, events: readonly CoreEvent[]): Promise<EventFilter> {
  const written = request.value("for");
  if (written === undefined) return () => true;
  const parts = written.split("/");
  const [kind, name] = parts.length === 2 ? parts : ["pod", written];
  if (!kind || !name) throw new UsageError(`--for must be KIND/NAME, as in pod/web (found "${written}")`);
  if (!POD_WORDS.includes(kind.toLowerCase())) {
    const isNode = ["node", "nodes", "no"].includes(kind.toLowerCase());
    const served = isNode ? { kind: "Node" } : await (await ApiClient.open(request)).findResource(kind);
    const wanted = served.kind.toLowerCase();
    return ({ involvedObject }) => involvedObject.kind.toLowerCase() === wanted && involvedObject.name === name;
  }
  const pod = findPod(await api.pods(), name, scopeOf(request));
  const matches: EventFilter = ({ involvedObject: { kind: of, name: wanted, namespace } }) =>
    "problem" in pod ? wanted === name : of === "Pod" && wanted === pod.metadata.name && namespace === namespaceOf(pod);
  if ("problem" in pod && api instanceof KubeletApi && !request.isOn("watch") && !events.some(matches))
    throw new CommandError(pod.problem);
  return matches;
}
