import type { Pod, PodStatus } from "../../base/api/pod.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { PodUID } from "../../base/model/pod.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { isConflict, isNotFound } from "../client/api-error.ts";
import { type ClusterClient, STRATEGIC_MERGE_PATCH } from "../client/cluster-client.ts";
import { WorkQueue } from "../client/work-queue.ts";
import { type ApiPod, isMirrorPod, isTerminating } from "./api-pod-source.ts";
import { computeStatusPatch, findStepBack, mergePodStatus, ownPart, withObservedGeneration } from "./status-patch.ts";

/** The kubelet, as the status of its pods is reported. */
export interface ReportedPods {
  /** An unchanged pod is the same object as before. */
  pods(): readonly Pod[];
  /** Whether its status is known: a worker or a refusal has made it. */
  hasStatus(uid: PodUID): boolean;
  /** Nothing is left of the pod: no container, volume or cgroup. */
  isGone(uid: PodUID): boolean;
  /** Resolves when no checkpoint on disk has a pod that is not desired any more. */
  flush(): Promise<void>;
}

interface StatusReporterDeps {
  client: Pick<ClusterClient, "request" | "reachability">;
  clock: Clock;
  logger: Logger;
  kubelet: ReportedPods;
  /** The pod of the API that shows this one: itself, or the mirror pod of a static pod. */
  apiPodOf: (pod: Pod) => ApiPod | undefined;
}

const RETRY = { first: 500, longest: 15_000 };
/**
 * A status that another client changes again and again, e.g. a second kubelet with the name of this node, is corrected at
 * most this often. Source: the kubelet reports statuses again with this period.
 */
const CORRECTION_PERIOD_MS = 10_000;

/**
 * Reports the status of each pod to the API server, and deletes a terminating pod there when nothing is left of it here. Only
 * what changed is sent; a report that fails is repeated with growing delays, with the status as it is then.
 */
export class StatusReporter {
  readonly #deps: StatusReporterDeps;
  readonly #facts: ChangeLogger;
  readonly #reports = new Map<PodUID, Report>();
  readonly #queue: WorkQueue;
  readonly #stop = new AbortController();
  #apiPods: readonly ApiPod[] = [];

  constructor(deps: StatusReporterDeps) {
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
    const { reachability } = deps.client;
    this.#queue = new WorkQueue({ reachability, retry: RETRY, work: (uid) => this.#report(uid) });
  }

  stop(): void {
    this.#stop.abort(new Error("stopped"));
    this.#queue.stop();
    for (const { cancelCorrection } of this.#reports.values()) cancelCorrection?.();
  }

  /** The API server has these pods now. */
  setPods(pods: readonly ApiPod[]): void {
    this.#apiPods = pods;
    const uids = new Set(pods.map(uidOf));
    for (const uid of this.#reports.keys()) if (!uids.has(uid)) this.#forget(uid);
    for (const api of pods) this.#note(api);
    this.podsChanged();
  }

  #forget(uid: PodUID): void {
    this.#reports.get(uid)?.cancelCorrection?.();
    this.#reports.delete(uid);
    this.#queue.forget(uid);
  }

  #note(api: ApiPod): void {
    const report = this.#reports.get(uidOf(api));
    if (report?.api === api) return;
    if (report) report.api = api;
    else this.#reports.set(uidOf(api), newReport(api));
    this.#queue.add(uidOf(api));
  }

  /** The kubelet's pods, or their statuses, have changed. */
  podsChanged(): void {
    const { kubelet } = this.#deps;
    for (const pod of kubelet.pods()) this.#notePod(pod);
    for (const api of this.#apiPods) {
      if (isTerminating(api) && !isMirrorPod(api) && kubelet.isGone(uidOf(api))) this.#queue.add(uidOf(api));
    }
  }

