import type { Listeners } from "../../base/concurrency/listeners.ts";
import type { ContainerId } from "../../base/model/pod-snapshot.ts";
import type { DockerEngine } from "../../docker/docker-engine.ts";
import type { PodRules } from "../../kubelet/blocked-pods.ts";
import type { ImageUpdateManager } from "../../kubelet/images/image-update-manager.ts";
import { Kubelet } from "../../kubelet/kubelet.ts";
import { PodCache } from "../../kubelet/pod-cache.ts";
import { type PodManager, PodRecords } from "../../kubelet/pod-records.ts";
import type { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import { HostProber } from "../../kubelet/prober/host-prober.ts";
import { ProbeManager } from "../../kubelet/prober/probe-manager.ts";
import { RevisionSelector } from "../../kubelet/rollout-manager.ts";
import { RuntimeWatcher } from "../../kubelet/runtime-watcher.ts";
import type { ProbeLog } from "../../server/page/pod-detail.ts";
import { probeVersion } from "../version.ts";
import { liveOptions, type NodeContext } from "./node-context.ts";
import { openStateFile } from "./state-files.ts";

interface KubeletParts {
  podManager: PodManager;
  services: PodRuntimeManager;
  probes: ProbeManager;
  rules: PodRules;
  /** Called for each container or sandbox that ran out of memory. */
  oomEvents: Listeners<ContainerId>;
  imageUpdates: ImageUpdateManager;
}

/** The sync loop. */
export function buildKubelet(
  context: NodeContext,
  { pods: runtime, images }: DockerEngine,
  parts: KubeletParts,
): Kubelet {
  const { options, clock, recorder } = context;
  const { podManager, services, probes, rules, oomEvents, imageUpdates } = parts;
  const oomVerdicts = openStateFile(context, "oom-killed");
  const cache = new PodCache({ runtime, clock, oomVerdicts, images });
  const watcher = new RuntimeWatcher({ ...context, runtime, cache, relistPeriodMs: options.syncFrequencyMs });
  watcher.ooms.add((id) => oomEvents.emit(id));
  const evictions = openStateFile(context, "evictions");
  // --runonce is a request to run these pods: earlier evictions do not count.
  if (options.runOnce && evictions.read()) evictions.write([]);
  const records = new PodRecords({
    completions: openStateFile(context, "completions"),
    conditions: openStateFile(context, "conditions"),
    earlierManifests: openStateFile(context, "earlier-manifests"),
    podCleanup: openStateFile(context, "pods"),
    shutdownTerminated: openStateFile(context, "cut-off"),
    evictions,
  });
  const kubelet = new Kubelet({
    worker: { ...context, cache, services, probes, records },
    watcher,
    podManager,
    revisions: new RevisionSelector({
      ...context,
      rollouts: openStateFile(context, "rollouts"),
      ephemeralContainers: openStateFile(context, "ephemeral-containers"),
      imageUpdates,
      isSerialRollout: options.rollout === "serial",
    }),
    rules,
    deadContainers: liveOptions(options, { maxInAll: "maximumDeadContainers", minTtlMs: "minimumContainerTtlMs" }),
  });
  kubelet.podsGone.add((uid) => recorder.objectGone(uid));
  probes.changes.add(({ uid }) => kubelet.workers.get(uid)?.wake());
  context.metricsRecorder.watch(kubelet);
  return kubelet;
}

/** Not durable: no container outlives a power cut, and its probe results need not either. */
export function buildProbes(context: NodeContext, { containers }: DockerEngine, log: ProbeLog): ProbeManager {
  const { clock, metricsRecorder } = context;
  const probes = new ProbeManager({
    ...context,
    prober: new HostProber({ exec: containers, clock, version: probeVersion }),
    random: Math.random,
    file: openStateFile(context, "probes"),
  });
  probes.attempts.add(({ pod, containerName, kind, outcome, durationMs }) => {
    log.add(pod.uid, containerName, kind, outcome, durationMs, clock.now().getTime());
    metricsRecorder.countProbe(pod, containerName, kind, outcome);
  });
  return probes;
}
