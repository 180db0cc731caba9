import type { IngressSettings } from "../base/api/ingress.ts";

/** Directory of the ingress server in which its configuration and the files of it are. */
export const INGRESS_DIRECTORY = "/run/ingress";
/** Host name and path under which the server answers 200 while it runs. */
export const HEALTH_HOST = "health.ingress.kubelet-ts.io";
export const HEALTH_PATH = "/healthz";

/** Ports of the machine that the ingress server has. */
export interface IngressPorts {
  http: number;
  https: number;
}

/** Pods behind a port of a Service. */
export interface IngressUpstream {
  name: string;
  /** `10.0.0.1:80`; at least one. */
  servers: readonly string[];
  /** Name of the cookie by which a client keeps its pod. */
  cookie?: string;
}

export interface IngressRoute {
  /** `namespace/name` of its Ingress. */
  owner: string;
  type: "exact" | "prefix" | "regex";
  /** That of a prefix has no slash at its end, except for `/`. */
  path: string;
  settings: IngressSettings;
  /** undefined: there is no pod, and requests are answered 503. */
  upstream: string | undefined;
  /** File with the passwords. */
  passwords?: string | undefined;
}

export interface IngressHost {
  /** `*.example.com` with a wildcard; "" for all hosts that no other one has. */
  name: string;
  routes: IngressRoute[];
  /** For requests that no other route has. */
  fallback?: IngressRoute;
  /** File with certificate and key. */
  certificate?: string;
}

/** Line above what belongs to an Ingress. */
const OWNER = "# Ingress ";

/**
 * nginx.conf of the ingress server. Values come from validated objects; this only quotes them. Runs with nginx 1.19.4 and
 * later (`ssl_reject_handshake`). Pure.
 */
export function renderNginxConfig(
  hosts: readonly IngressHost[],
  upstreams: readonly IngressUpstream[],
  ports: IngressPorts,
): string {
  const cookies = [...new Set(upstreams.flatMap(({ cookie }) => cookie ?? []))].sort();
  const rank = ({ name }: IngressHost) => (name.startsWith("*") ? 1 : 0);
  const named = hosts.filter(({ name }) => name !== "");
  // nginx takes the first expression that matches.
  named.sort((a, b) => rank(a) - rank(b) || b.name.length - a.name.length || (a.name < b.name ? -1 : 1));
  const others = hosts.find(({ name }) => name === "") ?? { name: "", routes: [] };
  const lines = [
    ...HEAD,
    ...cookies.flatMap((cookie) => [
      `  map $cookie_${cookie} $affinity_${cookie} { "" $request_id; default $cookie_${cookie}; }`,
      `  map $cookie_${cookie} $set_${cookie} { "" "${cookie}=$request_id; Path=/; HttpOnly"; default ""; }`,
    ]),
    ...[...upstreams].sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap(renderUpstream),
    "  server {",
    `    listen ${ports.http};`,
    `    server_name ${HEALTH_HOST};`,
    "    access_log off;",
    `    location = ${HEALTH_PATH} { return 200; }`,
    "    location / { return 404; }",
    "  }",
    ...[others, ...named].flatMap((host) => renderHost(host, ports)),
    "}",
    "",
  ];
  return lines.join("\n");
}

/** The Ingress to which a line of a configuration belongs. Pure. @param line 1 for the first one */
export function ownerOfLine(config: string, line: number): string | undefined {
  const above = config.split("\n").slice(0, line).reverse();
  // Lines of a server or an upstream as a whole have no owner.
  const found = above.find((text) => text.includes(OWNER) || /^ {2}\S|^\S/.test(text));
  return found?.includes(OWNER) ? found.trim().slice(OWNER.length) : undefined;
}

/** Headers, timeouts and limits with the names and defaults of ingress-nginx. */
const HEAD = `daemon off;
pid ${INGRESS_DIRECTORY}/nginx.pid;
worker_processes auto;
worker_shutdown_timeout 240s;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log /dev/stdout;
  server_tokens off;
  absolute_redirect off;
  server_names_hash_bucket_size 512;
  server_names_hash_max_size 4096;
  variables_hash_max_size 2048;
  keepalive_timeout 75s;
  client_max_body_size 1m;
  large_client_header_buffers 4 16k;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_session_cache shared:tls:10m;
  ssl_session_timeout 10m;
  ssl_session_tickets off;
  map $http_upgrade $connection_upgrade { "" ""; default upgrade; }
  map $http_host $forwarded_host { "" $host; default $http_host; }
  proxy_http_version 1.1;
  proxy_buffering off;
  proxy_buffer_size 16k;
  proxy_buffers 8 16k;
  proxy_connect_timeout 5s;
  proxy_next_upstream error timeout;
  proxy_next_upstream_tries 3;
  grpc_connect_timeout 5s;`
  .split("\n")
  .concat(
    ["proxy", "grpc"].flatMap((module) =>
      [
        "Host $forwarded_host",
        "X-Request-ID $request_id",
        "X-Real-IP $remote_addr",
        "X-Forwarded-For $remote_addr",
        "X-Forwarded-Host $forwarded_host",
        "X-Forwarded-Port $server_port",
        "X-Forwarded-Proto $scheme",
        "X-Forwarded-Scheme $scheme",
        "X-Scheme $scheme",
        "X-Original-Forwarded-For $http_x_forwarded_for",
        'Proxy ""',
        ...(module === "proxy" ? ["Upgrade $http_upgrade", "Connection $connection_upgrade"] : []),
      ].map((header) => `  ${module}_set_header ${header};`),
    ),
  );

