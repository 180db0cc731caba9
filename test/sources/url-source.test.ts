import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { gzipSync } from "node:zlib";
import { LOCAL_TEXT_FILES } from "../../src/base/files/whole-file.ts";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import { DEFAULT_KUBELET_OPTIONS, type KubeletOptions } from "../../src/config/option-table.ts";
import type { Objects } from "../../src/sources/source-set.ts";
import { UrlSource, type UrlSourceDeps } from "../../src/sources/url-source.ts";
import { cleanUps } from "../support/clean-ups.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { type CertificateFiles, TestCertificates } from "../support/test-certificates.ts";
import { httpServers, rawServers } from "../support/test-servers.ts";
import { until } from "../support/until.ts";
import { manifest, podsOf, readUrl, Watched } from "./source-harness.ts";

// Real files, programs and servers: on a busy machine each may take its time.
setDefaultTimeout(60_000);
const tempDir = tempDirs();
const atTestEnd = cleanUps();
const rawServer = rawServers();
const httpServer = httpServers();

const serve = (...given: Parameters<typeof httpServer>): string => {
  const { protocol, port } = httpServer(...given);
  return `${protocol}://127.0.0.1:${port}`;
};

/** A server that responds with exactly these bytes to every request, and closes the connection or not. */
const serveRaw = async (respond: (socket: Socket) => void): Promise<string> =>
  `http://127.0.0.1:${(await rawServer(respond)).port}`;

class WatchedUrl extends Watched {
  readonly source: UrlSource;

  constructor(url: string, given: Partial<KubeletOptions & Omit<UrlSourceDeps, "options">> = {}) {
    super();
    this.source = new UrlSource({
      url,
      options: { ...DEFAULT_KUBELET_OPTIONS, manifestUrlTimeoutMs: 5_000, httpCheckFrequencyMs: 10, ...given },
      read: readUrl,
      lastKnownGood: () => undefined,
      files: LOCAL_TEXT_FILES,
      proxyFor: () => undefined,
      clock: new SystemClock(),
      logger: this.logger,
      ...given,
    });
    atTestEnd(() => this.source.stop());
  }
}

const list = (...names: string[]) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "PodList",
    items: names.map((name) => ({ metadata: { name }, spec: { containers: [{ name: "main", image: "busybox:1" }] } })),
  });

describe("responses", () => {
  test.each([
    { what: "a Pod in YAML", body: manifest("web"), want: ["web=busybox:1"] },
    { what: "several documents", body: `${manifest("a")}---\n${manifest("b")}`, want: ["a=busybox:1", "b=busybox:1"] },
    { what: "a PodList in JSON", body: list("a", "b"), want: ["a=busybox:1", "b=busybox:1"] },
    { what: "an empty PodList", body: list(), want: [] },
  ])("$what", async ({ body, want }) => {
    const watched = new WatchedUrl(serve(() => new Response(body)));
    expect(podsOf(await watched.once())).toEqual([...want]);
  });

  test.each([
    { encoding: "gzip", pack: (body: Buffer) => gzipSync(body) },
    { encoding: "identity", pack: (body: Buffer) => body },
  ])("encoded by $encoding", async ({ encoding, pack }) => {
    const body = new Uint8Array(pack(Buffer.from(manifest("web"))));
    const watched = new WatchedUrl(serve(() => new Response(body, { headers: { "Content-Encoding": encoding } })));
    expect(podsOf(await watched.once())).toEqual(["web=busybox:1"]);
  });

  test("over a Unix socket, with a path", async () => {
    const socket = join(tempDir(), "s");
    serve((request) => new Response(new URL(request.url).pathname === "/pods" ? manifest("web") : "no"), {
      unix: socket,
    });
    expect(podsOf(await new WatchedUrl(`unix:${socket}:/pods`).once())).toEqual(["web=busybox:1"]);
    expect(podsOf(await new WatchedUrl(`unix://${socket}:/pods`).once())).toEqual(["web=busybox:1"]);
  });

  test("as the metadata server of a cloud gives it, by its header", async () => {
    const url = serve((request) =>
      request.headers.get("Metadata-Flavor") === "Google"
        ? new Response(manifest("web"))
        : new Response("Missing Metadata-Flavor:Google header.", { status: 403 }),
    );
    const attribute = `${url}/computeMetadata/v1/instance/attributes/google-container-manifest`;
    expect(
      podsOf(
        await new WatchedUrl(attribute, { manifestUrlHeaders: [{ name: "Metadata-Flavor", value: "Google" }] }).once(),
      ),
    ).toEqual(["web=busybox:1"]);
    await expect(new WatchedUrl(attribute).once()).rejects.toThrow("responded with 403 Forbidden");
  });
});

