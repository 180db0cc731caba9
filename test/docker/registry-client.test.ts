import { describe, expect, test } from "bun:test";
import { LOCAL_TEXT_FILES } from "../../src/base/files/whole-file.ts";
import type { RegistryAuth } from "../../src/base/model/registry-auth.ts";
import { parseImageReference } from "../../src/base/text/image-reference.ts";
import { isInsecureRegistry, parseChallenge, RegistryClient, RegistryError } from "../../src/docker/registry-client.ts";
import { freePorts, httpServers } from "../support/test-servers.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;
const httpServer = httpServers();
const signal = AbortSignal.timeout(10_000);

const serve = (answer: (request: Request, url: URL) => Response | Promise<Response>) =>
  `127.0.0.1:${httpServer((request) => answer(request, new URL(request.url))).port}`;

const client = () =>
  new RegistryClient({
    insecureRegistries: async () => ({ hosts: [], cidrs: [] }),
    proxyFor: () => undefined,
    files: LOCAL_TEXT_FILES,
  });

const digestOf = (address: string, auths: RegistryAuth[] = []) =>
  client().digest(parseImageReference(`${address}/team/app:1`), "1", auths, signal);

describe("digests", () => {
  test("HEAD names it; index types are accepted", async () => {
    const seen: string[] = [];
    const address = serve((request, { pathname }) => {
      seen.push(`${request.method} ${pathname}`);
      expect(request.headers.get("accept")).toContain("application/vnd.oci.image.index.v1+json");
      return new Response(null, { headers: { "docker-content-digest": DIGEST } });
    });
    expect(await digestOf(address)).toBe(DIGEST);
    expect(seen).toEqual(["HEAD /v2/team/app/manifests/1"]);
  });

  test("without the header it is computed from the manifest", async () => {
    const text = '{"schemaVersion":2}';
    const address = serve(() => new Response(text));
    const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    expect(await digestOf(address)).toBe(`sha256:${digest}`);
  });

  test("token authentication: the token is asked for with the credentials, and the registry gets the token only", async () => {
    const basic = `Basic ${btoa("user:pass")}`;
    const address: string = serve((request, url) => {
      const authorization = request.headers.get("authorization");
      if (url.pathname === "/token") {
        expect(authorization).toBe(basic);
        expect(url.searchParams.get("service")).toBe("reg");
        expect(url.searchParams.get("scope")).toBe("repository:team/app:pull");
        return Response.json({ token: "t0ken" });
      }
      if (authorization !== "Bearer t0ken") {
        expect(authorization).toBeNull();
        const challenge = `Bearer realm="http://${address}/token",service="reg",scope="repository:team/app:pull"`;
        return new Response("", { status: 401, headers: { "www-authenticate": challenge } });
      }
      return new Response(null, { headers: { "docker-content-digest": DIGEST } });
    });
    expect(await digestOf(address, [{ username: "user", password: "pass" }])).toBe(DIGEST);
  });

  test("every credential is tried; a refusal names no password", async () => {
    const address = serve((request) =>
      request.headers.get("authorization") === `Basic ${btoa("user:right-one")}`
        ? new Response(null, { headers: { "docker-content-digest": DIGEST } })
        : new Response("", { status: 401, headers: { "www-authenticate": 'Basic realm="r"' } }),
    );
    const wrong = { username: "user", password: "wrong-one" };
    expect(await digestOf(address, [wrong, { username: "user", password: "right-one" }])).toBe(DIGEST);
    const error = await digestOf(address, [wrong]).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RegistryError);
    expect((error as Error).message).toContain("credentials are missing or wrong");
    expect((error as Error).message).not.toContain("wrong-one");
  });

  test("a redirect to another host gets no credentials", async () => {
    const other = serve((request) => {
      expect(request.headers.get("authorization")).toBeNull();
      return new Response(null, { headers: { "docker-content-digest": DIGEST } });
    });
    const address = serve((request) =>
      request.headers.has("authorization")
        ? new Response(null, { status: 307, headers: { location: `http://${other}/elsewhere` } })
        : new Response("", { status: 401, headers: { "www-authenticate": 'Basic realm="r"' } }),
    );
    expect(await digestOf(address, [{ username: "user", password: "pass" }])).toBe(DIGEST);
  });

  test.each([
    { leads: "a redirect", status: 307, header: "location", value: "file:///etc/hostname" },
    {
      leads: "the realm of a challenge",
      status: 401,
      header: "www-authenticate",
      value: 'Bearer realm="file:///etc/hostname"',
    },
    { leads: "a redirect", status: 307, header: "location", value: "data:text/plain,x" },
  ])("$leads to $value is refused", async ({ status, header, value }) => {
    const address = serve(() => new Response("", { status, headers: { [header]: value } }));
    expect(await digestOf(address).catch((error: Error) => error.message)).toContain(
      "only http: and https: are fetched",
    );
  });

  test("an endless answer is cut off", async () => {
    const address = serve(
      (request) =>
        new Response(
          request.method === "HEAD"
            ? null
            : new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) }),
        ),
    );
    expect(await digestOf(address).catch((error: Error) => error.message)).toContain("more than");
  });

  test("an answer that is compressed unasked is not inflated", async () => {
    const bomb = Bun.gzipSync(new Uint8Array(20_000_000));
    const address = serve(({ method }) =>
      method === "HEAD" ? new Response(null) : new Response(bomb, { headers: { "Content-Encoding": "gzip" } }),
    );
    expect(await digestOf(address).catch((error: Error) => error.message)).toContain("compressed");
  });

  test("nothing listens there", async () => {
    const address = `127.0.0.1:${freePorts(1)[0]}`;
    expect(await digestOf(address).catch((error: Error) => error.message)).toContain(`${address} cannot be reached`);
  });
});

