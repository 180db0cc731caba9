import type { Pod } from "../base/api/pod.ts";
import type { DockerContainers } from "../docker/docker-containers.ts";
import type { PodEventRecorder } from "../kubelet/event-recorder.ts";
import type { RunOnceResult } from "./wait-for-pods.ts";

const LOG_LINES = 10;

/** Adds to each failed pod the last failure of a probe and the last lines of the container's log. */
export function explainFailures(
  results: readonly RunOnceResult[],
  containers: Pick<DockerContainers, "logTail">,
  recorder: Pick<PodEventRecorder, "list">,
  signal: AbortSignal,
): Promise<RunOnceResult[]> {
  return Promise.all(
    results.map(async (result) => {
      const { pod, verdict } = result;
      if (verdict.state !== "failed") return result;
      const unhealthy = recorder
        .list()
        .findLast(({ reason, involvedObject }) => reason === "Unhealthy" && involvedObject.uid === pod.metadata.uid);
      const message = unhealthy ? `${verdict.message}: ${unhealthy.message.trim()}` : verdict.message;
      const id = verdict.container === undefined ? undefined : findLoggingContainer(pod, verdict.container);
      const log = id === undefined ? "" : await containers.logTail(id, LOG_LINES, signal).catch(() => "");
      const lines = log.split(/\r?\n/).filter((line) => line.trim() !== "");
      return { ...result, verdict: { ...verdict, message }, ...(lines.length > 0 && { log: lines }) };
    }),
  );
}

/** Id of the container that failed: the one that runs or has ended, else its predecessor. */
export function findLoggingContainer({ status }: Pod, name: string): string | undefined {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const found = all.find((container) => container.name === name);
  const { running, terminated } = found?.state ?? {};
  const id = running || terminated ? found?.containerID : found?.lastState.terminated?.containerID;
  return id?.replace(/^docker:\/\//, "") || undefined;
}
