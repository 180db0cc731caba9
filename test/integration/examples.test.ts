import { expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, hasNetworkNames, testNode } from "../support/engine.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { TestCertificates } from "../support/test-certificates.ts";
import type { TestNode } from "../support/test-node.ts";
import { freePorts } from "../support/test-servers.ts";

const tempDir = tempDirs();

const EXAMPLES = join(import.meta.dir, "..", "..", "examples");

/** Names that examples have for the directory of the machine and the Docker volume they use. */
const SHARED_NAME = "kubelet-ts-example";

const sharedName = (node: TestNode) => `${SHARED_NAME}-${node.name}`;
const hostPath = (node: TestNode) => `/var/tmp/${sharedName(node)}`;

/**
 * Ports of an example may be in use by a test that runs at the same time, and directory and volume may
 * hold files of a user who tried the examples: they have other names here.
 */
function readExample(file: string, node: TestNode): { text: string; hostPort: number } {
  const [hostPort = 0] = freePorts(1);
  const text = readFileSync(join(EXAMPLES, file), "utf8")
    .replace(/hostPort: \d+/, `hostPort: ${hostPort}`)
    .replaceAll(SHARED_NAME, sharedName(node));
  return { text, hostPort };
}

async function runExample(node: TestNode, file: string, text: string) {
  const manifest = node.writeManifest(file, text);
  const outcome = await node.runOnce([manifest]);
  if (outcome.exitCode !== 0)
    throw new Error(`${file}: exit code ${outcome.exitCode}\n${outcome.stdout}${outcome.stderr}`);
  return outcome;
}

const idsOf = async (node: TestNode) => (await node.listAll()).map(({ Id }) => Id).sort();

async function podIp(node: TestNode): Promise<string> {
  const [sandbox] = await node.sandboxes();
  const { Networks } = (await node.docker.inspectContainer(sandbox?.Id ?? "")).NetworkSettings;
  return Networks.bridge?.IPAddress ?? "";
}

const logsOf = async (node: TestNode, name: string) => node.logs((await node.containers(name))[0]?.Id ?? "");

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  return await response.text();
}

