import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { type Pod, PodSchema } from "../../src/base/api/pod.ts";
import { LABEL } from "../../src/docker/labels.ts";
import { CASES, type Inspected, normalize, ORACLE, type Recorded, withoutNothing } from "../docker/oracle-cases.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { TestNode } from "../support/test-node.ts";

/** Cases that need something this test does not give them; the unit test compares their create bodies. */
const LEFT_OUT: Record<string, string> = {
  "05-ports-hostport/portinuse": "needs a port taken by a stranger",
  "05-ports-hostport/sctpport": "the engine refuses the sandbox over and over",
  "25-configmap-secret/saname": "a service account is refused: there is no token to give",
  "28-admission-rejections/gpupod": "needs a GPU",
  "28-admission-rejections/hostsel": "selects a node by another name",
  "28-admission-rejections/portclash": "wants the port of another case",
};

/**
 * Differences that only a running pod shows, on purpose (docs/differences.md); each is taken out of both sides.
 */
const INTENDED_AT_RUN_TIME: Record<string, (side: Inspected, isSandbox: boolean) => void> = {
  "the pause image is our own, with a user and a directory of its own (D4)": ({ Config }, isSandbox) => {
    if (!isSandbox) return;
    delete Config.Image;
    if (Config.User === "65535:65535") delete Config.User;
    delete Config.WorkingDir;
  },
  "config.hash names the revision, no longer the pod": ({ Config }) => {
    const labels = Config.Labels as Record<string, string>;
    const key = "annotation.kubernetes.io/config.hash";
    if (key in labels) labels[key] = "hash";
  },
  "config.seen is on /pods alone: an edit that restarts nothing could not change a label": ({ Config }) => {
    delete (Config.Labels as Record<string, string>)["annotation.kubernetes.io/config.seen"];
  },
  "a pod in the node's network has a managed /etc/hosts too": ({ Config, HostConfig }) => {
    if (HostConfig.UTSMode !== "host") return;
    HostConfig.Binds = (HostConfig.Binds as string[]).filter((bind) => !bind.endsWith("/etc-hosts:/etc/hosts"));
    delete Config.Hostname; // The machine's, in both.
  },
};

/** Differences that do not count: upstream's order of variables is that of a hash map, and the machine has a name. */
function withoutNoise({ Config, HostConfig }: Inspected): void {
  if (Config.Env) (Config.Env as string[]).sort();
  if (HostConfig.NetworkMode === "host") delete Config.Hostname;
}

function toComparable(side: Inspected, pod: Pod, isSandbox: boolean): Inspected {
  const copy = normalize(structuredClone(side), pod);
  for (const remove of Object.values(INTENDED_AT_RUN_TIME)) remove(copy, isSandbox);
  withoutNoise(copy);
  return withoutAttempt(copy);
}

/** Containers that are created but cannot start: no privileges to give here, no shared mount. */
const CANNOT_START = new Set(["priv-node1/p", "propbidi-node1/bidi", "propsh-node1/prop"]);

/** Flags the oracle was recorded with, or those that take their place here. */
const FLAGS = ["--seccomp-default=false", "--allow-privileged=true"];
const CLUSTER_DNS_CASE = "29-dns-cluster-flags";

const cases = CASES.filter(({ name }) => !(name in LEFT_OUT));
/** The recording, by `pod/container`. */
const WANTED = cases.flatMap(({ name, recorded }) =>
  Object.keys(recorded.inspect).map((one) => `${name.split("/")[1]}-node1/${one}`),
);
const STARTED = new Set(WANTED.filter((key) => !CANNOT_START.has(key)));
const isClusterDns = (name: string) => name.startsWith(CLUSTER_DNS_CASE);

/** Keys of inspect that are the engine's and not in the fixtures. */
const ENGINE_KEYS = ["ShmSize", "Runtime", "CgroupnsMode", "ConsoleSize"];

/** Starts every pod of `names` on one node, as files of their own. */
function writeManifests(node: TestNode, hostDir: string, wanted: (name: string) => boolean): void {
  const pods = new Set(cases.filter(({ name }) => wanted(name)).map(({ name }) => name));
  for (const folder of readdirSync(ORACLE)) {
    if (!wanted(folder) || folder.endsWith(".md")) continue;
    for (const file of readdirSync(join(ORACLE, folder)).filter((name) => name.startsWith("manifest"))) {
      const text = readFileSync(join(ORACLE, folder, file), "utf8").replaceAll("<host-dir>", hostDir);
      const podName = /^ {2}name: (\S+)$/m.exec(text)?.[1];
      if (pods.has(`${folder}/${podName}`)) node.writeManifest(`${folder}-${file}`, text);
    }
  }
}

