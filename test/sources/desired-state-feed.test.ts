import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, unlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { LOCAL_TEXT_FILES, replaceFile } from "../../src/base/files/whole-file.ts";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import type { DesiredState } from "../../src/base/model/desired-state.ts";
import type { KubeletOptions } from "../../src/config/option-table.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { buildFeed } from "../../src/sources/build-sources.ts";
import { CheckpointStore } from "../../src/sources/checkpoint-store.ts";
import type { DesiredStateFeed, FeedInfo } from "../../src/sources/desired-state-feed.ts";
import { readManifests } from "../../src/sources/manifest-files.ts";
import { cleanUps } from "../support/clean-ups.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { httpServers } from "../support/test-servers.ts";
import { until } from "../support/until.ts";
import { manifest, podsOf, writeSettled } from "./source-harness.ts";

// Real files, programs and servers: on a busy machine each may take its time.
setDefaultTimeout(60_000);
const tempDir = tempDirs();
const atTestEnd = cleanUps();
const httpServer = httpServers();

class Machine {
  readonly root = tempDir();
  readonly manifests = join(this.root, "manifests");
  readonly checkpoints = join(this.root, "state/checkpoints");

  constructor() {
    mkdirSync(this.manifests);
  }

  /** One life of the program. */
  boot(options: Partial<KubeletOptions> = {}, manifests: readonly string[] = [], nodeName = "node1"): Life {
    const logger = new RecordingLogger();
    const clock = new SystemClock();
    const feed = buildFeed({
      options: { ...DEFAULT_KUBELET_OPTIONS, httpCheckFrequencyMs: 20, ...options },
      manifests,
      checkpoints: new CheckpointStore({ dir: this.checkpoints, nodeName, clock, logger, replaceFile }),
      reader: {
        read: (bytes, file, source) => readManifest(bytes, { file, nodeName, source }),
        readManifests,
        files: LOCAL_TEXT_FILES,
        proxyFor: () => undefined,
      },
      clock,
      logger,
    });
    return new Life(feed, logger);
  }
}

class Life {
  state: DesiredState | undefined;
  info: FeedInfo | undefined;

  constructor(
    readonly feed: DesiredStateFeed,
    readonly logger: RecordingLogger,
  ) {
    atTestEnd(() => feed.stop());
    feed.onChange((state, info) => {
      this.state = state;
      this.info = info;
    });
  }

  start(): this {
    this.feed.start();
    return this;
  }

  get pods(): string[] {
    return podsOf(this.state);
  }

  async wants(...pods: string[]): Promise<void> {
    await until(`pods ${pods}`, () => this.state && this.pods.join(" ") === pods.join(" "), {
      details: () => `${this.pods}\n${this.logger.lines.join("\n")}`,
    });
  }
}

function serve(body: () => Response): { url: string; stop: () => Promise<void> } {
  const server = httpServer(body);
  return { url: `http://127.0.0.1:${server.port}/pods`, stop: () => server.stop(true) };
}

/** A machine whose pods come from a server, and its first life, which has ended. */
async function served(body: () => Response = () => new Response(manifest("web"))) {
  const machine = new Machine();
  const { url, stop } = serve(body);
  const first = machine.boot({ manifestUrls: [url] }).start();
  await first.wants("web=busybox:1");
  await first.feed.stop();
  return { machine, first, stop, options: { manifestUrls: [url] } };
}

