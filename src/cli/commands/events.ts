import { EVENT_COLUMNS, toEventRow } from "../../apiserver/printers/event-row.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import { SystemClock } from "../../base/host/system-clock.ts";
import { nearestName } from "../../base/text/nearest-name.ts";
import { findPod, namespaceOf } from "../client/choose-pod.ts";
import { KubeletApi, KubeletApiError } from "../client/kubelet-api.ts";
import { openReader, type PodReader } from "../client/open-reader.ts";
import type { CommandIo } from "../command-io.ts";
import { TextTable } from "../print/text-table.ts";
import { CommandError, type CommandRequest, scopeOf, UsageError } from "../sub-command.ts";

/** The list has an ETag, so an unchanged one is cheap. */
const WATCH_PERIOD_MS = 500;
const TYPES = ["Normal", "Warning"];

/** Which events are meant. */
type EventFilter = (event: CoreEvent) => boolean;

/** `kubelet-ts events [--for pod/NAME] [--types Warning] [-w]`, the latest last. Returns the exit code. */
export async function runEvents(request: CommandRequest, io: CommandIo, signal?: AbortSignal): Promise<number> {
  const { positionals, value, isOn } = request;
  if (positionals.length > 0) throw new UsageError(`give --for pod/${positionals[0]} (found "${positionals[0]}")`);
  const types = typesOf(value("types"));
  const api = await openReader(request);
  const events = (await api.events())?.value ?? [];
  const matches = await filterFor(request, api, events);
  const { namespace } = scopeOf(request);
  const choose = (all: readonly CoreEvent[]) =>
    all.filter(
      (event) =>
        matches(event) &&
        (types === undefined || types.includes(event.type)) &&
        (namespace === undefined || event.metadata.namespace === namespace),
    );
  const printer = new EventPrinter(request, io, await toYamlFor(value("output")));
  const shown = choose(events);
  if (isOn("watch")) {
    printer.print(shown);
    await watch(api, choose, shown, printer, io, signal);
    return 0;
  }
  if (shown.length === 0 && !["json", "yaml"].includes(value("output") ?? "")) io.stderr("No events found\n");
  else printer.printList(shown);
  return 0;
}

/** @throws UsageError */
function typesOf(text: string | undefined): string[] | undefined {
  return text?.split(",").map((written) => {
    const type = TYPES.find((known) => known.toLowerCase() === written.trim().toLowerCase());
    if (type !== undefined) return type;
    const near = nearestName(written, TYPES);
    throw new UsageError(
      `--types must be Normal or Warning (found "${written}"${near === undefined ? "" : `; did you mean ${near}?`})`,
    );
  });
}

/** Events of the object of `--for`: `pod/web`, `deployment/web`, or the name of a pod. Events outlive their object. */
async function filterFor(request: CommandRequest, api: PodReader, events: readonly CoreEvent[]): Promise<EventFilter> {
  const written = request.value("for");
  if (written === undefined) return () => true;
  const parts = written.split("/");
  const [kind, name] = parts.length === 2 ? parts : ["pod", written];
  if (!kind || !name) throw new UsageError(`--for must be KIND/NAME, as in pod/web (found "${written}")`);
  const isPod = ["pod", "pods", "po"].includes(kind.toLowerCase());
  if (!isPod) {
    const wanted = await kindNamed(request, kind);
    return ({ involvedObject }) => involvedObject.kind.toLowerCase() === wanted && involvedObject.name === name;
  }
  const pod = findPod((await api.pods())?.value ?? [], name, scopeOf(request));
  const matches: EventFilter =
    "problem" in pod
      ? ({ involvedObject }) => involvedObject.name === name
      : ({ involvedObject }) =>
          involvedObject.kind === "Pod" &&
          involvedObject.name === pod.metadata.name &&
          involvedObject.namespace === namespaceOf(pod);
  if ("problem" in pod && api instanceof KubeletApi && !request.isOn("watch") && !events.some(matches))
    throw new CommandError(pod.problem);
  return matches;
}

