import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Secret } from "../base/api/config-objects.ts";
import type { Ingress, IngressBackend, IngressClass } from "../base/api/ingress.ts";
import { INGRESS_CLASS_ANNOTATION, type IngressSettings, parseIngressAnnotations } from "../base/api/ingress.ts";
import type { Service } from "../base/api/service.ts";
import { memoized } from "../base/model/memoized.ts";
import { podFullName } from "../base/model/pod.ts";
import { hex32 } from "../base/text/json.ts";
import {
  type IngressHost,
  type IngressPorts,
  type IngressRoute,
  type IngressUpstream,
  ownerOfLine,
  renderNginxConfig,
} from "./nginx-config.ts";
import { endpointsOf, ipOf, type ServicePods } from "./service-endpoints.ts";

/** Objects from which the configuration of the ingress server follows. */
export interface IngressObjects {
  /** Ingresses of our classes: see {@link isServedHere}. */
  ingresses: readonly Ingress[];
  services: readonly Service[];
  /** Secrets by `namespace/name`. */
  secrets: ReadonlyMap<string, Secret>;
  pods: ServicePods;
  ports: IngressPorts;
  /** Names of Ingresses that nginx has refused, with what it said. */
  refused?: ReadonlyMap<string, string>;
}

/** Something of an Ingress that does not work. */
export interface IngressProblem {
  reason:
    | "InvalidIngress"
    | "RouteConflict"
    | "BackendNotFound"
    | "NoReadyPods"
    | "CertificateNotUsable"
    | "AuthSecretNotUsable";
  message: string;
  /** The Service that has no Ready pods, `namespace/name`. */
  service?: string;
}

/** The configuration of the ingress server. Names of Ingresses are `namespace/name`. */
export interface IngressConfig {
  /** nginx.conf. */
  text: string;
  /** Changes with the configuration. It is the second word of the text too. */
  revision: string;
  /** Files that the text names: certificates with their keys, passwords. Secret. */
  files: ReadonlyMap<string, string>;
  problems: ReadonlyMap<string, readonly IngressProblem[]>;
  /** Ingresses with backends without a pod that is Ready, as while pods start: no mistake of the Ingress. */
  waiting: ReadonlyMap<string, readonly IngressProblem[]>;
  /** Ingresses with a path that is served. */
  served: ReadonlySet<string>;
  /** Ingresses that need a file, by its name. */
  users: ReadonlyMap<string, readonly string[]>;
}

/** Controllers of an IngressClass whose Ingresses are ours. */
const CONTROLLERS = ["kubelet-ts.io/ingress", "k8s.io/ingress-nginx"];
const DEFAULT_CLASS = "nginx";

const IS_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class";

/**
 * The class of an Ingress: of one that names none the default class, the newest of several. Pure. Source: apiserver's
 * `defaultingressclass`.
 */
export function classNameOf({ metadata, spec }: Ingress, classes: readonly IngressClass[]): string | undefined {
  const own = spec.ingressClassName ?? metadata.annotations?.[INGRESS_CLASS_ANNOTATION];
  if (own !== undefined) return own;
  const defaults = classes.filter((it) => it.metadata.annotations?.[IS_DEFAULT_CLASS] === "true");
  defaults.sort((a, b) => compareText(ageOf(b), ageOf(a)) || compareText(a.metadata.name ?? "", b.metadata.name ?? ""));
  return defaults[0]?.metadata.name;
}

/** A new Ingress with the class that it does not name. Pure. Source: apiserver's `defaultingressclass`. */
export function withDefaultClass(ingress: Ingress, classes: readonly IngressClass[]): Ingress {
  if (ingress.metadata.annotations?.[INGRESS_CLASS_ANNOTATION] !== undefined) return ingress;
  const ingressClassName = classNameOf(ingress, classes);
  return ingressClassName === undefined ? ingress : { ...ingress, spec: { ...ingress.spec, ingressClassName } };
}

