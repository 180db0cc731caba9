import type { Pod } from "../../base/api/pod.ts";
import { type DesiredWorkload, isWorkload, objectKey } from "../../base/model/desired-object.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import { parseCronSchedule } from "../../base/text/cron-schedule.ts";
import type { WorkloadReader } from "../../controllers/workload-reader.ts";
import type { ImageUpdateReport } from "../../kubelet/images/image-update-report.ts";
import type { ImageUpdateRow, WorkloadRow } from "../../page/wire.ts";
import { updateOwnerOf } from "../../plan/image-update-settings.ts";
import { toMs } from "../../server/page/pod-detail.ts";
import { toWorkloadRow } from "../../server/page/workload-row.ts";
import { describeSource } from "./page-source.ts";

/** Lines about the workloads of the manifests, sorted by kind and name. */
export function toWorkloadRows(
  { objects = [], locations }: DesiredState,
  workloads: Pick<WorkloadReader, "statusOf">,
  now: Date,
): WorkloadRow[] {
  return objects.filter(isWorkload).map((desired) => {
    const { kind, object } = desired;
    const { metadata, spec } = object;
    const status = workloads.statusOf(kind, object);
    return toWorkloadRow({
      kind,
      namespace: metadata.namespace ?? "default",
      name: metadata.name ?? "",
      source: describeSource(desired, desired.location ?? locations?.[objectKey(kind, metadata)]),
      spec,
      status,
      nextRun: nextRunOf(desired, status, now),
    });
  });
}

function nextRunOf({ kind, object }: DesiredWorkload, status: object | undefined, now: Date): Date | undefined {
  if (kind !== "CronJob") return undefined;
  const schedule = parseCronSchedule(object.spec.schedule, object.spec.timeZone);
  const { lastScheduleTime } = (status ?? {}) as { lastScheduleTime?: string };
  const since = lastScheduleTime ? new Date(lastScheduleTime) : now;
  return "problem" in schedule ? undefined : schedule.next(now, since);
}

/** The images of a pod that are kept up to date. Pure. */
export function toImageUpdateRows(reports: readonly ImageUpdateReport[], pod: Pod): ImageUpdateRow[] {
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
