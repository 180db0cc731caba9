import type { Pod } from "../../api/pod.ts";
import { DockerClient } from "../../docker/docker-client.ts";
import { explainPod, renderExplanation } from "../../status/explain-pod.ts";
import { KubeletApi } from "../client/kubelet-api.ts";
import { findLogTarget } from "../client/log-target.ts";
import { findPod, inScope } from "../client/pod-lookup.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, engineEndpoint, openReader, scopeOf, UsageError } from "../sub-command.ts";

const LOG_LINES = 20;
const MAX_LOG_BYTES = 16_384;

/** `kubelet-ts explain`: why pods are not ready. Returns 0 when all of them are, else 1. */
export async function runExplain(request: CommandRequest, io: CommandIo): Promise<number> {
  const [kind = "", ...rest] = request.positionals;
  const names = ["pod", "pods", "po"].includes(kind) ? rest : request.positionals;
  const api = await openReader(request);
  const events = (await (api instanceof KubeletApi ? api.events() : undefined))?.value ?? [];
  const pods = (await api.pods())?.value ?? [];
  const scope = scopeOf(request);
  const chosen = names.length === 0 ? inScope(pods, scope) : names.map((name) => find(pods, name, scope));
  if (names.length === 0 && chosen.length === 0) throw new UsageError("there are no pods");
  const client = new DockerClient(engineEndpoint(request, undefined));
  const explanations = await Promise.all(
    chosen.map(async (pod) =>
      explainPod({
        pod,
        events: events.filter(({ involvedObject }) => involvedObject.uid === pod.metadata.uid),
        logs: await readLogs(client, pod),
        pods,
        now: io.now(),
      }),
    ),
  );
  if (request.value("output") === "json") io.stdout(`${JSON.stringify(explanations, null, 2)}\n`);
  else io.stdout(`${explanations.map(renderExplanation).join("\n\n")}\n`);
  return explanations.every(({ isReady }) => isReady) ? 0 : 1;
}

function find(pods: readonly Pod[], name: string, scope: { namespace: string | undefined }): Pod {
  const pod = findPod(pods, name, scope);
  if ("problem" in pod) throw new CommandError(pod.problem);
  return pod;
}

/** The end of the log of every container that is not ready; a log that cannot be read is left out. */
async function readLogs(client: DockerClient, pod: Pod): Promise<Map<string, string[]>> {
  const logs = new Map<string, string[]>();
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  for (const { name, ready } of [...initContainerStatuses, ...containerStatuses]) {
    if (ready) continue;
    const current = findLogTarget(pod, name, false);
    const target = "problem" in current ? findLogTarget(pod, name, true) : current;
    if ("problem" in target) continue;
    try {
      logs.set(name, await readTail(client, target.containerId));
    } catch {
      // The container may be gone.
    }
  }
  return logs;
}

async function readTail(client: DockerClient, id: string): Promise<string[]> {
  let text = "";
  const decoder = new TextDecoder();
  const signal = AbortSignal.timeout(5_000);
  for await (const { data } of client.containerLogs(id, { tail: LOG_LINES, signal })) {
    text += decoder.decode(data, { stream: true });
    if (text.length > MAX_LOG_BYTES) break;
  }
  return text.split("\n").filter((line) => line.trim() !== "");
}