test("tags of all pages; what is not a tag is left out", async () => {
  const address = serve((_, { pathname, searchParams }) => {
    expect(pathname).toBe("/v2/team/app/tags/list");
    return searchParams.get("last") === "1.1"
      ? Response.json({ tags: ["1.2", "../../x", 7] })
      : Response.json(
          { tags: ["1.0", "1.1"] },
          { headers: { link: '</v2/team/app/tags/list?last=1.1&n=2>; rel="next"' } },
        );
  });
  expect(await client().tags(parseImageReference(`${address}/team/app:1`), [], signal)).toEqual(["1.0", "1.1", "1.2"]);
});

test("a list of tags without end stops at the limit; a next page that is not an address ends it", async () => {
  const tags = Array.from({ length: 60_000 }, (_, index) => `v${index}`);
  const listed = (link: string) => {
    const address = serve(() => Response.json({ tags }, { headers: { link } }));
    return client().tags(parseImageReference(`${address}/team/app:1`), [], signal);
  };
  const endless = await listed('</v2/team/app/tags/list?n=1>; rel="next"').catch((error: Error) => error);
  expect(endless).toBeInstanceOf(RegistryError);
  expect((endless as Error).message).toContain("more than 100000 tags");
  for (const link of ['<http://[>; rel="next"', '<https://registry//other.example/x>; rel="next"']) {
    expect(await listed(link)).toHaveLength(60_000);
  }
});

test.each([
  [
    'Bearer realm="https://a/t",service="s",scope="x:y:pull,push"',
    { scheme: "bearer", realm: "https://a/t", service: "s", scope: "x:y:pull,push" },
  ],
  ["Basic realm=r", { scheme: "basic", realm: "r", service: "", scope: "" }],
  ["", undefined],
])("challenge %p", (header, want) => {
  expect(parseChallenge(header)).toEqual(want);
});

test.each([
  ["localhost:5000", true],
  ["127.0.0.1:5000", true],
  ["[::1]:5000", true],
  ["[::ffff:127.0.0.1]:5000", true],
  ["10.1.2.3:5000", true],
  ["10.2.2.3:5000", false],
  ["registry.lan:5000", true],
  ["docker.io", false],
])("%s without TLS: %p", (domain, want) => {
  const trusted = { hosts: ["registry.lan:5000"], cidrs: ["10.1.0.0/16"] };
  expect(isInsecureRegistry(domain, trusted)).toBe(want);
});
