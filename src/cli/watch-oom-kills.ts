import { followKernelLog } from "../host/kmsg.ts";
import type { Logger } from "../model/logger.ts";
import type { EventRecorder } from "../model/pod-event.ts";
import { OomKillParser, toOomEvent } from "../stats/oom-kill.ts";
import type { PodFacts } from "../stats/pod-facts.ts";

/**
 * Makes events of what the kernel kills for want of memory: of the pod whose container it was, or a log line when the
 * machine itself ran out [S081].
 * @returns ends it
 */
export function watchOomKills(
  podFacts: () => readonly PodFacts[],
  recorder: EventRecorder,
  logger: Logger,
): () => void {
  const parser = new OomKillParser();
  return followKernelLog(({ message }) => {
    const kill = parser.feed(message);
    const oom = kill && toOomEvent(kill, podFacts());
    if (!oom) return;
    if (oom.pod) recorder.record(oom.pod, oom.event);
    else logger.warn(`${oom.event.reason}: ${oom.event.message}`);
  }, logger);
}
