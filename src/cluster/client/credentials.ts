import { dirname, isAbsolute, join } from "node:path";
import * as v from "valibot";
import { readBoundedText, readTextIfExists } from "../../base/files/whole-file.ts";
import type { Clock } from "../../base/model/clock.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { readDocument } from "../../manifest/yaml/parse-stream.ts";

/** Far above any kubeconfig with embedded certificates. */
const MAX_KUBECONFIG_BYTES = 4 * 1024 * 1024;

const ClusterSchema = v.object({
  server: v.string(),
  "certificate-authority": v.optional(v.string()),
  "certificate-authority-data": v.optional(v.string()),
  "insecure-skip-tls-verify": v.optional(v.boolean()),
  "tls-server-name": v.optional(v.string()),
  "proxy-url": v.optional(v.string()),
});
type KubeconfigCluster = v.InferOutput<typeof ClusterSchema>;

const UserSchema = v.object({
  "client-certificate": v.optional(v.string()),
  "client-certificate-data": v.optional(v.string()),
  "client-key": v.optional(v.string()),
  "client-key-data": v.optional(v.string()),
  token: v.optional(v.string()),
  tokenFile: v.optional(v.string()),
  username: v.optional(v.string()),
  password: v.optional(v.string()),
  /** Handled by the client library. */
  exec: v.optional(v.looseObject({ command: v.string() })),
  /** Handled by the client library. */
  "auth-provider": v.optional(v.looseObject({ name: v.string() })),
});
type KubeconfigUser = v.InferOutput<typeof UserSchema>;

const KubeconfigSchema = v.object({
  clusters: v.optional(v.array(v.object({ name: v.string(), cluster: ClusterSchema })), []),
  users: v.optional(v.array(v.object({ name: v.string(), user: v.nullish(UserSchema) })), []),
  contexts: v.optional(
    v.array(
      v.object({ name: v.string(), context: v.object({ cluster: v.string(), user: v.optional(v.string(), "") }) }),
    ),
    [],
  ),
  "current-context": v.optional(v.string(), ""),
});

/** The server and the credentials that the current context of a kubeconfig names. Paths are absolute. */
export interface Kubeconfig {
  path: string;
  cluster: KubeconfigCluster;
  user: KubeconfigUser;
}

/** Reads the current context of a kubeconfig. @throws Error that names the file and what is missing */
export function readKubeconfig(path: string): Kubeconfig {
  let data: unknown;
  try {
    data = readDocument(Buffer.from(readBoundedText(path, MAX_KUBECONFIG_BYTES)), path);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw new Error(
      isMissing ? `there is no file "${path}"` : `the kubeconfig "${path}" cannot be read: ${messageOf(error)}`,
    );
  }
  return parseKubeconfig(data, path);
}

/** @throws Error that names the file and what is missing */
export function parseKubeconfig(data: unknown, path: string): Kubeconfig {
  const parsed = v.safeParse(KubeconfigSchema, data);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    // The issue's message contains the value, which may be a secret.
    const field = v.getDotPath(issue) ?? "the document";
    throw new Error(`Kubeconfig "${path}": ${field} must be ${issue.expected ?? "something else"}`);
  }
  const { clusters, users, contexts, "current-context": current } = parsed.output;
  // A file with one context needs no current-context here; kubectl would use an empty context.
  const context = contexts.find(({ name }) => name === current) ?? (current === "" ? contexts[0] : undefined);
  if (!context) throw new Error(`Kubeconfig "${path}": there is no context "${current}" (current-context)`);
  const cluster = clusters.find(({ name }) => name === context.context.cluster)?.cluster;
  if (!cluster) throw new Error(`Kubeconfig "${path}": there is no cluster "${context.context.cluster}"`);
  if (!URL.canParse(cluster.server)) throw new Error(`Kubeconfig "${path}": server "${cluster.server}" is no URL`);
  const user = users.find(({ name }) => name === context.context.user)?.user ?? {};
  const base = dirname(path);
  return { path, cluster: withAbsolutePaths(cluster, base), user: withAbsolutePaths(user, base) };
}

const PATH_FIELDS = new Set(["certificate-authority", "client-certificate", "client-key", "tokenFile"]);

/** Paths in a kubeconfig are relative to its directory. */
function withAbsolutePaths<T extends object>(fields: T, base: string): T {
  const entries = Object.entries(fields).map(([name, value]) =>
    PATH_FIELDS.has(name) && typeof value === "string" && value !== "" && !isAbsolute(value)
      ? [name, join(base, value)]
      : [name, value],
  );
  return Object.fromEntries(entries) as T;
}

const MAX_PEM_BYTES = 1024 * 1024;
/** Token files are read again after this time. Source: client-go. */
const TOKEN_FILE_TTL_MS = 60_000;
/** Files of certificates are compared with what is in use no more often than this. */
const FILE_CHECK_MS = 10_000;

/** Settings of one connection to the API server. */
export interface ConnectionSettings {
  /** Without a slash at its end. */
  server: string;
  tls: { ca?: string; cert?: string; key?: string; serverName?: string; rejectUnauthorized?: boolean };
  /** Authorization, and the like. */
  headers: Readonly<Record<string, string>>;
  proxy?: string;
}

/** @returns undefined where the address is reached directly */
export type ProxyFor = (url: URL) => string | undefined;