test.each([
  ["http://metadata.google.internal/x", "Google"],
  ["http://169.254.169.254/x", "Google"],
  ["http://metadata/x", "Google"],
  ["http://manifests.example/x", null],
])(
  "the metadata server of Google Compute Engine: %s is asked with the header Metadata-Flavor: %p",
  async (url, wanted) => {
    let found: string | null | undefined;
    const proxy = serve((request) => {
      found = request.headers.get("Metadata-Flavor");
      return new Response(manifest("web"));
    });
    await new WatchedUrl(url, { proxyFor: () => proxy }).once();
    expect(found).toBe(wanted);
  },
);

describe("what is not a response leaves the pods alone", () => {
  const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024));
  type Body = ConstructorParameters<typeof Response>[0];
  const says =
    (body: Body | (() => Body), status = 200, headers: Record<string, string> = {}) =>
    () =>
      serve(() => new Response(typeof body === "function" ? body() : body, { status, headers }));
  const encoded = (body: Body, encoding: string) => says(body, 200, { "Content-Encoding": encoding });
  const sends =
    (head: string, body = "") =>
    () =>
      serveRaw((socket) => socket.end(`${head}\r\n\r\n${body}`));
  const service = '{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}';
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked";
  const tooLarge = "10485760 bytes or more";
  const toFile = says(null, 302, { Location: "file:///etc/passwd" });
  const inCircle = () => serve((request) => Response.redirect(request.url, 302));
  test.each<[what: string, url: () => string | Promise<string>, why: string]>([
    ["500", says("oh", 500), "responded with 500"],
    ["204", says(null, 204), "responded with 204"],
    ["an empty body", says(""), "empty body"],
    ["a login page", says("<html>Please log in</html>"), "has errors"],
    ["a comment", says("# nothing\n"), "has errors"],
    ["another kind", says(service), "has errors"],
    ["a bomb", encoded(bomb, "gzip"), tooLarge],
    ["a body that is not encoded as its server says", encoded(manifest("web"), "gzip"), "not encoded by gzip"],
    ["an encoding that was not asked for", encoded("web", "compress"), 'the Content-Encoding "compress"'],
    ["an endless body", says(endless), tooLarge],
    ["a body cut short", sends("HTTP/1.1 200 OK\r\nContent-Length: 999", manifest("half")), "cut short"],
    ["a chunk cut short", sends(chunked, "10\r\napiVersion"), "cut short"],
    ["no HTTP", sends("SSH-2.0-OpenSSH_9"), "not HTTP"],
    ["no server", () => "http://127.0.0.1:1/", "refuses the connection"],
    ["no socket", () => "unix:/nowhere/s:/", "does not exist"],
    ["a redirect in a circle", inCircle, "more than 10 times"],
    ["a redirect to a file", toFile, "is redirected to a URL of file:"],
  ])(
    "%s",
    async (_what, url, why) => {
      const known: Objects = readUrl(Buffer.from(manifest("web")), "x");
      const address = await url();
      const watched = new WatchedUrl(address, {
        lastKnownGood: () => ({ texts: new Map([[address, known]]) }),
      }).start();
      await watched.wants("web=busybox:1");
      await watched.readsMore(2);
      expect(watched.source.status().message).toContain(why);
      expect(watched.pods).toEqual(["web=busybox:1"]);
      // Logged once, however often it was tried.
      expect(watched.logger.lines.filter((line) => line.includes(why)).length).toBeLessThanOrEqual(2);
    },
    20_000,
  );

  test("a server that stalls, before its head and in its body", async () => {
    for (const start of ["", "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\napiVersion: v1\n"]) {
      const url = await serveRaw((socket) => void socket.write(start));
      await expect(new WatchedUrl(url, { manifestUrlTimeoutMs: 100 }).once()).rejects.toThrow(
        "no complete response within 0.1 s",
      );
    }
  });

  function endless(): ReadableStream {
    const piece = new TextEncoder().encode("# and so on\n".repeat(5_000));
    return new ReadableStream({ pull: (controller) => controller.enqueue(piece) });
  }
});