test("the maps of ConfigMaps and Secrets are the same ones until an object of them changes", async () => {
  const machine = new Machine();
  const configMap = (value: string) =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: ${value}}`;
  writeSettled(join(machine.manifests, "settings.yaml"), configMap("one"));
  const life = machine.boot({ podManifestPaths: [machine.manifests], fileCheckFrequencyMs: 20 }).start();
  await life.wants();
  const { configMaps, secrets } = life.state!;
  writeSettled(join(machine.manifests, "web.yaml"), manifest("web"));
  await life.wants("web=busybox:1");
  expect([life.state!.configMaps === configMaps, life.state!.secrets === secrets]).toEqual([true, true]);
  writeSettled(join(machine.manifests, "settings.yaml"), configMap("two"));
  await until("the other value", () => life.state!.configMaps.get("default/settings")?.data?.a === "two");
  expect(life.state!.secrets === secrets).toBe(true);
});

test("without any source the state is empty and complete", () => {
  const life = new Machine().boot().start();
  expect(life.pods).toEqual([]);
  expect(life.info?.isComplete).toBe(true);
});

test("arguments, paths and URLs run together; duplicates are logged once", async () => {
  const machine = new Machine();
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a"));
  writeSettled(join(machine.manifests, "b.yaml"), manifest("shared", "busybox:dir"));
  writeSettled(join(machine.root, "arg.yaml"), manifest("shared", "busybox:arg"));
  let response = manifest("web");
  const { url } = serve(() => new Response(response));
  const life = machine
    .boot({ podManifestPaths: [machine.manifests], manifestUrls: [url] }, [join(machine.root, "arg.yaml")])
    .start();
  expect(life.info?.isComplete).toBe(false);
  await life.wants("a=busybox:1", "shared=busybox:arg", "web=busybox:1");
  expect(life.info?.isComplete).toBe(true);
  response = manifest("web", "busybox:2");
  await life.wants("a=busybox:1", "shared=busybox:arg", "web=busybox:2");
  expect(life.logger.lines.filter((line) => line.includes("ignored, pod"))).toHaveLength(1);
  expect(life.feed.status().map(({ kind, state, pods }) => ({ kind, state, pods }))).toEqual([
    { kind: "file", state: "ok", pods: 1 },
    { kind: "file", state: "ok", pods: 2 },
    { kind: "http", state: "ok", pods: 1 },
  ]);
});

test("a machine that boots without its server starts the pods of its checkpoint, with their Secrets, and reports it", async () => {
  const objects = `---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: v}\n`;
  const { machine, first, stop, options } = await served(() => new Response(manifest("web") + objects));
  const before = first.state;
  await stop();
  const second = machine.boot(options).start();
  await second.wants("web=busybox:1");
  expect(second.state?.pods).toEqual(before!.pods);
  expect(second.state?.secrets).toEqual(before!.secrets);
  expect(second.info?.isComplete).toBe(true);
  expect(second.feed.status()[0]).toMatchObject({ state: "restored", pods: 1 });
  expect(second.logger.lines.some((line) => line.startsWith("warn") && line.includes("last good response"))).toBe(true);
});

test("pods of the checkpoint run when a server has not answered for some seconds", async () => {
  let isHanging = false;
  const respond = () => (isHanging ? (new Promise(() => {}) as never) : new Response(manifest("web")));
  const { machine, options } = await served(respond);
  isHanging = true;
  await machine.boot(options).start().wants("web=busybox:1");
}, 20_000);

test("an unreachable URL without checkpoint keeps the state incomplete: no pod may be removed", async () => {
  const life = new Machine().boot({ manifestUrls: ["http://127.0.0.1:1/"] }).start();
  await until("a try", () => life.feed.status()[0]!.state === "failing");
  expect(life.info).toBeUndefined();
});

test("a file that became invalid between two runs falls back to its last good text; a removed one does not come back", async () => {
  const machine = new Machine();
  for (const name of ["a", "b", "c"]) writeSettled(join(machine.manifests, `${name}.yaml`), manifest(name));
  const first = machine.boot({ podManifestPaths: [machine.manifests] }).start();
  await first.wants("a=busybox:1", "b=busybox:1", "c=busybox:1");
  await first.feed.stop();
  writeSettled(join(machine.manifests, "b.yaml"), "kind: [");
  utimesSync(join(machine.manifests, "b.yaml"), 1000, 1000);
  unlinkSync(join(machine.manifests, "c.yaml"));
  const second = machine.boot({ podManifestPaths: [machine.manifests] }).start();
  await second.wants("a=busybox:1", "b=busybox:1");
  const [notices] = [...second.state!.notices!.values()];
  expect(notices![0]!.reason).toBe("InvalidManifest");
});

test("checkpoints hold secrets: they are private", async () => {
  const machine = new Machine();
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a"));
  const first = machine.boot({ podManifestPaths: [machine.manifests] }).start();
  await first.feed.stop();
  const [name] = readdirSync(machine.checkpoints);
  expect(statSync(machine.checkpoints).mode & 0o777).toBe(0o700);
  expect(statSync(join(machine.checkpoints, name!)).mode & 0o777).toBe(0o600);
  expect(name).toMatch(/^source-[\da-f]{32}\.json$/);
});

test.each([
  { what: "cut", damage: (text: string) => text.slice(0, 100) },
  { what: "changed", damage: (text: string) => text.replace("busybox:1", "busybox:6") },
  { what: "of a later version", damage: (text: string) => text.replace(/"version":\d+/, '"version":99') },
  { what: "empty", damage: () => "" },
  { what: "of another node", damage: (text: string) => text, node: "node2", warning: 'of node "node1": not used' },
])("a checkpoint that is $what is not used, with a warning", async ({ damage, node, warning = "are not used" }) => {
  const { machine, stop, options } = await served();
  await stop();
  const path = join(machine.checkpoints, readdirSync(machine.checkpoints)[0]!);
  writeSettled(path, damage(readFileSync(path, "utf8")));
  const second = machine.boot(options, [], node).start();
  await until("the warning", () => second.logger.lines.some((line) => line.includes(warning)));
  expect(second.state).toBeUndefined();
});

test("a root directory that cannot be written is logged once and stops nothing", async () => {
  const machine = new Machine();
  writeSettled(join(machine.root, "state"), "a file where the directory should be");
  const life = machine.boot({ podManifestPaths: [machine.manifests] }).start();
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a"));
  await life.wants("a=busybox:1");
  writeSettled(join(machine.manifests, "b.yaml"), manifest("b"));
  await life.wants("a=busybox:1", "b=busybox:1");
  await life.feed.stop();
  expect(life.logger.lines.filter((line) => line.includes("Cannot store"))).toHaveLength(1);
  rmSync(join(machine.root, "state"));
});

test("readOnce returns what can be read and names what cannot", async () => {
  const machine = new Machine();
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a"));
  writeSettled(join(machine.manifests, "bad.yaml"), "kind: [");
  utimesSync(join(machine.manifests, "bad.yaml"), 1000, 1000);
  const { url } = serve(() => new Response(manifest("web")));
  const missing = join(machine.root, "missing.yaml");
  const life = machine.boot({ runOnce: true }, [machine.manifests, url, missing, "http://127.0.0.1:1/"]);
  const { state, findings, failures } = await life.feed.readOnce(new AbortController().signal);
  expect(podsOf(state)).toEqual(["a=busybox:1", "web=busybox:1"]);
  expect(findings.map(({ file }) => file)).toEqual([join(machine.manifests, "bad.yaml")]);
  expect(failures).toEqual([
    `"${missing}" does not exist`,
    "Manifests: http://127.0.0.1:1/ refuses the connection (ECONNREFUSED)",
  ]);
});

describe("a pod whose source is not configured any more", () => {
  const uidOf = (life: Life, name: string) =>
    life.state?.pods.find(({ pod }) => pod.metadata.name === `${name}-node1`)?.pod.metadata.uid;

  /** A life with pods a and b in the directory and c from a file, and the next one without the directory. */
  async function moved(next: Partial<KubeletOptions> = {}, manifests: readonly string[] = []) {
    const machine = new Machine();
    for (const name of ["a", "b"]) writeSettled(join(machine.manifests, `${name}.yaml`), manifest(name));
    writeSettled(join(machine.root, "c.yaml"), manifest("c"));
    const first = machine.boot({ podManifestPaths: [machine.manifests] }, [join(machine.root, "c.yaml")]).start();
    expect(first.pods).toEqual(["a=busybox:1", "b=busybox:1", "c=busybox:1"]);
    await first.feed.stop();
    const second = machine.boot(next, [join(machine.root, "c.yaml"), ...manifests]).start();
    return { machine, first, second };
  }

  test("keeps running from its checkpoint, and reports it", async () => {
    const { machine, first, second } = await moved();
    expect(second.pods).toEqual(["a=busybox:1", "b=busybox:1", "c=busybox:1"]);
    expect(uidOf(second, "a")).toBe(uidOf(first, "a")!);
    expect(second.info?.isComplete).toBe(true);
    const notices = second.state!.notices!.get(uidOf(second, "a")!)!;
    expect(notices.map(({ reason }) => reason)).toEqual(["Unclaimed"]);
    expect(notices[0]!.message).toContain(`its source ${machine.manifests} is not configured any more`);
    expect(notices[0]!.message).toContain("kubelet-ts delete pod a-node1 --namespace=default");
    expect(second.state!.notices!.has(uidOf(second, "c")!)).toBe(false);
    expect(second.feed.status().at(-1)).toMatchObject({ name: machine.manifests, state: "unclaimed", pods: 2 });
    const warnings = second.logger.lines.filter((line) => line.startsWith("warn") && line.includes(machine.manifests));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("pod default/a-node1, pod default/b-node1");
    await second.feed.stop();
    // Nor does it end with a third start.
    expect(machine.boot().start().pods).toEqual(["a=busybox:1", "b=busybox:1", "c=busybox:1"]);
  });

  test("keeps running after a mistake in the path, and the right path takes it over again", async () => {
    const { machine, first, second } = await moved({ podManifestPaths: ["/nowhere/manifets"] });
    expect(second.pods).toEqual(["a=busybox:1", "b=busybox:1", "c=busybox:1"]);
    expect(second.info?.isComplete).toBe(false);
    await second.feed.stop();
    const third = machine.boot({ podManifestPaths: [machine.manifests] }).start();
    expect(uidOf(third, "a")).toBe(uidOf(first, "a")!);
    expect(third.state!.notices?.has(uidOf(third, "a")!)).toBeFalsy();
    rmSync(join(machine.manifests, "a.yaml"));
    await third.wants("b=busybox:1", "c=busybox:1");
  });

  test("keeps running as a workload too", async () => {
    const machine = new Machine();
    const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "busybox:1"}]}}
`;
    writeSettled(join(machine.manifests, "d.yaml"), workload);
    const first = machine.boot({ podManifestPaths: [machine.manifests] }).start();
    expect(first.state?.objects?.map(({ unclaimed }) => unclaimed)).toEqual([undefined]);
    await first.feed.stop();
    for (let start = 0; start < 2; start++) {
      const next = machine.boot().start();
      const [kept] = next.state!.objects!;
      expect(kept!.object.metadata.name).toBe("d");
      expect(kept!.unclaimed).toContain(
        `its source ${machine.manifests} is not configured any more; the deployment keeps`,
      );
      expect(kept!.unclaimed).toContain("kubelet-ts delete deployment d --namespace=default");
      await next.feed.stop();
    }
    const last = machine.boot().start();
    last.feed.removalOf("Deployment default/d")!();
    expect(last.state?.objects ?? []).toEqual([]);
  });

  test("is taken over permanently by a source that describes a pod of its name", async () => {
    const { machine, second } = await moved();
    await second.feed.stop();
    const next = join(machine.root, "next");
    mkdirSync(next);
    writeSettled(join(next, "a.yaml"), manifest("a", "busybox:2"));
    const third = machine.boot({ podManifestPaths: [next] }).start();
    expect(third.pods).toEqual(["a=busybox:2", "b=busybox:1", "c=busybox:1"]);
    expect(third.info?.duplicates).toEqual([]);
    rmSync(join(next, "a.yaml"));
    await third.wants("b=busybox:1", "c=busybox:1");
    await third.feed.stop();
    expect(machine.boot({ podManifestPaths: [next] }).start().pods).toEqual(["b=busybox:1", "c=busybox:1"]);
  });

  test("is removed by name", async () => {
    const { machine, second } = await moved({ podManifestPaths: [] });
    expect(second.feed.removalOf("default/c-node1")).toBeUndefined();
    second.feed.removalOf("default/b-node1")!();
    expect(second.pods).toEqual(["a=busybox:1", "c=busybox:1"]);
    second.feed.removalOf("default/a-node1")!();
    expect(second.pods).toEqual(["c=busybox:1"]);
    // Its source is known to want nothing: what a crash leaves of the pod is removed.
    expect(second.state!.completeSources!.size).toBe(2);
    await second.feed.stop();
    const third = machine.boot({}, [join(machine.root, "c.yaml")]).start();
    expect(third.pods).toEqual(["c=busybox:1"]);
    expect(third.state!.completeSources!.size).toBe(2);
    await third.feed.stop();
    expect(readdirSync(machine.checkpoints)).toHaveLength(1);
  });
});

