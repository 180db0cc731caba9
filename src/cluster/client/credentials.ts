import { readBoundedText, readTextIfExists } from "../../base/files/whole-file.ts";
import type { Clock } from "../../base/model/clock.ts";
import { type Kubeconfig, type KubeconfigUser, readKubeconfig } from "./kubeconfig.ts";

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
