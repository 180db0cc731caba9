import type { PodRow } from "./pod-row.ts";
import {
  type Access,
  type NodeState,
  type NodeUsage,
  RANGE_MS,
  type Snapshot,
  type Spark,
  type Update,
  type UsagePoint,
  type WorkloadRow,
} from "./wire.ts";

/** Points of the spark lines: ten minutes at the pace of an open page. */
const SPARK_POINTS = 60;
export const SPARK_MS = RANGE_MS["10m"];

/** Everything the overview shows. Replaced as a whole; unchanged rows stay the same objects. */
export interface PageState extends Access, Pick<Snapshot, "isComplete" | "rejections" | "workloads" | "services"> {
  /** `locked`: nothing is shown without a session. */
  connection: "connecting" | "live" | "lost" | "locked";
  /** While the connection is lost: why the server refuses it; "" when it does not answer. */
  refusal: string;
  /** The page that the server has now, when it is another one than this; else "". */
  newBuild: string;
  /** There was a session, which has expired. */
  hasExpired: boolean;
  node: NodeState | undefined;
  pods: ReadonlyMap<string, PodRow>;
  times: readonly number[];
  nodeUsage: NodeUsage | undefined;
  sparks: ReadonlyMap<string, Spark>;
  /** Clock of the server minus ours. */
  clockOffsetMs: number;
  connects: number;
  /** When the server was last heard, by our clock; 0 = never. */
  heardAtMs: number;
}

export const EMPTY_STATE: PageState = {
  connection: "connecting",
  refusal: "",
  newBuild: "",
  privileged: false,
  canAct: false,
  hasExpired: false,
  node: undefined,
  pods: new Map(),
  isComplete: false,
  rejections: [],
  workloads: [],
  services: [],
  times: [],
  nodeUsage: undefined,
  sparks: new Map(),
  clockOffsetMs: 0,
  connects: 0,
  heardAtMs: 0,
};

/** The rows by UID; those in which nothing changed stay the same objects. */
const podsOf = (rows: readonly PodRow[], before: PageState["pods"]): PageState["pods"] =>
  new Map(
    rows.map((row) => {
      const known = before.get(row.uid);
      return [row.uid, known && JSON.stringify(known) === JSON.stringify(row) ? known : row];
    }),
  );

export function applySnapshot(snapshot: Snapshot, receivedAtMs: number, before: PageState = EMPTY_STATE): PageState {
  const { access, usage, now, pods, ...parts } = snapshot;
  return {
    ...access,
    ...parts,
    connection: "live",
    refusal: "",
    newBuild: before.newBuild,
    hasExpired: !access.privileged && (before.privileged || before.hasExpired),
    pods: podsOf(pods, before.pods),
    times: usage.times,
    nodeUsage: usage.node,
    sparks: new Map(Object.entries(usage.pods)),
    clockOffsetMs: now - receivedAtMs,
    connects: before.connects + 1,
    heardAtMs: receivedAtMs,
  };
}

/** Differences between two clocks below this are the time of a message. */
const CLOCK_ERROR_MS = 5000;

/** @param receivedAtMs by our clock, which may have been set since the snapshot */
export function applyUpdate(state: PageState, update: Update, receivedAtMs: number): PageState {
  const { pods, usage, ...parts } = update;
  const merged: PageState = { ...state, ...parts, pods: pods ? podsOf(pods, state.pods) : state.pods };
  if (!usage) return merged;
  const clockOffsetMs = usage.time - receivedAtMs;
  const isSet = Math.abs(clockOffsetMs - state.clockOffsetMs) > CLOCK_ERROR_MS;
  return addUsage(isSet ? { ...merged, clockOffsetMs } : merged, usage);
}

