/**
 * Follows the ConfigMaps of the namespace `default` with an informer of @kubernetes/client-node: arguments are the URL of
 * the API and a bearer token (Bun's fetch does not take certificates of a kubeconfig). Prints one JSON object a line.
 */
import { CoreV1Api, KubeConfig, makeInformer, type V1ConfigMap } from "@kubernetes/client-node";

const [server = "", token = ""] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromClusterAndUser({ name: "node", server, skipTLSVerify: false }, { name: "test", token });
const api = config.makeApiClient(CoreV1Api);
const list = () => api.listNamespacedConfigMap({ namespace: "default" });
const informer = makeInformer(config, "/api/v1/namespaces/default/configmaps", list);
for (const type of ["add", "update", "delete"] as const) {
  informer.on(type, ({ metadata, data }: V1ConfigMap) => {
    console.log(JSON.stringify({ type, name: metadata?.name, value: data?.value }));
  });
}
const start = () => informer.start().catch(again);
const again = () => void setTimeout(start, 100);
informer.on("error", again);
await start();
