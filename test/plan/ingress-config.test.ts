import { expect, test } from "bun:test";
import { createHash, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Secret } from "../../src/base/api/config-objects.ts";
import type { Ingress, IngressAnnotation, IngressClass } from "../../src/base/api/ingress.ts";
import type { Pod } from "../../src/base/api/pod.ts";
import type { Service } from "../../src/base/api/service.ts";
import {
  computeIngressConfig,
  findRefused,
  type IngressObjects,
  isServedHere,
  withDefaultClass,
} from "../../src/plan/ingress-config.ts";
import { ServicePods } from "../../src/plan/service-endpoints.ts";
import { aPod } from "../support/builders.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { TestCertificates } from "../support/test-certificates.ts";

const { cert: CERTIFICATE, key: KEY } = new TestCertificates(tempDirs()()).serverNamed("a.test");

const pod = (app: string, ip: string): Pod => ({
  ...aPod({}, { name: app, namespace: "default", labels: { app } }),
  status: { phase: "Running", podIPs: [{ ip }], conditions: [{ type: "Ready", status: "True" }] } as Pod["status"] &
    object,
});

const service = (name: string, spec: object = {}) =>
  ({
    metadata: { name, namespace: "default" },
    spec: { selector: { app: name }, ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }], ...spec },
  }) as unknown as Service;

const secret = (name: string, data: Record<string, string>) =>
  [
    `default/${name}`,
    {
      metadata: { name, namespace: "default" },
      data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, btoa(value)])),
    } as unknown as Secret,
  ] as const;

const backend = (name: string, port: object = { number: 80 }) => ({ service: { name, port } });

type Path = readonly [path: string, pathType: string, service: string];

/** @param hosts paths by host */
const ingress = (
  name: string,
  hosts: Record<string, readonly Path[]>,
  annotations: Record<string, string> = {},
  spec: object = {},
  metadata: object = {},
) =>
  ({
    metadata: {
      name,
      namespace: "default",
      annotations: Object.fromEntries(
        Object.entries(annotations).map(([key, value]) => [`nginx.ingress.kubernetes.io/${key}`, value]),
      ),
      ...metadata,
    },
    spec: {
      rules: Object.entries(hosts).map(([host, paths]) => ({
        ...(host && { host }),
        http: { paths: paths.map(([path, pathType, to]) => ({ path, pathType, backend: backend(to) })) },
      })),
      ...spec,
    },
  }) as unknown as Ingress;

/** An Ingress with one path that leads to the Service web. */
const web = (annotations: Record<string, string> = {}, spec: object = {}, metadata: object = {}) =>
  ingress("a", { "a.test": [["/", "Prefix", "web"]] }, annotations, spec, metadata);

const tls = (secretName: string, ...hosts: string[]) => ({ tls: [{ hosts, secretName }] });

const compute = (ingresses: Ingress[], others: Partial<IngressObjects> = {}) =>
  computeIngressConfig({
    ingresses,
    services: ["web", "api", "old"].map((name) => service(name)),
    secrets: new Map([
      secret("tls", { "tls.crt": CERTIFICATE, "tls.key": KEY }),
      secret("users", { auth: "joe:$apr1$x$y\n" }),
    ]),
    pods: new ServicePods([pod("web", "10.0.0.1"), pod("web", "10.0.0.2"), pod("api", "10.0.0.3")]),
    ports: { http: 80, https: 443 },
    ...others,
  });

