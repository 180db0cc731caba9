import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { join } from "node:path";
import { SYSTEM_FILE_BYTES, type TextFiles } from "../base/files/whole-file.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { SelfSignedRequest } from "./certificates/certificate-process.ts";

export type TlsFileOptions = Pick<KubeletOptions, "certDir" | "tlsCertFile" | "tlsPrivateKeyFile" | "clientCaFile"> &
  Partial<Pick<KubeletOptions, "rotateServerCertificates">>;

/** Certificates and key of a TLS server, as PEM. */
export interface TlsMaterial {
  /** The server's certificate and those above it. */
  cert: string;
  key: string;
  /** One each; empty when clients are not authenticated by certificates. */
  clientCas: readonly string[];
}

type CertificatePair = Pick<TlsMaterial, "cert" | "key">;

/** Files that are read and written, and what makes a certificate for them. */
export interface CertificateStore {
  files: TextFiles;
  makeCertificate: (request: SelfSignedRequest["selfSigned"]) => Promise<CertificatePair>;
}

/** Names that the self-made certificate must be valid for. */
interface ServedNames {
  nodeName: string;
  /** "" while unknown. */
  nodeIp: string;
}

export const DAY_MS = 24 * 3_600_000;
export const LEAF_VALID_MS = 365 * DAY_MS;
/** A certificate is replaced this time before it expires. */
export const RENEWAL_MS = 30 * DAY_MS;
/** Clocks of clients may be behind ours. */
export const BACKDATED_MS = DAY_MS;
/** X.520 allows no longer common name. */
const MAX_COMMON_NAME = 64;

/** The files of the authenticated port. A certificate in `--cert-dir` is made when none is given and there is none that still serves. @throws Error that names flag and file */
export async function readTlsMaterial(
  store: CertificateStore,
  options: TlsFileOptions,
  names: ServedNames,
  now: Date,
): Promise<TlsMaterial> {
  const { files } = store;
  const clientCas = options.clientCaFile ? await readAuthorities(files, options.clientCaFile) : [];
  if (options.tlsCertFile) {
    const { tlsCertFile, tlsPrivateKeyFile } = options;
    const cert = await read(files, "--tls-cert-file", tlsCertFile);
    const key = await read(files, "--tls-private-key-file", tlsPrivateKeyFile);
    const problem = problemOfPair(cert, key);
    const where = `--tls-cert-file "${tlsCertFile}", --tls-private-key-file "${tlsPrivateKeyFile}"`;
    if (problem) throw new Error(`${where}: ${problem}`);
    return { cert, key, clientCas };
  }
  const issued = options.rotateServerCertificates ? await readIssued(files, options.certDir) : undefined;
  return { ...(issued ?? (await keptOrMade(store, options.certDir, names, now))), clientCas };
}

/** The certificate that the cluster issued, with its key; undefined before it has. Source: the kubelet's file name. */
async function readIssued(files: TextFiles, certDir: string): Promise<CertificatePair | undefined> {
  const pem = await readOptional(files, "--cert-dir", join(certDir, "kubelet-server-current.pem"));
  return pem === undefined || problemOfPair(pem, pem) ? undefined : { cert: pem, key: pem };
}

async function keptOrMade(store: CertificateStore, certDir: string, names: ServedNames, now: Date) {
  const certFile = join(certDir, "kubelet.crt");
  const keyFile = join(certDir, "kubelet.key");
  const cert = await readOptional(store.files, "--cert-dir", certFile);
  const key = await readOptional(store.files, "--cert-dir", keyFile);
  if (cert === undefined && key === undefined) return await make(store, certFile, keyFile, names, now);
  if (cert === undefined || key === undefined) {
    const [there, missing] = cert === undefined ? [keyFile, certFile] : [certFile, keyFile];
    throw new Error(`--cert-dir: there is "${there}" but no "${missing}": remove the one or add the other`);
  }
  // Another program's files are used as they are and never overwritten.
  if (!isOurs(cert)) {
    const problem = problemOfPair(cert, key);
    if (problem) throw new Error(`--cert-dir: "${certFile}", "${keyFile}": ${problem}`);
  } else if (!isGood({ cert, key }, now.getTime(), RENEWAL_MS) || !hasNames(cert, alternativeNames(names))) {
    return await make(store, certFile, keyFile, names, now);
  }
  return { cert, key };
}