/** Whether the ingress server of this node serves an Ingress. Pure. */
export function isServedHere(ingress: Ingress, classes: readonly IngressClass[]): boolean {
  const name = classNameOf(ingress, classes);
  if (name === undefined) return true;
  const found = classes.find((it) => it.metadata.name === name);
  return found ? CONTROLLERS.includes(found.spec.controller ?? "") : name === DEFAULT_CLASS;
}

/**
 * Computes the configuration of the ingress server: Ingresses of one host are merged, and of two with the same path the
 * older one has it. What is wrong is left out and reported. Pure.
 */
export function computeIngressConfig(objects: IngressObjects): IngressConfig {
  const planner = new ConfigPlanner(objects);
  const order = [...objects.ingresses].sort(
    (a, b) => compareText(ageOf(a), ageOf(b)) || compareText(podFullName(a.metadata), podFullName(b.metadata)),
  );
  for (const ingress of order) planner.add(ingress);
  return planner.finish();
}

const ageOf = ({ metadata }: Ingress | IngressClass) => metadata.creationTimestamp ?? "";
const compareText = (a: string, b: string) => (a < b ? -1 : Number(a > b));

const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;
/** Names of objects stand in comments and in names of upstreams. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
/** A word of nginx has at most 4096 bytes. */
const MAX_PATH = 1000;

type IngressRule = NonNullable<Ingress["spec"]["rules"]>[number];
type IngressPath = NonNullable<NonNullable<IngressRule["http"]>["paths"]>[number];

/** A valid Ingress that this node serves. */
interface Source {
  name: string;
  namespace: string;
  spec: Ingress["spec"];
  settings: IngressSettings;
}

class ConfigPlanner {
  readonly #objects: IngressObjects;
  readonly #services: ReadonlyMap<string, Service>;
  readonly #sources: Source[] = [];
  readonly #hosts = new Map<string, IngressHost>();
  readonly #upstreams = new Map<string, IngressUpstream>();
  readonly #files = new Map<string, string>();
  readonly #users = new Map<string, string[]>();
  readonly #problems = new Map<string, IngressProblem[]>();
  readonly #waiting = new Map<string, IngressProblem[]>();
  readonly #served = new Set<string>();

  constructor(objects: IngressObjects) {
    this.#objects = objects;
    this.#services = new Map(objects.services.map((service) => [podFullName(service.metadata), service]));
  }

  add({ metadata, spec }: Ingress): void {
    const name = podFullName(metadata);
    const { settings, problems } = parseIngressAnnotations(metadata.annotations);
    const namespace = metadata.namespace ?? "default";
    const source: Source = { name, namespace, spec, settings };
    const refusal = this.#objects.refused?.get(name);
    const invalid = [
      ...(NAME.test(namespace) && NAME.test(metadata.name ?? "") ? [] : ["its name is not valid"]),
      ...problems.filter(({ isIgnored }) => !isIgnored).map((it) => `annotation ${it.name} ${it.message}`),
      ...(spec.rules ?? []).flatMap((rule) => findRuleProblems(rule, settings)),
      ...(refusal === undefined ? [] : [`nginx refuses it: ${refusal}`]),
    ];
    if (invalid.length > 0) {
      return this.#report(name, "InvalidIngress", `it is not served: ${invalid.join("; ")}`);
    }
    this.#sources.push(source);
    for (const rule of spec.rules ?? []) this.#addRule(source, rule);
    const { defaultBackend } = spec;
    if (defaultBackend && !spec.rules?.length) this.#addFallback(source, "", defaultBackend);
  }

