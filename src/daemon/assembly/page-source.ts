import { loadavg, uptime } from "node:os";
import { creationTime, summarizePod } from "../../apiserver/printers/rows.ts";
import { SOURCE_ID } from "../../apiserver/storage/submitted-objects.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import type { TextFiles } from "../../base/files/whole-file.ts";
import type { DesiredPod, DesiredState, ManifestLocation } from "../../base/model/desired-state.ts";
import { type DesiredWorkload, isWorkload, objectKey, type WorkloadObject } from "../../base/model/desired-state.ts";
import type { Finding } from "../../base/model/finding.ts";
import type { PodUID } from "../../base/model/pod.ts";
import { hostPortsOf } from "../../base/model/pod.ts";
import { parseCronSchedule } from "../../base/text/cron-schedule.ts";
import type { ImageUpdateReport } from "../../kubelet/images/image-update-targets.ts";
import { toMs } from "../../page/format.ts";
import { type PodRow, toPodRow } from "../../page/pod-row.ts";
import type {
  ImageUpdateRow,
  NodeDetail,
  NodeState,
  NodeUsage,
  PodDetail,
  ProcessRow,
  Rejection,
  ServiceRow,
  WorkloadRow,
} from "../../page/wire.ts";
import { updateOwnerOf } from "../../plan/image-updates.ts";
import { ServicePods, writtenEndpoints } from "../../plan/service-endpoints.ts";
import { explainObject, type ObjectContext } from "../../plan/status/explain-object.ts";
import { type ExplainInput, explainPod } from "../../plan/status/explain-pod.ts";
import { type ReadNodeFacts, toNodeConditions } from "../../server/node-object.ts";
import type { PageSource } from "../../server/page/page-feed.ts";
import type { PageDetails } from "../../server/page/page-routes.ts";
import { toClusterState, toIngressRow, toServiceRow, toWorkloadRow } from "../../server/page/page-rows.ts";
import {
  hideLogEnds,
  hideProbeOutput,
  MAX_SHOWN_MANIFEST_BYTES,
  toManifestView,
  toPodDetail,
} from "../../server/page/pod-detail.ts";
import { redactPod } from "../../server/pod-list.ts";
import type { KubeletView } from "../../server/view.ts";
import { describeFinding, type SourceStatus } from "../../sources/source-set.ts";
import { BAD_TEXT } from "../../sources/url-source.ts";
import { readMachinePressure } from "../../stats/cgroups/cgroup-figures.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import { readLogTails } from "../log-tails.ts";
import { versionLine } from "../version.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";
import { NodeReader } from "./page-node.ts";

