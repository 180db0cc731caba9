import { ApiClient } from "../client/api-client.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, UsageError } from "../sub-command.ts";
import { readTargets } from "./delete-objects.ts";

/** Kinds with a pod template. */
const WITH_TEMPLATE = new Set(["Deployment", "StatefulSet", "DaemonSet"]);

/** `kubelet-ts restart`, as `kubectl rollout restart`: new pods of a workload, without a change of its manifest. */
export async function runRestart(request: CommandRequest, io: CommandIo): Promise<number> {
  const api = await ApiClient.open(request);
  const { names } = await readTargets(api, request.positionals, request.value("namespace") ?? "default");
  if (names.length === 0) throw new UsageError("name a workload, as in: restart deployment/web");
  for (const { resource, namespace, name } of names) {
    if (!WITH_TEMPLATE.has(resource.kind)) {
      throw new CommandError(
        `${resource.singularName || resource.name} "${name}" has no pod template: restart takes a Deployment, StatefulSet or DaemonSet; of a pod, delete it or edit its manifest`,
      );
    }
    const annotations = { "kubectl.kubernetes.io/restartedAt": io.now().toISOString() };
    const path = api.pathOf(resource, namespace, name);
    await api.json(
      "PATCH",
      path,
      { spec: { template: { metadata: { annotations } } } },
      {
        "Content-Type": "application/merge-patch+json",
      },
    );
    io.stdout(`${resource.singularName}.${resource.group}/${name} restarted\n`);
  }
  return 0;
}
