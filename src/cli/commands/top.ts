import type { PodSummary } from "../../base/api/stats-summary.ts";
import { findPod, inScope } from "../client/choose-pod.ts";
import type { KubeletApi } from "../client/kubelet-api.ts";
import { openKubelet } from "../client/open-reader.ts";
import type { CommandIo } from "../command-io.ts";
import { TextTable } from "../print/text-table.ts";
import {
  CONTAINER_USAGE_COLUMNS,
  NODE_USAGE_COLUMNS,
  POD_USAGE_COLUMNS,
  toContainerUsageRows,
  toNodeUsageRow,
  toPodUsageRows,
  toUsageSum,
  type UsageOrder,
} from "../print/usage-rows.ts";
import { CommandError, type CommandRequest, findObject, requireNode, scopeOf, selectorOf } from "../sub-command.ts";

/** `kubelet-ts top`. Returns the exit code. */
export async function runTop(request: CommandRequest, io: CommandIo): Promise<number> {
  const [written, ...more] = request.positionals;
  const [kind, first] = written?.split("/", 2) ?? [];
  const object = findObject(request.command, kind);
  const names = first ? [first, ...more] : more;
  selectorOf(request, names);
  const { api } = await openKubelet(request);
  io.stdout(object === "nodes" ? await nodeTable(api, names, request) : await podTable(api, names, request, io));
  return 0;
}

async function nodeTable(api: KubeletApi, names: readonly string[], request: CommandRequest): Promise<string> {
  const [usage, node] = await Promise.all([api.usage(), api.node()]);
  requireNode(node, names);
  const row = toNodeUsageRow(usage, node, request.isOn("show-capacity"));
  return new TextTable().render([...(request.isOn("headers") ? [NODE_USAGE_COLUMNS] : []), row]);
}

async function podTable(
  api: KubeletApi,
  names: readonly string[],
  request: CommandRequest,
  io: CommandIo,
): Promise<string> {
  const pods = await choosePods(api, names, request);
  const order = request.value("sort-by") as UsageOrder;
  const perContainer = request.isOn("containers");
  const rows = perContainer ? toContainerUsageRows(pods, order) : toPodUsageRows(pods, order);
  if (rows.length === 0) {
    io.stderr("No pod with figures found\n");
    return "";
  }
  const isElsewhere = rows.some(({ namespace }) => namespace !== "default");
  const withNamespace = request.isOn("all-namespaces") || (request.value("namespace") === undefined && isElsewhere);
  const columns = perContainer ? CONTAINER_USAGE_COLUMNS : POD_USAGE_COLUMNS;
  const before = (text: string, cells: readonly string[]) => (withNamespace ? [text, ...cells] : cells);
  const sum = ["", ...(perContainer ? [""] : []), ...toUsageSum(pods)];
  return new TextTable().render([
    ...(request.isOn("headers") ? [before("NAMESPACE", columns)] : []),
    ...rows.map(({ namespace, cells }) => before(namespace, cells)),
    ...(request.isOn("sum") ? [before("", sum)] : []),
  ]);
}

/** Sorted by namespace and name. */
async function choosePods(api: KubeletApi, names: readonly string[], request: CommandRequest): Promise<PodSummary[]> {
  const [{ pods: measured }, listed] = await Promise.all([api.usage(), api.pods()]);
  const scope = scopeOf(request);
  const matches = selectorOf(request);
  const all = listed!.value;
  const chosen =
    names.length > 0
      ? names.map((name) => {
          const pod = findPod(all, name, scope);
          if ("problem" in pod) throw new CommandError(pod.problem);
          return pod;
        })
      : inScope(all, scope).filter(({ metadata }) => matches(metadata.labels ?? {}));
  const byUid = new Map(measured.map((pod) => [pod.podRef.uid, pod]));
  return chosen.flatMap(({ metadata }) => byUid.get(metadata.uid ?? "") ?? []);
}
