import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { FakeDaemon } from "../support/fake-daemon.ts";
import { sleeper } from "../support/manifests.ts";
import { StandingRegistry } from "../support/standing-registry.ts";

/** A kubelet with a pod for each of these images, which no registry has. */
async function wanting(registry: StandingRegistry, images: readonly string[], flags: readonly string[]) {
  const node = testNode();
  for (const image of images) {
    const container = { image: registry.reference(image), imagePullPolicy: "Always" };
    node.writeManifest(`${image}.json`, sleeper(image, container));
  }
  return { node, kubelet: await node.start(flags) };
}

describeWithEngine("what flags do to pulls", () => {
  test("--serialize-image-pulls: one at a time, unless it is off", async () => {
    using registry = new StandingRegistry();
    const { node } = await wanting(registry, ["a", "b", "c"], []);
    await node.until("the pulls, one by one", () => {
      registry.turnAway();
      return registry.visits.length === 3;
    });
    expect(registry.mostWaiting).toBe(1);
  });

  test("--max-parallel-image-pulls: that many at a time", async () => {
    using registry = new StandingRegistry();
    const flags = ["--serialize-image-pulls=false", "--max-parallel-image-pulls=2"];
    const { node } = await wanting(registry, ["a", "b", "c", "d"], flags);
    await node.until("two pulls", () => registry.visits.length === 2);
    await node.until("all of them", () => {
      registry.turnAway();
      return registry.visits.length === 4;
    });
    expect(registry.mostWaiting).toBe(2);
  });

  test("--registry-qps, --registry-burst: no more often than that", async () => {
    using registry = new StandingRegistry();
    const flags = ["--serialize-image-pulls=false", "--registry-qps=1", "--registry-burst=2"];
    const { node } = await wanting(registry, ["a", "b", "c", "d"], flags);
    await node.until("four pulls", () => registry.visits.length === 4);
    const [first, , third, fourth] = registry.visits.map(({ atMs }) => atMs);
    // Two at once, then one a second: less than that is never right, more may be.
    expect(third! - first!).toBeGreaterThan(500);
    expect(fourth! - first!).toBeGreaterThan(1500);
  });

  test("--image-pull-progress-deadline: a stalled pull is cancelled", async () => {
    using registry = new StandingRegistry();
    const { node, kubelet } = await wanting(registry, ["a"], ["--image-pull-progress-deadline=1s"]);
    await node.until("the failure", () => /Failed: Failed to pull image .*\b1\s?s/.test(kubelet.log));
  });

  test("--image-credential-provider-config, --image-credential-provider-bin-dir", async () => {
    using registry = new StandingRegistry({ asksForPassword: true });
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
    await node.until("the pull", () => registry.visits.length === 1);
    expect(registry.visits[0]?.authorization).toBe(`Basic ${Buffer.from("plug:in").toString("base64")}`);
  });
});

describeWithEngine("what flags do to the talk with the engine", () => {
  test("--docker-endpoint, --runtime-request-timeout: who does not answer is not waited for", async () => {
    using daemon = new FakeDaemon({ routes: { "GET /info": () => new Promise<Response>(() => {}) } });
    const node = testNode();
    const endpoint = `--docker-endpoint=unix://${daemon.socketPath}`;
    const kubelet = node.spawn([...node.flags(), endpoint, "--runtime-request-timeout=1s"]);
    await node.until("the warning", () => /ERROR .*GET \/info/.test(kubelet.log));
    await kubelet.kill();
  });

  test("--cgroup-driver: another one than the engine's ends the start", async () => {
    const node = testNode();
    const { CgroupDriver } = await node.docker.info();
    const other = CgroupDriver === "systemd" ? "cgroupfs" : "systemd";
    const { exitCode, stderr } = await node.spawn([...node.flags(), `--cgroup-driver=${other}`]).finished();
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`--cgroup-driver is ${other}, but the Docker engine uses ${CgroupDriver}`);
    const same = node.spawn([...node.flags(), `--cgroup-driver=${CgroupDriver}`]);
    await node.until("the same to be taken", () => node.read("/healthz", node.healthzPort));
    expect((await same.stop()).exitCode).toBe(0);
  });
});
