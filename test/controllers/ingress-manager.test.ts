import { expect, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Ingress } from "../../src/base/api/ingress.ts";
import type { Pod } from "../../src/base/api/pod.ts";
import type { DesiredObject, DesiredPod, DesiredState } from "../../src/base/model/desired-state.ts";
import {
  CONFIG_KEY,
  INGRESS_SCRIPT,
  IngressManager,
  type IngressOutcome,
  ingressPodManifest,
  parseOutcome,
  SCRIPT_KEY,
} from "../../src/controllers/ingress-manager.ts";
import { readManifestValue } from "../../src/manifest/read-manifest.ts";
import { INGRESS_DIRECTORY } from "../../src/plan/nginx-config.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { aContext, manifest, readObjects } from "./workload-world.ts";

const tempDir = tempDirs();
const PORTS = { http: 80, https: 443 };
const [SERVER] = readManifestValue(ingressPodManifest("nginx", PORTS), {
  file: "x",
  nodeName: "node1",
  source: "file",
}).pods as [DesiredPod];

const EMPTY: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
const service = readObjects(
  manifest("Service", { name: "web" }, { selector: { app: "web" }, ports: [{ port: 80 }] }),
)[0]!;

function ingress(name: string, to = "web", metadata: object = {}, spec: object = {}): DesiredObject {
  const rules = [
    {
      host: `${name}.test`,
      http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: to, port: { number: 80 } } } }] },
    },
  ];
  return {
    kind: "Ingress",
    object: { metadata: { name, namespace: "default", ...metadata }, spec: { rules, ...spec } } as unknown as Ingress,
    source: "file",
    origin: "x",
    revision: `${name}${to}${JSON.stringify(spec)}`,
  };
}

const stateOf = (...objects: DesiredObject[]): DesiredState => ({ ...EMPTY, objects: [service, ...objects] });

const server = (status: object): Pod => ({ ...SERVER.pod, status: status as Pod["status"] & object });
const READY = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };

