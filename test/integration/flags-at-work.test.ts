import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { FakeDaemon } from "../support/fake-daemon.ts";
import { HOST, shell, sleeper } from "../support/manifests.ts";
import { TestCertificates } from "../support/test-certificates.ts";

const dead = async (node: ReturnType<typeof testNode>) =>
  (await node.containers("app")).filter(({ State }) => State === "exited");

describeWithEngine("what flags do to a kubelet at work", () => {
  test.concurrent("--crash-loop-back-off-max, and how many dead containers are kept", async () => {
    const node = testNode();
    node.writeManifest("p.json", sleeper("p", shell("exit 1"), HOST));
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
    await node.until("only the newest to be left", async () => (await dead(node)).length === 1);
  });

  test.concurrent("--sync-frequency, --event-qps, --event-burst", async () => {
    const node = testNode();
    node.writeManifest("p.json", sleeper("p", {}, HOST));
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
    const spec = { ...HOST, restartPolicy: "Never", volumes: [{ name: "data", emptyDir: {} }] };
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
        return new Response(JSON.stringify(sleeper("remote", {}, HOST)));
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
    await node.untilLogged(kubelet, "no complete response within 1 s");
    await node.until("the next one", () => seen.length >= 4);
    expect(new Set(seen)).toEqual(new Set(["s3cret"]));
    expect(kubelet.log).not.toContain("s3cret");
  });
});

interface ImageRequest {
  /** Repository that was asked for. */
  image: string;
  atMs: number;
  authorization: string | null;
}

/** A registry without images that responds when the test wants. Docker speaks to loopback without TLS. */
class HeldRegistry implements Disposable {
  /** First requests for each image, in their order. */
  readonly requests: ImageRequest[] = [];
  /** Most requests that waited at the same time. */
  mostWaiting = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #asksForPassword: boolean;
  readonly #server: Bun.Server<undefined>;

  constructor(options: { asksForPassword?: boolean } = {}) {
    this.#asksForPassword = options.asksForPassword ?? false;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      development: false,
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
    });
  }

  /** Reference of an image in this registry. */
  reference(image: string): string {
    return `127.0.0.1:${this.#server.port}/${image}:1`;
  }

  /** Responds to the requests that wait: there is no such image. */
  respond(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }

  [Symbol.dispose](): void {
    this.respond();
    void this.#server.stop(true);
  }

  async #answer({ url, headers, signal }: Request): Promise<Response> {
    const authorization = headers.get("authorization");
    const [, image] = /^\/v2\/(.+)\/manifests\//.exec(new URL(url).pathname) ?? [];
    // Engines differ in their requests before the one with credentials.
    if (this.#asksForPassword && !authorization) {
      return new Response("", { status: 401, headers: { "www-authenticate": 'Basic realm="here"' } });
    }
    if (!image) return new Response("{}");
    if (this.requests.some((seen) => seen.image === image)) return notFound();
    this.requests.push({ image, atMs: performance.now(), authorization });
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.mostWaiting = Math.max(this.mostWaiting, this.#waiting.length);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    return notFound();
  }
}

const notFound = () =>
  new Response(JSON.stringify({ errors: [{ code: "MANIFEST_UNKNOWN", message: "no such image" }] }), { status: 404 });

/** A kubelet with a pod for each of these images. */
async function withPods(registry: HeldRegistry, images: readonly string[], flags: readonly string[] = []) {
  const node = testNode();
  for (const image of images) {
    const container = { image: registry.reference(image), imagePullPolicy: "Always" };
    node.writeManifest(`${image}.json`, sleeper(image, container, HOST));
  }
  return { node, kubelet: await node.start(flags) };
}