async function runOnce(machine: Machine, name: string, text: string): Promise<void> {
  const path = join(machine.root, name);
  writeSettled(path, text);
  const { feed } = machine.boot({ runOnce: true }, [path]);
  await feed.readOnce(new AbortController().signal);
  await feed.storeRunOnce();
  await feed.stop();
}

test("pods of --runonce: are supervised by a kubelet on the same root directory", async () => {
  const machine = new Machine();
  await runOnce(machine, "web.yaml", `${manifest("web")}---\n${manifest("side")}`);
  await runOnce(machine, "db.yaml", manifest("db"));
  await runOnce(machine, "web.yaml", manifest("web", "busybox:2"));
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a"));
  const service = machine.boot({ podManifestPaths: [machine.manifests] }).start();
  // A run adds pods and replaces those of the same name; it removes none.
  expect(service.pods).toEqual(["a=busybox:1", "db=busybox:1", "side=busybox:1", "web=busybox:2"]);
  expect(service.state!.notices).toBeUndefined();
  expect(service.feed.status().at(-1)).toMatchObject({ name: "--runonce", state: "ok", pods: 3 });
  service.feed.removalOf("default/db-node1")!();
  await service.feed.stop();
  const next = machine.boot({ podManifestPaths: [machine.manifests] }).start();
  expect(next.pods).toEqual(["a=busybox:1", "side=busybox:1", "web=busybox:2"]);
});

