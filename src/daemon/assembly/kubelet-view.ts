import type { HealthCheck } from "../../base/model/health-check.ts";
import type { ContainerSnapshot, SandboxSnapshot } from "../../base/model/pod-snapshot.ts";
import { toServedConfiguration } from "../../config/effective-config.ts";
import type { PodWorker } from "../../kubelet/pod-worker.ts";
import type { VolumeUsagePath } from "../../kubelet/volumes/volume-plugins.ts";
import type { KubeletView } from "../../server/view.ts";
import { describeFinding } from "../../sources/source-set.ts";
import type { ContainerFacts, PodFacts, VolumeFacts } from "../../stats/pod-facts.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";

/** The kubelet as its servers see it: only reading, only from memory. */
export function buildView({ context, kubelet, feed, volumes, engine }: AssembledKubelet): KubeletView {
  const { node, options, recorder } = context;
  const usagePaths = ({ revision }: PodWorker) =>
    revision ? volumes.usagePaths(revision.pod, revision.desired.claims, engine.infoIfKnown?.dockerRootDir) : [];
  const engineError = () => engine.connectError ?? kubelet.runtimeError;
  return {
    nodeName: () => node.name,
    pods: () => kubelet.pods(),
    events: () => ({ revision: recorder.revision, items: recorder.list() }),
    podFacts: () => [...kubelet.workers()].flatMap((worker) => toPodFacts(worker, usagePaths(worker)) ?? []),
    engineError,
    healthChecks: () => [
      ok("ping"),
      ok("log"),
      { name: "syncloop", ok: engineError() === undefined, message: engineError() ?? "" },
      // A source out of reach does not make the kubelet unhealthy: the last set keeps running.
      ...feed.status().map(({ kind, name, state, message }) => {
        const why = state === "ok" ? "" : ` (${state}${message ? `: ${message}` : ""})`;
        return ok(`source ${kind} ${name}${why}`);
      }),
      // Nor does a refused manifest: its pods keep running as before.
      ...feed.rejections().map(({ finding }) => ok(`manifest ${finding.file} refused (${describeFinding(finding)})`)),
    ],
    config: () => toServedConfiguration(options),
  };
}

const ok = (name: string): HealthCheck => ({ name, ok: true, message: "" });

/** undefined for a pod without a running sandbox: there is nothing to measure. */
function toPodFacts(worker: PodWorker, volumes: readonly VolumeUsagePath[]): PodFacts | undefined {
  const { snapshot, ref } = worker;
  const sandbox = snapshot.sandboxes[0];
  if (sandbox?.state !== "ready") return undefined;
  const startTime = worker.status?.startTime;
  return {
    uid: ref.uid,
    name: ref.name,
    namespace: ref.namespace,
    startTime: startTime ? new Date(startTime) : sandbox.createdAt,
    hostNetwork: sandbox.hostNetwork,
    cgroupParent: sandbox.cgroupParent,
    sandbox: toContainerFacts("POD", sandbox),
    containers: snapshot.containers
      .filter(({ state }) => state === "running")
      .map((container) => toContainerFacts(container.name, container)),
    volumes: volumes.map(toVolumeFacts),
  };
}

function toContainerFacts(name: string, it: ContainerSnapshot | SandboxSnapshot): ContainerFacts {
  return {
    name,
    id: it.id,
    dockerName: it.dockerName,
    pid: it.pid,
    image: it.imageId,
    createdAt: it.createdAt,
    startedAt: it.startedAt ?? it.createdAt,
    labels: it.labels,
    logPath: it.logPath,
    writableLayerPath: it.writableLayerPath,
  };
}

const toVolumeFacts = ({ name, path, method, isEphemeral, claimName }: VolumeUsagePath): VolumeFacts => ({
  name,
  path,
  ephemeral: isEphemeral,
  isFileSystem: method === "statfs",
  ...(claimName !== undefined && { pvcName: claimName }),
});