  finish(): IngressConfig {
    for (const source of this.#sources) this.#addCertificates(source);
    const body = renderNginxConfig([...this.#hosts.values()], [...this.#upstreams.values()], this.#objects.ports);
    const revision = hex32(body);
    return {
      text: `# ${revision}\n${body}`,
      revision,
      files: this.#files,
      problems: this.#problems,
      waiting: this.#waiting,
      served: this.#served,
      users: this.#users,
    };
  }

  #report(name: string, reason: IngressProblem["reason"], message: string): void {
    const known = this.#problems.get(name) ?? [];
    if (!known.some((it) => it.message === message)) this.#problems.set(name, [...known, { reason, message }]);
  }

  #reportWaiting(name: string, service: string, why: string): void {
    const known = this.#waiting.get(name) ?? [];
    if (known.some((it) => it.service === service)) return;
    const message = `no pod of Service "${service}" ${why}: requests are answered 503`;
    this.#waiting.set(name, [...known, { reason: "NoReadyPods", service, message }]);
  }

  #addRule(source: Source, { host = "", http }: IngressRule): void {
    const paths = http?.paths ?? [];
    for (const path of paths) this.#addPath(source, host, path);
    const { defaultBackend } = source.spec;
    if (defaultBackend) this.#addFallback(source, host, defaultBackend);
  }