/** The kubelet as its page shows it. */
export class KubeletPage implements PageSource, PageDetails {
  readonly #parts: AssembledKubelet;
  readonly #view: KubeletView;
  readonly #stats: NodeStats;
  readonly #nodeFacts: ReadNodeFacts;
  readonly #machine: NodeReader;
  #findings: readonly Finding[] = [];
  #rejections: Rejection[] = [];
  #refused: string[] = [];
  /** Objects of all sources. */
  desired: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };

  constructor(parts: AssembledKubelet, view: KubeletView, stats: NodeStats, nodeFacts: ReadNodeFacts) {
    this.#parts = parts;
    this.#view = view;
    this.#stats = stats;
    this.#nodeFacts = nodeFacts;
    this.#machine = new NodeReader(parts, stats);
    parts.feed.onChange((state, { findings }) => {
      this.desired = state;
      this.#findings = findings;
      const errors = findings.filter(({ severity }) => severity === "error");
      this.#refused = errors.map(describeFinding);
      this.#rejections = errors.map(({ file: source, line, column, field, message }) => {
        return { source, line, column, message: field === "" ? message : `${field}: ${message}` };
      });
    });
  }

  get isComplete(): boolean {
    return this.#parts.kubelet.isComplete;
  }

  pods(): readonly Pod[] {
    return this.#view.pods();
  }

  onPodsChanged(callback: () => void): () => void {
    const { kubelet, context } = this.#parts;
    const subscriptions = [kubelet.onChange(callback), context.recorder.records.add(callback)];
    return () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    };
  }

  toRow(pod: Pod): PodRow {
    const desired = this.#find(pod);
    const [cause] = this.#explain(pod).causes;
    const { lastRestart, ...columns } = summarizePod(pod);
    return toPodRow(pod, {
      ...columns,
      // A container that waits for its second start has ended, and was not restarted.
      lastRestart: columns.restarts > 0 ? (lastRestart?.getTime() ?? 0) : 0,
      createdAt: toMs(creationTime(pod)),
      source: desired ? describeSource(desired, desired.location) : "",
      why: cause ? `${cause.subject}: ${cause.problem}` : "",
    });
  }

  rejections(): Rejection[] {
    return [...toUnreadSources(this.#parts.feed.status()), ...this.#rejections];
  }

  workloads(): WorkloadRow[] {
    const { objects = [], locations } = this.desired;
    const { context, workloads } = this.#parts;
    const shown = objects.filter(isWorkload);
    const jobs = shown.some(({ kind }) => kind === "CronJob") ? workloads.reader.derivedObjects() : [];
    return shown.map((desired) => {
      const { kind, object } = desired;
      const { metadata, spec } = object;
      const status = workloads.reader.statusOf(kind, object);
      return toWorkloadRow({
        kind,
        namespace: metadata.namespace ?? "default",
        name: metadata.name ?? "",
        source: describeSource(desired, desired.location ?? locations?.[objectKey(kind, metadata)]),
        spec,
        status,
        nextRun: nextRunOf(desired, status, context.clock.now()),
        explanation: status && this.#explainObject(kind, { ...object, status }, [], { derived: jobs }),
      });
    });
  }

  services(): ServiceRow[] {
    const { reader } = this.#parts.workloads;
    const { objects = [] } = this.desired;
    const services = objects.flatMap(({ kind, object }) => (kind === "Service" ? object : []));
    const ingresses = objects.flatMap(({ kind, object }) => (kind === "Ingress" ? object : []));
    if (services.length + ingresses.length === 0) return [];
    const pods = new ServicePods(this.pods(), writtenEndpoints(this.desired.objects));
    const rows = services.map((it) => {
      const backends = pods.behind(it);
      const ready = new Set(backends);
      const selected = pods.selectedBy(it);
      const status = reader.statusOf("Service", it) ?? {};
      return toServiceRow(
        it,
        reader.specOf("Service", it) ?? {},
        selected.map((pod) => ({ name: pod.metadata.name ?? "", isReady: ready.has(pod) })),
        this.#explainObject("Service", { ...it, status }, selected, { backends }),
      );
    });
    const ingressRows = ingresses.map((it) => {
      const status = reader.statusOf("Ingress", it) ?? {};
      return toIngressRow(it, rows, this.#explainObject("Ingress", { ...it, status }, [], {}));
    });
    return [...rows, ...ingressRows];
  }

  async measure(): Promise<{ summary: Summary; node: NodeUsage }> {
    const summary = await this.#stats.summary(false);
    return { summary, node: toNodeUsage(summary) };
  }

  async node(): Promise<NodeState> {
    const { context, cluster, engine, kubelet } = this.#parts;
    const { clock, node } = context;
    const facts = await this.#nodeFacts(false);
    const { serverVersion } = engine.infoIfKnown ?? {};
    return {
      name: node.name,
      version: versionLine(),
      engine: serverVersion ? `Docker ${serverVersion}` : "no Docker engine",
      problem: facts.ready.runtimeError ?? "",
      isEngineAway: (engine.connectError ?? kubelet.runtimeError) !== undefined,
      // With the time of a heartbeat a node that did not change would be sent again.
      conditions: toNodeConditions(facts, clock.now()).map(({ lastHeartbeatTime: _, ...condition }) => condition),
      cpuCount: node.cpuCount,
      memoryBytes: node.memoryBytes,
      // Coarse: a node that did not change is not sent again.
      bootTime: Math.round((clock.now().getTime() - uptime() * 1000) / 60_000) * 60_000,
      cluster: cluster ? toClusterState(cluster.connection, clock.now().getTime()) : null,
    };
  }

  async nodeDetail(): Promise<NodeDetail> {
    const machine = await this.#machine.read(this.#view.pods());
    return { ...machine, events: this.#view.events().items };
  }

  processes(uid: PodUID): Promise<readonly ProcessRow[]> {
    const pod = this.#stats.sampler.sample("basics").pods.find(({ facts }) => facts.uid === uid);
    const groups = (pod?.containers ?? []).map(({ facts: { name }, cgroup }) => ({
      name,
      processIds: cgroup.stats.processIds,
    }));
    return this.#parts.context.background.tasks.listProcesses(groups);
  }

  async podDetail(uid: PodUID, privileged: boolean): Promise<PodDetail | undefined> {
    const pod = this.pods().find(({ metadata }) => metadata.uid === uid);
    if (!pod) return undefined;
    const { context, probeLog, imageUpdates, engine } = this.#parts;
    const shown = privileged ? pod : redactPod(hideLogEnds(pod));
    const summary = await this.#stats.summary(false);
    const { writeYaml } = await import("../../base/text/write-yaml.ts");
    const sample = await this.#stats.sampleWithRates();
    const measured = sample.pods.find(({ facts }) => facts.uid === uid)?.containers ?? [];
    const location = this.#find(pod)?.location;
    const isPending = pod.status?.phase === "Pending";
    return toPodDetail({
      row: this.toRow(pod),
      pod: shown,
      usage: summary.pods.find(({ podRef }) => podRef.uid === uid),
      events: this.#view.events().items,
      services: this.services().filter(
        ({ namespace, pods }) =>
          namespace === pod.metadata.namespace && pods.some(({ name }) => name === pod.metadata.name),
      ),
      explanation: this.#explain(shown, {
        ...(privileged && { logs: await readLogTails(pod, engine.containers, TAIL_LINES) }),
        ...(isPending && {
          images: await engine.imageNames(),
          portHolders: await context.background.tasks.findPortHolders(hostPortsOf(pod.spec)).catch(() => new Map()),
        }),
      }),
      probeAttempts: (container, kind) => {
        const attempts = probeLog.attempts(uid, container, kind);
        return privileged ? attempts : hideProbeOutput(attempts);
      },
      counters: (name) => {
        const path = measured.find(({ facts }) => facts.name === name)?.cgroup.path;
        return path === undefined ? undefined : this.#stats.sampler.measureOnce(path)?.stats;
      },
      imageUpdates: toImageUpdateRows(imageUpdates.report(), pod),
      manifest: toManifestView({
        file: location?.file ?? "",
        line: location?.line,
        text: privileged ? await readManifestFile(context.background.textFiles, location?.file) : undefined,
        findings: this.#findings,
        rendered: writeYaml({ apiVersion: "v1", kind: "Pod", metadata: shown.metadata, spec: shown.spec }),
      }),
    });
  }

  /** The explanation of `kubelet-ts explain`. */
  #explain(pod: Pod, more: Partial<Pick<ExplainInput, "images" | "logs" | "portHolders">> = {}) {
    const { recorder, clock } = this.#parts.context;
    const events = recorder.list(pod.metadata.uid);
    const known = { refused: this.#refused, pods: this.#view.pods(), now: clock.now() };
    return explainPod({ pod, events, logs: new Map(), ...known, ...more });
  }

  /** @param context with `derived`, among them the Jobs of a CronJob */
  #explainObject(
    kind: string,
    object: { metadata: ObjectMeta; status: object },
    pods: readonly Pod[],
    { derived = [], ...more }: Pick<ObjectContext, "backends"> & { derived?: readonly WorkloadObject[] },
  ) {
    const { context, workloads } = this.#parts;
    const { uid } = workloads.reader.identityOf(kind, object.metadata);
    const jobs = derived.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
    const events = context.recorder.list(uid as PodUID);
    return explainObject(kind, { kind, object, pods, events, jobs, refused: this.#refused, ...more });
  }

  #find({ metadata: { uid } }: Pod): DesiredPod | undefined {
    return this.#parts.kubelet.desiredPods.find(({ pod }) => pod.metadata.uid === uid);
  }
}

/** A file of this machine, as it is now; undefined for other sources and for what cannot be read. */
async function readManifestFile(files: TextFiles, file: string | undefined): Promise<string | undefined> {
  if (!file?.startsWith("/")) return undefined;
  return await files.readText(file, MAX_SHOWN_MANIFEST_BYTES).catch(() => undefined);
}

/** Lines of each log in an explanation. */
const TAIL_LINES = 5;

function toNodeUsage({ node }: Summary): NodeUsage {
  const { cpu, memory, fs, runtime } = node;
  const [one = 0, five = 0, fifteen = 0] = loadavg();
  const pressure = readMachinePressure();
  return {
    cpuCores: (cpu?.usageNanoCores ?? 0) / 1e9,
    memoryBytes: memory?.workingSetBytes ?? 0,
    diskUsedBytes: (fs?.capacityBytes ?? 0) - (fs?.availableBytes ?? 0),
    diskBytes: fs?.capacityBytes ?? 0,
    imageUsedBytes: runtime?.imageFs?.usedBytes ?? 0,
    imageDiskUsedBytes: (runtime?.imageFs?.capacityBytes ?? 0) - (runtime?.imageFs?.availableBytes ?? 0),
    imageDiskBytes: runtime?.imageFs?.capacityBytes ?? 0,
    load: [one, five, fifteen],
    ...(pressure && { pressure }),
  };
}

/** Where a pod or a workload is written down, for the page: `file:line`, URL, `submitted`. Pure. */
function describeSource(
  { origin, sourceId }: { origin: string; sourceId?: string },
  location: ManifestLocation | undefined,
): string {
  if (sourceId === SOURCE_ID) return "submitted";
  const { file = "", line } = location ?? {};
  return file.startsWith("/") && line !== undefined ? `${file}:${line}` : origin;
}

/** Files, directories and URLs that cannot be read now. An API server is shown with the node. Pure. */
export const toUnreadSources = (sources: readonly SourceStatus[]): Rejection[] =>
  sources
    .filter(({ kind, state }) => kind !== "api" && (state === "failing" || state === "restored"))
    // Its findings are shown.
    .filter(({ message }) => message !== BAD_TEXT)
    .map(({ name, message = "it cannot be read", pods }) => ({
      source: name,
      line: 0,
      column: 0,
      message: pods > 0 ? `${message}; its pods keep running` : message,
      isUnread: true,
    }));

function nextRunOf({ kind, object }: DesiredWorkload, status: object | undefined, now: Date): Date | undefined {
  if (kind !== "CronJob") return undefined;
  const schedule = parseCronSchedule(object.spec.schedule, object.spec.timeZone);
  const { lastScheduleTime } = (status ?? {}) as { lastScheduleTime?: string };
  const since = lastScheduleTime ? new Date(lastScheduleTime) : now;
  return "problem" in schedule ? undefined : schedule.next(now, since);
}

/** The images of a pod that are kept up to date. Pure. */
function toImageUpdateRows(reports: readonly ImageUpdateReport[], pod: Pod): ImageUpdateRow[] {
  const owner = updateOwnerOf(pod);
  return reports
    .filter((report) => report.owner === owner)
    .map(({ image, state, current, currentTag, candidate, candidateTag, message, checkedAt }) => ({
      image,
      state,
      current: [currentTag, current].filter(Boolean).join(" "),
      candidate: [candidateTag, candidate].filter(Boolean).join(" "),
      message,
      checkedAt: toMs(checkedAt),
    }));
}
