import type { Pod } from "../base/api/pod.ts";
import { statusesOf } from "../base/model/pod.ts";
import type { DockerContainers } from "../docker/docker-containers.ts";
import { findLogContainerId } from "../plan/status/log-container.ts";

const MAX_CHARACTERS = 16_384;
/** A log that is not read by then is left out. */
const READ_LIMIT_MS = 2000;

/** The last lines that each container that is not ready wrote, for an explanation of the pod. */
export async function readLogTails(
  { status }: Pod,
  containers: Pick<DockerContainers, "logTail">,
  lines: number,
): Promise<Map<string, string[]>> {
  const tails = new Map<string, string[]>();
  for (const container of statusesOf(status)) {
    const id = container.ready ? undefined : findLogContainerId(container, false);
    if (id === undefined) continue;
    // The engine may be unreachable, or the container gone.
    const text = await containers.logTail(id, lines, AbortSignal.timeout(READ_LIMIT_MS)).catch(() => undefined);
    const tail = text?.slice(-MAX_CHARACTERS).split("\n");
    if (tail)
      tails.set(
        container.name,
        tail.filter((line) => line.trim() !== ""),
      );
  }
  return tails;
}