/** The behavior that each example shows, seen from outside. */
const SHOWS: Readonly<Record<string, (node: TestNode, hostPort: number) => Promise<unknown>>> = {
  "nginx-log.yaml": async (node) => {
    expect((await node.listAll()).length).toBe(3);
    const url = `http://${await podIp(node)}/?seen-by-the-other`;
    await node.until("a page", () => fetchText(url));
    await node.until("the line in the other container's log", async () =>
      (await logsOf(node, "log-reader")).includes("seen-by-the-other"),
    );
  },
  "init-container.yaml": async (node) => {
    const page = await node.until("a page", async () => fetchText(`http://${await podIp(node)}/`));
    expect(page).toBe(`written by init-container-${node.name}\n`);
  },
  "host-port.yaml": async (node, hostPort) => {
    await node.until("a page", () => fetchText(`http://127.0.0.1:${hostPort}/`));
  },
  "host-path.yaml": async (node) => {
    const written = readFileSync(join(hostPath(node), "runs"), "utf8");
    expect(written).toMatch(/^\S.* \d{4}\n$/);
    expect(await logsOf(node, "app")).toBe(written);
  },
  "probes.yaml": async (node) => {
    await node.start();
    await node.until("all three answers", async () => {
      const [pod] = await node.pods();
      const [nginx] = pod?.status.containerStatuses ?? [];
      return nginx?.started && nginx.ready && nginx.restartCount === 0;
    });
    await node.endProcesses();
  },
  "config.yaml": async (node) => {
    await node.until("the page in the log", async () =>
      (await logsOf(node, "app")).includes("<h1>from a ConfigMap</h1>"),
    );
    expect(await logsOf(node, "app")).toStartWith("hello\n");
  },
  "deployment.yaml": async (node) => {
    await node.start();
    const container = await node.runningContainer("nginx");
    await node.until("the name in the hosts file of the pod", async () => {
      return (await node.exec(container.Id, "cat", "/etc/hosts")).includes("web.default.svc.cluster.local");
    });
    await node.until("a page", async () => fetchText(`http://${await podIp(node)}/`));
    await node.endProcesses();
  },
  "compose-import.yaml": async (node, hostPort) => {
    const page = await node.until("the page that the other service wrote", () =>
      fetchText(`http://127.0.0.1:${hostPort}/`),
    );
    expect(page).toBe("hello from compose\n");
    const [writer] = await node.containers("writer");
    const [web] = await node.containers("web");
    const facts = await Promise.all([writer, web].map((it) => node.docker.inspectContainer(it?.Id ?? "")));
    // depends_on: web ran before writer started.
    expect(Date.parse(facts[0]?.State.StartedAt ?? "")).toBeGreaterThan(Date.parse(facts[1]?.State.StartedAt ?? ""));
  },
  "job.yaml": async (node) => {
    expect(await logsOf(node, "count")).toBe("1\n2\n3\n");
  },
  "hooks.yaml": async (node) => {
    await node.until("the hook's output", async () => (await logsOf(node, "app")).includes("started"));
  },
  "security.yaml": async (node) => {
    await node.until("the listing", async () => /1000\s+2000 .* mine/.test(await logsOf(node, "app")));
    expect(await logsOf(node, "app")).toContain("uid=1000 gid=1000 groups=1000,2000");
  },
  "resources.yaml": async (node) => {
    const [app] = await node.containers("app");
    const { HostConfig } = await node.docker.inspectContainerRaw(app?.Id ?? "");
    expect(HostConfig).toMatchObject({ Memory: 32 * 2 ** 20, CpuShares: 102, CpuQuota: 10_000, CpuPeriod: 100_000 });
  },
  "kitchen-sink.yaml": async (node, hostPort) => {
    const page = await node.until("a page", () => fetchText(`http://127.0.0.1:${hostPort}/index.html`));
    expect(page).toBe("<h1>kitchen sink</h1>\n");
    const log = await logsOf(node, "web");
    for (const line of [
      `hello from kitchen-sink-${node.name}`,
      "CM_greeting=hello",
      "CPU_LIMIT_MILLIS=500",
      "EXPANDED=value and $(PLAIN)",
      "FROM_FILE=a file",
      "HOSTNAME=sink",
      "uid=1001 gid=1000 groups=1000,2000,3000",
    ]) {
      expect(log.split("\n")).toContain(line);
    }
    const [web] = await node.containers("web");
    const script = `cat /login/password /all/secrets/password /about/memory /memory/started; echo
      test -x /image/bin/sh && grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status | tr -d '\t'
      grep -o '^ *[^ ]* [^ ]*' /etc/resolv.conf; tail -1 /etc/hosts; df -k /memory | tail -1 | tr -s ' ' | cut -d' ' -f2
      for d in / /host /login /all /about /www /image; do touch $d/x 2>/dev/null && echo "$d is writable"; done; pwd`;
    expect((await node.exec(web!.Id, "sh", "-c", script)).trim().split("\n")).toEqual([
      "not-a-real-passwordnot-a-real-password64started",
      "",
      "CapBnd:0000000000000400",
      "NoNewPrivs:1",
      "Seccomp:2",
      "nameserver 192.0.2.53",
      "search example.com",
      "options ndots:2",
      "192.0.2.10\tbackend\tbackend.example",
      "8192",
      "/work",
    ]);
  },
  "sidecar.yaml": async (node) => {
    await node.until("the time", async () => /:\d\d:/.test(await logsOf(node, "reader")));
  },
};

/** Its pods find each other by name. */
const NEEDS_NAMES = "compose-import.yaml";

/** Examples of what runs only while a kubelet runs. */
const NEEDS_KUBELET = ["cron-job.yaml", "database.yaml", "ingress-tls.yaml"];
const FILES = readdirSync(EXAMPLES).filter(
  (name) => name.endsWith(".yaml") && !NEEDS_KUBELET.includes(name) && (hasNetworkNames || name !== NEEDS_NAMES),
);

