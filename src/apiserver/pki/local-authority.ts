import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { join } from "node:path";
import { SYSTEM_FILE_BYTES } from "../../base/files/bounded-read.ts";
import type { TextFiles } from "../../base/files/text-files.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { CertificateRequest, CertificateResult, KeyPair, LeafOrder } from "./certificate-request.ts";

interface LocalAuthorityDeps {
  rootDir: string;
  nodeName: string;
  /** Names and addresses clients may use, in addition to the usual ones. */
  addresses: readonly string[];
  /** Makes certificates in a process of its own. */
  make: (order: CertificateRequest) => Promise<CertificateResult>;
  now: () => Date;
  files: TextFiles;
}

/** Everything TLS needs, PEM. */
export interface LocalCertificates {
  /** Authorities whose clients are accepted, the one that signs first. */
  authorities: readonly string[];
  server: KeyPair;
  admin: KeyPair;
  /** The certificates need no check within this time. Unit: milliseconds since 1970. */
  goodFrom: number;
  goodUntil: number;
}

const DAY_MS = 24 * 3_600_000;
const AUTHORITY_VALID_MS = 10 * 365 * DAY_MS;
const LEAF_VALID_MS = 365 * DAY_MS;
/** Certificates are replaced this time before they expire. */
const RENEWAL_MS = 30 * DAY_MS;
/** The authority is replaced while it still outlives every certificate that it has signed. */
const AUTHORITY_RENEWAL_MS = LEAF_VALID_MS + RENEWAL_MS;
/** Clocks of clients may be behind ours. */
const BACKDATED_MS = DAY_MS;

/**
 * The authority of this node and its certificates in `<root-dir>/apiserver`: made at the first start, renewed before they
 * expire. The authority before the current one is kept as `ca-previous`: certificates it signed are accepted until they
 * expire, and it certifies the new one. It signs again when the clock shows that the current one was made at a wrong time.
 * Keys are 0600.
 * @throws Error whose message names the file
 */
export async function prepareCertificates(deps: LocalAuthorityDeps): Promise<LocalCertificates> {
  const directory = join(deps.rootDir, "apiserver");
  const now = deps.now().getTime();
  const names = serverNames(deps);
  const { files } = deps;
  const found = await readPair(files, directory, "ca");
  const foundPrevious = await readPair(files, directory, "ca-previous");
  const kept = [found, foundPrevious].find((it) => it && isGood(it, now, AUTHORITY_RENEWAL_MS));
  const isReinstated = kept !== undefined && kept === foundPrevious;
  const previous = kept && !isReinstated ? foundPrevious : (readable(found) ?? foundPrevious);
  const trusted = [kept, previous].filter((it) => it !== undefined && isValid(it, now)) as KeyPair[];
  const keep = async (name: string, wanted: readonly string[]) => {
    const pair = await readPair(files, directory, name);
    const isKept = pair && isGood(pair, now, RENEWAL_MS) && trusted.some((it) => isSignedBy(pair, it));
    return isKept && hasNames(pair, wanted) ? pair : undefined;
  };
  const server = await keep("server", names);
  const admin = await keep("admin", []);
  if (found && kept === found && server && admin) return toCertificates(found, previous, server, admin, now);
  const notAfter = now + LEAF_VALID_MS;
  const wanted: { file: string; order: LeafOrder }[] = [];
  if (!server)
    wanted.push({
      file: "server",
      order: { commonName: deps.nodeName.slice(0, 64), usage: "server", names, notAfter },
    });
  if (!admin) {
    const order: LeafOrder = {
      commonName: "kubelet-ts-admin",
      organization: "system:masters",
      usage: "client",
      names: [],
      notAfter,
    };
    wanted.push({ file: "admin", order });
  }
  const former = previous && canSign(previous, now) ? previous : undefined;
  const delivery = await deps.make({
    ...(kept && { authority: kept }),
    ...(former && { formerAuthority: former }),
    // Names that differ help clients that look for an authority by its name.
    authorityName: `kubelet-ts ${deps.nodeName.slice(0, 40)}@${Math.floor(now / 1000)}`,
    notBefore: now - BACKDATED_MS,
    authorityNotAfter: now + AUTHORITY_VALID_MS,
    leaves: wanted.map(({ order }) => order),
  });
  const replacePrevious = async () => previous && (await writePair(files, directory, "ca-previous", previous));
  // A process that ends in between must not lose an authority: each is written elsewhere before it is overwritten.
  if (isReinstated) await writePair(files, directory, "ca", delivery.authority);
  if (!found || kept !== found) await replacePrevious();
  if (!kept) await writePair(files, directory, "ca", delivery.authority);
  const made = new Map(wanted.map(({ file }, index) => [file, delivery.leaves[index]!]));
  const madeServer = made.get("server");
  // Clients that only know the previous authority follow the link to it.
  if (madeServer && delivery.link !== undefined) madeServer.cert += delivery.link;
  for (const [file, pair] of made) await writePair(files, directory, file, pair);
  return toCertificates(delivery.authority, previous, server ?? madeServer!, admin ?? made.get("admin")!, now);
}

