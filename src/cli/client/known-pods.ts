import type { Pod } from "../../base/api/pod.ts";
import type { InstanceInfo } from "../../base/host/root-lock.ts";
import {
  CommandError,
  type CommandRequest,
  findingOptions,
  openEngine,
  removeProxies,
  UsageError,
} from "../sub-command.ts";
import { findKubelet } from "./find-kubelet.ts";
import { KubeletApi, KubeletApiError } from "./kubelet-api.ts";

interface KnownPods {
  pods: readonly Pod[];
  /** The kubelet of the pods, if one runs. */
  instance: InstanceInfo | undefined;
}

/**
 * Pods of the kubelet if one answers, else those of the engine; an address that was given must answer.
 * @param mayGuess the engine may be asked although several kubelets run, or one of another user
 * @throws CommandError, UsageError
 */
export async function readKnownPods(request: CommandRequest, mayGuess: boolean): Promise<KnownPods> {
  removeProxies();
  const { server } = findingOptions(request);
  const kubelet = await findKubelet(findingOptions(request));
  const { instance } = kubelet;
  const askEngine = async (why: string) => ({ pods: (await (await openEngine(request, why)).pods()).value, instance });
  if ("problem" in kubelet) {
    if (server !== undefined) throw new UsageError(kubelet.problem);
    if (!mayGuess && !kubelet.isAbsent && instance === undefined) throw new CommandError(kubelet.problem);
    return await askEngine(kubelet.problem);
  }
  try {
    return { pods: (await new KubeletApi(kubelet).pods())?.value ?? [], instance };
  } catch (error) {
    if (server !== undefined || !(error instanceof KubeletApiError)) throw error;
    return await askEngine(error.message);
  }
}