describeWithEngine("examples run as they are", () => {
  test.concurrent("cron-job.yaml: a run, without the wait for the next minute", async () => {
    const node = testNode();
    const { text } = readExample("cron-job.yaml", node);
    node.writeManifest("cron-job.yaml", text.replace('"* * * * *"', '"@every 2s"'));
    await node.start();
    const isDone = ({ metadata, status }: Awaited<ReturnType<TestNode["pods"]>>[number]) =>
      metadata.name?.startsWith("tick-") && status.phase === "Succeeded";
    await node.until("a run that succeeded", async () => (await node.pods()).some(isDone));
    const [run] = await node.containers("date");
    expect(await node.logs(run?.Id ?? "")).toMatch(/ 20\d\d/);
  });

  test.concurrent("ingress-tls.yaml: a page over TLS, to which HTTP is redirected", async () => {
    const node = testNode();
    const certificate = new TestCertificates(tempDir()).serverNamed("web.example");
    const secret = {
      ...{ apiVersion: "v1", kind: "Secret", type: "kubernetes.io/tls", metadata: { name: "web-certificate" } },
      stringData: { "tls.crt": certificate.cert, "tls.key": certificate.key },
    };
    node.writeManifest("ingress-tls.yaml", readExample("ingress-tls.yaml", node).text);
    node.writeManifest("secret.json", secret);
    const [http = 0, https = 0] = freePorts(2);
    await node.start(["--ingress-image=nginx:1.22", `--ingress-ports=${http},${https}`]);
    const ask = (url: string) =>
      fetch(url, {
        ...{ redirect: "manual", headers: { Host: "web.example" } },
        tls: { rejectUnauthorized: false, serverName: "web.example" },
      });
    const page = () => ask(`https://127.0.0.1:${https}/`).catch(() => undefined);
    await node.until("the page", async () => (await page())?.status === 200);
    expect((await ask(`http://127.0.0.1:${http}/`)).status).toBe(308);
  });

  test.concurrent("database.yaml: a client that holds a connection counts on when the pod of the database is replaced", async () => {
    const node = testNode();
    node.writeManifest("database.yaml", readExample("database.yaml", node).text);
    await using cleanUp = new AsyncDisposableStack();
    cleanUp.defer(async () => {
      await node.cleanUp();
      await node.docker.removeVolume(`${sharedName(node)}-db-0`);
    });
    await node.start();
    const client = await node.runningContainer("client");
    const count = async () => Number(/(\d+)\n$/.exec(await node.logs(client.Id))?.[1] ?? 0);
    await node.until("a count", async () => (await count()) > 1);
    const before = await node.runningContainer("redis");
    expect((await node.run("delete pod db-0")).exitCode).toBe(0);
    await node.until("another pod", async () => (await node.runningContainer("redis")).Id !== before.Id);
    const kept = await count();
    await node.until("the next count", async () => (await count()) > kept);
    expect((await node.runningContainer("client")).Id).toBe(client.Id);
    expect((await node.logs(client.Id)).match(/^1$/gm)).toHaveLength(1);
  });

  test.concurrent.each(FILES)("%s, twice: the second time changes nothing", async (file) => {
    const node = testNode();
    const { text, hostPort } = readExample(file, node);
    const network = /kubelet-ts\.io\/network: (\S+)/.exec(text)?.[1];
    if (network !== undefined) await node.docker.createNetwork({ Name: network });
    await runExample(node, file, text);
    const before = await idsOf(node);
    expect(before.length).toBeGreaterThan(0);
    const shows = SHOWS[file];
    if (!shows) throw new Error(`${file}: no test here checks what it shows`);
    await shows(node, hostPort);
    await runExample(node, file, text);
    expect(await idsOf(node)).toEqual(before);
    await node.cleanUp();
    if (text.includes(hostPath(node))) rmSync(hostPath(node), { recursive: true, force: true });
    const claims = new Set([...text.matchAll(/claimName: ([\w-]+)/g)].map((match) => match[1]!));
    for (const claim of claims) await node.docker.removeVolume(claim);
    if (network !== undefined) await node.docker.removeNetwork(network);
  });
});