const quote = (text: string): string => `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
const escapeRegex = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
const fileOf = (name: string): string => `${INGRESS_DIRECTORY}/${name}`;

const renderUpstream = ({ name, servers, cookie }: IngressUpstream): string[] => [
  `  upstream ${quote(name)} {`,
  ...(cookie === undefined ? [] : [`    hash $affinity_${cookie} consistent;`]),
  // A pod that failed once is asked again: only its readiness takes it out.
  ...servers.map((server) => `    server ${server} max_fails=0;`),
  "    keepalive 32;",
  "  }",
];

function renderHost(host: IngressHost, ports: IngressPorts): string[] {
  const { name, certificate } = host;
  const suffix = name === "" ? " default_server" : "";
  const hasTls = name === "" || certificate !== undefined;
  return [
    "  server {",
    `    listen ${ports.http}${suffix};`,
    ...(hasTls ? [`    listen ${ports.https} ssl http2${suffix};`] : []),
    `    server_name ${serverName(name)};`,
    ...(certificate !== undefined
      ? ["ssl_certificate", "ssl_certificate_key"].map((directive) => `    ${directive} ${fileOf(certificate)};`)
      : hasTls
        ? ["    ssl_reject_handshake on;"]
        : []),
    ...renderAppRoot(host),
    ...renderLocations(host, ports),
    "  }",
  ];
}

/** A wildcard is one label. */
function serverName(name: string): string {
  if (name === "") return "_";
  return name.startsWith("*.") ? quote(`~^[^.]+${escapeRegex(name.slice(1))}$`) : quote(name);
}

function renderAppRoot({ routes }: IngressHost): string[] {
  const route = routes.find(({ settings }) => settings.appRoot !== undefined);
  if (!route) return [];
  return [`    ${OWNER}${route.owner}`, `    if ($uri = /) { return 302 ${quote(route.settings.appRoot!)}; }`];
}

function renderLocations(host: IngressHost, ports: IngressPorts): string[] {
  const { routes, fallback } = host;
  const exact = new Set(routes.flatMap(({ type, path }) => (type === "exact" ? [path] : [])));
  // nginx prefers every expression to a prefix: where there is one, all are, the longest first.
  const isOrdered = routes.some(({ type }) => type === "regex");
  const order = [...routes].sort((a, b) => b.path.length - a.path.length || (a.path < b.path ? -1 : 1));
  const hasRoot = routes.some(({ type, path }) => type === "prefix" && path === "/");
  const blocks = order.flatMap((route) =>
    locationsOf(route, isOrdered)
      .filter((it) => route.type === "exact" || !it.startsWith("= ") || !exact.has(route.path))
      .flatMap((location) => renderLocation(location, route, host, ports)),
  );
  if (hasRoot) return blocks;
  const rest = fallback ? renderLocation("/", fallback, host, ports) : ["    location / { return 404; }"];
  return [...blocks, ...rest];
}

function locationsOf({ type, path }: IngressRoute, isOrdered: boolean): string[] {
  if (type === "exact") return [`= ${quote(path)}`];
  if (type === "regex") return [`~* ${quote(`^${path}`)}`];
  if (path === "/") return ["/"];
  // A prefix is one of path elements: /foo is not one of /foobar.
  return isOrdered ? [`~ ${quote(`^${escapeRegex(path)}(?:/|$)`)}`] : [`= ${quote(path)}`, quote(`${path}/`)];
}

function renderLocation(
  location: string,
  { owner, type, path, settings, upstream, passwords }: IngressRoute,
  host: IngressHost,
  ports: IngressPorts,
): string[] {
  const isRedirected = settings.forceSslRedirect || (settings.sslRedirect && host.certificate !== undefined);
  const https = ports.https === 443 ? "" : `:${ports.https}`;
  const lines = isRedirected ? [`if ($scheme = http) { return 308 https://$host${https}$request_uri; }`] : [];
  if (settings.permanentRedirect !== undefined) lines.push(`return 301 ${quote(settings.permanentRedirect)};`);
  else if (upstream === undefined) lines.push("return 503;");
  else lines.push(...renderAccess(settings, passwords), ...renderProxy(type, path, settings, upstream));
  return [`    ${OWNER}${owner}`, `    location ${location} {`, ...lines.map((line) => `      ${line}`), "    }"];
}

function renderAccess({ allowedSources, authRealm, bodySize }: IngressSettings, passwords?: string): string[] {
  return [
    ...allowedSources.map((source) => `allow ${source};`),
    ...(allowedSources.length > 0 ? ["deny all;"] : []),
    ...(passwords === undefined
      ? []
      : [`auth_basic ${quote(authRealm)};`, `auth_basic_user_file ${fileOf(passwords)};`]),
    ...(bodySize === "1m" ? [] : [`client_max_body_size ${bodySize};`]),
  ];
}

function renderProxy(type: IngressRoute["type"], path: string, settings: IngressSettings, upstream: string): string[] {
  const { protocol, rewriteTarget, connectTimeoutSeconds, sendTimeoutSeconds, readTimeoutSeconds } = settings;
  const module = protocol.startsWith("GRPC") ? "grpc" : "proxy";
  const timeouts = [
    ["connect", connectTimeoutSeconds, 5],
    ["send", sendTimeoutSeconds, 60],
    ["read", readTimeoutSeconds, 60],
  ] as const;
  const replaced = type === "regex" ? quote(`(?i)^${path}`) : "^";
  return [
    ...timeouts.flatMap(([of, value, usual]) => (value === usual ? [] : [`${module}_${of}_timeout ${value}s;`])),
    ...(rewriteTarget === undefined ? [] : [`rewrite ${replaced} ${quote(rewriteTarget)} break;`]),
    ...(settings.hasCookieAffinity ? [`add_header Set-Cookie $set_${settings.affinityCookie};`] : []),
    `${module}_pass ${protocol.toLowerCase()}://${upstream};`,
  ];
}
