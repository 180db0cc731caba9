import type { Pod } from "../../api/pod.ts";
import { DockerClient } from "../../docker/docker-client.ts";
import type { InstanceInfo } from "../../host/root-lock.ts";
import {
  CommandError,
  type CommandRequest,
  engineEndpoint,
  findingOptions,
  openEngine,
  removeProxies,
  scopeOf,
  UsageError,
} from "../sub-command.ts";
import { findKubelet } from "./find-kubelet.ts";
import { KubeletApi, KubeletApiError } from "./kubelet-api.ts";
import { chooseContainers } from "./log-target.ts";
import { findPod } from "./pod-lookup.ts";

/** A running container of the engine. */
export interface ChosenContainer {
  pod: Pod;
  containerName: string;
  containerId: string;
  client: DockerClient;
  /** Which container was chosen where the command line names none. */
  note?: string;
}

/**
 * The running container that the arguments mean, by a kubelet if one runs, else by the engine's labels.
 * @throws CommandError, UsageError
 */
export async function chooseRunningContainer(request: CommandRequest, written: string): Promise<ChosenContainer> {
  removeProxies();
  const { pods, instance } = await lookForPods(request);
  const pod = findPod(pods, written, scopeOf(request));
  if ("problem" in pod) throw new CommandError(pod.problem);
  const chosen = chooseContainers(pod, request.value("container"), false);
  if ("problem" in chosen) throw new CommandError(chosen.problem);
  const [containerName = ""] = chosen.names;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const status = [...containerStatuses, ...initContainerStatuses].find(({ name }) => name === containerName);
  const containerId = status?.state.running && status.containerID?.replace(/^docker:\/\//, "");
  if (!containerId) {
    const { waiting, terminated } = status?.state ?? {};
    const why = waiting?.reason ?? (terminated ? `it exited with code ${terminated.exitCode}` : "it has not started");
    throw new CommandError(`container "${containerName}" of pod "${pod.metadata.name}" does not run: ${why}`);
  }
  return {
    pod,
    containerName,
    containerId,
    client: new DockerClient(engineEndpoint(request, instance?.dockerEndpoint)),
    ...(chosen.note !== undefined && { note: chosen.note }),
  };
}

/** From the kubelet if one answers, else from the engine; an address that was given must answer. */
async function lookForPods(request: CommandRequest): Promise<{ pods: Pod[]; instance: InstanceInfo | undefined }> {
  const options = findingOptions(request);
  const kubelet = await findKubelet(options);
  if ("problem" in kubelet) {
    if (options.server !== undefined) throw new UsageError(kubelet.problem);
    if (!kubelet.isAbsent && kubelet.instance === undefined) throw new CommandError(kubelet.problem);
    const { value } = await (await openEngine(request, kubelet.problem)).pods();
    return { pods: value, instance: kubelet.instance };
  }
  const { instance } = kubelet;
  try {
    return { pods: (await new KubeletApi(kubelet).pods())?.value ?? [], instance };
  } catch (error) {
    if (options.server !== undefined || !(error instanceof KubeletApiError)) throw error;
    return { pods: (await (await openEngine(request, error.message)).pods()).value, instance };
  }
}
