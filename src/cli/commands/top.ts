import type { NodeObject } from "../../apiserver/printers/rows.ts";
import { quantityToMilli, quantityToWhole } from "../../base/api/quantity.ts";
import type { CpuSummary, MemorySummary, PodSummary, Summary } from "../../base/api/stats-summary.ts";
import { choosePods } from "../client/choose-pod.ts";
import { type KubeletApi, openKubelet } from "../client/kubelet-api.ts";
import { TextTable } from "../print/text-table.ts";
import { CommandError, type CommandIo, type CommandRequest, readNames, requireNode } from "../sub-command.ts";

/** `kubelet-ts top`. Returns the exit code. */
export async function runTop(request: CommandRequest, io: CommandIo): Promise<number> {
  const { object, names } = readNames(request);
  const api = await openKubelet(request);
  io.stdout(object === "nodes" ? await nodeTable(api, names, request) : await podTable(api, names, request, io));
  return 0;
}

async function nodeTable(api: KubeletApi, names: readonly string[], request: CommandRequest): Promise<string> {
  const [usage, node] = await Promise.all([api.usage(), api.node()]);
  requireNode(node, names);
  const row = toNodeUsageRow(usage, node, request.isOn("show-capacity"));
  const header = ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"];
  return new TextTable().render([...(request.isOn("headers") ? [header] : []), row]);
}

async function podTable(api: KubeletApi, names: readonly string[], request: CommandRequest, io: CommandIo) {
  const pods = await measuredPods(api, names, request);
  const order = request.value("sort-by") as UsageOrder;
  const perContainer = request.isOn("containers");
  const rows = toUsageRows(pods, order, perContainer);
  if (rows.length === 0) {
    io.stderr("No pod with figures found\n");
    return "";
  }
  const isElsewhere = rows.some(({ namespace }) => namespace !== "default");
  const withNamespace = request.isOn("all-namespaces") || (request.value("namespace") === undefined && isElsewhere);
  const columns = [...(perContainer ? ["POD"] : []), "NAME", "CPU(cores)", "MEMORY(bytes)"];
  const before = (text: string, cells: readonly string[]) => (withNamespace ? [text, ...cells] : cells);
  const sumOf = (used: (pod: PodSummary) => number | undefined) => pods.reduce((all, pod) => all + (used(pod) ?? 0), 0);
  const cpu = formatMilliCores(sumOf((pod) => pod.cpu?.usageNanoCores));
  const memory = formatMebibytes(sumOf((pod) => pod.memory?.workingSetBytes));
  return new TextTable().render([
    ...(request.isOn("headers") ? [before("NAMESPACE", columns)] : []),
    ...rows.map(({ namespace, cells }) => before(namespace, cells)),
    ...(request.isOn("sum") ? [before("", ["", ...(perContainer ? [""] : []), cpu, memory])] : []),
  ]);
}

/** Sorted by namespace and name. */
async function measuredPods(api: KubeletApi, names: readonly string[], request: CommandRequest): Promise<PodSummary[]> {
  const [{ pods: measured }, pods] = await Promise.all([api.usage(), api.pods()]);
  const { chosen, problems } = choosePods(request, pods, names);
  if (problems.length > 0) throw new CommandError(problems[0]);
  const byUid = new Map(measured.map((pod) => [pod.podRef.uid, pod]));
  return chosen.flatMap(({ metadata }) => byUid.get(metadata.uid ?? "") ?? []);
}

type UsageOrder = "cpu" | "memory" | undefined;

interface Usage {
  cpu?: CpuSummary;
  memory?: MemorySummary;
}

/** Usage of pods or their containers: CPU in thousandths of a core, working set in Mi, as kubectl prints them. */
const toUsageRows = (pods: readonly PodSummary[], order: UsageOrder, perContainer: boolean) =>
  sorted(pods, order).flatMap(({ podRef: { name, namespace }, containers, ...usage }) =>
    perContainer
      ? sorted(containers ?? [], order).map((it) => ({ namespace, cells: [name, it.name, ...usageCells(it)] }))
      : { namespace, cells: [name, ...usageCells(usage)] },
  );

/** Usage of the node. Shares refer to the allocatable resources, or to the capacity with `ofCapacity`. */
function toNodeUsageRow({ node }: Summary, { status }: NodeObject, ofCapacity: boolean): string[] {
  const available = (ofCapacity ? status.capacity : status.allocatable) ?? {};
  const share = (used: number | undefined, all: number) =>
    used === undefined || all === 0 ? "<unknown>" : `${Math.floor((used * 100) / all)}%`;
  const cpu = node.cpu?.usageNanoCores;
  const memory = node.memory?.workingSetBytes;
  const [cpuCell = "", memoryCell = ""] = usageCells(node);
  return [
    node.nodeName,
    cpuCell,
    share(cpu === undefined ? undefined : toMilliCores(cpu), quantityToMilli(available.cpu ?? "0")),
    memoryCell,
    share(memory, quantityToWhole(available.memory ?? "0")),
  ];
}

function usageCells({ cpu, memory }: Usage): string[] {
  return [
    cpu?.usageNanoCores === undefined ? "<unknown>" : formatMilliCores(cpu.usageNanoCores),
    memory?.workingSetBytes === undefined ? "<unknown>" : formatMebibytes(memory.workingSetBytes),
  ];
}

/** A share of a thousandth is one, so that what runs is not 0. */
const toMilliCores = (nanoCores: number) => Math.ceil(nanoCores / 1_000_000);

const formatMilliCores = (nanoCores: number) => `${toMilliCores(nanoCores)}m`;

const formatMebibytes = (bytes: number) => `${Math.floor(bytes / 2 ** 20)}Mi`;

/** Sorts by usage, highest first; keeps the order when no sort key is given. */
function sorted<T extends Usage>(items: readonly T[], order: UsageOrder): readonly T[] {
  if (order === undefined) return items;
  const amount = ({ cpu, memory }: T) => (order === "cpu" ? cpu?.usageNanoCores : memory?.workingSetBytes) ?? 0;
  return items.toSorted((a, b) => amount(b) - amount(a));
}