function aManager() {
  const clock = new FakeClock();
  const published: (readonly [DesiredState, boolean])[] = [];
  const events: string[] = [];
  const world = {
    pods: [] as Pod[],
    isSettled: true,
    outcome: undefined as IngressOutcome | undefined,
    holder: undefined as string | undefined,
    changed: () => {},
    listeners: 0,
    woken: [] as string[],
  };
  const manager = new IngressManager({
    context: aContext(clock, {
      record: ({ kind = "Pod", name }, { reason, message }) => void events.push(`${kind} ${name} ${reason} ${message}`),
    }),
    ports: PORTS,
    server: () => SERVER,
    kubelet: {
      pods: () => world.pods,
      onChange(listener) {
        world.changed = listener;
        world.listeners += 1;
        return () => {
          world.listeners -= 1;
        };
      },
    },
    services: { holderOfPort: () => world.holder },
    isSettled: () => world.isSettled,
    readOutcome: () => world.outcome,
    wake: (id) => void world.woken.push(id),
    next: { setDesired: (state, isComplete) => void published.push([state, isComplete]) },
  });
  const config = () => {
    const secret = published.at(-1)![0].secrets.get("kube-system/ingress.kubelet-ts.io");
    return secret && Buffer.from(secret.data![CONFIG_KEY]!, "base64").toString();
  };
  const outcome = (state: IngressOutcome["state"], message = "") => {
    world.outcome = { revision: /^# (\w+)/.exec(config()!)![1]!, state, message };
  };
  const names = () => published.at(-1)![0].pods.map(({ pod }) => pod.metadata.name);
  return { manager, clock, published, events, world, config, outcome, names };
}

test("without an Ingress states pass through, and nothing is listened to", () => {
  const { manager, published, world } = aManager();
  manager.setDesired(EMPTY, true);
  expect(published).toEqual([[EMPTY, true]]);
  expect(world.listeners).toBe(0);
});

test("the server is there while there is an Ingress of the node's classes", () => {
  const { manager, names, world } = aManager();
  manager.setDesired(stateOf(ingress("a", "web", {}, { ingressClassName: "traefik" })), true);
  expect(names()).toEqual([]);
  manager.setDesired(stateOf(ingress("a")), true);
  expect(names()).toEqual(["ingress-node1"]);
  manager.setDesired(stateOf(), true);
  expect([names(), world.listeners]).toEqual([[], 0]);
});

test("before pods and sources are known no configuration is written, and no pod is removed", async () => {
  const { manager, clock, world, published, names } = aManager();
  world.isSettled = false;
  manager.setDesired(stateOf(ingress("a")), true);
  expect([names(), published.at(-1)![1]]).toEqual([[], false]);
  world.isSettled = true;
  world.changed();
  await clock.advance(20);
  expect([names(), published.at(-1)![1]]).toEqual([["ingress-node1"], true]);
});

test("only a change of what is served is published, and changes of many pods at once", async () => {
  const { manager, clock, world, published, config } = aManager();
  manager.setDesired(stateOf(ingress("a")), true);
  expect(config()).toContain("return 503");
  for (let time = 0; time < 5; time++) world.changed();
  await clock.advance(20);
  expect(published).toHaveLength(1);
  const web = {
    ...server(READY),
    metadata: { ...SERVER.pod.metadata, uid: "web", namespace: "default", labels: { app: "web" } },
  };
  world.pods = [{ ...web, status: { ...READY, podIPs: [{ ip: "10.0.0.1" }] } as Pod["status"] & object }];
  world.changed();
  world.changed();
  await clock.advance(20);
  expect(published).toHaveLength(2);
  expect(config()).toContain("server 10.0.0.1:80 ");
});

test("the server is woken for a new configuration, and a pod is awaited until it uses it", async () => {
  const { manager, clock, world, config, outcome } = aManager();
  world.pods = [server({ ...READY, containerStatuses: [{ containerID: "docker://abc" }] })];
  manager.setDesired(stateOf(ingress("a")), true);
  outcome("used");
  const status = { ...READY, podIPs: [{ ip: "10.0.0.1" }] } as Pod["status"] & object;
  const other = { ...status, podIPs: [{ ip: "10.0.0.2" }] };
  const metadata = { ...SERVER.pod.metadata, uid: "web", namespace: "default", labels: { app: "web" } };
  world.pods = [...world.pods, { ...SERVER.pod, metadata, status }];
  world.changed();
  // The change is not handled yet: the controllers may come first.
  expect([manager.isAwaited(status), manager.isAwaited(other)]).toEqual([true, false]);
  expect(config()).toContain("server 10.0.0.1:80 ");
  expect(world.woken).toEqual(["abc", "abc"]);
  outcome("used");
  await clock.advance(100);
  expect(manager.isAwaited(status)).toBe(false);
  world.changed();
  await clock.advance(20);
  expect(world.woken).toHaveLength(2);
});

test("an Ingress has the node's address once its server is Ready", async () => {
  const { manager, clock, world } = aManager();
  const a = ingress("a");
  manager.setDesired(stateOf(a), true);
  expect(manager.statusOf(a.object)).toEqual({ loadBalancer: {} });
  world.pods = [server(READY)];
  world.changed();
  await clock.advance(20);
  expect(manager.statusOf(a.object)).toEqual({ loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } });
  expect(manager.statusOf(ingress("b").object)).toBeUndefined();
});

test("an Ingress that nginx refuses is left out until it changes", async () => {
  const { manager, clock, world, config, outcome, events } = aManager();
  world.pods = [server(READY)];
  manager.setDesired(stateOf(ingress("a"), ingress("b")), true);
  const line = config()!.split("\n").lastIndexOf("    # Ingress default/b") + 2;
  outcome("refused", `nginx: [emerg] odd in /run/ingress/next.conf:${line}`);
  await clock.advance(2000);
  expect(config()).not.toContain("b.test");
  expect(config()).toContain("a.test");
  expect(events.join("\n")).toMatch(
    /^Pod ingress-node1 ConfigurationRefused .*\nIngress b InvalidIngress .*nginx refuses it/,
  );
  outcome("used");
  await clock.advance(10_000);
  expect(config()).not.toContain("b.test");
  manager.setDesired(stateOf(ingress("a"), ingress("b", "other")), true);
  expect(config()).toContain("b.test");
});

const waiting = (reason: string) => ({ phase: "Pending", containerStatuses: [{ state: { waiting: { reason } } }] });

