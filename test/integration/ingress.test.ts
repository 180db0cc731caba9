import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { cpus } from "node:os";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { BINARY } from "../support/kubelet-process.ts";
import { list, object, podSpec, shell, sleeper, workload } from "../support/manifests.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { type CertificateFiles, TestCertificates } from "../support/test-certificates.ts";
import type { TestNode } from "../support/test-node.ts";

const tempDir = tempDirs();
const IMAGE = "nginx:1.22";
const ANNOTATION = "nginx.ingress.kubernetes.io/";

/** A Deployment of nginx that answers with a name, its pod and the path it was asked for, and its Service. */
function server(name: string, replicas = 1, version = "1") {
  const conf = `events {} http { server { listen 8000; location / { return 200 "${name} $hostname $request_uri $http_x_forwarded_proto $http_x_forwarded_for"; } } }`;
  const script = `printf '%s' "$CONF" > /tmp/c; exec nginx -c /tmp/c -g 'daemon off;'`;
  return [
    workload(
      "Deployment",
      name,
      { replicas, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
      podSpec(
        {
          ...shell(script),
          image: IMAGE,
          ports: [{ name: "http", containerPort: 8000 }],
          env: [
            { name: "CONF", value: conf },
            { name: "VERSION", value: version },
          ],
          readinessProbe: { httpGet: { path: "/", port: "http" }, periodSeconds: 1 },
          lifecycle: { preStop: { exec: { command: ["sleep", "4"] } } },
        },
        { terminationGracePeriodSeconds: 6 },
      ),
    ),
    object("Service", name, { spec: { selector: { app: name }, ports: [{ port: 80, targetPort: "http" }] } }),
  ];
}

type Path = readonly [path: string, pathType: string, service: string];

function ingress(
  name: string,
  host: string,
  paths: readonly Path[],
  spec: object = {},
  annotations: Record<string, string> = {},
) {
  const written = Object.entries(annotations).map(([key, value]) => [`${ANNOTATION}${key}`, value]);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, annotations: Object.fromEntries(written) },
    spec: {
      rules: [
        {
          host,
          http: {
            paths: paths.map(([path, pathType, to]) => ({
              path,
              pathType,
              backend: { service: { name: to, port: { number: 80 } } },
            })),
          },
        },
      ],
      ...spec,
    },
  };
}

