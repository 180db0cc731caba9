import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import { shell, sleeper } from "../support/manifests.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { type CertificateFiles, TestCertificates } from "../support/test-certificates.ts";
import type { TestNode } from "../support/test-node.ts";
import { until } from "../support/until.ts";

const temp = tempDirs();
const certificates = new TestCertificates(temp());
const authority = certificates.authority("ours");
const alice = certificates.client("/O=ops/CN=alice", authority);
const stranger = certificates.client("/O=system:masters/CN=alice", certificates.authority("theirs"));
const serving = certificates.server("serving");
const TRUSTING = `--client-ca-file=${authority.certFile}`;
const portOf = (node: TestNode) => `--port=${node.kubeletPort}`;

/** `npm test` installs them where it can. */
const hasClients = Bun.which("curl") !== null && Bun.which("openssl") !== null;
const describeWithClients: typeof describeWithEngine = hasClients ? describeWithEngine : describe.skip;

/** Runs curl, whose TLS and HTTP are not ours. Status 0: no response. */
async function curl(port: number, path: string, args: readonly string[] = [], host = "127.0.0.1") {
  const cmd = ["curl", "-sS", "--max-time", "30", "-w", "\n%{http_code}", ...args, `https://${host}:${port}${path}`];
  const child = Bun.spawn({ cmd, stdout: "pipe", stderr: "pipe" });
  const [out, problem] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const at = out.lastIndexOf("\n");
  const status = Number(out.slice(at + 1));
  return { status, text: status === 0 ? problem : out.slice(0, at) };
}

const as = ({ certFile, keyFile }: CertificateFiles) => ["-k", "--cert", certFile, "--key", keyFile];
const unknown = ["-k"];

/** A kubelet without pods that serves its authenticated port with these flags. */
async function serve(...flags: string[]): Promise<{ node: TestNode; kubelet: KubeletProcess; port: number }> {
  const node = testNode();
  const kubelet = await node.start(["--v=2", portOf(node), ...flags]);
  await node.untilLogged(kubelet, "Serving the authenticated port");
  return { node, kubelet, port: node.kubeletPort };
}