test("refused manifests are listed with their place until they are good", async () => {
  const machine = new Machine();
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a"));
  const life = machine.boot({ podManifestPaths: [machine.manifests] }).start();
  expect(life.feed.rejections()).toEqual([]);
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a").replace("containers", "container"));
  await until("the rejection", () => life.feed.rejections().length > 0);
  expect(life.feed.rejections()[0]).toMatchObject({
    source: machine.manifests,
    finding: { file: join(machine.manifests, "a.yaml"), line: 5, column: 1 },
    stalePods: ["default/a-node1"],
  });
  writeSettled(join(machine.manifests, "a.yaml"), manifest("a", "busybox:2"));
  await life.wants("a=busybox:2");
  expect(life.feed.rejections()).toEqual([]);
});

test("a single manifest that does not exist is refused, unless its pods are known", async () => {
  const machine = new Machine();
  const path = join(machine.root, "web.yaml");
  expect(() => machine.boot({}, [path])).toThrow(
    `Manifest "${path}" does not exist; correct the path or create the file`,
  );
  // A directory may appear later.
  expect(machine.boot({ podManifestPaths: [join(machine.root, "later")] }).start().pods).toEqual([]);
  writeSettled(path, manifest("web"));
  const first = machine.boot({}, [path]).start();
  expect(first.pods).toEqual(["web=busybox:1"]);
  await first.feed.stop();
  unlinkSync(path);
  expect(machine.boot({}, [path]).start().pods).toEqual(["web=busybox:1"]);
});