  #addPath(source: Source, hostName: string, { path: text = "", pathType, backend }: IngressPath): void {
    const { settings } = source;
    const type = pathType === "Exact" ? "exact" : isRegexPath(text, settings) ? "regex" : "prefix";
    const path = type === "prefix" ? text.replace(/\/+$/, "") || "/" : text || "/";
    const host = this.#hostOf(hostName);
    const holder = host.routes.find((it) => it.type === type && it.path === path);
    if (holder) {
      const where = `path "${text}" of host "${hostName || "*"}"`;
      return this.#report(
        source.name,
        "RouteConflict",
        `${where} is that of Ingress "${holder.owner}", which comes first`,
      );
    }
    host.routes.push(this.#toRoute(source, type, path, backend));
  }

  #addFallback(source: Source, hostName: string, backend: IngressBackend): void {
    const host = this.#hostOf(hostName);
    const holder = host.fallback?.owner;
    if (holder === undefined) host.fallback = this.#toRoute(source, "prefix", "/", backend);
    else if (holder !== source.name) {
      const message = `the default backend of host "${hostName || "*"}" is that of Ingress "${holder}", which comes first`;
      this.#report(source.name, "RouteConflict", message);
    }
  }

  #hostOf(name: string): IngressHost {
    return this.#hosts.getOrInsert(name, { name, routes: [] });
  }

  #toRoute(source: Source, type: IngressRoute["type"], path: string, backend: IngressBackend): IngressRoute {
    const { name: owner, settings } = source;
    this.#served.add(owner);
    const passwords = settings.isBasicAuth ? this.#passwordsOf(source) : undefined;
    const isOpen = !settings.isBasicAuth || passwords !== undefined;
    const isRedirect = settings.permanentRedirect !== undefined;
    const upstream = isOpen && !isRedirect ? this.#upstreamOf(source, backend) : undefined;
    return { owner, type, path, settings, upstream, passwords };
  }

  /** @returns the name of the pods of a backend; undefined: there is none */
  #upstreamOf({ name: owner, namespace, settings }: Source, { service: wanted }: IngressBackend): string | undefined {
    const fullName = `${namespace}/${wanted?.name ?? ""}`;
    const service = this.#services.get(fullName);
    const { number, name: portName } = wanted?.port ?? {};
    const port = service?.spec.ports?.find((it) => (portName ? it.name === portName : it.port === number));
    if (!service || !port || service.spec.type === "ExternalName") {
      const why = !service
        ? `there is no Service "${fullName}"`
        : `Service "${fullName}" ${port ? "is of type ExternalName" : `has no port ${portName || number}`}`;
      this.#report(owner, "BackendNotFound", `${why}: requests are answered 503`);
      return undefined;
    }
    const backends = this.#objects.pods.behind(service);
    const others = backends.filter((backend) => ipOf(backend, "IPv4") === undefined);
    const servers = [
      ...endpointsOf(port, backends, "IPv4").map((it) => `${it.ip}:${it.port}`),
      ...endpointsOf(port, others, "IPv6").map((it) => `[${it.ip}]:${it.port}`),
    ];
    if (servers.length === 0) {
      this.#reportWaiting(
        owner,
        fullName,
        backends.length === 0 ? "is Ready" : `has its port ${port.targetPort || port.port}`,
      );
      return undefined;
    }
    const cookie = settings.hasCookieAffinity ? settings.affinityCookie : undefined;
    const name = [namespace, service.metadata.name, port.port, ...(cookie === undefined ? [] : [cookie])].join(".");
    this.#upstreams.set(name, { name, servers, ...(cookie !== undefined && { cookie }) });
    return name;
  }

  /** @returns the file with the passwords; undefined: there are none, and no request is let in */
  #passwordsOf({ name, namespace, settings: { authSecret = "" } }: Source): string | undefined {
    const fullName = authSecret.includes("/") ? authSecret : `${namespace}/${authSecret}`;
    const secret = fullName.startsWith(`${namespace}/`) ? this.#objects.secrets.get(fullName) : undefined;
    const text = decode(secret?.data?.auth);
    if (text !== undefined) return this.#addFile("auth", text, name);
    const why = secret ? `Secret "${fullName}" has no key "auth"` : `there is no Secret "${fullName}" in its namespace`;
    this.#report(name, "AuthSecretNotUsable", `${why}: requests are answered 503`);
    return undefined;
  }

  #addFile(kind: "auth" | "tls", text: string, owner: string): string {
    // A changed file has another name: workers of the configuration before read the old one.
    const name = `${kind}-${hex32(text)}`;
    this.#files.set(name, text);
    const users = this.#users.get(name) ?? [];
    if (!users.includes(owner)) this.#users.set(name, [...users, owner]);
    return name;
  }

  #addCertificates({ name, namespace, spec }: Source): void {
    const ownHosts = (spec.rules ?? []).map(({ host = "" }) => host);
    for (const { hosts = [], secretName = "" } of spec.tls ?? []) {
      const fullName = `${namespace}/${secretName}`;
      const found = secretName === "" ? "spec.tls names no Secret" : certificateOf(this.#objects.secrets, fullName);
      if (typeof found === "string") {
        this.#report(name, "CertificateNotUsable", `${found}: its hosts are not served by HTTPS`);
        continue;
      }
      const isMeant = (host: string) =>
        hosts.length === 0
          ? host === "" || found.leaf.checkHost(host) !== undefined
          : hosts.includes(host) || hosts.includes(`*${host.slice(host.indexOf("."))}`);
      for (const hostName of new Set([...hosts, ...ownHosts])) {
        const host = this.#hosts.get(hostName);
        if (host && host.certificate === undefined && isMeant(hostName)) {
          host.certificate = this.#addFile("tls", found.pem, name);
        }
      }
    }
  }
}

/** Whether the path of an Ingress is a regular expression. As in ingress-nginx a rewrite makes it one. */
const isRegexPath = (path: string, { useRegex, rewriteTarget }: IngressSettings): boolean =>
  useRegex || (rewriteTarget !== undefined && /[()[\]*+?^$|\\{}]/.test(path));

function findRuleProblems({ host, http }: IngressRule, settings: IngressSettings): string[] {
  const paths = http?.paths ?? [];
  return [
    ...(host && (host.length > 253 || !HOST.test(host)) ? [`host ${JSON.stringify(host)} is not a DNS name`] : []),
    ...paths.flatMap(({ path = "/", pathType }) => {
      const isRegex = pathType !== "Exact" && isRegexPath(path, settings);
      const problem = findPathProblem(path) ?? (isRegex ? findRegexProblem(path) : undefined);
      return problem === undefined ? [] : [`path ${JSON.stringify(path)} ${problem}`];
    }),
  ];
}

