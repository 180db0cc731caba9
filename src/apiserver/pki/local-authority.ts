import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { SYSTEM_FILE_BYTES, type TextFiles } from "../../base/files/whole-file.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { messageOf, unlessFailed } from "../../base/text/error-message.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import type {
  CertificateRequest,
  CertificateResult,
  KeyPair,
  LeafRequest,
} from "../../server/certificates/certificate-process.ts";
import { toLocalHost } from "../../server/request-handler.ts";
import {
  BACKDATED_MS,
  DAY_MS,
  hasNames,
  isGood,
  LEAF_VALID_MS,
  periodOf,
  RENEWAL_MS,
} from "../../server/serving-certificate.ts";

interface LocalAuthorityDeps {
  options: Pick<KubeletOptions, "rootDir" | "localApiAddress" | "localApiPort" | "cadvisorBindAddress">;
  node: { name: string; ip: string };
  /** Makes certificates in a process of its own. */
  makeCertificates: (request: CertificateRequest) => Promise<CertificateResult>;
  clock: Pick<Clock, "now">;
  files: TextFiles;
}

/** Certificates and keys for TLS, PEM. */
export interface LocalCertificates {
  /** Authorities whose clients are accepted, the one that signs first. */
  authorities: readonly string[];
  server: KeyPair;
  admin: KeyPair;
  /** The certificates need no check within this time. Unit: milliseconds since 1970. */
  goodFrom: number;
  goodUntil: number;
}

const AUTHORITY_VALID_MS = 10 * 365 * DAY_MS;
/** The authority is replaced while it still outlives every certificate that it has signed. */
const AUTHORITY_RENEWAL_MS = LEAF_VALID_MS + RENEWAL_MS;

/**
 * The authority of this node and its certificates in `<root-dir>/apiserver`: made at the first start, renewed before they
 * expire. The authority before the current one is kept as `ca-previous`: certificates it signed are accepted until they
 * expire, and it certifies the new one. It signs again when the clock shows that the current one was made at a wrong time.
 * Keys are 0600.
 * @throws Error whose message names the file
 */
export async function prepareCertificates(deps: LocalAuthorityDeps): Promise<LocalCertificates> {
  const { options, node, files, clock } = deps;
  const directory = join(options.rootDir, "apiserver");
  const now = clock.now().getTime();
  const names = serverNames(deps);
  const found = await readPair(files, directory, "ca");
  const foundPrevious = await readPair(files, directory, "ca-previous");
  const kept = [found, foundPrevious].find((it) => it && isGood(it, now, AUTHORITY_RENEWAL_MS));
  const isReinstated = kept !== undefined && kept === foundPrevious;
  const previous = kept && !isReinstated ? foundPrevious : (readable(found) ?? foundPrevious);
  const trusted = [kept, previous].filter((it) => it !== undefined && isValid(it, now)) as KeyPair[];
  const keep = async (name: string, wanted: readonly string[]) => {
    const pair = await readPair(files, directory, name);
    const isKept = pair && isGood(pair, now, RENEWAL_MS) && trusted.some((it) => isSignedBy(pair, it));
    return isKept && hasNames(pair.cert, wanted) ? pair : undefined;
  };
  const server = await keep("server", names);
  const admin = await keep("admin", []);
  if (found && kept === found && server && admin) return toCertificates(found, previous, server, admin, now);
  const notAfter = now + LEAF_VALID_MS;
  const wanted: { file: string; request: LeafRequest }[] = [];
  if (!server) {
    const commonName = node.name.slice(0, 64);
    wanted.push({ file: "server", request: { commonName, usage: "server", names, notAfter } });
  }
  if (!admin) {
    const subject = { commonName: "kubelet-ts-admin", organization: "system:masters" };
    wanted.push({ file: "admin", request: { ...subject, usage: "client", names: [], notAfter } });
  }
  const former = previous && isGood(previous, now, 0) ? previous : undefined;
  const result = await deps.makeCertificates({
    ...(kept && { authority: kept }),
    ...(former && { formerAuthority: former }),
    // Names that differ help clients that look for an authority by its name.
    authorityName: `kubelet-ts ${node.name.slice(0, 40)}@${Math.floor(now / 1000)}`,
    notBefore: now - BACKDATED_MS,
    authorityNotAfter: now + AUTHORITY_VALID_MS,
    leaves: wanted.map(({ request }) => request),
  });
  const replacePrevious = async () => previous && (await writePair(files, directory, "ca-previous", previous));
  // A process that ends in between must not lose an authority: each is written elsewhere before it is overwritten.
  if (isReinstated) await writePair(files, directory, "ca", result.authority);
  if (!found || kept !== found) await replacePrevious();
  if (!kept) await writePair(files, directory, "ca", result.authority);
  const made = new Map(wanted.map(({ file }, index) => [file, result.leaves[index]!]));
  const madeServer = made.get("server");
  // Clients that only know the previous authority follow the link to it.
  if (madeServer && result.link !== undefined) madeServer.cert += result.link;
  for (const [file, pair] of made) await writePair(files, directory, file, pair);
  return toCertificates(result.authority, previous, server ?? madeServer!, admin ?? made.get("admin")!, now);
}

