import { EVENT_COLUMNS, toEventRow } from "../../printers/event-row.ts";
import { KubeletApi } from "../client/kubelet-api.ts";
import { findPod, namespaceOf } from "../client/pod-lookup.ts";
import type { CommandIo } from "../command-io.ts";
import { TextTable } from "../print/text-table.ts";
import { CommandError, type CommandRequest, openReader, scopeOf, UsageError } from "../sub-command.ts";

/** `kubelet-ts events [--for pod/NAME] [--types Warning]`, the latest last. Returns the exit code. */
export async function runEvents(request: CommandRequest, io: CommandIo): Promise<number> {
  const { positionals, value, isOn } = request;
  if (positionals.length > 0) throw new UsageError(`give --for pod/${positionals[0]} (found "${positionals[0]}")`);
  const api = await openReader(request);
  let events = (await api.events())?.value ?? [];
  const written = value("for");
  if (written !== undefined) {
    const pod = findPod((await api.pods())?.value ?? [], written, scopeOf(request));
    // Events outlive their pod.
    const name = "problem" in pod ? written.replace(/^(pods?|po)\//, "") : pod.metadata.name;
    const found = events.filter(
      ({ involvedObject }) =>
        involvedObject.name === name && ("problem" in pod || involvedObject.namespace === namespaceOf(pod)),
    );
    if (found.length === 0 && "problem" in pod && api instanceof KubeletApi) throw new CommandError(pod.problem);
    events = found;
  }
  const { namespace } = scopeOf(request);
  const types = value("types")?.split(",");
  const shown = events.filter(
    ({ type, metadata }) =>
      (types === undefined || types.includes(type)) && (namespace === undefined || metadata.namespace === namespace),
  );
  if (value("output") === "json")
    io.stdout(`${JSON.stringify({ apiVersion: "v1", kind: "List", items: shown }, null, 4)}\n`);
  else if (shown.length === 0) io.stderr("No events found\n");
  else {
    const rows = shown.map((event) => toEventRow(event, io.now(), false));
    io.stdout(new TextTable().render([...(isOn("headers") ? [[...EVENT_COLUMNS]] : []), ...rows]));
  }
  return 0;
}