describeWithClients("the authenticated port: flags", () => {
  test("--client-ca-file, --cert-dir: a client with a certificate has access; our own serving certificate is kept", async () => {
    const { node, kubelet, port } = await serve(TRUSTING);
    const pki = join(node.rootDir, "pki");
    expect((await curl(port, "/pods", as(alice))).status).toBe(200);
    expect((await curl(port, "/logs/", as(alice))).text).toStartWith("<pre>\n");
    expect((await curl(port, "/logs/", unknown)).status).toBe(401);
    expect(await curl(port, "/pods", as(stranger))).toEqual({ status: 401, text: "Unauthorized" });
    expect(await curl(port, "/healthz", unknown)).toEqual({ status: 401, text: "Unauthorized" });
    expect((await curl(port, "/nothing", unknown)).status).toBe(404);
    // Clients trust the certificate that it wrote, also under the name of the node.
    const trusting = ["--cacert", join(pki, "kubelet.crt"), "--cert", alice.certFile, "--key", alice.keyFile];
    expect((await curl(port, "/healthz", trusting)).text).toBe("ok");
    const resolve = ["--resolve", `${node.name}:${port}:127.0.0.1`];
    expect((await curl(port, "/healthz", [...trusting, ...resolve], node.name)).text).toBe("ok");
    expect(readdirSync(pki).sort()).toEqual(["kubelet.crt", "kubelet.key"]);
    expect(statSync(join(pki, "kubelet.key")).mode & 0o777).toBe(0o600);
    const before = readFileSync(join(pki, "kubelet.crt"), "utf8");
    await kubelet.stop();
    await node.start([TRUSTING, portOf(node)]);
    expect(readFileSync(join(pki, "kubelet.crt"), "utf8")).toBe(before);
  });

  test("--anonymous-auth, --enable-debugging-handlers=false, --tls-min-version, --tls-cipher-suites, --cert-dir, --address", async () => {
    const certDir = temp();
    const { port } = await serve(
      "--anonymous-auth",
      "--enable-debugging-handlers=false",
      "--tls-min-version=VersionTLS12",
      "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
      `--cert-dir=${certDir}`,
      "--address=127.0.0.1",
    );
    expect((await curl(port, "/pods", unknown)).status).toBe(200);
    expect((await curl(port, "/containerLogs/default/x/y", unknown)).text).toBe("Debug endpoints are disabled.\n");
    expect((await curl(port, "/configz", unknown)).status).toBe(404);
    expect(readdirSync(certDir).sort()).toEqual(["kubelet.crt", "kubelet.key"]);
    const old = [...unknown, "--tls-max", "1.2"];
    expect((await curl(port, "/healthz", [...old, "--ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"])).status).toBe(200);
    expect((await curl(port, "/healthz", [...old, "--ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"])).status).toBe(0);
    const elsewhere = await curl(port, "/healthz", unknown, "127.0.0.2");
    expect(elsewhere.status).toBe(0);
  });

  test("--tls-min-version=VersionTLS13, --authorization-mode=AlwaysDeny", async () => {
    const { port } = await serve(TRUSTING, "--tls-min-version=VersionTLS13", "--authorization-mode=AlwaysDeny");
    expect(await curl(port, "/stats/summary", as(alice))).toEqual({
      status: 403,
      text: "Forbidden (user=alice, verb=get, resource=nodes, subresource=stats)",
    });
    expect((await curl(port, "/stats/summary", [...as(alice), "--tls-max", "1.2"])).status).toBe(0);
    // Without --address the port is open on every address.
    expect((await curl(port, "/healthz", unknown, "127.0.0.2")).status).toBe(401);
  });

  test("--tls-cert-file, --tls-private-key-file: bad files stop no pod, good ones are used as soon as they are there", async () => {
    const directory = temp();
    const [certFile, keyFile] = [join(directory, "tls.crt"), join(directory, "tls.key")];
    writeFileSync(certFile, serving.cert);
    writeFileSync(keyFile, alice.key);
    const config = join(directory, "kubelet.yaml");
    const kind = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n";
    writeFileSync(config, `${kind}enableSystemLogHandler: false\n`);
    const node = testNode();
    node.writeManifest("p.json", sleeper("p"));
    const files = [`--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`];
    const kubelet = await node.start([TRUSTING, portOf(node), `--config=${config}`, ...files]);
    await node.untilLogged(kubelet, /Cannot serve the authenticated port.*the key does not belong to the certificate/);
    await node.runningContainer("app");
    writeFileSync(keyFile, serving.key);
    await node.untilLogged(kubelet, "Serving the authenticated port");
    const trusting = ["--cacert", serving.certFile, "--cert", alice.certFile, "--key", alice.keyFile];
    expect((await curl(node.kubeletPort, "/healthz", trusting)).text).toBe("ok");
    // enableSystemLogHandler is off.
    expect((await curl(node.kubeletPort, "/logs/", trusting)).status).toBe(404);
    expect(readdirSync(node.rootDir)).not.toContain("pki");
  });

  test("--port: a port that is named is open, and refuses clients without credentials", async () => {
    const { port } = await serve();
    expect((await curl(port, "/healthz", unknown)).status).toBe(401);
  });
});

const SCRIPT = `trap 'exit 0' TERM
echo "started $(date +%s)"
for i in 1 2 3; do echo line $i; done; echo wrong >&2
mkdir -p /www; echo "from the pod" > /www/index.html; httpd -p 8080 -h /www
mkdir -p /own; echo "from its loopback" > /own/index.html; httpd -p 127.0.0.1:8081 -h /own
while :; do sleep 1000 & wait; done`;

