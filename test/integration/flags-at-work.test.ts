import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { shell, sleeper } from "../support/manifests.ts";
import { TestCertificates } from "../support/test-certificates.ts";

const dead = async (node: ReturnType<typeof testNode>) =>
  (await node.containers("app")).filter(({ State }) => State === "exited");

describeWithEngine("what flags do to a kubelet at work", () => {
  test.concurrent("--crash-loop-back-off-max, and the dead that pile up, or do not", async () => {
    const node = testNode();
    node.writeManifest("p.json", sleeper("p", shell("exit 1")));
    const quick = "--crash-loop-back-off-max=1s";
    const first = await node.start([quick, "--maximum-dead-containers-per-container=2"]);
    // The fourth start comes after 40 s by default, and there is one dead container besides the newest.
    await node.until("three dead", async () => (await dead(node)).length === 3);
    await first.stop();
    const second = await node.start([quick, "--minimum-container-ttl-duration=1h"]);
    await node.until("no container to be removed", async () => (await dead(node)).length >= 5);
    await second.stop();
    const all = ["--maximum-dead-containers-per-container=-1", "--maximum-dead-containers=1", "--sync-frequency=1s"];
    await node.start(all);
    await node.until("the newest to be left alone", async () => (await dead(node)).length === 1);
  });

  test.concurrent("--sync-frequency, --event-qps, --event-burst", async () => {
    const node = testNode();
    node.writeManifest("p.json", sleeper("p"));
    await node.start(["--sync-frequency=1s", "--event-qps=1", "--event-burst=1"]);
    const metric = async (name: string) =>
      Number(new RegExp(`^${name} (\\S+)$`, "m").exec(await node.read("/metrics"))?.[1]);
    await node.until("events to be dropped", async () => (await metric("kubelet_ts_events_dropped_total")) > 0);
    // Once a minute otherwise.
    await node.until("relists", async () => (await metric("kubelet_pleg_relist_duration_seconds_count")) >= 3);
  });

  test.concurrent("--oom-score-adj, --feature-gates, --config-dir", async () => {
    const node = testNode();
    const directory = join(node.directory, "conf.d");
    mkdirSync(directory);
    const kind = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    writeFileSync(join(directory, "10-first.conf"), `${kind}maxPods: 7\nreadOnlyPort: ${node.readOnlyPort}\n`);
    writeFileSync(join(directory, "20-second.conf"), `${kind}maxPods: 8\n`);
    const flags = ["--oom-score-adj=555", "--feature-gates=SidecarContainer=true", `--config-dir=${directory}`];
    const kubelet = node.spawn([...node.flags(), ...flags]);
    const configz = await node.until("/configz", () => node.readJson("/configz"));
    expect(configz).toMatchObject({ kubeletconfig: { maxPods: 8 } });
    expect(readFileSync(`/proc/${kubelet.pid}/oom_score_adj`, "utf8").trim()).toBe("555");
    expect(kubelet.log).toContain("feature gate SidecarContainer is unknown; did you mean SidecarContainers?");
  });

  test.concurrent("--keep-terminated-pod-volumes", async () => {
    const node = testNode();
    const container = { command: ["touch", "/data/done"], volumeMounts: [{ name: "data", mountPath: "/data" }] };
    const spec = { restartPolicy: "Never", volumes: [{ name: "data", emptyDir: {} }] };
    node.writeManifest("p.json", sleeper("p", container, spec));
    const file = (uid: string) => join(node.rootDir, "pods", uid, "volumes/kubernetes.io~empty-dir/data/done");
    const keeping = await node.start(["--keep-terminated-pod-volumes"]);
    const uid = (await node.untilPhase("p", "Succeeded")).metadata.uid!;
    await node.until("its sandbox to stop", async () => (await node.sandboxes())[0]?.State === "exited");
    expect(existsSync(file(uid))).toBe(true);
    await keeping.stop();
    await node.start();
    await node.until("the volume to go", () => !existsSync(file(uid)));
    expect((await node.untilPhase("p", "Succeeded")).metadata.uid).toBe(uid);
  });

  test.concurrent("--cadvisor-bind-address", async () => {
    const node = testNode();
    await node.start(["--cadvisor-bind-address=127.0.0.9"]);
    const at = (host: string) =>
      fetch(`http://${host}:${node.cadvisorPort}/`).then(
        () => true,
        () => false,
      );
    await node.until("cAdvisor's port", () => at("127.0.0.9"));
    expect(await at("127.0.0.1")).toBe(false);
  });

  test.concurrent("--manifest-url, --manifest-url-header, -ca-file, -client-cert-file, -client-key-file, -timeout; --http-check-frequency", async () => {
    const node = testNode();
    const certificates = new TestCertificates(node.directory);
    const authority = certificates.authority("Test CA");
    const { cert, key } = certificates.serverOf(authority);
    const client = certificates.client("/CN=client", authority);
    const seen: (string | null)[] = [];
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      development: false,
      idleTimeout: 0,
      tls: { cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: true },
      fetch: ({ headers }) => {
        seen.push(headers.get("x-token"));
        if (seen.length > 2) return new Promise<Response>(() => {});
        return new Response(JSON.stringify(sleeper("remote")));
      },
    });
    const kubelet = await node.start([
      `--manifest-url=https://127.0.0.1:${server.port}/pods`,
      "--manifest-url-header=X-Token:s3cret",
      `--manifest-url-ca-file=${authority.certFile}`,
      `--manifest-url-client-cert-file=${client.certFile}`,
      `--manifest-url-client-key-file=${client.keyFile}`,
      "--manifest-url-timeout=1s",
      "--http-check-frequency=1s",
    ]);
    await node.runningContainer("app");
    await node.until("a request that timed out", () => kubelet.log.includes("no complete response within 1 s"));
    await node.until("the next one", () => seen.length >= 4);
    expect(new Set(seen)).toEqual(new Set(["s3cret"]));
    expect(kubelet.log).not.toContain("s3cret");
  });
});