/** The kind of a short name, in lower case. */
async function kindNamed(request: CommandRequest, written: string): Promise<string> {
  if (["node", "nodes", "no"].includes(written.toLowerCase())) return "node";
  const { ApiClient } = await import("../client/api-client.ts");
  return (await (await ApiClient.open(request)).findResource(written)).kind.toLowerCase();
}

async function toYamlFor(output: string | undefined): Promise<(value: unknown) => string> {
  return output === "yaml" ? (await import("../../base/text/write-yaml.ts")).writeYaml : String;
}

/** Prints what is new or has happened again. Waits for a kubelet that restarts. */
async function watch(
  api: PodReader,
  choose: (all: readonly CoreEvent[]) => CoreEvent[],
  seen: readonly CoreEvent[],
  printer: EventPrinter,
  io: CommandIo,
  signal?: AbortSignal,
): Promise<void> {
  const clock = new SystemClock();
  const versionOf = ({ metadata, count }: CoreEvent) => `${metadata.resourceVersion} ${count}`;
  let known = new Map(seen.map((event) => [event.metadata.uid, versionOf(event)]));
  let etag: string | undefined;
  for (let isLost = false; !signal?.aborted; ) {
    await clock.sleep(WATCH_PERIOD_MS, signal).catch(() => {});
    try {
      const answer = await api.events(etag);
      if (isLost) io.stderr("kubelet-ts events: the kubelet answers again\n");
      isLost = false;
      if (!answer) continue;
      etag = answer.etag;
      const events = choose(answer.value);
      printer.print(events.filter((event) => known.get(event.metadata.uid) !== versionOf(event)));
      known = new Map(events.map((event) => [event.metadata.uid, versionOf(event)]));
    } catch (error) {
      if (!(error instanceof KubeletApiError)) throw error;
      if (!isLost) io.stderr(`kubelet-ts events: ${error.message}; waiting for it\n`);
      isLost = true;
    }
  }
}

/** Events in the format of `-o`. */
class EventPrinter {
  readonly #table = new TextTable();
  readonly #request: CommandRequest;
  readonly #io: CommandIo;
  readonly #toYaml: (value: unknown) => string;
  #hasHeader: boolean;

  constructor(request: CommandRequest, io: CommandIo, toYaml: (value: unknown) => string) {
    this.#request = request;
    this.#io = io;
    this.#toYaml = toYaml;
    this.#hasHeader = !request.isOn("headers");
  }

  /** One List in JSON and YAML. */
  printList(events: readonly CoreEvent[]): void {
    const list = { apiVersion: "v1", kind: "List", metadata: { resourceVersion: "" }, items: events };
    const output = this.#request.value("output");
    if (output === "json") this.#io.stdout(`${JSON.stringify(list, null, 4)}\n`);
    else if (output === "yaml") this.#io.stdout(this.#toYaml(list));
    else this.print(events);
  }

  /** Rows, or documents of their own. */
  print(events: readonly CoreEvent[]): void {
    if (events.length === 0) return;
    const output = this.#request.value("output");
    if (output === "json") this.#io.stdout(events.map((event) => `${JSON.stringify(event, null, 4)}\n`).join(""));
    else if (output === "yaml") this.#io.stdout(events.map((event) => `---\n${this.#toYaml(event)}`).join(""));
    else if (output === "name") this.#io.stdout(events.map(({ metadata }) => `event/${metadata.name}\n`).join(""));
    else {
      const isAll = this.#request.isOn("all-namespaces");
      const withNamespace = (namespace: string, row: string[]) => (isAll ? [namespace, ...row] : row);
      const rows = events.map((event) =>
        withNamespace(event.metadata.namespace, toEventRow(event, this.#io.now(), false)),
      );
      const header = this.#hasHeader ? [] : [withNamespace("NAMESPACE", [...EVENT_COLUMNS])];
      this.#hasHeader = true;
      this.#io.stdout(this.#table.render([...header, ...rows]));
    }
  }
}