/** Every series has one value for each time. */
function addUsage(state: PageState, point: UsagePoint): PageState {
  // A clock that was set back leaves times in the future, which end the window too.
  const inWindow = state.times.findLastIndex((time) => time <= point.time - SPARK_MS || time >= point.time) + 1;
  const from = Math.max(inWindow, state.times.length - SPARK_POINTS + 1);
  const kept = state.times.length - from;
  const sparks = new Map<string, Spark>();
  const uids = new Set([...Object.keys(point.pods), ...[...state.sparks.keys()].filter((uid) => state.pods.has(uid))]);
  for (const uid of uids) {
    const old = state.sparks.get(uid);
    const extend = (series: readonly (number | null)[] | undefined, value: number | undefined) => [
      ...(series?.slice(from) ?? Array<null>(kept).fill(null)),
      value ?? null,
    ];
    const usage = point.pods[uid];
    sparks.set(uid, {
      cpuCores: extend(old?.cpuCores, usage?.cpuCores),
      memoryBytes: extend(old?.memoryBytes, usage?.memoryBytes),
    });
  }
  return { ...state, times: [...state.times.slice(from), point.time], nodeUsage: point.node, sparks };
}

export interface RowFilter {
  text: string;
  onlyNotReady: boolean;
  isGrouped: boolean;
  /** Key of a column. */
  sort: string;
  descending: boolean;
}

export const DEFAULT_FILTER: RowFilter = {
  text: "",
  onlyNotReady: false,
  isGrouped: false,
  sort: "name",
  descending: false,
};

export const comparePodNames = (a: PodRow, b: PodRow): number =>
  a.namespace === b.namespace ? compareText(a.name, b.name) : compareText(a.namespace, b.namespace);

/** Rows of the overview in order; groups by namespace are made of this order. @param order of the column */
export function selectRows(
  pods: PageState["pods"],
  { text, onlyNotReady, descending }: RowFilter,
  order: (a: PodRow, b: PodRow) => number = comparePodNames,
): PodRow[] {
  const words = text.toLowerCase().split(/\s+/);
  const rows = [...pods.values()].filter(({ isReady, namespace, name, owner, status, source, why, notice }) => {
    if (onlyNotReady && (isReady || status === "Completed" || status === "Succeeded")) return false;
    const shown = `${namespace}/${name} ${owner} ${status} ${source} ${why} ${notice}`.toLowerCase();
    return words.every((word) => shown.includes(word));
  });
  const direction = descending ? -1 : 1;
  return rows.sort((a, b) => direction * order(a, b) || comparePodNames(a, b));
}

export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Whether pods may be missing only because a source has not been read yet. A refused manifest has a notice of its own. */
export const mayMissPods = ({ isComplete, rejections }: Pick<PageState, "isComplete" | "rejections">): boolean =>
  !isComplete && rejections.every(({ isUnread }) => isUnread);

/** The pod of that name; while one replaces another, the new one. */
export function findPod(pods: PageState["pods"], namespace: string, name: string): PodRow | undefined {
  const found = [...pods.values()].filter((pod) => pod.name === name && pod.namespace === namespace);
  const rank = (pod: PodRow) => (pod.status === "Terminating" ? 0 : 1);
  return found.sort((a, b) => rank(b) - rank(a) || b.createdAt - a.createdAt)[0];
}

/** The first pod of a workload that says why it is not ready, for a workload whose own state says nothing. Pure. */
export function podWithCause(
  pods: PageState["pods"],
  { namespace, kind, name, isGood, explanation }: WorkloadRow,
): PodRow | undefined {
  if (isGood || explanation.length > 0) return undefined;
  const owner = `${kind} ${name}`;
  return [...pods.values()].find((pod) => pod.namespace === namespace && pod.owner === owner && pod.why !== "");
}

/** While a kubelet that was just started does not know its pods, the view keeps what it showed: its log and shell go on. Pure. */
export function shownPod(
  state: Pick<PageState, "pods" | "isComplete" | "rejections">,
  { namespace, name }: { namespace: string; name: string },
  last: PodRow | undefined,
): PodRow | undefined {
  const found = findPod(state.pods, namespace, name);
  if (found || !mayMissPods(state)) return found;
  return last?.namespace === namespace && last.name === name ? last : undefined;
}