  #notePod(pod: Pod): void {
    const { kubelet, apiPodOf } = this.#deps;
    const api = apiPodOf(pod);
    const report = api && this.#reports.get(uidOf(api));
    if (!report || report.pod === pod || !kubelet.hasStatus(pod.metadata.uid ?? "")) return;
    report.pod = pod;
    this.#queue.add(uidOf(report.api));
  }

  /** Whether this pod was reported as ended, or is known as such: it must not run again. */
  endOf(uid: PodUID): PodStatus | undefined {
    const report = this.#reports.get(uid);
    const statuses = [report?.api.status, report?.sent, report?.pod?.status];
    return statuses.find((status) => status?.phase === "Failed" || status?.phase === "Succeeded");
  }

  async #report(uid: PodUID): Promise<void> {
    const report = this.#reports.get(uid);
    if (!report) return;
    try {
      await this.#sendStatus(report);
      await this.#delete(report);
      this.#facts.resolve(uid, `Pod "${nameOf(report.api)}": its status is reported again`);
    } catch (error) {
      // It is gone, or another one has its name: the watch delivers what is there now.
      if (this.#stop.signal.aborted || isNotFound(error) || isConflict(error)) return;
      const message = `Pod "${nameOf(report.api)}": cannot report its status: ${(error as Error).message}`;
      this.#facts.log(uid, "warn", message);
      throw error;
    }
  }

  async #sendStatus(report: Report): Promise<void> {
    const { client, logger } = this.#deps;
    const { api, pod } = report;
    if (!pod?.status) return;
    // A static pod has no generation of the API, even if its mirror pod has one.
    const observed = withObservedGeneration(pod.status, isMirrorPod(api) ? undefined : pod.metadata.generation);
    const now = toApiTime(this.#deps.clock.now());
    const wanted = mergePodStatus(observed, newestStatus(report), api.spec.readinessGates ?? [], now);
    const isSent = report.sent !== undefined && Bun.deepEquals(report.sent, wanted);
    if (isSent && !(this.#wasChanged(report) && this.#mayCorrect(report))) return;
    const stepBack = findStepBack(newestStatus(report), wanted, api.spec.restartPolicy);
    if (stepBack !== undefined) {
      logger.debug(`Pod "${nameOf(api)}": its status is not reported: ${stepBack}`);
      return;
    }
    const patch = computeStatusPatch(uidOf(api), newestStatus(report), wanted);
    if (patch) {
      const response = await client.request<ApiPod>({
        method: "PATCH",
        path: `${pathOf(api)}/status`,
        body: patch,
        contentType: STRATEGIC_MERGE_PATCH,
        signal: this.#stop.signal,
      });
      report.accepted = { status: response.status, version: response.metadata.resourceVersion ?? "" };
    } else report.accepted ??= { status: api.status, version: api.metadata.resourceVersion ?? "" };
    report.sent = wanted;
  }

  /** Another client has changed what this node alone decides. */
  #wasChanged({ accepted, api }: Report): boolean {
    if (!accepted || !isNewer(api.metadata.resourceVersion, accepted.version)) return false;
    return !Bun.deepEquals(ownPart(api.status), ownPart(accepted.status));
  }

  /** Whether a changed status may be reported again now; if not, it is checked again later. */
  #mayCorrect(report: Report): boolean {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const waitMs = report.correctedAtMs + CORRECTION_PERIOD_MS - nowMs;
    if (waitMs > 0) {
      report.cancelCorrection ??= clock.schedule(waitMs, () => {
        report.cancelCorrection = undefined;
        this.#queue.add(uidOf(report.api));
      });
      return false;
    }
    report.correctedAtMs = nowMs;
    return true;
  }

  async #delete(report: Report): Promise<void> {
    const { client, kubelet, logger } = this.#deps;
    const { api } = report;
    if (report.isDeleted || !isTerminating(api) || isMirrorPod(api) || !kubelet.isGone(uidOf(api))) return;
    // Once it is gone there, its successor may run elsewhere: a restart without the API server must not find it in a checkpoint.
    await kubelet.flush();
    await client.request({
      method: "DELETE",
      path: pathOf(api),
      body: { gracePeriodSeconds: 0, preconditions: { uid: uidOf(api) } },
      signal: this.#stop.signal,
    });
    report.isDeleted = true;
    logger.debug(`Pod "${nameOf(api)}" is removed from the API server`);
  }
}

const newReport = (api: ApiPod) => ({
  api,
  /** The pod as the kubelet knew it last; undefined for a pod it does not know. */
  pod: undefined as Pod | undefined,
  /** Status of the last report that was accepted. */
  sent: undefined as PodStatus | undefined,
  /** Status and version with which the API server answered. */
  accepted: undefined as { status: PodStatus | undefined; version: string } | undefined,
  /** Deleted; it may remain because of finalizers. */
  isDeleted: false,
  /** When the status was last reported again because another client had changed it. Unit: milliseconds, monotonic. */
  correctedAtMs: Number.NEGATIVE_INFINITY,
  cancelCorrection: undefined as (() => void) | undefined,
});
type Report = ReturnType<typeof newReport>;

/** The watch may be behind the response to the last report. */
const newestStatus = ({ accepted, api }: Report) =>
  accepted && !isNewer(api.metadata.resourceVersion, accepted.version) ? accepted.status : api.status;

/** Versions are opaque by contract and numbers in fact. Source: client-go compares them so where it has to. */
function isNewer(version = "0", than: string): boolean {
  const [a, b] = [Number(version), Number(than)];
  return Number.isFinite(a) && Number.isFinite(b) ? a > b : version !== than;
}

const uidOf = ({ metadata }: ApiPod) => metadata.uid ?? "";
const nameOf = ({ metadata }: ApiPod) => `${metadata.namespace}/${metadata.name}`;
const pathOf = ({ metadata }: ApiPod) => `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