async function make(
  { files, makeCertificate }: CertificateStore,
  certFile: string,
  keyFile: string,
  names: ServedNames,
  now: Date,
): Promise<CertificatePair> {
  const { cert, key } = await makeCertificate({
    commonName: `${names.nodeName.slice(0, MAX_COMMON_NAME - 12)}@${Math.floor(now.getTime() / 1000)}`,
    names: alternativeNames(names),
    notBefore: now.getTime() - BACKDATED_MS,
    notAfter: now.getTime() + LEAF_VALID_MS,
  });
  try {
    // The certificate first: with it a later start knows that a key which does not fit is ours.
    await files.replaceFile(certFile, cert, { durable: false, directoryMode: 0o755, mode: 0o644 });
    await files.replaceFile(keyFile, key, { durable: false, directoryMode: 0o755 });
  } catch (cause) {
    throw new Error(`--cert-dir: cannot write "${certFile}" and "${keyFile}": ${messageOf(cause)}`, { cause });
  }
  return { cert, key };
}

const alternativeNames = ({ nodeName, nodeIp }: ServedNames): string[] => [
  ...new Set([nodeName, "localhost", ...(nodeIp ? [nodeIp] : []), "127.0.0.1", "::1"]),
];

/** Self-signed and named `<node>@<unix time>`. The kubelet's own certificates have such names but another issuer. */
function isOurs(cert: string): boolean {
  try {
    const { subject, issuer } = new X509Certificate(cert);
    return subject === issuer && /^CN=[^\n]*@\d+$/.test(subject);
  } catch {
    return false;
  }
}

/** Life of a certificate. Unit: milliseconds since 1970. @throws Error when it is none */
export function periodOf(cert: string): { from: number; until: number } {
  const { validFrom, validTo } = new X509Certificate(cert);
  return { from: Date.parse(validFrom), until: Date.parse(validTo) };
}

/**
 * Whether a pair that this program made can be kept: certificate and key match, it does not expire within `renewalMs`, and
 * does not begin in the future, as one that was made by a clock that was ahead.
 */
export function isGood({ cert, key }: CertificatePair, now: number, renewalMs: number): boolean {
  if (problemOfPair(cert, key)) return false;
  const { from, until } = periodOf(cert);
  return from <= now && until - now > renewalMs;
}

export function hasNames(cert: string, names: readonly string[]): boolean {
  const certificate = new X509Certificate(cert);
  return names.every((name) =>
    isIP(name) ? certificate.checkIP(name) !== undefined : certificate.checkHost(name) !== undefined,
  );
}

/** Why a server cannot be made of these; undefined when it can. Never quotes the key. */
function problemOfPair(cert: string, key: string): string | undefined {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch {
    return "the certificate file holds no PEM certificate";
  }
  try {
    return certificate.checkPrivateKey(createPrivateKey(key))
      ? undefined
      : "the key does not belong to the certificate";
  } catch {
    return "the key file holds no PEM private key, or one with a password";
  }
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of `--client-ca-file`, one each. @throws Error */
export async function readAuthorities(files: Reads, file: string): Promise<string[]> {
  const text = await read(files, "--client-ca-file", file);
  const authorities = text.match(PEM_CERTIFICATE) ?? [];
  if (authorities.length === 0) throw new Error(`--client-ca-file "${file}" holds no PEM certificate`);
  for (const [index, pem] of authorities.entries()) {
    try {
      new X509Certificate(pem);
    } catch {
      const which = `certificate ${index + 1} of ${authorities.length}`;
      throw new Error(`--client-ca-file "${file}": ${which} is damaged`);
    }
  }
  return authorities;
}

type Reads = Pick<TextFiles, "readText">;

async function read(files: Reads, flag: string, file: string): Promise<string> {
  const text = await readOptional(files, flag, file);
  if (text === undefined) throw new Error(`${flag} "${file}": there is no such file`);
  return text;
}

async function readOptional(files: Reads, flag: string, file: string): Promise<string | undefined> {
  try {
    return await files.readText(file, SYSTEM_FILE_BYTES);
  } catch (cause) {
    throw new Error(`${flag} "${file}" cannot be read: ${messageOf(cause)}`, { cause });
  }
}