function toCertificates(
  authority: KeyPair,
  previous: KeyPair | undefined,
  server: KeyPair,
  admin: KeyPair,
  now: number,
): LocalCertificates {
  const periods = [
    { ...periodOf(authority.cert), renewalMs: AUTHORITY_RENEWAL_MS },
    { ...periodOf(server.cert), renewalMs: RENEWAL_MS },
    { ...periodOf(admin.cert), renewalMs: RENEWAL_MS },
  ];
  const isTrusted = previous !== undefined && previous.cert !== authority.cert && isValid(previous, now);
  return {
    authorities: [authority.cert, ...(isTrusted ? [previous.cert] : [])],
    server,
    admin,
    goodFrom: Math.max(...periods.map(({ from }) => from)),
    goodUntil: Math.min(
      ...periods.map(({ until, renewalMs }) => until - renewalMs),
      ...(isTrusted ? [periodOf(previous.cert).until] : []),
    ),
  };
}

function serverNames({ node, options }: LocalAuthorityDeps): string[] {
  const local = ["localhost", "127.0.0.1", "::1"];
  const usual = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", node.name];
  const given = [node.ip, options.localApiAddress, options.cadvisorBindAddress];
  return [...new Set([...local, ...usual, ...given.filter((it) => it !== "" && it !== "0.0.0.0" && it !== "::")])];
}

