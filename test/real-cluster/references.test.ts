import { expect, test } from "bun:test";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import type { AnyObject } from "../support/kubectl.ts";
import { object } from "../support/manifests.ts";
import { hasRegistry, TestRegistry } from "../support/registry.ts";

const LOGIN = { user: "node", password: "secret-of-the-registry" };

const DNS_FLAGS = ["--cluster-dns=10.96.0.10", "--cluster-domain=cluster.local"];

describeCluster("what pods of a real cluster refer to", () => {
  const { plane, kubectl, node } = useCluster(({ node }) => node.join({ flags: DNS_FLAGS }), {
    apiServerFlags: ["--storage-media-type=application/json"],
  });

  test("a projected token is bound to its pod, for its audience", async () => {
    const serviceAccountToken = { path: "token", audience: "vault", expirationSeconds: 600 };
    const volumes = [{ name: "token", projected: { sources: [{ serviceAccountToken }] } }];
    await kubectl.apply(
      aClusterPod("token", { volumeMounts: [{ name: "token", mountPath: "/var/run/vault" }] }, { volumes }),
    );
    const { metadata } = await kubectl.readyPod("token");
    const token = await kubectl.exec("token", "cat", "/var/run/vault/token");
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
      const login = `--docker-username=${LOGIN.user} --docker-password=${LOGIN.password}`;
      await kubectl.words(`create secret docker-registry login --docker-server=${registry.address} ${login}`);
      await kubectl.apply(aClusterPod("of-pod", image, { imagePullSecrets: [{ name: "login" }] }));
      await kubectl.readyPod("of-pod");
      // Admission gives pods of the account its secrets.
      await kubectl.words("create serviceaccount puller");
      const patch = JSON.stringify({ imagePullSecrets: [{ name: "login" }] });
      await kubectl.words(`patch serviceaccount puller -p ${patch}`);
      await kubectl.until("the token of the account", async () => {
        const { secrets = [] } = await kubectl.json("get serviceaccount puller");
        return secrets.length > 0;
      });
      await kubectl.apply(aClusterPod("of-account", { ...image, image: another }, { serviceAccountName: "puller" }));
      const { spec } = await kubectl.readyPod("of-account");
      expect(spec.imagePullSecrets).toEqual([{ name: "login" }]);
    } finally {
      await kubectl.run("delete pod no-password of-pod of-account --wait=false".split(" "));
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
    expect((await kubectl.pod("missing")).status.phase).toBe("Pending");
    await kubectl.words("delete pod usual missing");
  });

  test("services, name servers, host names and aliases", async () => {
    await kubectl.apply(object("Service", "data-base", { spec: { clusterIP: "10.96.0.99", ports: [{ port: 5432 }] } }));
    const spec = { hostname: "one", subdomain: "team", hostAliases: [{ ip: "10.1.2.3", hostnames: ["old-name"] }] };
    // A container learns the Services that are known when it starts.
    await kubectl.until("the variable of the Service", async () => {
      await kubectl.apply(aClusterPod("named", {}, spec));
      await kubectl.readyPod("named");
      if ((await kubectl.exec("named", "env")).includes("DATA_BASE_SERVICE_HOST=10.96.0.99\n")) return true;
      await kubectl.words("delete pod named");
      return false;
    });
    const variables = (await kubectl.exec("named", "env")).split("\n");
    expect(variables).toContain("DATA_BASE_PORT_5432_TCP_PORT=5432");
    expect(variables).toContain("KUBERNETES_SERVICE_HOST=10.96.0.1");
    const resolv = await kubectl.exec("named", "cat", "/etc/resolv.conf");
    expect(resolv).toContain("nameserver 10.96.0.10");
    expect(resolv).toContain("search default.svc.cluster.local svc.cluster.local cluster.local");
    expect(await kubectl.exec("named", "hostname")).toBe("one");
    const hosts = await kubectl.exec("named", "cat", "/etc/hosts");
    expect(hosts).toContain("\tone.team.default.svc.cluster.local\tone");
    expect(hosts).toContain("10.1.2.3\told-name");
    await kubectl.words("delete pod named");
  });

  test("edits of a pod in place: image, deadline, and a shorter grace period while it stops", async () => {
    // The first process ignores TERM: without an edit the end takes the whole grace period.
    await kubectl.apply(
      aClusterPod("edited"),
      aClusterPod("dated"),
      aClusterPod("patient", { command: ["sleep", "1000"] }, { terminationGracePeriodSeconds: 600 }),
    );
    const before = await kubectl.readyPod("edited");
    const image = JSON.stringify([{ op: "replace", path: "/spec/containers/0/image", value: "busybox:test" }]);
    await kubectl.words(`patch pod edited --type=json -p ${image}`);
    await kubectl.until("the new image", async () => {
      const { status } = await kubectl.pod("edited");
      const [container] = status.containerStatuses;
      return container.restartCount === 1 && container.state.running && container.image.includes("test");
    });
    expect((await kubectl.pod("edited")).metadata.uid).toBe(before.metadata.uid);
    await kubectl.readyPod("dated");
    await kubectl.output(["patch", "pod", "dated", "-p", JSON.stringify({ spec: { activeDeadlineSeconds: 1 } })]);
    await kubectl.until("the deadline", async () => (await kubectl.pod("dated")).status.reason === "DeadlineExceeded");
    await kubectl.readyPod("patient");
    await kubectl.words("delete pod patient --wait=false");
    await kubectl.words("delete pod patient --grace-period=2 --wait=false");
    await kubectl.untilGone("pod/patient");
    await kubectl.words("delete pod edited dated");
  });

  test("a resize, as newer API servers allow it, changes the running container", async () => {
    const resources = (memory: string) => ({ requests: { memory }, limits: { memory } });
    await kubectl.apply(aClusterPod("resized", { resources: resources("32Mi") }));
    await kubectl.readyPod("resized");
    const [before] = await node.containers("app");
    const resize = (memory: string) =>
      plane.rewrite("pods/default/resized", ({ spec }) => {
        spec.containers[0].resources = resources(memory);
      });
    await resize("48Mi");
    await kubectl.until("the new limit", async () => {
      const { HostConfig } = await node.docker.inspectContainerRaw(before!.Id);
      return (HostConfig as { Memory: number }).Memory === 48 * 2 ** 20;
    });
    const { status } = await kubectl.readyPod("resized");
    expect(status.containerStatuses[0]).toMatchObject({ restartCount: 0, containerID: `docker://${before!.Id}` });
    const conditions = async () => (await kubectl.pod("resized")).status.conditions;
    const pending = expect.objectContaining({ type: "PodResizePending", status: "True", reason: "Infeasible" });
    await resize("9000Gi");
    await kubectl.until("the condition", async () => {
      const found = await conditions();
      return found.some(({ type }: AnyObject) => type === "PodResizePending") && found;
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
      (await conditions()).every(({ type }: AnyObject) => !type.startsWith("PodResize")),
    );
    expect(await node.containerIds()).toContain(before!.Id);
    await kubectl.words("delete pod resized");
  });

  test("pods that have ended leave their resources to others", async () => {
    const { status } = await kubectl.json(`get node ${node.name}`);
    const resources = { requests: { memory: `${Math.floor(Number.parseInt(status.allocatable.memory, 10) * 0.7)}Ki` } };
    const aLargePod = (name: string, command: string[]) =>
      aClusterPod(name, { command, resources }, { restartPolicy: "Never" });
    await kubectl.apply(aLargePod("first", ["true"]));
    await kubectl.until("the end of the first", async () => (await kubectl.pod("first")).status.phase === "Succeeded");
    await kubectl.apply(aLargePod("second", ["sleep", "1000"]));
    await kubectl.readyPod("second");
    await kubectl.words("delete pod first second");
  });
});