/** `server name: location -> what it does`, without the server of the health check. */
function routesOf(text: string): string[] {
  let name = "";
  let location = "";
  return text.split("\n").flatMap((line) => {
    name = /server_name (.*);/.exec(line)?.[1]?.replaceAll('"', "") ?? name;
    location = /location (.*) \{/.exec(line)?.[1]?.replaceAll('"', "") ?? location;
    const action = /(?:\w+_pass \w+:\/\/default\.(\w+)\.|return )([^;]*);/.exec(line);
    if (!action || name.startsWith("health.") || line.includes("if (")) return [];
    return [`${name}: ${location} -> ${action[1] ?? action[2]}`];
  });
}

const UNKNOWN = "_: / -> 404";

const ROUTES: [string, Ingress[], string[]][] = [
  ["no Ingress", [], [UNKNOWN]],
  [
    "a prefix is one of path elements, with or without a slash at its end",
    [ingress("a", { "a.test": [["/foo/", "Prefix", "web"]] })],
    [UNKNOWN, "a.test: = /foo -> web", "a.test: /foo/ -> web", "a.test: / -> 404"],
  ],
  [
    "the longest path first, Exact before Prefix",
    [
      ingress("a", {
        "a.test": [
          ["/", "Prefix", "web"],
          ["/foo", "Prefix", "web"],
          ["/foo", "Exact", "api"],
          ["/foo/bar", "ImplementationSpecific", "api"],
        ],
      }),
    ],
    [
      UNKNOWN,
      "a.test: = /foo/bar -> api",
      "a.test: /foo/bar/ -> api",
      "a.test: /foo/ -> web",
      "a.test: = /foo -> api",
      "a.test: / -> web",
    ],
  ],
  [
    "a wildcard is one label, behind full names; hosts without a name come first",
    [
      ingress("a", {
        "*.b.test": [["/", "Prefix", "api"]],
        "x.b.test": [["/", "Prefix", "web"]],
        "": [["/", "Prefix", "web"]],
      }),
    ],
    ["_: / -> web", "x.b.test: / -> web", "~^[^.]+\\\\.b\\\\.test$: / -> api"],
  ],
  [
    "Ingresses of one host are merged; a default backend has what they do not name",
    [
      ingress("a", { "a.test": [["/a", "Exact", "web"]] }),
      ingress("b", { "a.test": [["/b", "Exact", "api"]] }, {}, { defaultBackend: backend("api", { name: "http" }) }),
      ingress("c", {}, {}, { defaultBackend: backend("web") }),
    ],
    ["_: / -> web", "a.test: = /a -> web", "a.test: = /b -> api", "a.test: / -> api"],
  ],
  [
    "of two with one path the older one has it",
    [
      web({}, {}, { creationTimestamp: "2026-01-02T00:00:00Z" }),
      ingress("b", { "a.test": [["/", "Prefix", "api"]] }, {}, {}, { creationTimestamp: "2026-01-01T00:00:00Z" }),
    ],
    [UNKNOWN, "a.test: / -> api"],
  ],
  [
    "503 without a pod, a Service or a port of it",
    [
      ingress("a", {
        "a.test": [
          ["/old", "Exact", "old"],
          ["/none", "Exact", "none"],
        ],
      }),
      ingress("b", {}, {}, { defaultBackend: backend("web", { number: 81 }) }),
    ],
    ["_: / -> 503", "a.test: = /none -> 503", "a.test: = /old -> 503", "a.test: / -> 404"],
  ],
  [
    "one expression makes all paths of its host expressions, the longest first",
    [
      ingress("a", { "a.test": [["/api(/|$)(.*)", "ImplementationSpecific", "api"]] }, { "rewrite-target": "/$2" }),
      ingress("b", {
        "a.test": [
          ["/", "Prefix", "web"],
          ["/api/v1.0/docs", "Prefix", "web"],
          ["/x", "Exact", "web"],
        ],
      }),
    ],
    [
      UNKNOWN,
      "a.test: ~ ^/api/v1\\\\.0/docs(?:/|$) -> web",
      "a.test: ~* ^/api(/|$)(.*) -> api",
      "a.test: = /x -> web",
      "a.test: / -> web",
    ],
  ],
  [
    "other classes are not ours",
    [
      web({}, { ingressClassName: "nginx" }),
      ingress("b", { "b.test": [["/", "Prefix", "web"]] }, {}, { ingressClassName: "ours" }),
      ingress("c", { "c.test": [["/", "Prefix", "web"]] }, {}, { ingressClassName: "traefik" }),
    ],
    [UNKNOWN, "a.test: / -> web", "b.test: / -> web"],
  ],
];

test.each([
  ["there is no default class", {}, undefined],
  ["the default class is another server's", { traefik: "2021-01-01T00:00:00Z" }, "traefik"],
  ["the newest of two defaults is ours", { traefik: "2021-01-01T00:00:00Z", ours: "2022-01-01T00:00:00Z" }, "ours"],
  ["the newest of two defaults is not", { traefik: "2023-01-01T00:00:00Z", ours: "2022-01-01T00:00:00Z" }, "traefik"],
])("an Ingress without a class where %s", (_, defaults: Record<string, string>, want) => {
  const annotations = { "ingressclass.kubernetes.io/is-default-class": "true" };
  const classes = Object.entries(defaults).map(([name, creationTimestamp]) => ({
    metadata: { name, creationTimestamp, annotations },
    spec: { controller: name === "ours" ? "k8s.io/ingress-nginx" : "traefik.io/ingress-controller" },
  })) as unknown as IngressClass[];
  expect(isServedHere(web(), classes)).toBe(want !== "traefik");
  expect(isServedHere(web({}, { ingressClassName: "nginx" }), classes)).toBe(true);
  const written = (it: Ingress) => withDefaultClass(it, classes).spec.ingressClassName;
  expect(written(web())).toBe(want);
  expect(written(web({}, { ingressClassName: "nginx" }))).toBe("nginx");
  expect(written(web({}, {}, { annotations: { "kubernetes.io/ingress.class": "nginx" } }))).toBeUndefined();
});

test.each(ROUTES)("%s", (_, ingresses, want) => {
  const classes = [
    { metadata: { name: "ours" }, spec: { controller: "k8s.io/ingress-nginx" } },
    { metadata: { name: "traefik" }, spec: { controller: "traefik.io/ingress-controller" } },
  ] as unknown as IngressClass[];
  const ours = ingresses.filter((it) => isServedHere(it, classes));
  expect(routesOf(compute(ours).text)).toEqual(want);
});

test("requests go to a pod by IPv4, and to one that has none by IPv6", () => {
  const [both, six] = [pod("web", "10.0.0.1"), pod("web", "fd00::2")];
  both.status!.podIPs!.push({ ip: "fd00::1" });
  const { text } = compute([web()], { pods: new ServicePods([both, six]) });
  expect([...text.matchAll(/server (\S+) max_fails=0;/g)].map(([, server]) => server)).toEqual([
    "10.0.0.1:8080",
    "[fd00::2]:8080",
  ]);
});

const PROBLEMS: [string, Ingress, string][] = [
  ["a Service that is missing", ingress("a", { "a.test": [["/", "Prefix", "none"]] }), 'no Service "default/none"'],
  [
    "a port that is missing",
    ingress("a", {}, {}, { defaultBackend: backend("web", { name: "x" }) }),
    'Service "default/web" has no port x',
  ],
  ["no Secret", web({}, tls("none", "a.test")), 'there is no Secret "default/none": its hosts are not served by HTTPS'],
  ["a Secret without one", web({}, tls("users", "a.test")), 'Secret "default/users" has no keys tls.crt and tls.key'],
  [
    "a Secret of passwords of another namespace",
    web({ "auth-type": "basic", "auth-secret": "shop/users" }),
    'there is no Secret "shop/users" in its namespace: requests are answered 503',
  ],
  ["basic auth without a Secret", web({ "auth-type": "basic" }), "needs the annotation auth-secret"],
  ["a host", ingress("a", { "a_b.test": [["/", "Prefix", "web"]] }), 'host "a_b.test" is not a DNS name'],
  ["an expression", ingress("a", { "a.test": [["/(", "Prefix", "web"]] }, { "use-regex": "true" }), "not a regular"],
];

test.each(PROBLEMS)("is reported: %s", (_, given, want) => {
  const [problem] = compute([given]).problems.get("default/a")!;
  expect(problem!.message).toContain(want);
});

test("the younger one of two with one path is told, and keeps its other paths", () => {
  const older = ingress("a", { "a.test": [["/x", "Prefix", "web"]] });
  const younger = ingress("b", {
    "a.test": [
      ["/x/", "Prefix", "api"],
      ["/y", "Exact", "api"],
    ],
  });
  const { problems, text, served } = compute([younger, older]);
  expect([...problems]).toEqual([
    [
      "default/b",
      [
        {
          reason: "RouteConflict",
          message: 'path "/x/" of host "a.test" is that of Ingress "default/a", which comes first',
        },
      ],
    ],
  ]);
  expect(routesOf(text)).toContain("a.test: = /y -> api");
  expect([...served]).toEqual(["default/a", "default/b"]);
});

const one = (annotations: Record<string, string>, path = "/", spec: object = {}) =>
  compute([ingress("a", { "a.test": [[path, "Prefix", "web"]] }, annotations, spec)]);

/** Lines of the last server. */
const ownLines = (text: string) =>
  text
    .slice(text.lastIndexOf("  server {"))
    .split("\n")
    .map((line) => line.trim());

test.each([
  [{ "proxy-body-size": "8m" }, "client_max_body_size 8m;"],
  [{ "proxy-body-size": "0" }, "client_max_body_size 0;"],
  [{ "proxy-connect-timeout": "7" }, "proxy_connect_timeout 7s;"],
  [{ "proxy-read-timeout": "3600s" }, "proxy_read_timeout 3600s;"],
  [{ "proxy-send-timeout": "3600", "backend-protocol": "GRPC" }, "grpc_send_timeout 3600s;"],
  [{ "backend-protocol": "https" }, "proxy_pass https://default.web.80;"],
  [{ "force-ssl-redirect": "true" }, "if ($scheme = http) { return 308 https://$host$request_uri; }"],
  [{ "rewrite-target": "/" }, 'rewrite ^ "/" break;'],
  [{ "whitelist-source-range": "10.0.0.0/8, ::1" }, "allow ::1;"],
  [{ "allowlist-source-range": "10.0.0.0/8" }, "deny all;"],
  [{ "permanent-redirect": "https://b.test$request_uri" }, 'return 301 "https://b.test$request_uri";'],
  [{ "app-root": "/start" }, 'if ($uri = /) { return 302 "/start"; }'],
  [{ "auth-type": "basic", "auth-secret": "users", "auth-realm": "Staff only" }, 'auth_basic "Staff only";'],
  [{ affinity: "cookie" }, "add_header Set-Cookie $set_INGRESSCOOKIE;"],
] as [Record<string, string>, string][])("annotations %p", (annotations, want) => {
  const { text, problems } = one(annotations);
  expect(ownLines(text)).toContain(want);
  expect(problems.size).toBe(0);
});

test("groups of a path are in the target of a rewrite", () => {
  const { text } = one({ "rewrite-target": "/$2" }, "/api(/|$)(.*)");
  expect(ownLines(text)).toContain('rewrite "(?i)^/api(/|$)(.*)" "/$2" break;');
});

test("with a certificate HTTP is redirected, with the port of HTTPS, unless an annotation says otherwise", () => {
  const given = web({}, tls("tls", "a.test"));
  const { text, files } = compute([given], { ports: { http: 8080, https: 8443 } });
  const [file] = files.keys();
  expect(ownLines(text)).toContain("listen 8443 ssl http2;");
  expect(ownLines(text)).toContain(`ssl_certificate_key /run/ingress/${file};`);
  expect(ownLines(text)).toContain("if ($scheme = http) { return 308 https://$host:8443$request_uri; }");
  expect(ownLines(one({ "ssl-redirect": "false" }, "/", tls("tls", "a.test")).text).join("\n")).not.toContain("308");
  expect(ownLines(one({}).text).join("\n")).not.toMatch(/308|ssl/);
});

test.each([
  ["a host of spec.tls", tls("tls", "a.test"), true],
  ["a wildcard of spec.tls", tls("tls", "*.test"), true],
  ["another host", tls("tls", "b.test"), false],
  ["without hosts those of the certificate", { tls: [{ secretName: "tls" }] }, true],
])("a certificate is for %s", (_, spec, want) => {
  expect(ownLines(one({}, "/", spec).text).some((line) => line.startsWith("ssl_certificate "))).toBe(want);
});

test("a key that is not that of the certificate is refused, and nothing of it is told", () => {
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" });
  const secrets = new Map([secret("tls", { "tls.crt": CERTIFICATE, "tls.key": String(other) })]);
  const given = web({}, tls("tls", "a.test"));
  const { problems, files, text } = compute([given], { secrets });
  const message =
    'Secret "default/tls" has a key that is not that of its certificate: its hosts are not served by HTTPS';
  expect(problems.get("default/a")).toEqual([{ reason: "CertificateNotUsable", message }]);
  expect([files.size, text.includes("BEGIN")]).toEqual([0, false]);
});

const ATTACKS = ['"', ";", "{", "}", "\n", "\r", "\0", "$host", "`", "'", "\\", "#"];
/** A value of each annotation that is followed. */
const VALUES: Readonly<Record<IngressAnnotation, string>> = {
  "proxy-body-size": "8m",
  "proxy-connect-timeout": "7",
  "proxy-send-timeout": "60",
  "proxy-read-timeout": "60",
  "ssl-redirect": "true",
  "force-ssl-redirect": "true",
  "use-regex": "false",
  "rewrite-target": "/",
  "backend-protocol": "HTTP",
  "auth-type": "basic",
  "auth-secret": "users",
  "auth-realm": "Staff",
  "whitelist-source-range": "10.0.0.0/8",
  "allowlist-source-range": "10.0.0.0/8",
  "permanent-redirect": "https://b.test/",
  "app-root": "/start",
  affinity: "cookie",
  "session-cookie-name": "route",
};
test.each(Object.keys(VALUES))("docs/networking.md names the annotation %s", (name) => {
  expect(readFileSync(join(import.meta.dir, "../../docs/networking.md"), "utf8")).toMatch(new RegExp(`\`${name}[\`:]`));
});

/** Words of nginx.conf: quoted ones are one word, whatever is in them. */
const wordsOf = (text: string) => text.match(/"(?:\\.|[^"\\])*"|[{};]|[^\s{};"]+/gs)!;
/** Directives of a configuration without their values. */
const shapeOf = (text: string) =>
  wordsOf(text.replaceAll(/^\s*#.*$/gm, ""))
    .map((word) => (/^[{};]$/.test(word) ? word : word.startsWith('"') ? '""' : "w"))
    .join(" ");

test.each(Object.entries(VALUES))("no value of %s is a directive", (name, value) => {
  for (const attack of ATTACKS) {
    for (const text of [value + attack, attack + value, `${value}${attack} return 200 ${attack}`]) {
      const base = { "auth-secret": "users", affinity: "cookie" };
      const { text: config } = one({ ...base, [name]: text }, "/x");
      const isLeftOut = !config.includes("a.test");
      if (!isLeftOut) expect(shapeOf(config)).toBe(shapeOf(one({ ...base, [name]: value }, "/x").text));
    }
  }
});

test.each(["Exact", "Prefix", "ImplementationSpecific"])("no path or host of type %s is a directive", (type) => {
  const shape = shapeOf(compute([ingress("a", { "a.test": [["/x", type, "web"]] })]).text);
  for (const attack of ATTACKS) {
    const path = compute([ingress("a", { "a.test": [[`/x${attack}y`, type, "web"]] })]);
    if (path.served.size > 0) expect(shapeOf(path.text)).toBe(shape);
    const host = compute([ingress("a", { [`a${attack}.test`]: [["/x", type, "web"]] })]);
    expect([...host.served]).toEqual([]);
    const name = compute([ingress(`a${attack}`, { "a.test": [["/x", type, "web"]] })]);
    expect([...name.served]).toEqual([]);
  }
});

test.each(["(?<host>a)", "(?i)a", "a**", "[z-a]", "(a", "a{2000}", "(?:a{99}){99}", "[[:alpha:]]", "\\pL", "[]a]"])(
  "an expression that nginx reads otherwise is refused: %s",
  (text) => expect(one({ "use-regex": "true" }, `/${text}`).served.size).toBe(0),
);

test.each(["configuration-snippet", "server-snippet", "auth-url", "auth-tls-secret"])(
  "%s is refused by name, and other Ingresses stay",
  (name) => {
    const wrong = web({ [name]: "more_set_headers x;" });
    const { problems, text } = compute([wrong, ingress("b", { "b.test": [["/", "Prefix", "web"]] })]);
    expect(problems.get("default/a")![0]!.message).toContain(`nginx.ingress.kubernetes.io/${name} is not supported`);
    expect(routesOf(text)).toEqual([UNKNOWN, "b.test: / -> web"]);
  },
);

test("what nginx refuses leads to its Ingress, by line or file", () => {
  const given = [web(), ingress("b", { "b.test": [["/x", "Exact", "api"]] }, {}, tls("tls", "b.test"))];
  const config = compute(given);
  const lines = config.text.split("\n");
  const lineOf = (part: string) => lines.findIndex((line) => line.includes(part)) + 1;
  const found = (line: number) => findRefused(config, `nginx: [emerg] unknown in /run/ingress/next.conf:${line}`);
  expect(found(lines.findLastIndex((line) => line.includes("proxy_pass http://default.api")) + 1)).toEqual([
    "default/b",
  ]);
  expect(found(lineOf("proxy_pass http://default.web"))).toEqual(["default/a"]);
  expect(found(lineOf("worker_processes"))).toEqual([]);
  expect(found(lineOf('server_name "b.test"'))).toEqual([]);
  const [file] = config.files.keys();
  expect(findRefused(config, `nginx: [emerg] cannot load certificate "/run/ingress/${file}"`)).toEqual(["default/b"]);
  const without = compute(given, { refused: new Map([["default/b", "unknown"]]) });
  expect(routesOf(without.text)).toEqual([UNKNOWN, "a.test: / -> web"]);
});

test("the revision changes with what is served only", () => {
  const given = [web()];
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  expect(hash(compute(given).text)).toBe(hash(compute([...given]).text));
  const more = { pods: new ServicePods([pod("web", "10.0.0.9")]) };
  expect(compute(given, more).revision).not.toBe(compute(given).revision);
});
