import { expect, test } from "bun:test";
import type { ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import type { ClusterTestNode } from "../support/cluster/cluster-node.ts";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import type { ControlPlane } from "../support/cluster/control-plane.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import { hasRegistry, TestRegistry } from "../support/registry.ts";

const LOGIN = { user: "node", password: "secret-of-the-registry" };

const DNS_FLAGS = ["--cluster-dns=10.96.0.10", "--cluster-domain=cluster.local"];

describeCluster("what pods of a real cluster refer to", () => {
  let plane: ControlPlane;
  let kubectl: ClusterKubectl;
  let node: ClusterTestNode;

  useCluster(
    async (cluster) => {
      ({ plane, kubectl, node } = cluster);
      await node.join({ flags: DNS_FLAGS });
    },
    { apiServerFlags: ["--storage-media-type=application/json"] },
  );

  const pod = (name: string) => kubectl.json(["get", "pod", name]);
  const run = (name: string, ...command: string[]) => kubectl.output(["exec", name, "--", ...command]);

  test("a projected token is bound to its pod, for its audience", async () => {
    const serviceAccountToken = { path: "token", audience: "vault", expirationSeconds: 600 };
    const volumes = [{ name: "token", projected: { sources: [{ serviceAccountToken }] } }];
    await kubectl.apply(
      aClusterPod("token", { volumeMounts: [{ name: "token", mountPath: "/var/run/vault" }] }, { volumes }),
    );
    const { metadata } = await kubectl.readyPod("token");
    const token = await run("token", "cat", "/var/run/vault/token");
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    expect(claims.aud).toEqual(["vault"]);
    expect(claims.exp - claims.iat).toBe(600);
    expect(claims["kubernetes.io"].pod).toEqual({ name: "token", uid: metadata.uid });
  });

  test.skipIf(!hasRegistry)("images of a registry with a password: secrets of the pod and of its account", async () => {
    const registry = await TestRegistry.start({ login: LOGIN });
    try {
      const { reference } = await registry.pushRunnable("team/app:1");
      const { reference: another } = await registry.pushRunnable("team/other:1");
      const image = { image: reference, imagePullPolicy: "Always", command: undefined };
      await kubectl.apply(aClusterPod("no-password", image));
      await kubectl.untilEvent("no-password", "Failed", "");
      await kubectl.output([
        "create",
        "secret",
        "docker-registry",
        "login",
        `--docker-server=${registry.address}`,
        `--docker-username=${LOGIN.user}`,
        `--docker-password=${LOGIN.password}`,
      ]);
      await kubectl.apply(aClusterPod("of-pod", image, { imagePullSecrets: [{ name: "login" }] }));
      await kubectl.readyPod("of-pod");
      // Admission gives pods of the account its secrets.
      await kubectl.output(["create", "serviceaccount", "puller"]);
      const patch = JSON.stringify({ imagePullSecrets: [{ name: "login" }] });
      await kubectl.output(["patch", "serviceaccount", "puller", "-p", patch]);
      await kubectl.until("the token of the account", async () => {
        const { secrets = [] } = await kubectl.json(["get", "serviceaccount", "puller"]);
        return secrets.length > 0;
      });
      await kubectl.apply(aClusterPod("of-account", { ...image, image: another }, { serviceAccountName: "puller" }));
      const { spec } = await kubectl.readyPod("of-account");
      expect(spec.imagePullSecrets).toEqual([{ name: "login" }]);
    } finally {
      await kubectl.run(["delete", "pod", "no-password", "of-pod", "of-account", "--wait=false"]);
      await registry.cleanUp();
    }
  });

  test("a RuntimeClass selects a runtime by its handler, and the node lists those it has", async () => {
    const aClass = (name: string, handler: string) => ({
      apiVersion: "node.k8s.io/v1",
      kind: "RuntimeClass",
      metadata: { name },
      handler,
    });
    await kubectl.apply(aClass("usual", "runc"), aClass("missing", "kata"));
    await kubectl.apply(
      aClusterPod("usual", {}, { runtimeClassName: "usual" }),
      aClusterPod("missing", {}, { runtimeClassName: "missing" }),
    );
    await kubectl.readyPod("usual");
    await kubectl.untilEvent("missing", "FailedCreatePodSandBox", 'no runtime "kata"');
    expect((await pod("missing")).status.phase).toBe("Pending");
    await kubectl.output(["delete", "pod", "usual", "missing"]);
  });

  test("services, name servers, host names and aliases", async () => {
    await kubectl.apply({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "data-base" },
      spec: { clusterIP: "10.96.0.99", ports: [{ port: 5432 }] },
    });
    const spec = { hostname: "one", subdomain: "team", hostAliases: [{ ip: "10.1.2.3", hostnames: ["old-name"] }] };
    // A container learns the Services that are known when it starts.
    await kubectl.until("the variable of the Service", async () => {
      await kubectl.apply(aClusterPod("named", {}, spec));
      await kubectl.readyPod("named");
      if ((await run("named", "env")).includes("DATA_BASE_SERVICE_HOST=10.96.0.99\n")) return true;
      await kubectl.output(["delete", "pod", "named"]);
      return false;
    });
    const variables = (await run("named", "env")).split("\n");
    expect(variables).toContain("DATA_BASE_PORT_5432_TCP_PORT=5432");
    expect(variables).toContain("KUBERNETES_SERVICE_HOST=10.96.0.1");
    const resolv = await run("named", "cat", "/etc/resolv.conf");
    expect(resolv).toContain("nameserver 10.96.0.10");
    expect(resolv).toContain("search default.svc.cluster.local svc.cluster.local cluster.local");
    expect(await run("named", "hostname")).toBe("one");
    const hosts = await run("named", "cat", "/etc/hosts");
    expect(hosts).toContain("\tone.team.default.svc.cluster.local\tone");
    expect(hosts).toContain("10.1.2.3\told-name");
    await kubectl.output(["delete", "pod", "named"]);
  });

  test("edits of a pod in place: image, deadline, and a shorter grace period while it stops", async () => {
    // The first process of a container ignores TERM: without an edit the end takes the whole grace period.
    await kubectl.apply(
      aClusterPod("edited"),
      aClusterPod("dated"),
      aClusterPod("patient", {}, { terminationGracePeriodSeconds: 600 }),
    );
    const before = await kubectl.readyPod("edited");
    const image = JSON.stringify([{ op: "replace", path: "/spec/containers/0/image", value: "busybox:test" }]);
    await kubectl.output(["patch", "pod", "edited", "--type=json", "-p", image]);
    await kubectl.until("the new image", async () => {
      const { status } = await pod("edited");
      const [container] = status.containerStatuses;
      return container.restartCount === 1 && container.state.running && container.image.includes("test");
    });
    expect((await pod("edited")).metadata.uid).toBe(before.metadata.uid);
    await kubectl.readyPod("dated");
    await kubectl.output(["patch", "pod", "dated", "-p", JSON.stringify({ spec: { activeDeadlineSeconds: 1 } })]);
    await kubectl.until("the deadline", async () => (await pod("dated")).status.reason === "DeadlineExceeded");
    await kubectl.readyPod("patient");
    await kubectl.output(["delete", "pod", "patient", "--wait=false"]);
    await kubectl.output(["delete", "pod", "patient", "--grace-period=2", "--wait=false"]);
    await kubectl.until("no pod", async () => (await kubectl.run(["get", "pod", "patient"])).code !== 0);
    await kubectl.output(["delete", "pod", "edited", "dated"]);
  });

  test("a resize, as newer API servers allow it, changes the running container", async () => {
    const resources = (memory: string) => ({ requests: { memory }, limits: { memory } });
    await kubectl.apply(aClusterPod("resized", { resources: resources("32Mi") }));
    await kubectl.readyPod("resized");
    const [before] = await node.containers("app");
    await plane.rewrite("pods/default/resized", ({ spec }) => {
      spec.containers[0].resources = resources("48Mi");
    });
    await kubectl.until("the new limit", async () => {
      const { HostConfig } = await node.docker.inspectContainerRaw(before!.Id);
      return (HostConfig as { Memory: number }).Memory === 48 * 2 ** 20;
    });
    const { status } = await kubectl.readyPod("resized");
    expect(status.containerStatuses[0]).toMatchObject({ restartCount: 0, containerID: `docker://${before!.Id}` });
    const conditions = async () => (await pod("resized")).status.conditions;
    const pending = expect.objectContaining({ type: "PodResizePending", status: "True", reason: "Infeasible" });
    const resize = (memory: string) =>
      plane.rewrite("pods/default/resized", ({ spec }) => {
        spec.containers[0].resources = resources(memory);
      });
    await resize("9000Gi");
    await kubectl.until("the condition", async () => {
      const found = await conditions();
      return found.some(({ type }: { type: string }) => type === "PodResizePending") && found;
    });
    expect(await conditions()).toContainEqual(pending);
    // The pod is not refused by the next process either.
    await node.endProcesses();
    await node.join({ flags: DNS_FLAGS });
    const statusOfPod = async () => (await node.pods()).find(({ metadata }) => metadata.name === "resized")?.status;
    const shown = await node.until("its status", async () => {
      const found = await statusOfPod();
      return found?.containerStatuses?.[0]?.ready && found;
    });
    expect(shown.conditions).toContainEqual(pending);
    expect(shown.containerStatuses?.[0]).toMatchObject({ resources: resources("48Mi"), restartCount: 0 });
    await resize("40Mi");
    await kubectl.until("no condition", async () =>
      (await conditions()).every(({ type }: { type: string }) => !type.startsWith("PodResize")),
    );
    expect((await node.containers("app")).map(({ Id }) => Id)).toContain(before!.Id);
    await kubectl.output(["delete", "pod", "resized"]);
  });

  test("pods that have ended leave their resources to others", async () => {
    const { status } = await kubectl.json(["get", "node", node.name]);
    const resources = { requests: { memory: `${Math.floor(Number.parseInt(status.allocatable.memory, 10) * 0.7)}Ki` } };
    const aLargePod = (name: string, command: string[]) =>
      aClusterPod(name, { command, resources }, { restartPolicy: "Never" });
    await kubectl.apply(aLargePod("first", ["true"]));
    await kubectl.until("the end of the first", async () => (await pod("first")).status.phase === "Succeeded");
    await kubectl.apply(aLargePod("second", ["sleep", "1000"]));
    await kubectl.readyPod("second");
    await kubectl.output(["delete", "pod", "first", "second"]);
  });
});
