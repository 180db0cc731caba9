import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../../files/bounded-read.ts";
import { writeFileAtomically } from "../storage/atomic-file.ts";
import type { CertificateDelivery, CertificateOrder, KeyPair, LeafOrder } from "./certificate-request.ts";

export interface LocalAuthorityDeps {
  rootDir: string;
  nodeName: string;
  /** Names and addresses clients may use, in addition to the usual ones. */
  addresses: readonly string[];
  /** Makes certificates in a process of its own. */
  make: (order: CertificateOrder) => Promise<CertificateDelivery>;
  now: () => Date;
}

/** Everything TLS needs, PEM. */
export interface LocalCertificates {
  authority: string;
  server: KeyPair;
  admin: KeyPair;
}

const DAY_MS = 24 * 3_600_000;
const AUTHORITY_VALID_MS = 10 * 365 * DAY_MS;
const LEAF_VALID_MS = 365 * DAY_MS;
/** Certificates are replaced this time before they expire. */
const RENEWAL_MS = 30 * DAY_MS;
/** Clocks of clients may be behind ours. */
const BACKDATED_MS = DAY_MS;

/**
 * The authority of this node and its certificates in `<root-dir>/apiserver`: made at the first start, renewed before they
 * end. Keys are 0600.
 * @throws Error whose message names the file
 */
export async function prepareCertificates(deps: LocalAuthorityDeps): Promise<LocalCertificates> {
  const directory = join(deps.rootDir, "apiserver");
  const now = deps.now().getTime();
  const names = serverNames(deps);
  const authority = readPair(directory, "ca");
  const keptAuthority = authority && isGood(authority, now) ? authority : undefined;
  const keep = (name: string, wanted: readonly string[]) => {
    const pair = keptAuthority && readPair(directory, name);
    return pair && isGood(pair, now) && isSignedBy(pair, keptAuthority) && hasNames(pair, wanted) ? pair : undefined;
  };
  const server = keep("server", names);
  const admin = keep("admin", []);
  if (keptAuthority && server && admin) return { authority: keptAuthority.cert, server, admin };
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
  const delivery = await deps.make({
    ...(keptAuthority && { authority: keptAuthority }),
    authorityName: `kubelet-ts ${deps.nodeName}`.slice(0, 64),
    notBefore: now - BACKDATED_MS,
    authorityNotAfter: now + AUTHORITY_VALID_MS,
    leaves: wanted.map(({ order }) => order),
  });
  if (!keptAuthority) writePair(directory, "ca", delivery.authority);
  const made = new Map(wanted.map(({ file }, index) => [file, delivery.leaves[index]!]));
  for (const [file, pair] of made) writePair(directory, file, pair);
  return {
    authority: delivery.authority.cert,
    server: server ?? made.get("server")!,
    admin: admin ?? made.get("admin")!,
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

function readPair(directory: string, name: string): KeyPair | undefined {
  try {
    return {
      cert: readBoundedText(join(directory, `${name}.crt`), SYSTEM_FILE_BYTES),
      key: readBoundedText(join(directory, `${name}.key`), SYSTEM_FILE_BYTES),
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new Error(`the certificates of the local API cannot be read: ${message}`, { cause: error });
  }
}

function writePair(directory: string, name: string, { cert, key }: KeyPair): void {
  // The key first: a certificate without its key would look whole to a later start.
  writeFileAtomically(join(directory, `${name}.key`), key);
  writeFileAtomically(join(directory, `${name}.crt`), cert);
  chmodSync(join(directory, `${name}.crt`), 0o644);
}

/** Whether a key pair can be kept: readable, certificate and key match, and it does not expire soon. */
function isGood({ cert, key }: KeyPair, now: number): boolean {
  try {
    const certificate = new X509Certificate(cert);
    const endsInMs = Date.parse(certificate.validTo) - now;
    return (
      endsInMs > RENEWAL_MS &&
      Date.parse(certificate.validFrom) <= now &&
      certificate.checkPrivateKey(createPrivateKey(key))
    );
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
export function toKubeconfig(url: string, nodeName: string, { authority, admin }: LocalCertificates): string {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const name = `kubelet-ts-${nodeName}`;
  return `apiVersion: v1
kind: Config
clusters:
- name: ${name}
  cluster:
    server: ${url}
    certificate-authority-data: ${base64(authority)}
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
