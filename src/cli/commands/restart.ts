import { ApiClient } from "../client/api-client.ts";
import { kindOf, referenceOf, selectObjects } from "../client/object-targets.ts";
import { CommandError, type CommandIo, type CommandRequest } from "../sub-command.ts";

/** Kinds with a pod template. */
const WITH_TEMPLATE = new Set(["Deployment", "StatefulSet", "DaemonSet"]);

/** `kubelet-ts restart`: the containers of a pod, or, as `kubectl rollout restart`, the pods of a workload. */
export async function runRestart(request: CommandRequest, io: CommandIo): Promise<number> {
  const api = await ApiClient.open(request);
  const targets = await selectObjects(api, request, { takesFiles: false, verb: "restart" });
  if (targets.length === 0) io.stderr("No resources found\n");
  for (const { resource, namespace, name } of targets) {
    const object = await api.requireObject(resource, namespace, name);
    if (resource.kind === "Pod") {
      const pod = encodeURIComponent(object.metadata.name ?? name);
      await api.json("POST", `/apis/kubelet-ts.io/v1/namespaces/${namespace}/pods/${pod}/restart`);
    } else if (WITH_TEMPLATE.has(resource.kind)) {
      const annotations = { "kubectl.kubernetes.io/restartedAt": io.now().toISOString() };
      const patch = { spec: { template: { metadata: { annotations } } } };
      const path = api.pathOf(resource, namespace, name);
      await api.json("PATCH", path, patch, { "Content-Type": "application/merge-patch+json" });
    } else {
      throw new CommandError(
        `${kindOf(resource)} "${name}" has no pods to restart: restart takes a pod, Deployment, StatefulSet or DaemonSet`,
      );
    }
    io.stdout(`${referenceOf(resource, object.metadata.name ?? name)} restarted\n`);
  }
  return 0;
}