describeWithEngine("what flags do to pulls", () => {
  test.concurrent("--serialize-image-pulls: one at a time, unless it is off", async () => {
    using registry = new HeldRegistry();
    const { node } = await withPods(registry, ["a", "b", "c"]);
    await node.until("the pulls, one by one", () => {
      registry.respond();
      return registry.requests.length === 3;
    });
    expect(registry.mostWaiting).toBe(1);
  });

  test.concurrent("--max-parallel-image-pulls, --registry-qps, --registry-burst, --image-pull-progress-deadline", async () => {
    using registry = new HeldRegistry();
    const rate = ["--registry-qps=1", "--registry-burst=1", "--image-pull-progress-deadline=3s"];
    const flags = ["--serialize-image-pulls=false", "--max-parallel-image-pulls=2", ...rate];
    const { node, kubelet } = await withPods(registry, ["a", "b", "c"], flags);
    await node.until("three pulls", () => registry.requests.length === 3);
    const [first, second, third] = registry.requests.map(({ atMs }) => atMs);
    // One a second, the third when the first stalled for too long: less than that is never right, more may be.
    expect(second! - first!).toBeGreaterThan(500);
    expect(third! - first!).toBeGreaterThan(2500);
    await node.untilLogged(kubelet, /Failed: Failed to pull image .*\b3\s?s/);
  });

  test.concurrent("--image-credential-provider-config, --image-credential-provider-bin-dir", async () => {
    using registry = new HeldRegistry({ asksForPassword: true });
    const node = testNode();
    const bin = join(node.directory, "plugins");
    mkdirSync(bin);
    const host = registry.reference("x").split("/")[0]!;
    const answer = {
      kind: "CredentialProviderResponse",
      apiVersion: "credentialprovider.kubelet.k8s.io/v1",
      cacheKeyType: "Registry",
      auth: { [host]: { username: "plug", password: "in" } },
    };
    const text = JSON.stringify(answer);
    writeFileSync(join(bin, "plug"), `#!/bin/sh\ncat > /dev/null\necho '${text}'\n`);
    chmodSync(join(bin, "plug"), 0o755);
    const config = join(node.directory, "providers.json");
    const { apiVersion } = answer;
    const provider = { name: "plug", matchImages: [host], defaultCacheDuration: "1m", apiVersion };
    const kind = { kind: "CredentialProviderConfig", apiVersion: "kubelet.config.k8s.io/v1" };
    writeFileSync(config, JSON.stringify({ ...kind, providers: [provider] }));
    node.writeManifest("p.json", sleeper("p", { image: registry.reference("x") }));
    await node.start([`--image-credential-provider-config=${config}`, `--image-credential-provider-bin-dir=${bin}`]);
    await node.until("the pull", () => registry.requests.length === 1);
    expect(registry.requests[0]?.authorization).toBe(`Basic ${Buffer.from("plug:in").toString("base64")}`);
  });
});

describeWithEngine("what flags do to requests to the engine", () => {
  test.concurrent("--docker-endpoint, --runtime-request-timeout: an engine that does not answer is not waited for", async () => {
    using daemon = new FakeDaemon({ routes: { "GET /info": () => new Promise<Response>(() => {}) } });
    const node = testNode();
    const endpoint = `--docker-endpoint=unix://${daemon.socketPath}`;
    const kubelet = node.spawn([...node.flags(), endpoint, "--runtime-request-timeout=1s"]);
    await node.untilLogged(kubelet, /ERROR .*GET \/info/);
    await kubelet.kill();
  });

  test.concurrent("--cgroup-driver: another one than the engine's ends the start", async () => {
    const node = testNode();
    const { CgroupDriver } = await node.docker.info();
    const other = CgroupDriver === "systemd" ? "cgroupfs" : "systemd";
    const { exitCode, stderr } = await node.spawn([...node.flags(), `--cgroup-driver=${other}`]).finished();
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`--cgroup-driver is ${other}, but the Docker engine uses ${CgroupDriver}`);
    const same = node.spawn([...node.flags(), `--cgroup-driver=${CgroupDriver}`]);
    await node.until("the same one to be accepted", () => node.read("/healthz", node.healthzPort));
    expect((await same.stop()).exitCode).toBe(0);
  });
});
