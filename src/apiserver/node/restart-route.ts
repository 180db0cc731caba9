import { badRequest, methodNotSupported, notFound } from "../api-error.ts";
import { json } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import type { ObjectStore } from "../object-store.ts";

interface RestartDeps {
  store: ObjectStore;
  /** Brings the pods of the store up to date. */
  refresh: () => Promise<void>;
  /** @returns why the pod cannot be restarted; undefined: its restart has begun */
  restartPod: (uid: string) => string | undefined;
}

const RESOURCE = { group: "kubelet-ts.io", plural: "pods" };

/** `POST /apis/kubelet-ts.io/v1/namespaces/NAMESPACE/pods/NAME/restart`: the containers start again in a new sandbox. */
export const restartRoute = ({ store, refresh, restartPod }: RestartDeps): ExtraRoute => ({
  group: RESOURCE.group,
  version: "v1",
  name: "pods/restart",
  kind: "PodRestart",
  namespaced: true,
  verbs: ["create"],
  handle: async ({ method }, { namespace, name }) => {
    if (method !== "POST") throw methodNotSupported(RESOURCE, "get");
    await refresh();
    const pod = store.get("pods", namespace, name);
    if (!pod) throw notFound({ group: "", plural: "pods" }, name);
    const refusal = restartPod(pod.metadata.uid ?? "");
    if (refusal !== undefined) throw badRequest(`pod "${name}" ${refusal}`);
    return json(200, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" });
  },
});