function findPathProblem(path: string): string | undefined {
  if (path !== "" && !path.startsWith("/")) return "does not begin with /";
  if (path.length > MAX_PATH) return `has more than ${MAX_PATH} characters`;
  return /^[\x20-\x7e]*$/.test(path) ? undefined : "has other characters than those of ASCII";
}

/** All counts of an expression, multiplied: beyond this nginx may refuse it as too large. */
const MAX_REPEATS = 1000;

/** Only what JavaScript's expressions and those of nginx (PCRE) have in common passes: nginx refuses none of it. */
function findRegexProblem(text: string): string | undefined {
  // Groups with a name are variables of nginx; look-behind and options differ.
  if (/\(\?(?![:=!])/.test(text)) return "has a group with a name or options: use (?:…) or (…)";
  if (/\\(?![dDwWsSbB]|[^\w\s])/.test(text)) return "has an escape other than \\d, \\w, \\s, \\b and of signs";
  if (/\[\^?\]|\[[:.=]/.test(text)) return "has a class that is empty or named";
  const repeats = [...text.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map((it) =>
    Math.max(Number(it[1]), Number(it[2] ?? 0), 1),
  );
  if (repeats.reduce((all, count) => all * count, 1) > MAX_REPEATS) return "repeats too much";
  try {
    new RegExp(text, "u");
    return undefined;
  } catch {
    return "is not a regular expression";
  }
}

const decode = (base64: string | undefined): string | undefined =>
  base64 === undefined ? undefined : Buffer.from(base64, "base64").toString("utf8");

interface Certificate {
  leaf: X509Certificate;
  /** Chain and key. */
  pem: string;
}

/** @returns a string: why it cannot be used; never a part of it */
function certificateOf(secrets: IngressObjects["secrets"], fullName: string): Certificate | string {
  const secret = secrets.get(fullName);
  if (!secret) return `there is no Secret "${fullName}"`;
  const found = readCertificate(secret);
  return typeof found === "string" ? `Secret "${fullName}" ${found}` : found;
}

/** RSA keys below this are refused by OpenSSL as its packagers configure it. */
const MIN_RSA_BITS = 2048;

/** Reading a key costs a millisecond, and Secrets rarely change. */
const readCertificate = memoized(({ data = {} }: Secret): Certificate | string => {
  const text = decode(data["tls.crt"]);
  const key = decode(data["tls.key"]);
  if (text === undefined || key === undefined) return "has no keys tls.crt and tls.key";
  try {
    const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    const chain = blocks.map((block) => new X509Certificate(block));
    const [leaf] = chain;
    if (!leaf) return "has no certificate in tls.crt";
    const privateKey = createPrivateKey(key);
    if (!leaf.checkPrivateKey(privateKey)) return "has a key that is not that of its certificate";
    const { modulusLength = MIN_RSA_BITS } = privateKey.asymmetricKeyDetails ?? {};
    if (modulusLength < MIN_RSA_BITS) return `has a key of ${modulusLength} bits, and ${MIN_RSA_BITS} are needed`;
    const pems = [...chain.map(String), privateKey.export({ type: "pkcs8", format: "pem" }) as string];
    return {
      leaf,
      pem: pems
        .map((pem) => pem.trimEnd())
        .join("\n")
        .concat("\n"),
    };
  } catch {
    return "has a certificate or key that cannot be read";
  }
});

/** Ingresses to which an error message of nginx leads, by line or file. Pure. */
export function findRefused({ text, users }: IngressConfig, message: string): string[] {
  const line = /nginx\.conf:(\d+)/.exec(message)?.[1] ?? /next\.conf:(\d+)/.exec(message)?.[1];
  const owner = line === undefined ? undefined : ownerOfLine(text, Number(line));
  if (owner !== undefined) return [owner];
  return [...users].flatMap(([file, names]) => (message.includes(file) ? names : []));
}