function toCertificates(
  authority: KeyPair,
  previous: KeyPair | undefined,
  server: KeyPair,
  admin: KeyPair,
  now: number,
): LocalCertificates {
  const periods = [
    { ...periodOf(authority), renewalMs: AUTHORITY_RENEWAL_MS },
    { ...periodOf(server), renewalMs: RENEWAL_MS },
    { ...periodOf(admin), renewalMs: RENEWAL_MS },
  ];
  const isTrusted = previous !== undefined && previous.cert !== authority.cert && isValid(previous, now);
  return {
    authorities: [authority.cert, ...(isTrusted ? [previous.cert] : [])],
    server,
    admin,
    goodFrom: Math.max(...periods.map(({ from }) => from)),
    goodUntil: Math.min(
      ...periods.map(({ until, renewalMs }) => until - renewalMs),
      ...(isTrusted ? [periodOf(previous).until] : []),
    ),
  };
}

function serverNames({ nodeName, addresses }: LocalAuthorityDeps): string[] {
  const usual = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    nodeName,
    "127.0.0.1",
    "::1",
  ];
  return [...new Set([...usual, ...addresses.filter((it) => it !== "" && it !== "0.0.0.0" && it !== "::")])];
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

/** Unit: milliseconds since 1970. @throws Error when it is no certificate */
function periodOf({ cert }: KeyPair): { from: number; until: number } {
  const { validFrom, validTo } = new X509Certificate(cert);
  return { from: Date.parse(validFrom), until: Date.parse(validTo) };
}

/** undefined for a text that is no certificate. */
function readable(pair: KeyPair | undefined): KeyPair | undefined {
  try {
    if (pair) periodOf(pair);
    return pair;
  } catch {
    return undefined;
  }
}

function isValid(pair: KeyPair, now: number): boolean {
  const period = readable(pair) && periodOf(pair);
  return period !== undefined && period.from <= now && now < period.until;
}

/** Whether certificate and key belong together, and are valid now. */
function canSign(pair: KeyPair, now: number): boolean {
  return isGood(pair, now, 0);
}

/** Whether a key pair can be kept: readable, certificate and key match, and it does not expire within `renewalMs`. */
function isGood(pair: KeyPair, now: number, renewalMs: number): boolean {
  try {
    const { from, until } = periodOf(pair);
    const certificate = new X509Certificate(pair.cert);
    return from <= now && until - now > renewalMs && certificate.checkPrivateKey(createPrivateKey(pair.key));
  } catch {
    return false;
  }
}

function isSignedBy({ cert }: KeyPair, authority: KeyPair): boolean {
  const issuer = new X509Certificate(authority.cert);
  const certificate = new X509Certificate(cert);
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function hasNames({ cert }: KeyPair, names: readonly string[]): boolean {
  const certificate = new X509Certificate(cert);
  return names.every((name) =>
    isIP(name) ? certificate.checkIP(name) !== undefined : certificate.checkHost(name) !== undefined,
  );
}

/** `admin.conf`: a kubeconfig for kubectl. Source: clientcmd/v1 `Config`. */
export function toKubeconfig(url: string, nodeName: string, { authorities, admin }: LocalCertificates): string {
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
