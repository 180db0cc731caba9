import type { Pod } from "../../base/api/pod.ts";
import type { InstanceInfo } from "../../base/host/root-lock.ts";
import { CommandError, type CommandRequest, UsageError } from "../sub-command.ts";
import type { EngineReader } from "./engine-reader.ts";
import { locateKubelet, removeProxies } from "./find-kubelet.ts";
import { KubeletApi, KubeletApiError } from "./kubelet-api.ts";

/** The kubelet alone. @throws CommandError when none can be asked */
export async function openKubelet(request: CommandRequest): Promise<KubeletApi> {
  removeProxies();
  const kubelet = await locateKubelet(request);
  if ("problem" in kubelet) throw new CommandError(kubelet.problem);
  return new KubeletApi(kubelet);
}

/** The source of read commands: a kubelet, or the engine. */
export type PodReader = KubeletApi | EngineReader;

/**
 * The kubelet; where none runs, the engine and the checkpoints of the root directory.
 * @throws CommandError when neither can be asked
 */
export async function openReader(request: CommandRequest): Promise<PodReader> {
  removeProxies();
  const kubelet = await locateKubelet(request);
  if (!("problem" in kubelet)) return new KubeletApi(kubelet);
  if (!kubelet.isAbsent) throw new CommandError(kubelet.problem);
  return await openEngine(request, kubelet.problem);
}

const openEngine = async (request: CommandRequest, noKubelet: string) =>
  (await import("./engine-reader.ts")).openEngine(request, noKubelet);

/**
 * Pods of the kubelet if one answers, else those of the engine; an address that was given must answer.
 * @returns also the kubelet of the pods, if one runs
 * @param mayGuess the engine may be asked although several kubelets run, or one of another user
 * @throws CommandError, UsageError
 */
export async function readKnownPods(
  request: CommandRequest,
  mayGuess: boolean,
): Promise<{ pods: readonly Pod[]; instance: InstanceInfo | undefined }> {
  removeProxies();
  const server = request.value("server");
  const kubelet = await locateKubelet(request);
  const { instance } = kubelet;
  const askEngine = async (why: string) => ({ pods: await (await openEngine(request, why)).pods(), instance });
  if ("problem" in kubelet) {
    if (server !== undefined) throw new UsageError(kubelet.problem);
    if (!mayGuess && !kubelet.isAbsent && instance === undefined) throw new CommandError(kubelet.problem);
    return await askEngine(kubelet.problem);
  }
  try {
    return { pods: await new KubeletApi(kubelet).pods(), instance };
  } catch (error) {
    if (server !== undefined || !(error instanceof KubeletApiError)) throw error;
    return await askEngine(error.message);
  }
}