test.each([
  [
    "an image that is missing",
    { status: waiting("ErrImagePull"), later: waiting("ImagePullBackOff") },
    'no image "nginx": run "docker pull nginx"',
  ],
  ["the node's refusal", { status: { phase: "Failed", message: "Pod has no port" } }, "does not run: Pod has no port"],
  [
    "a port of a Service",
    { status: READY, holder: 'Service "default/lb"' },
    'TCP/80 of the machine is held by Service "default/lb"',
  ],
  ["the end of nginx", { status: { phase: "Running" }, hasEnded: true }, "nginx does not start"],
] as [string, { status: object; holder?: string; hasEnded?: boolean; later?: object }, string][])(
  "each Ingress tells once: %s",
  async (_, { status, holder, hasEnded, later }, want) => {
    const { manager, clock, world, outcome, events } = aManager();
    world.pods = [server(status)];
    world.holder = holder;
    const a = ingress("a");
    manager.setDesired(stateOf(a), true);
    if (hasEnded) outcome("ended");
    for (let time = 0; time < 3; time++) {
      await clock.advance(2000);
      if (later) world.pods = [server(later)];
      world.changed();
      await clock.advance(20);
    }
    expect(events).toEqual([expect.stringContaining(want)]);
    expect(manager.statusOf(a.object)).toEqual({ loadBalancer: {} });
  },
);

test("the fate of a configuration is not asked for at rest", async () => {
  const { manager, clock, world, outcome } = aManager();
  world.pods = [server(READY)];
  manager.setDesired(stateOf(ingress("a")), true);
  outcome("used");
  await clock.advance(4000);
  expect(clock.pendingTimers).toBe(0);
});

test("the server's script: a test of nginx that was killed is made again, a signal has it look without pauses, and files stay whole as long as they are asked for", async () => {
  const [run, config, bin] = [tempDir(), tempDir(), tempDir()];
  const program = (name: string, script: string) => {
    fs.writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  };
  program("nginx", `[ "$1" != -t ] && exit; [ -e ${bin}/tested ] || { >${bin}/tested; kill -9 $$; }`);
  program("sleep", `echo "$1" >> ${bin}/slept; exec /bin/sleep "$1"`);
  fs.mkdirSync(join(config, "one"));
  fs.symlinkSync("one", join(config, "..data"));
  const script = INGRESS_SCRIPT.replaceAll(INGRESS_DIRECTORY, run).replaceAll("/config/", `${config}/`);
  fs.writeFileSync(join(config, "one", SCRIPT_KEY), script);
  fs.writeFileSync(join(config, "one", CONFIG_KEY), "# abc\nauth-old auth-both\n");
  for (const name of ["auth-old", "auth-both"]) fs.writeFileSync(join(config, "one", name), name);
  const env = { PATH: `${bin}:${process.env.PATH}` };
  const server = Bun.spawn(["/bin/sh", join(config, "one", SCRIPT_KEY)], { env, stdout: "ignore", stderr: "ignore" });
  try {
    await until("the configuration", () => fs.existsSync(join(run, "nginx.conf")));
    server.kill("SIGUSR1");
    await until("a short pause", () => fs.readFileSync(join(bin, "slept"), "utf8").includes("0.05\n"));
    expect(server.exitCode).toBeNull();
    const opened = fs.openSync(join(run, "auth-both"), "r");
    fs.cpSync(join(config, "one"), join(config, "two"), { recursive: true });
    const moveTo = async (version: string, text: string) => {
      fs.writeFileSync(join(config, version, CONFIG_KEY), text);
      fs.symlinkSync(version, join(config, "next"));
      fs.renameSync(join(config, "next"), join(config, "..data"));
      await until(version, () => fs.readFileSync(join(run, "nginx.conf"), "utf8") === text);
    };
    fs.rmSync(join(config, "two", "auth-old"));
    await moveTo("two", "# def\nauth-both\n");
    // Workers of the configuration before still ask for its files, which are never half written.
    expect(fs.readFileSync(join(run, "auth-old"), "utf8")).toBe("auth-old");
    expect(fs.statSync(join(run, "auth-both")).ino).not.toBe(fs.fstatSync(opened).ino);
    fs.closeSync(opened);
    fs.cpSync(join(config, "two"), join(config, "three"), { recursive: true });
    await moveTo("three", "# ghi\nauth-both\n");
    expect(fs.readdirSync(run).filter((name) => name.startsWith("auth-"))).toEqual(["auth-both"]);
  } finally {
    server.kill("SIGKILL");
    await server.exited;
  }
});

test.each([
  [undefined, undefined],
  ["", undefined],
  ["ab used\n\n", { revision: "ab", state: "used", message: "" }],
  [
    "ab refused\n2026/11/26 16:00:41 [emerg] 27#27: odd\nnginx: x\n",
    { revision: "ab", state: "refused", message: "odd" },
  ],
  ["ab else\n", undefined],
] as const)("the outcome file %j", (text, want) => {
  expect(parseOutcome(text)).toEqual(want as IngressOutcome | undefined);
});