describeWithClients("the authenticated port: access to containers", () => {
  let node: TestNode;
  let kubelet: KubeletProcess;
  let port: number;
  const path = (root: string, container: string, query = "") =>
    `/${root}/default/web-${node.name}/${container}${query && `?${query}`}`;

  beforeAll(async () => {
    node = testNode();
    port = node.kubeletPort;
    const env = [{ name: "PLAIN", value: "shown" }];
    const web = sleeper("web", { ...shell(SCRIPT), env });
    node.writeManifest("web.json", web);
    kubelet = await node.start([TRUSTING, portOf(node)]);
    await node.untilPhase("web", "Running");
  });

  /** One WebSocket: the data of each channel until it was closed. */
  function session(target: string, protocol: string, onOpen: (socket: WebSocket) => void = () => {}) {
    const tls = { cert: alice.cert, key: alice.key, rejectUnauthorized: false };
    const socket = new WebSocket(`wss://127.0.0.1:${port}${target}`, { protocols: [protocol], tls } as never);
    socket.binaryType = "arraybuffer";
    const channels = new Map<number, string>();
    const closed = Promise.withResolvers<void>();
    socket.onopen = () => onOpen(socket);
    socket.onclose = () => closed.resolve();
    socket.onmessage = ({ data }) => {
      const [channel = -1, ...rest] = new Uint8Array(data as ArrayBuffer);
      channels.set(channel, (channels.get(channel) ?? "") + Buffer.from(rest).toString());
    };
    const of = (channel: number) => channels.get(channel) ?? "";
    return { socket, of, closed: closed.promise };
  }

  const write = (socket: WebSocket, channel: number, text: string | Buffer) =>
    socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(text)]));

  describe("curl", () => {
    test("/containerLogs: the whole log, its tail, a number of bytes, one stream, timestamps, since a time", async () => {
      const logs = async (query: string) => (await curl(port, path("containerLogs", "app", query), as(alice))).text;
      const whole = await node.until("the log", async () => {
        const text = await logs("");
        return text.includes("line 3") && text.includes("wrong") && text;
      });
      const lines = ["line 1", "line 2", "line 3", expect.stringContaining("started"), "wrong"];
      expect(whole.split("\n").toSorted().slice(-5)).toEqual(lines);
      expect(await logs("stream=Stderr")).toBe("wrong\n");
      expect(await logs("stream=Stdout&limitBytes=4")).toBe("star");
      expect((await logs("tailLines=2")).split("\n")).toHaveLength(3);
      expect(await logs("tailLines=0")).toBe("");
      expect(await logs("stream=Stderr&timestamps=true")).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z wrong\n$/);
      expect(await logs("sinceSeconds=100000")).toBe(whole);
      expect(await logs("sinceTime=2100-01-01T00:00:00Z")).toBe("");
      expect((await curl(port, path("containerLogs", "app", "previous=true"), as(alice))).status).toBe(400);
      expect((await curl(port, path("containerLogs", "app"), unknown)).status).toBe(401);
    });
  });

  describe("WebSocket", () => {
    test("exec with a terminal of the size that was asked for", async () => {
      const target = path("exec", "app", "command=sh&input=1&output=1&tty=1");
      const { socket, of, closed } = session(target, "v4.channel.k8s.io");
      await node.until("the prompt", () => of(1).includes("#"));
      write(socket, 4, '{"Width":101,"Height":33}');
      await node.until("the size", () => {
        write(socket, 0, "stty size\n");
        return of(1).includes("33 101");
      });
      write(socket, 0, "exit\n");
      await closed;
      expect(JSON.parse(of(3))).toMatchObject({ status: "Success" });
    });

    test.each([
      { where: "on all its addresses", targetPort: 8080, want: "from the pod" },
      { where: "on its loopback", targetPort: 8081, want: "from its loopback" },
    ])("port-forward to what the pod serves $where", async ({ targetPort, want }) => {
      const target = `/portForward/default/web-${node.name}?port=${targetPort}`;
      const { of, closed } = session(target, "v4.channel.k8s.io", (socket) =>
        write(socket, 0, "GET /index.html HTTP/1.0\r\n\r\n"),
      );
      await closed;
      expect(of(0)).toContain(want);
    });

    test("port-forward to a port without a server, and to one that only the machine serves", async () => {
      const server = createServer((socket) => void socket.end("the machine"));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port: machines } = server.address() as { port: number };
      const { of, closed } = session(`/portForward/default/web-${node.name}?port=${machines}`, "v4.channel.k8s.io");
      await closed;
      server.close();
      expect(of(1)).toContain(
        `error forwarding port ${machines} to pod default/web-${node.name}: connect ECONNREFUSED`,
      );
      expect(of(0)).not.toContain("the machine");
    });

    test("a command is killed when its client leaves, when the kubelet stops and after --streaming-connection-idle-timeout", async () => {
      const running = (seconds: number) =>
        readdirSync("/proc").some((pid) => {
          try {
            return readFileSync(`/proc/${pid}/cmdline`, "utf8") === `sleep\0${seconds}\0`;
          } catch {
            return false; // no process, or one that has just ended
          }
        });
      /** A session that ends before its command is seen, as on a loaded machine, is opened again. */
      const start = (seconds: number) => {
        const open = () =>
          session(path("exec", "app", `command=sleep&command=${seconds}&output=1`), "v5.channel.k8s.io");
        let opened = open();
        return until(`sleep ${seconds}`, () => {
          if (running(seconds)) return opened;
          if (opened.socket.readyState === WebSocket.CLOSED) opened = open();
          return undefined;
        });
      };
      const left = await start(7_654_321);
      left.socket.close();
      await until("its end", () => !running(7_654_321));
      await start(7_654_322);
      await kubelet.stop();
      expect(running(7_654_322)).toBe(false);
      expect(kubelet.log).toContain("user=alice");
      expect(kubelet.log).not.toContain("7654321");
      kubelet = await node.start([TRUSTING, portOf(node), "--streaming-connection-idle-timeout=5s"]);
      await node.untilPhase("web", "Running");
      const idle = await start(7_654_323);
      await idle.closed;
      await until("its end", () => !running(7_654_323));
    });
  });
});
