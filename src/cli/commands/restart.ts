import { hasCondition } from "../../base/api/meta.ts";
import type { PodStatus } from "../../base/api/pod.ts";
import { ApiClient, type ApiObject, ApiStatusError } from "../client/api-client.ts";
import { kindOf, referenceOf, selectObjects } from "../client/object-targets.ts";
import { CommandError, type CommandIo, type CommandRequest } from "../sub-command.ts";

/** Kinds with a pod template. */
const WITH_TEMPLATE = new Set(["Deployment", "StatefulSet", "DaemonSet"]);
const POLL_MS = 250;
/** Time for one pod of a workload to become Ready again. */
const READY_LIMIT_MS = 10 * 60_000;

/** `kubelet-ts restart`: the containers of a pod, or, as `kubectl rollout restart`, the pods of a workload. */
export async function runRestart(request: CommandRequest, io: CommandIo): Promise<number> {
  const api = await ApiClient.open(request);
  const targets = await selectObjects(api, request, { takesFiles: false, verb: "restart" });
  if (targets.length === 0) io.stderr("No resources found\n");
  for (const { resource, namespace, name } of targets) {
    const object = await api.requireObject(resource, namespace, name);
    if (resource.kind === "Pod") await restartPod(api, namespace, object.metadata.name ?? name);
    else if (WITH_TEMPLATE.has(resource.kind)) {
      const annotations = { "kubectl.kubernetes.io/restartedAt": io.now().toISOString() };
      const patch = { spec: { template: { metadata: { annotations } } } };
      const path = api.pathOf(resource, namespace, name);
      try {
        await api.json("PATCH", path, patch, { "Content-Type": "application/merge-patch+json" });
      } catch (error) {
        if (!(error instanceof ApiStatusError) || error.code !== 403) throw error;
        // The text of the workload is in a file, which is not ours to edit: its pods restart in place.
        await restartPodsOf(api, namespace, object);
      }
    } else {
      throw new CommandError(
        `${kindOf(resource)} "${name}" has no pods to restart: restart takes a pod, Deployment, StatefulSet or DaemonSet`,
      );
    }
    io.stdout(`${referenceOf(resource, object.metadata.name ?? name)} restarted\n`);
  }
  return 0;
}

const restartPod = (api: ApiClient, namespace: string, name: string) =>
  api.json("POST", `/apis/kubelet-ts.io/v1/namespaces/${namespace}/pods/${encodeURIComponent(name)}/restart`);

/** One pod after the other: the next one when the last is Ready again. @throws CommandError when one does not become Ready */
async function restartPodsOf(api: ApiClient, namespace: string, workload: ApiObject): Promise<void> {
  const pods = await api.findResource("pods");
  const ownedBy = async (resource: typeof pods, owners: readonly ApiObject[]) => {
    const uids = new Set(owners.map(({ metadata }) => metadata.uid));
    const isOwned = ({ metadata }: ApiObject) =>
      metadata.ownerReferences?.some(({ uid, controller }) => controller && uids.has(uid));
    return (await api.list(resource, namespace)).filter(isOwned);
  };
  const owners =
    workload.kind === "Deployment" ? await ownedBy(await api.findResource("replicasets"), [workload]) : [workload];
  for (const pod of await ownedBy(pods, owners)) {
    const { name = "" } = pod.metadata;
    const before = idsOf(pod);
    await restartPod(api, namespace, name);
    const end = Date.now() + READY_LIMIT_MS;
    for (;;) {
      const now = await api.find(api.pathOf(pods, namespace, name));
      const isNew = now && !idsOf(now).some((id) => before.includes(id));
      if (!now || (isNew && hasCondition(statusOf(now), "Ready"))) break;
      if (Date.now() > end) throw new CommandError(`pod "${name}" is not Ready again: the others were not restarted`);
      await Bun.sleep(POLL_MS);
    }
  }
}

const statusOf = ({ status }: ApiObject) => status as PodStatus | undefined;
const idsOf = (pod: ApiObject) => (statusOf(pod)?.containerStatuses ?? []).map(({ containerID }) => containerID);
