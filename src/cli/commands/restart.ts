import { DockerClient } from "../../docker/engine/docker-client.ts";
import { listEnginePods } from "../../docker/engine-pods.ts";
import { ApiClient, type ApiObject } from "../client/api-client.ts";
import { findKubelet } from "../client/find-kubelet.ts";
import { kindOf, referenceOf, selectObjects } from "../client/object-targets.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, engineEndpoint, findingOptions } from "../sub-command.ts";

/** Kinds with a pod template. */
const WITH_TEMPLATE = new Set(["Deployment", "StatefulSet", "DaemonSet"]);
const ENGINE_LIMIT_MS = 60_000;
/** The pause program ends at once. */
const SANDBOX_SECONDS = 10;

/** `kubelet-ts restart`: the containers of a pod, or, as `kubectl rollout restart`, the pods of a workload. */
export async function runRestart(request: CommandRequest, io: CommandIo): Promise<number> {
  const api = await ApiClient.open(request);
  const targets = await selectObjects(api, request, { takesFiles: false, verb: "restart" });
  if (targets.length === 0) io.stderr("No resources found\n");
  for (const { resource, namespace, name } of targets) {
    if (resource.kind === "Pod") {
      const pod = await api.requireObject(resource, namespace, name);
      await restartPod(request, pod);
      io.stdout(`pod/${pod.metadata.name} restarted\n`);
      continue;
    }
    if (!WITH_TEMPLATE.has(resource.kind)) {
      throw new CommandError(
        `${kindOf(resource)} "${name}" has no pods to restart: restart takes a pod, Deployment, StatefulSet or DaemonSet`,
      );
    }
    const annotations = { "kubectl.kubernetes.io/restartedAt": io.now().toISOString() };
    await api.requireObject(resource, namespace, name);
    const path = api.pathOf(resource, namespace, name);
    const patch = { spec: { template: { metadata: { annotations } } } };
    await api.json("PATCH", path, patch, { "Content-Type": "application/merge-patch+json" });
    io.stdout(`${referenceOf(resource, name)} restarted\n`);
  }
  return 0;
}

/** Without its sandbox the kubelet stops the containers within their grace period, and starts them in a new one. */
async function restartPod(request: CommandRequest, { metadata, spec }: ApiObject): Promise<void> {
  const what = `pod "${metadata.name}"`;
  const { restartPolicy = "Always" } = spec as { restartPolicy?: string };
  if (restartPolicy !== "Always") {
    throw new CommandError(
      `${what} has restartPolicy ${restartPolicy}: a container that is stopped may count as done; delete the pod and create it again`,
    );
  }
  const kubelet = await findKubelet(findingOptions(request));
  const client = new DockerClient(engineEndpoint(request, kubelet.instance?.dockerEndpoint));
  const pods = await listEnginePods(client, undefined, AbortSignal.timeout(ENGINE_LIMIT_MS));
  const sandbox = pods
    .find(({ snapshot }) => snapshot.uid === metadata.uid)
    ?.snapshot.sandboxes.find(({ state }) => state === "ready");
  if (!sandbox) throw new CommandError(`${what} does not run now: kubelet-ts explain ${metadata.name} says why`);
  await client.stopContainer(sandbox.id, { timeoutSeconds: SANDBOX_SECONDS });
}