describe("polling", () => {
  test("changes are taken, what stays the same is not read again", async () => {
    let body = manifest("web");
    let reads = 0;
    const url = serve(() => new Response(body));
    const watched = new WatchedUrl(url, {
      read: (bytes, name) => {
        reads++;
        return readUrl(bytes, name);
      },
    }).start();
    await watched.wants("web=busybox:1");
    await watched.readsMore(3);
    expect(reads).toBe(1);
    expect(watched.sets).toHaveLength(1);
    body = manifest("web", "busybox:2");
    await watched.wants("web=busybox:2");
    body = list();
    await watched.wants();
  });

  test("ETag and Last-Modified are sent back", async () => {
    const asked: (string | null)[][] = [];
    const modified = "Sat, 21 Nov 2026 05:00:00 GMT";
    const url = serve((request) => {
      asked.push([request.headers.get("if-none-match"), request.headers.get("if-modified-since")]);
      if (request.headers.get("if-none-match") === '"1"') return new Response(null, { status: 304 });
      return new Response(manifest("web"), { headers: { ETag: '"1"', "Last-Modified": modified } });
    });
    const watched = new WatchedUrl(url).start();
    await watched.wants("web=busybox:1");
    await watched.readsMore(2);
    expect(asked[0]).toEqual([null, null]);
    expect(asked.slice(1).every(([etag, since]) => etag === '"1"' && since === modified)).toBe(true);
    expect(watched.source.status()).toMatchObject({ state: "ok", pods: 1 });
  });

  test("errors keep the last set, the recovery is applied and logged", async () => {
    let respond: () => Response = () => new Response(manifest("web"));
    const url = serve(() => respond());
    const watched = new WatchedUrl(url).start();
    await watched.wants("web=busybox:1");
    respond = () => new Response("gone", { status: 503 });
    await until("the failure", () => watched.source.status().state === "failing");
    expect(watched.pods).toEqual(["web=busybox:1"]);
    respond = () => new Response(manifest("web", "busybox:2"));
    await watched.wants("web=busybox:2");
    expect(watched.logger.lines.filter((line) => line.startsWith("info"))).toEqual([
      `info Manifests: ${url} responds again`,
    ]);
  });

  test("a bad pod of a list keeps its last good text, with the reason; the others change", async () => {
    let body = `${manifest("a")}---\n${manifest("b")}`;
    const url = serve(() => new Response(body));
    const watched = new WatchedUrl(url).start();
    await watched.wants("a=busybox:1", "b=busybox:1");
    body = `${manifest("a", "busybox:2")}---\n${manifest("b", "5", "    imagePullPolicy: 7\n")}`;
    await watched.wants("a=busybox:2", "b=busybox:1");
    expect([...watched.sets.at(-1)!.stale.keys()]).toEqual(["default/b-node1"]);
    expect(watched.source.status().state).toBe("failing");
  });

  test("nothing is emitted before the first response, and tries come sooner than usual until then", async () => {
    const watched = new WatchedUrl("http://127.0.0.1:1/", { httpCheckFrequencyMs: 3_600_000 }).start();
    await until("a second try", () => watched.source.status().reads >= 2);
    expect(watched.sets).toEqual([]);
    expect(watched.source.status().state).toBe("failing");
  });
});

describe("redirects", () => {
  const manifestUrlHeaders = [{ name: "Authorization", value: "Bearer s3cret" }];

  test("headers are sent within the host, never to another one, not even back from there", async () => {
    const seen: [string, string | null][] = [];
    const note = (where: string, request: Request) => seen.push([where, request.headers.get("authorization")]);
    const home = serve((request) => {
      const { pathname } = new URL(request.url);
      note(`home${pathname}`, request);
      if (pathname === "/start") return Response.redirect(`${home}/second`, 307);
      if (pathname === "/second") return new Response(null, { status: 302, headers: { Location: `${away}/` } });
      return new Response(manifest("web"));
    });
    const away = serve((request) => {
      note("away", request);
      return Response.redirect(`${home}/last`, 302);
    });
    expect(podsOf(await new WatchedUrl(`${home}/start`, { manifestUrlHeaders }).once())).toEqual(["web=busybox:1"]);
    expect(seen).toEqual([
      ["home/start", "Bearer s3cret"],
      ["home/second", "Bearer s3cret"],
      ["away", null],
      ["home/last", null],
    ]);
  });

  test("credentials in the URL are sent as Basic and shown nowhere", async () => {
    const seen: (string | null)[] = [];
    const url = serve((request) => {
      seen.push(request.headers.get("authorization"));
      return new Response("no", { status: 401 });
    });
    const watched = new WatchedUrl(`${url.replace("//", "//me:p%40ss@")}/x?token=s3cret`).start();
    await watched.readsMore(1);
    expect(seen[0]).toBe(`Basic ${Buffer.from("me:p@ss").toString("base64")}`);
    const shown = JSON.stringify([watched.source.status(), watched.logger.lines, watched.source.name]);
    for (const secret of ["p%40ss", "p@ss", "s3cret"]) expect(shown).not.toContain(secret);
  });
});