/** Starts a node with the ingress server on free ports. */
async function startNode(node: TestNode, flags: readonly string[] = []) {
  const [http, https] = [node.kubeletPort, node.cadvisorPort];
  const args = [`--ingress-image=${IMAGE}`, `--ingress-ports=${http},${https}`, "--cadvisor-port=0"];
  const start = (options?: { prefix: string[] }) => node.start([...args, ...flags], options);
  const kubelet = await start();
  /** The answer to a request: `200 text`, or its redirect. */
  const ask = async (host: string, path = "/", init: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${http}${path}`, {
      ...{ redirect: "manual", keepalive: false, signal: AbortSignal.timeout(10_000) },
      ...init,
      headers: { ...(init.headers as Record<string, string>), Host: host },
    });
    return `${response.status} ${response.headers.get("location") ?? (await response.text())}`;
  };
  const untilAnswered = (host: string, path: string, want: string | RegExp) =>
    node.until(`${want} at ${host}${path}`, async () => {
      const answer = await ask(host, path).catch(String);
      const isWanted = typeof want === "string" ? answer.startsWith(want) : want.test(answer);
      return isWanted && (await hasSettled(node));
    });
  return { kubelet, start, ask, untilAnswered, http, https };
}

/** @returns status and text, or why there is no connection */
const askTls = (port: number, host: string, ca: string) =>
  new Promise<string>((resolve) => {
    const asked = request(
      { host: "127.0.0.1", port, servername: host, ca, headers: { Host: host }, agent: false },
      (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on("end", () => resolve(`${response.statusCode} ${text}`));
      },
    );
    asked.on("error", (error: Error) => resolve(error.message));
    asked.end();
  });

const tlsSecret = (name: string, { cert, key }: CertificateFiles) =>
  object("Secret", name, { type: "kubernetes.io/tls", stringData: { "tls.crt": cert, "tls.key": key } });

/** Sends requests until it is stopped. @returns what failed, and how many there were */
function load(ask: () => Promise<string>) {
  const failures: string[] = [];
  const requests: Promise<void>[] = [];
  const timer = setInterval(() => {
    const one = ask().then(
      (answer) => void (answer.startsWith("200 ") || failures.push(answer)),
      (error: Error) => void failures.push(error.message),
    );
    requests.push(one);
  }, 10);
  return async () => {
    clearInterval(timer);
    await Promise.all(requests);
    return { failures, count: requests.length };
  };
}

const WEB_SOCKET_ECHO = `Bun.serve({ port: 8000, async fetch(request, server) {
  if (server.upgrade(request)) return undefined;
  await Bun.sleep(4000);
  return new Response("at last"); },
  websocket: { message: (socket, text) => void socket.send(text) } }); console.log("ready")`;

/** @returns undefined when it is refused */
const openWebSocket = (port: number, host: string) =>
  new Promise<WebSocket | undefined>((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: host } });
    socket.onopen = () => resolve(socket);
    socket.onerror = () => resolve(undefined);
  });

const RUNNING_SCRIPT = "/run/ingress/run.sh";

/** The program with another text in the script of the ingress server, as long as the one it has. */
function otherVersion(): string {
  const program = readFileSync(BINARY);
  const text = "# One that another script started";
  for (let at = program.indexOf(text); at >= 0; at = program.indexOf(text)) program.write(text.toUpperCase(), at);
  const path = join(tempDir(), "kubelet-ts");
  writeFileSync(path, program, { mode: 0o755 });
  return path;
}

const serverId = async (node: TestNode) => (await node.runningContainer("nginx")).Id;

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

/** Workers of the configuration before take requests until nginx has told them to quit, which changes their title. */
async function hasSettled(node: TestNode): Promise<boolean> {
  const { State } = await node.docker.inspectContainer(await serverId(node));
  const titles = childrenOf(State.Pid)
    .flatMap(childrenOf)
    .map((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8"));
  return titles.filter((title) => /^nginx: worker process[\s\0]*$/.test(title)).length === cpus().length;
}

describeWithEngine("the ingress server", () => {
  test("--ingress-image, --ingress-ports: routes by host and path, annotations, and an address once it runs", async () => {
    const node = testNode();
    const users = object("Secret", "users", { stringData: { auth: "joe:{PLAIN}secret\n" } });
    const routes = [
      ingress("web", "web.test", [
        ["/", "Prefix", "web"],
        ["/api", "Prefix", "api"],
        ["/api/x", "Exact", "web"],
      ]),
      ingress("more", "web.test", [["/more", "Prefix", "api"]]),
      ingress("wild", "*.wild.test", [["/", "Prefix", "api"]]),
      ingress("cut", "cut.test", [["/v1(/|$)(.*)", "ImplementationSpecific", "api"]], {}, { "rewrite-target": "/$2" }),
      ingress(
        "staff",
        "staff.test",
        [["/", "Prefix", "web"]],
        {},
        { "auth-type": "basic", "auth-secret": "users", "proxy-body-size": "1k" },
      ),
      ingress("far", "far.test", [["/", "Prefix", "web"]], {}, { "whitelist-source-range": "192.0.2.0/24" }),
      ingress("gone", "gone.test", [["/", "Prefix", "none"]]),
      ingress(
        "moved",
        "moved.test",
        [["/", "Prefix", "web"]],
        {},
        { "permanent-redirect": "https://b.test$request_uri" },
      ),
      ingress("root", "root.test", [["/", "Prefix", "web"]], {}, { "app-root": "/start" }),
      ingress("forced", "forced.test", [["/", "Prefix", "web"]], {}, { "force-ssl-redirect": "true" }),
      ingress("digits", "digits.test", [["/v[0-9]+/x$", "Prefix", "api"]], {}, { "use-regex": "true" }),
      ingress("sticky", "sticky.test", [["/", "Prefix", "web"]], {}, { affinity: "cookie" }),
    ];
    node.writeManifest("web.yaml", list(...server("web", 2), ...server("api"), users, ...routes));
    const { ask, untilAnswered, https } = await startNode(node);
    await untilAnswered("web.test", "/", "200 web");
    await untilAnswered("web.test", "/api", "200 api");
    expect(await ask("web.test", "/a?b=c")).toMatch(/^200 web web-\S+ \/a\?b=c http 127\.0\.0\.1$/);
    expect(await ask("web.test", "/api/")).toStartWith("200 api");
    expect(await ask("web.test", "/apiary")).toStartWith("200 web");
    expect(await ask("web.test", "/api/x")).toStartWith("200 web");
    expect(await ask("web.test", "/more/1")).toStartWith("200 api");
    expect(await ask("a.wild.test")).toStartWith("200 api");
    expect(await ask("a.b.wild.test")).toStartWith("404");
    expect(await ask("other.test")).toStartWith("404");
    expect(await ask("cut.test", "/v1/x?y=1")).toMatch(/^200 api \S+ \/x\?y=1 /);
    expect(await ask("staff.test")).toStartWith("401");
    const headers = { Authorization: `Basic ${btoa("joe:secret")}` };
    expect(await ask("staff.test", "/", { headers })).toStartWith("200 web");
    expect(await ask("staff.test", "/", { headers, method: "POST", body: "x".repeat(2000) })).toStartWith("413");
    expect(await ask("far.test")).toStartWith("403");
    expect(await ask("gone.test")).toStartWith("503");
    expect(await ask("moved.test", "/a?b")).toBe("301 https://b.test/a?b");
    expect(await ask("root.test")).toBe("302 /start");
    expect(await ask("root.test", "/start")).toStartWith("200 web");
    expect(await ask("forced.test")).toBe(`308 https://forced.test:${https}/`);
    expect(await ask("digits.test", "/v12/x")).toStartWith("200 api");
    expect(await ask("digits.test", "/v12/xy")).toStartWith("404");
    const podOf = async (host: string, cookie: string) =>
      (await ask(host, "/", { headers: { Cookie: `INGRESSCOOKIE=${cookie}` } })).split(" ")[2]!;
    const podsOf = async (host: string, cookies: string[]) =>
      new Set(await Promise.all(cookies.map((cookie) => podOf(host, cookie)))).size;
    const clients = Array.from({ length: 12 }, (_, index) => `client-${index}`);
    const hasBoth = async () => (await podsOf("sticky.test", clients)) === 2 && (await hasSettled(node));
    await node.until("both pods", hasBoth);
    expect(await podsOf("sticky.test", Array(12).fill("one") as string[])).toBe(1);
    expect(await podsOf("web.test", Array(12).fill("one") as string[])).toBe(2);
    const shown = async () => JSON.parse((await node.run("get ingress web -o json")).stdout);
    const { status } = await node.until("an address", async () => {
      const found = await shown();
      return found.status?.loadBalancer?.ingress?.[0]?.ip && found;
    });
    expect(status.loadBalancer.ingress).toHaveLength(1);
    expect((await node.run("get events -A")).stdout).toContain('there is no Service "default/none"');
    node.writeManifest("web.yaml", list(...server("web")));
    await node.until("no server", async () => (await node.running("nginx")).length === 0);
  });

  test("TLS by name, from Secrets, with a redirect; without a certificate the handshake is refused", async () => {
    const node = testNode();
    const certificates = new TestCertificates(tempDir());
    const [one, two, three] = ["one.test", "two.test", "one.test"].map((name) => certificates.serverNamed(name));
    const tls = (name: string) => ({ tls: [{ hosts: [`${name}.test`], secretName: name }] });
    const routes = ["one", "two"].map((name) => ingress(name, `${name}.test`, [["/", "Prefix", "web"]], tls(name)));
    const plain = ingress("plain", "plain.test", [["/", "Prefix", "web"]]);
    const write = (first: CertificateFiles) =>
      node.writeManifest(
        "web.yaml",
        list(...server("web"), ...routes, plain, tlsSecret("one", first), tlsSecret("two", two!)),
      );
    write(one!);
    const { ask, untilAnswered, https } = await startNode(node);
    await untilAnswered("plain.test", "/", "200 web");
    expect(await askTls(https, "one.test", one!.cert)).toMatch(/^200 web \S+ \/ https /);
    expect(await askTls(https, "two.test", two!.cert)).toStartWith("200 web");
    expect(await askTls(https, "two.test", one!.cert)).toMatch(/self.signed/);
    expect(await askTls(https, "plain.test", one!.cert)).toMatch(/handshake|unrecognized/i);
    expect(await ask("one.test", "/x?y")).toBe(`308 https://one.test:${https}/x?y`);
    const before = await serverId(node);
    write(three!);
    await node.until("the new certificate", async () =>
      (await askTls(https, "one.test", three!.cert)).startsWith("200 web"),
    );
    expect(await serverId(node)).toBe(before);
  });

  test("WebSockets and requests in flight survive a change, a kill -9, and an upgrade to another script of the server", async () => {
    const node = testNode();
    const echo = [
      sleeper("echo", { name: "echo" }, {}, { labels: { app: "echo" } }),
      object("Service", "echo", { spec: { selector: { app: "echo" }, ports: [{ port: 80, targetPort: 8000 }] } }),
    ];
    const web = ingress("web", "web.test", [["/", "Prefix", "web"]]);
    const hasty = { "proxy-read-timeout": "1" };
    const objects = [
      ...[...server("web"), ...echo, web],
      ingress("echo", "echo.test", [["/", "Prefix", "echo"]]),
      ingress("hasty", "hasty.test", [["/", "Prefix", "echo"]], {}, hasty),
    ];
    node.writeManifest("web.yaml", list(...objects));
    const { kubelet, start, ask, untilAnswered, http } = await startNode(node);
    await untilAnswered("web.test", "/", "200 web");
    const before = await serverId(node);
    const { Id } = await node.runningContainer("echo");
    const { State } = await node.docker.inspectContainer(Id);
    await using servers = new AsyncDisposableStack();
    const child = Bun.spawn(["nsenter", `--target=${State.Pid}`, "--net", process.execPath, "-e", WEB_SOCKET_ECHO], {
      stdout: "pipe",
    });
    servers.defer(() => child.kill("SIGKILL"));
    await child.stdout.getReader().read();
    const socket = await node.until("a WebSocket", () => openWebSocket(http, "echo.test"));
    servers.defer(() => socket.close());
    const says = (text: string) =>
      new Promise<string>((resolve, reject) => {
        socket.addEventListener("message", ({ data }) => resolve(String(data)), { once: true });
        socket.addEventListener("close", () => reject(new Error("the WebSocket is closed")), { once: true });
        socket.send(text);
      });
    expect(await says("before")).toBe("before");
    const slow = ask("echo.test", "/slow");
    expect(await ask("hasty.test", "/slow")).toStartWith("504");
    const stop = load(() => ask("web.test"));
    node.writeManifest("new.yaml", list(ingress("new", "new.test", [["/", "Prefix", "web"]])));
    await untilAnswered("new.test", "/", "200 web");
    expect(await says("after")).toBe("after");
    expect(await slow).toBe("200 at last");
    await kubelet.kill();
    expect(await ask("new.test")).toStartWith("200 web");
    const scriptOf = async () => (await node.run(`exec -n kube-system ingress -- head -n 1 ${RUNNING_SCRIPT}`)).stdout;
    const script = await scriptOf();
    await start({ prefix: ["sh", "-c", `shift; exec ${otherVersion()} "$@"`, "sh"] });
    await node.until("all pods again", async () => (await node.pods()).length === 3);
    await node.until("the other script", async () => ![script, ""].includes(await scriptOf()));
    const last = ask("echo.test", "/slow");
    node.removeManifest("new.yaml");
    await untilAnswered("new.test", "/", "404");
    expect(await last).toBe("200 at last");
    const { failures, count } = await stop();
    expect(failures).toEqual([]);
    expect(count).toBeGreaterThan(100);
    expect(await says("last")).toBe("last");
    expect(await serverId(node)).toBe(before);
  });

  test("what is wrong, and what nginx refuses, is left out and told, and what is right is changed at the same time", async () => {
    const node = testNode();
    const good = ingress("good", "good.test", [["/", "Prefix", "web"]]);
    node.writeManifest("good.yaml", list(...server("web"), good));
    const { untilAnswered } = await startNode(node);
    await untilAnswered("good.test", "/", "200 web");
    const snippet = { "configuration-snippet": "return 200 x;" };
    const certificates = new TestCertificates(tempDir());
    const { cert, key } = certificates.serverNamed("weak.test");
    const chain = { cert: `${cert}${certificates.weak("small").cert}`, key } as CertificateFiles;
    const tls = { tls: [{ hosts: ["weak.test"], secretName: "weak" }] };
    const bad = [
      ingress("bad", "bad.test", [["/", "Prefix", "web"]], {}, snippet),
      ingress("weak", "weak.test", [["/", "Prefix", "web"]], tls),
    ];
    node.writeManifest("bad.yaml", list(...bad, tlsSecret("weak", chain)));
    node.writeManifest("late.yaml", list(ingress("late", "late.test", [["/", "Prefix", "web"]])));
    await untilAnswered("late.test", "/", "200 web");
    await untilAnswered("bad.test", "/", "404");
    await untilAnswered("weak.test", "/", "404");
    await untilAnswered("good.test", "/", "200 web");
    for (const message of [
      `ingress/bad *it is not served: annotation ${ANNOTATION}configuration-snippet is not supported`,
      "ingress/weak *it is not served: nginx refuses it: .*key too small",
    ]) {
      await node.until(message, async () => new RegExp(message).test((await node.run("get events -A")).stdout));
    }
  });

  test("a rolling update of the pods behind it loses no request", async () => {
    const node = testNode();
    const web = ingress("web", "web.test", [["/", "Prefix", "web"]]);
    node.writeManifest("web.yaml", list(...server("web", 2), web));
    const { ask, untilAnswered } = await startNode(node);
    await untilAnswered("web.test", "/", "200 web");
    const before = new Set((await node.readyPods(3)).map(({ metadata }) => metadata.name!));
    const stop = load(() => ask("web.test"));
    node.writeManifest("web.yaml", list(...server("web", 2, "2"), web));
    await node.until("other pods", async () => {
      const pods = (await node.pods()).filter(({ metadata }) => metadata.name!.startsWith("web-"));
      return pods.length === 2 && pods.every(({ metadata }) => !before.has(metadata.name!));
    });
    const { failures, count } = await stop();
    expect(failures).toEqual([]);
    expect(count).toBeGreaterThan(200);
  });

  test("a port that another program has, and an image that is missing, are told", async () => {
    const [node, other] = [testNode(), testNode()];
    const held = Bun.serve({ port: node.kubeletPort, fetch: () => new Response("held") });
    const web = ingress("web", "web.test", [["/", "Prefix", "web"]]);
    for (const each of [node, other]) each.writeManifest("web.yaml", list(...server("web"), web));
    const { untilAnswered } = await startNode(node);
    const events = async (of: TestNode) => (await of.run("get events -A")).stdout;
    await node.until("the holder", async () =>
      (await events(node)).includes(`port TCP/${node.kubeletPort} of the machine is held by`),
    );
    expect(
      JSON.parse((await node.run("get ingress web -o json")).stdout).status?.loadBalancer?.ingress,
    ).toBeUndefined();
    await held.stop(true);
    await untilAnswered("web.test", "/", "200 web");
    await startNode(other, ["--ingress-image=localhost:1/none:1"]);
    await other.until("the missing image", async () =>
      (await events(other)).includes("docker pull localhost:1/none:1"),
    );
  });
});