/**
 * Credentials of a kubeconfig, as they are at each request: certificates and tokens that are replaced on disk are taken
 * over. Certificates, tokens, token files and passwords are read here; exec plugins and auth providers are left to
 * @kubernetes/client-node, which is loaded only for them: it costs 40 MB of memory.
 */
export class Credentials {
  #path: string;
  readonly #pemPath: string | undefined;
  readonly #proxyFor: ProxyFor;
  readonly #clock: Clock;
  #loaded: { config: Kubeconfig; tls: ConnectionSettings["tls"] };
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #token: { value: string; readAtMs: number } | undefined;
  #plugin: ((options: PluginOptions) => Promise<void>) | undefined;

  /**
   * @param proxyFor proxy of the environment, used where the kubeconfig names none
   * @param pemPath certificate and key that replace those of the kubeconfig as soon as the file is there
   * @throws Error when the kubeconfig, or a file it names, cannot be read
   */
  constructor(path: string, clock: Clock, proxyFor: ProxyFor, pemPath?: string) {
    this.#path = path;
    this.#proxyFor = proxyFor;
    this.#pemPath = pemPath;
    this.#clock = clock;
    this.#loaded = this.#load(path);
  }

  /** Another kubeconfig counts from now on. @throws Error when it cannot be read */
  use(path: string): void {
    this.#loaded = this.#load(path);
    this.#path = path;
    this.#plugin = undefined;
    this.#token = undefined;
  }

  /** @throws Error when the kubeconfig, or a file it names, cannot be read */
  #load(path: string) {
    const config = readKubeconfig(path);
    const pem = this.#pemPath === undefined ? undefined : readTextIfExists(this.#pemPath, MAX_PEM_BYTES);
    return { config, tls: { ...readTls(config), ...(pem !== undefined && { cert: pem, key: pem }) } };
  }

  get server(): string {
    return this.#loaded.config.cluster.server;
  }

  /** @throws Error when a plugin fails or a token file cannot be read */
  async current(): Promise<ConnectionSettings> {
    this.#refresh();
    const { cluster, user } = this.#loaded.config;
    const headers: Record<string, string> = {};
    let { tls } = this.#loaded;
    if (user.exec || user["auth-provider"]) {
      const options: PluginOptions = { headers };
      this.#plugin ??= await loadPlugin(this.#path);
      await this.#plugin(options);
      if (options.cert && options.key) tls = { ...tls, cert: String(options.cert), key: String(options.key) };
    } else {
      const authorization = this.#authorization(user);
      if (authorization !== undefined) headers.Authorization = authorization;
    }
    const proxy = cluster["proxy-url"] || this.#proxyFor(new URL(cluster.server));
    return { server: cluster.server.replace(/\/+$/, ""), tls, headers, ...(proxy && { proxy }) };
  }

  /** Certificates are read again at the next request: they were just replaced. */
  invalidate(): void {
    this.#checkedAtMs = Number.NEGATIVE_INFINITY;
    this.#token = undefined;
  }

  #authorization({ token, tokenFile, username, password }: KubeconfigUser): string | undefined {
    if (tokenFile) return `Bearer ${this.#readToken(tokenFile)}`;
    if (token) return `Bearer ${token}`;
    if (username) return `Basic ${Buffer.from(`${username}:${password ?? ""}`).toString("base64")}`;
    return undefined;
  }

  #readToken(path: string): string {
    const nowMs = this.#clock.monotonicMs();
    if (!this.#token || nowMs - this.#token.readAtMs > TOKEN_FILE_TTL_MS) {
      this.#token = { value: readBoundedText(path, MAX_PEM_BYTES).trim(), readAtMs: nowMs };
    }
    return this.#token.value;
  }

  /** Takes over files that changed; files that cannot be read at this moment change nothing. */
  #refresh(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#checkedAtMs < FILE_CHECK_MS) return;
    this.#checkedAtMs = nowMs;
    try {
      const next = this.#load(this.#path);
      // Connections are kept by their settings.
      if (!Bun.deepEquals(next, this.#loaded)) this.#loaded = next;
    } catch {
      // Half-written, or gone for a moment.
    }
  }
}

interface PluginOptions {
  headers: Record<string, string>;
  cert?: string | Buffer;
  key?: string | Buffer;
}

async function loadPlugin(path: string): Promise<(options: PluginOptions) => Promise<void>> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  config.loadFromFile(path);
  return async (options) => {
    await config.applyToHTTPSOptions(options as never);
  };
}

function readTls({ cluster, user }: Kubeconfig): ConnectionSettings["tls"] {
  const ca = pemOf(cluster["certificate-authority-data"], cluster["certificate-authority"]);
  const cert = pemOf(user["client-certificate-data"], user["client-certificate"]);
  const key = pemOf(user["client-key-data"], user["client-key"]);
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(cluster["tls-server-name"] && { serverName: cluster["tls-server-name"] }),
    ...(cluster["insecure-skip-tls-verify"] && { rejectUnauthorized: false }),
  };
}

function pemOf(data: string | undefined, path: string | undefined): string | undefined {
  if (data) return Buffer.from(data, "base64").toString("utf8");
  return path ? readBoundedText(path, MAX_PEM_BYTES) : undefined;
}