async function readPair(files: TextFiles, directory: string, name: string): Promise<KeyPair | undefined> {
  try {
    const cert = await files.readText(join(directory, `${name}.crt`), SYSTEM_FILE_BYTES);
    const key = await files.readText(join(directory, `${name}.key`), SYSTEM_FILE_BYTES);
    return cert === undefined || key === undefined ? undefined : { cert, key };
  } catch (error) {
    throw new Error(`the certificates of the local API cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

async function writePair(files: TextFiles, directory: string, name: string, { cert, key }: KeyPair): Promise<void> {
  const options = { durable: true, directoryMode: 0o700 };
  // The key first: a later start would take a certificate without its key for a complete pair.
  await files.replaceFile(join(directory, `${name}.key`), key, options);
  await files.replaceFile(join(directory, `${name}.crt`), cert, { ...options, mode: 0o644 });
}

/** undefined for a text that is no certificate. */
const readable = (pair: KeyPair | undefined): KeyPair | undefined =>
  pair && unlessFailed(() => periodOf(pair.cert)) && pair;

function isValid(pair: KeyPair, now: number): boolean {
  const period = readable(pair) && periodOf(pair.cert);
  return period !== undefined && period.from <= now && now < period.until;
}

function isSignedBy({ cert }: KeyPair, authority: KeyPair): boolean {
  const issuer = new X509Certificate(authority.cert);
  const certificate = new X509Certificate(cert);
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** `admin.conf`: a kubeconfig for kubectl. Source: clientcmd/v1 `Config`. */
function toKubeconfig(url: string, nodeName: string, { authorities, admin }: LocalCertificates): string {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const name = `kubelet-ts-${nodeName}`;
  return `apiVersion: v1
kind: Config
clusters:
- name: ${name}
  cluster:
    server: ${url}
    certificate-authority-data: ${base64(authorities.join(""))}
users:
- name: ${name}-admin
  user:
    client-certificate-data: ${base64(admin.cert)}
    client-key-data: ${base64(admin.key)}
contexts:
- name: ${name}
  context:
    cluster: ${name}
    user: ${name}-admin
current-context: ${name}
`;
}

interface CertificateRenewerDeps {
  /** Reads the certificates, and makes those that are missing or about to expire. */
  prepare: () => Promise<LocalCertificates>;
  clock: Clock;
  logger: Logger;
}

/** After a failure, e.g. of a full disk, certificates are tried again. Most failures come weeks before anything expires. */
const FIRST_RETRY_MS = 60_000;
const RETRY_MS = 3_600_000;

/** The certificates in use, which are renewed while the process runs. */
export class CertificateRenewer {
  readonly #deps: CertificateRenewerDeps;
  #current: LocalCertificates | undefined;
  #isPreparing = false;
  #retryAtMs = 0;
  #cancelRetry: () => void = () => {};
  #isStopped = false;

  constructor(deps: CertificateRenewerDeps) {
    this.#deps = deps;
  }

  /** Calls `onReady` once, when there are certificates. Never rejects; tries again after a failure. */
  async start(onReady: () => void): Promise<void> {
    const { prepare, clock, logger } = this.#deps;
    try {
      this.#current = await prepare();
      if (!this.#isStopped) onReady();
    } catch (error) {
      logger.error(`The local API does not serve TLS yet: ${messageOf(error)}`);
      if (!this.#isStopped) this.#cancelRetry = clock.schedule(FIRST_RETRY_MS, () => void this.start(onReady));
    }
  }

  /**
   * The certificates of this moment. When they need a renewal, or the clock was set to a time at which they are not valid,
   * new ones are made in the background; until then the old ones are in use.
   * @throws Error before `onReady` was called
   */
  current(): LocalCertificates {
    const current = this.#current;
    if (!current) throw new Error("there are no certificates yet");
    const nowMs = this.#deps.clock.now().getTime();
    if (nowMs < current.goodFrom || nowMs >= current.goodUntil) void this.#renew();
    return current;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry();
  }

  async #renew(): Promise<void> {
    const { prepare, clock, logger } = this.#deps;
    if (this.#isPreparing || this.#isStopped || clock.monotonicMs() < this.#retryAtMs) return;
    this.#isPreparing = true;
    try {
      this.#current = await prepare();
    } catch (error) {
      this.#retryAtMs = clock.monotonicMs() + RETRY_MS;
      logger.error(`The local API keeps its certificates: ${messageOf(error)}`);
    } finally {
      this.#isPreparing = false;
    }
  }
}

/**
 * Brings the certificates of the local API up to date, and `<root-dir>/admin.conf` (mode 0600) that names them.
 * @throws what writing a file throws
 */
export async function prepareAdminConfig(deps: LocalAuthorityDeps): Promise<LocalCertificates> {
  const { options, node, files } = deps;
  const { rootDir, localApiAddress: address, localApiPort: port } = options;
  const certificates = await prepareCertificates(deps);
  const path = join(rootDir, "admin.conf");
  const text = toKubeconfig(`https://${toLocalHost(address, port)}`, node.name, certificates);
  const present = await files.readText(path, SYSTEM_FILE_BYTES).catch(() => undefined);
  if (present !== text) await files.replaceFile(path, text, { durable: true, directoryMode: 0o700 });
  return certificates;
}
