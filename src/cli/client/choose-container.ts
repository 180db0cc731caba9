import type { Pod } from "../../base/api/pod.ts";
import type { InstanceInfo } from "../../base/host/root-lock.ts";
import { DockerClient } from "../../docker/engine/docker-client.ts";
import { CommandError, type CommandRequest, engineEndpoint } from "../sub-command.ts";
import { type ApiObject, apiSocketOf } from "./api-client.ts";
import { ApiStreams, type ContainerStreams, EngineStreams } from "./container-streams.ts";
import { localInstances } from "./find-kubelet.ts";
import { readKnownPods } from "./known-pods.ts";
import { chooseContainers } from "./log-target.ts";
import { choosePod } from "./pods-of-object.ts";

/** A running container of the engine. */
export interface ChosenContainer {
  pod: Pod;
  containerName: string;
  streams: ContainerStreams;
  /** The workload or Service that the pod was chosen by. */
  object?: ApiObject;
  /** Which container was chosen where the command line names none. */
  note?: string;
}

/**
 * The running container that the arguments mean, by a kubelet if one runs, else by the engine's labels.
 * @throws CommandError, UsageError
 */
export async function chooseRunningContainer(request: CommandRequest, written: string): Promise<ChosenContainer> {
  const { pods, instance } = await readKnownPods(request, false);
  const { pod, object, note } = await choosePod(request, pods, written);
  const chosen = chooseContainers(pod, request.value("container"), false);
  if ("problem" in chosen) throw new CommandError(chosen.problem);
  const [containerName = ""] = chosen.names;
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  const all = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses];
  const status = all.find(({ name }) => name === containerName);
  const containerId = status?.state.running && status.containerID?.replace(/^docker:\/\//, "");
  if (!containerId) {
    const { waiting, terminated } = status?.state ?? {};
    const why = waiting?.reason ?? (terminated ? `it exited with code ${terminated.exitCode}` : "it has not started");
    throw new CommandError(`container "${containerName}" of pod "${pod.metadata.name}" does not run: ${why}`);
  }
  const notes = [note, chosen.note].filter((text) => text !== undefined);
  return {
    pod,
    containerName,
    streams: openStreams(request, { pod, containerName, containerId, instance }),
    ...(object && { object }),
    ...(notes.length > 0 && { note: notes.join("\n") }),
  };
}

/** Streams over the local API of the kubelet where this user may use it, else over the engine. */
function openStreams(
  request: CommandRequest,
  found: { pod: Pod; containerName: string; containerId: string; instance: InstanceInfo | undefined },
): ContainerStreams {
  const { pod, containerName, containerId, instance } = found;
  const socketPath = instance && apiSocketOf(instance.rootDir);
  if (socketPath !== undefined && localInstances.mayUse(socketPath))
    return new ApiStreams(socketPath, pod, containerName);
  const client = new DockerClient(engineEndpoint(request, instance?.dockerEndpoint));
  return new EngineStreams(client, containerId, pod.status?.podIP);
}
