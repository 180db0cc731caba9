import { followKernelLog } from "../../base/host/kmsg.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { EventRecorder, PodEvent } from "../../base/model/pod-event.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { OomNotices } from "../../kubelet/oom-notices.ts";
import type { CgroupReader } from "../../stats/cgroups/cgroup-reader.ts";
import { OomKillParser, readOomKills, toContainerId, toOomEvent } from "../../stats/oom-kill.ts";
import type { PodFacts } from "../../stats/pod-facts.ts";

interface OomWatchInput {
  podFacts: () => readonly PodFacts[];
  kubelet: Pick<Kubelet, "workers" | "noteOom">;
  reader: CgroupReader;
  recorder: EventRecorder;
  /** Records an event about the node; absent: it is only logged. */
  recordNode?: ((event: PodEvent) => void) | undefined;
  clock: Clock;
  logger: Logger;
}

export interface OomWatch {
  /** The engine says that a container ran out of memory: what counts where the kernel's log cannot be read. */
  note(id: ContainerId): void;
  end(): void;
}

/**
 * Reports the kernel's OOM kills: as an event of the pod that owns the container, and as an event of the node when the
 * machine itself ran out of memory.
 */
export function watchOomKills({
  podFacts,
  kubelet,
  reader,
  recorder,
  recordNode,
  clock,
  logger,
}: OomWatchInput): OomWatch {
  const parser = new OomKillParser();
  const end = followKernelLog(({ message }) => {
    const kill = parser.feed(message);
    const oom = kill && toOomEvent(kill, podFacts());
    if (!oom) return;
    // The engine misses kills that end a container of cgroup v2 at once.
    const id = oom.container === undefined ? undefined : toContainerId(kill.victimCgroup);
    if (id !== undefined) kubelet.noteOom(id);
    if (oom.pod) recorder.record(oom.pod, oom.event);
    if (oom.event.reason === "SystemOOM" && recordNode) recordNode(oom.event);
    else if (!oom.pod) logger.warn(`${oom.event.reason}: ${oom.event.message}`);
  }, logger);
  if (end) return { end, note: () => {} };
  const notices = new OomNotices({
    clock,
    recorder,
    pods: () => [...kubelet.workers()].map(({ snapshot }) => snapshot),
    readKills: (pid) => {
      const directories = reader.ofProcess(pid);
      return directories && readOomKills(directories);
    },
  });
  return { end: () => {}, note: (id) => notices.note(id) };
}