test("a mistake that comes back after it was corrected is reported again", async () => {
  const bad = manifest("web").replace("image:", "imag:");
  let body = bad;
  const watched = new WatchedUrl(serve(() => new Response(body))).start();
  const reports = () => watched.logger.lines.filter((line) => line.includes("imag")).length;
  await watched.readsMore(1);
  const once = reports();
  expect(once).toBeGreaterThan(0);
  body = manifest("web");
  await watched.wants("web=busybox:1");
  expect(reports()).toBe(once);
  body = bad;
  await until("the mistake to be reported again", () => reports() === 2 * once);
  await watched.readsMore(1);
  expect(reports()).toBe(2 * once);
});

describe("https", () => {
  let authority: CertificateFiles;
  let server: CertificateFiles;
  let client: CertificateFiles;

  beforeAll(() => {
    const certificates = new TestCertificates(tempDir());
    authority = certificates.authority("Test CA");
    server = certificates.serverOf(authority);
    client = certificates.client("/CN=client", authority);
  });

  const identity = () => ({ cert: server.cert, key: server.key });

  test("an authority that is trusted by file, and one that is not", async () => {
    const url = serve(() => new Response(manifest("web")), { tls: identity() });
    expect(podsOf(await new WatchedUrl(url, { manifestUrlCaFile: authority.certFile }).once())).toEqual([
      "web=busybox:1",
    ]);
    await expect(new WatchedUrl(url).once()).rejects.toThrow("--manifest-url-ca-file");
    await expect(
      new WatchedUrl(url.replace("127.0.0.1", "localhost"), { manifestUrlCaFile: authority.certFile }).once(),
    ).rejects.toThrow("another name");
  });

  test("a missing file of authorities is named", async () => {
    await expect(
      new WatchedUrl("https://127.0.0.1:1/", { manifestUrlCaFile: "/nowhere/ca.pem" }).once(),
    ).rejects.toThrow('"/nowhere/ca.pem" cannot be read: ENOENT');
  });

  test("a client certificate is sent where it is requested", async () => {
    const listener = createTlsServer(
      { ...identity(), ca: authority.cert, requestCert: true, rejectUnauthorized: false },
      (socket) => {
        socket.on("error", () => {});
        const name = socket.authorized ? socket.getPeerCertificate().subject.CN : "unknown";
        const body = manifest(String(name));
        socket.once("data", () =>
          socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
        );
      },
    );
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    atTestEnd(() => listener.close());
    const url = `https://127.0.0.1:${(listener.address() as { port: number }).port}/`;
    const files = {
      manifestUrlCaFile: authority.certFile,
      manifestUrlClientCertFile: client.certFile,
      manifestUrlClientKeyFile: client.keyFile,
    };
    expect(podsOf(await new WatchedUrl(url, files).once())).toEqual(["client=busybox:1"]);
    expect(podsOf(await new WatchedUrl(url, { manifestUrlCaFile: authority.certFile }).once())).toEqual([
      "unknown=busybox:1",
    ]);
  });

  test("a redirect to plain http is refused", async () => {
    const plain = serve(() => new Response(manifest("web")));
    const url = serve(() => Response.redirect(plain, 302), { tls: identity() });
    await expect(new WatchedUrl(url, { manifestUrlCaFile: authority.certFile }).once()).rejects.toThrow(
      "from https to plain http",
    );
  });
});

test("a proxy is used where the environment names one", async () => {
  const asked: string[] = [];
  const proxy = serve((request) => {
    asked.push(request.url);
    return new Response(manifest("web"));
  });
  const watched = new WatchedUrl("http://manifests.example/pods", { proxyFor: () => proxy });
  expect(podsOf(await watched.once())).toEqual(["web=busybox:1"]);
  expect(asked).toHaveLength(1);
});

test("what is no URL of manifests is refused", async () => {
  await expect(new WatchedUrl("ftp://x/").once()).rejects.toThrow("no http:, https: or unix: URL");
});
