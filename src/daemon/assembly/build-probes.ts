import type { Listeners } from "../../base/concurrency/listeners.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { DockerClient } from "../../docker/engine/docker-client.ts";
import { HostProber } from "../../kubelet/prober/host-prober.ts";
import { ProbeManager } from "../../kubelet/prober/probe-manager.ts";
import type { ProbeLog } from "../../server/page/probe-log.ts";
import { probeVersion } from "../version.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { ProbeResultsSchema } from "./state-schemas.ts";

/** @param onChange called with each pod whose probe results changed */
export function buildProbes(
  context: NodeContext,
  client: DockerClient,
  onChange: Listeners<PodUID>,
  log: ProbeLog,
): ProbeManager {
  const { node, clock, logger, recorder, metrics, loopLag } = context;
  // Not durable: no container outlives a power cut, and its results need not either.
  const file = openStateFile(context, "probes", ProbeResultsSchema);
  return new ProbeManager({
    clock,
    logger,
    recorder,
    prober: new HostProber({ exec: client, clock, version: probeVersion }),
    random: Math.random,
    hostIp: () => node.ip,
    loopLag,
    onChange: (uid) => onChange.emit(uid),
    stored: new Map(file.read() ?? []),
    store: { save: (results) => file.write([...results]) },
    onAttempt: ({ pod, containerName, kind, outcome, durationMs }) => {
      log.add(pod.uid, containerName, kind, outcome, durationMs, clock.now().getTime());
      metrics.countProbe(pod, containerName, kind, outcome);
    },
  });
}