/** Replaces what differs from run to run by what `readRecorded` makes of the fixtures' placeholders. */
class Placeholders {
  readonly #replacements = new Map<string, string>();

  constructor(node: TestNode, hostDir: string) {
    this.#replacements.set(join(node.directory, "log-pods"), "/var/log/pods");
    this.#replacements.set(node.rootDir, "<root-dir>");
    this.#replacements.set(hostDir, "<host-dir>");
    this.#replacements.set(node.name, "node1");
  }

  add(actual: string, kind: string, of: string): void {
    this.#replacements.set(actual, `${kind}.${of.replace(/[^a-zA-Z0-9.-]/g, "-")}`);
  }

  apply<T>(value: T): T {
    let text = JSON.stringify(value);
    for (const [actual, placeholder] of this.#replacements) text = text.replaceAll(actual, placeholder);
    // The file of the termination message is named by its attempt here, at random there.
    return JSON.parse(text.replace(/(<root-dir>\/pods\/[^/]*\/containers\/[^/]*)\/[^:/"]*:/g, "$1/<hex8>:")) as T;
  }
}

const toFixtureForm = ({ Config, HostConfig }: Inspected): Inspected => {
  for (const key of ENGINE_KEYS) delete HostConfig[key];
  return { Config: withoutNothing(Config), HostConfig: withoutNothing(HostConfig) };
};

/**
 * Inspect of everything on a node by `pod/container`; of several attempts the first.
 * @throws when one was replaced meanwhile, or its replacement does not run yet: then inspect again
 */
async function inspectAll(node: TestNode, hostDir: string) {
  const list = await node.listAll();
  const placeholders = new Placeholders(node, hostDir);
  const ids = new Map<string, string>();
  const attempts = new Map<string, number>();
  /** Keys are the placeholders of the fixtures. */
  const podIps = new Map<string, string>();
  for (const { Id, Labels } of list) {
    const pod = (Labels[LABEL.podName] ?? "").replace(node.name, "node1");
    const name = Labels[LABEL.containerName] ?? "";
    const isSandbox = Labels[LABEL.type] === "podsandbox";
    placeholders.add(Labels[LABEL.podUid] ?? "", "pod-uid", pod);
    if (isSandbox) placeholders.add(Id, "sandbox-id", `${pod}#0`);
    const ip = (await node.docker.inspectContainer(Id)).NetworkSettings.Networks.bridge?.IPAddress;
    if (ip) podIps.set(`pod-ip.${pod}`, ip);
    const attempt = Number(Labels[isSandbox ? LABEL.sandboxAttempt : LABEL.restartCount] ?? 0);
    const key = `${pod}/${isSandbox ? "sandbox" : name}`;
    if (attempt <= (attempts.get(key) ?? Number.POSITIVE_INFINITY)) {
      attempts.set(key, attempt);
      ids.set(key, Id);
    }
  }
  const seen = new Map<string, Inspected>();
  for (const [key, id] of ids) {
    const inspect = (await node.docker.inspectContainerRaw(id)) as unknown as Inspected & {
      Image: string;
      State: { Status: string };
    };
    // The successor of one that crashed: it lacks what the engine fills in at the start.
    if (inspect.State.Status === "created" && STARTED.has(key)) throw new Error(`${key} has yet to be started`);
    const image = (inspect.Config.Labels as Record<string, string>)[LABEL.image];
    if (image) placeholders.add(inspect.Image, "image-id", image);
    seen.set(key, placeholders.apply(toFixtureForm(inspect)));
  }
  return { seen, ids, podIps };
}

/** The attempt is not what is compared: a container that crashes may be at any. */
function withoutAttempt<T>(value: T): T {
  const text = JSON.stringify(value)
    .replace(/("annotation\.io\.kubernetes\.container\.restartCount":)"\d+"/, '$1"N"')
    .replace(/\/\d+\.log"/, '/N.log"');
  return JSON.parse(text) as T;
}

describeWithEngine("docker inspect is what the real kubelet made it (oracle, category A)", () => {
  const plain = testNode();
  const cluster = testNode();
  let seen: Map<string, Inspected>;
  const logs = new Map<string, string>();
  const hostDir = join(plain.directory, "host");

  beforeAll(async () => {
    mkdirSync(join(hostDir, "hp", "existing"), { recursive: true });
    writeFileSync(join(hostDir, "hp", "file.txt"), "");
    const resolvConf = join(cluster.directory, "resolv.conf");
    writeFileSync(
      resolvConf,
      "nameserver 8.8.4.4\nnameserver 10.0.0.53\nsearch corp.example lab.example\noptions ndots:1 timeout:3\n",
    );
    writeManifests(plain, hostDir, (name) => !isClusterDns(name));
    writeManifests(cluster, hostDir, isClusterDns);
    await plain.start(FLAGS);
    await cluster.start([
      ...FLAGS,
      "--cluster-dns=10.96.0.10",
      "--cluster-domain=cluster.local",
      `--resolv-conf=${resolvConf}`,
    ]);
    await plain.until(
      "every container of the oracle",
      async () => {
        const all = [...(await plain.listAll()), ...(await cluster.listAll())];
        const there = new Set(
          all.flatMap(({ Labels, State }) => {
            const pod = Labels[LABEL.podName]?.replace(/-t-.*$/, "-node1");
            const key = `${pod}/${Labels[LABEL.type] === "podsandbox" ? "sandbox" : Labels[LABEL.containerName]}`;
            // Some of it, the host name for one, the engine fills in at the start.
            return State === "created" && STARTED.has(key) ? [] : [key];
          }),
        );
        const missing = WANTED.filter((one) => !there.has(one));
        if (missing.length > 0) throw new Error(`missing: ${missing.join(" ")}`);
        return true;
      },
      120_000,
    );
    // A container that crashes may be replaced, and its predecessor removed, while it is inspected: then once more. The pauses
    // between crashes grow.
    const inspection = async () => {
      logs.clear();
      const both = [
        { node: plain, ...(await inspectAll(plain, hostDir)) },
        { node: cluster, ...(await inspectAll(cluster, hostDir)) },
      ];
      const podIps = both.flatMap((one) => [...one.podIps]);
      for (const { node, ids } of both) {
        for (const [key, id] of ids) logs.set(key, toPrinted(await node.logs(id), node, podIps));
      }
      return new Map(both.flatMap((one) => [...one.seen]));
    };
    seen = await plain.until("an inspection of all of them", inspection, 120_000);
  }, 300_000);

  afterAll(async () => {
    for (const node of [plain, cluster]) await node.cleanUp();
  });

  test.each(cases.flatMap(({ name, recorded }) => toRows(name, recorded)))("$title", ({ key, pod, want }) => {
    const have = seen.get(key);
    expect(have, "the container is there").toBeDefined();
    const isSandbox = key.endsWith("/sandbox");
    expect(toComparable(have!, pod, isSandbox)).toEqual(toComparable(want, pod, isSandbox));
  });

  const printing = cases.flatMap(({ name, recorded }) =>
    Object.entries(recorded.logs)
      .filter(([, text]) => isComparable(text) && name !== "57-mount-propagation-shared/propsh")
      .map(([container, text]) => ({
        title: `${name}/${container}`,
        key: `${name.split("/")[1]}-node1/${container}`,
        text,
      })),
  );

  function toPrinted(text: string, node: TestNode, podIps: Iterable<[string, string]>): string {
    let printed = text.replaceAll(node.name, "node1");
    for (const [name, ip] of podIps) printed = printed.replaceAll(`${ip}\t`, `${name}\t`);
    return printed;
  }

  test.each(printing)("$title prints what it printed", ({ key, text }) => {
    expect(sortedLines(logs.get(key) ?? "")).toEqual(sortedLines(text));
  });
});

/** Text with placeholders for times and disks, and what nothing was printed by, is not compared. */
const isComparable = (text: string) => text !== "(empty)\n" && text !== "(empty)" && !text.includes("<");

/**
 * The order of `env` is the shell's own. Names of users, and the home that follows from them, stand in files of the
 * images, which are not the recorded ones.
 */
const sortedLines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("HOME="))
    .map((line) => line.replace(/\((root|app)\)/g, ""))
    .sort();

function toRows(name: string, recorded: Recorded) {
  const pod = v.parse(PodSchema, recorded.pod);
  return Object.entries(recorded.inspect).map(([one, want]) => ({
    title: `${name}/${one}`,
    key: `${pod.metadata.name}/${one}`,
    pod,
    want: want as Inspected,
  }));
}
