import { expect, test } from "bun:test";
import type { ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import type { ControlPlane } from "../support/cluster/control-plane.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";

describeCluster("the control plane of the tests", () => {
  let plane: ControlPlane;
  let kubectl: ClusterKubectl;

  useCluster(async (cluster) => {
    ({ plane, kubectl } = cluster);
  });

  test("is Kubernetes 1.20.2 and keeps its objects when the API server is killed", async () => {
    const { serverVersion } = await kubectl.json(["version"]);
    expect(serverVersion.gitVersion).toBe("v1.20.2");
    await kubectl.output(["create", "configmap", "kept", "--from-literal=a=b"]);
    await plane.killApiServer();
    expect((await kubectl.run(["get", "configmap", "kept"])).code).not.toBe(0);
    await plane.startApiServer();
    expect((await kubectl.json(["get", "configmap", "kept"])).data).toEqual({ a: "b" });
  });

  test("schedules pods and runs controllers", async () => {
    await kubectl.output(["create", "deployment", "web", "--image=nginx:1.22", "--replicas=2"]);
    const pods = await kubectl.until("two pending pods", async () => {
      const found = await kubectl.list("pods", "-l", "app=web");
      return found.length === 2 && found;
    });
    expect(pods.map((pod) => pod.status.phase)).toEqual(["Pending", "Pending"]);
  });
});
