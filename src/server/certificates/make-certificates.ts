import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import type {
  CertificateRequest,
  CertificateResult,
  KeyPair,
  LeafRequest,
  SelfSignedRequest,
  SigningRequest,
  SigningResult,
} from "./certificate-process.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const { KeyUsageFlags } = x509;

interface Issuer {
  certificate: x509.X509Certificate;
  signingKey: CryptoKey;
}

/** Makes an authority unless it is given, and certificates it signs. Loads a large library: for a process of its own. */
export async function makeCertificates(request: CertificateRequest): Promise<CertificateResult> {
  const { notBefore, formerAuthority } = request;
  const authority = request.authority ?? (await makeAuthority(request));
  const issuer = await toIssuer(authority);
  const leaves = await Promise.all(request.leaves.map((leaf) => makeLeaf(leaf, notBefore, issuer)));
  const link = formerAuthority && (await makeLink(issuer.certificate, notBefore, await toIssuer(formerAuthority)));
  return { authority, ...(link !== undefined && { link }), leaves };
}

const toIssuer = async ({ cert, key }: KeyPair): Promise<Issuer> => ({
  certificate: new x509.X509Certificate(cert),
  signingKey: await importKey(key),
});

async function makeAuthority({ authorityName, notBefore, authorityNotAfter }: CertificateRequest): Promise<KeyPair> {
  const keys = await generateKeys();
  return await signItself(authorityName, notBefore, authorityNotAfter, keys, await authorityExtensions(keys.publicKey));
}

async function signItself(
  commonName: string,
  notBefore: number,
  notAfter: number,
  keys: CryptoKeyPair,
  extensions: x509.Extension[],
): Promise<KeyPair> {
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: nameOf(commonName),
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions,
  });
  return { cert: pem(cert), key: await exportKey(keys.privateKey) };
}

const authorityExtensions = async (publicKey: CryptoKey | x509.PublicKey): Promise<x509.Extension[]> => [
  new x509.BasicConstraintsExtension(true, undefined, true),
  new x509.KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign | KeyUsageFlags.digitalSignature, true),
  await x509.SubjectKeyIdentifierExtension.create(publicKey),
];

async function makeLink(authority: x509.X509Certificate, notBefore: number, former: Issuer): Promise<string> {
  const { certificate, signingKey } = former;
  const link = await x509.X509CertificateGenerator.create({
    subject: authority.subject,
    issuer: certificate.subject,
    notBefore: new Date(notBefore),
    notAfter: certificate.notAfter,
    signingAlgorithm: ALGORITHM,
    publicKey: authority.publicKey,
    signingKey,
    extensions: [
      ...(await authorityExtensions(authority.publicKey)),
      await x509.AuthorityKeyIdentifierExtension.create(certificate),
    ],
  });
  return pem(link);
}

async function makeLeaf(leaf: LeafRequest, notBefore: number, issuer: Issuer): Promise<KeyPair> {
  const { certificate, signingKey } = issuer;
  const keys = await generateKeys();
  const cert = await x509.X509CertificateGenerator.create({
    subject: nameOf(leaf.commonName, leaf.organization),
    issuer: certificate.subject,
    notBefore: new Date(notBefore),
    notAfter: new Date(leaf.notAfter),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [...leafExtensions(leaf), await x509.AuthorityKeyIdentifierExtension.create(certificate)],
  });
  return { cert: pem(cert), key: await exportKey(keys.privateKey) };
}

const leafExtensions = ({ usage, names }: Pick<LeafRequest, "usage" | "names">): x509.Extension[] => [
  new x509.BasicConstraintsExtension(false, undefined, true),
  new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
  new x509.ExtendedKeyUsageExtension([
    usage === "server" ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth,
  ]),
  ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names.map(alternativeName))] : []),
];

/** Clients trust it by knowing it (`curl --cacert`). What it says of itself is what the kubelet's own says. */
export async function makeSelfSigned({ selfSigned }: SelfSignedRequest): Promise<KeyPair> {
  const { commonName, names, notBefore, notAfter } = selfSigned;
  const extensions = leafExtensions({ usage: "server", names });
  return await signItself(commonName, notBefore, notAfter, await generateKeys(), extensions);
}

const isAddress = (name: string) => name.includes(":") || /^\d+(\.\d+){3}$/.test(name);

const alternativeName = (name: string): x509.JsonGeneralName => ({ type: isAddress(name) ? "ip" : "dns", value: name });

const nameOf = (commonName: string, organization?: string): x509.JsonName => [
  ...(organization === undefined ? [] : [{ O: [organization] }]),
  { CN: [commonName] },
];

const generateKeys = () => crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]) as Promise<CryptoKeyPair>;

const pem = (certificate: x509.X509Certificate) => `${certificate.toString("pem").trim()}\n`;

async function exportKey(key: CryptoKey): Promise<string> {
  const der = await crypto.subtle.exportKey("pkcs8", key);
  return `${x509.PemConverter.encode(der, "PRIVATE KEY").trim()}\n`;
}

function importKey(text: string): Promise<CryptoKey> {
  const [der] = x509.PemConverter.decode(text);
  if (!der) throw new Error("the key of the authority is no PEM");
  return crypto.subtle.importKey("pkcs8", der, ALGORITHM, true, ["sign"]);
}

async function makeSigningRequest({ signingRequest }: SigningRequest): Promise<SigningResult> {
  const { commonName, organization, names } = signingRequest;
  const keys = await generateKeys();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: nameOf(commonName, organization),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names.map(alternativeName))] : [],
  });
  return { request: `${request.toString("pem").trim()}\n`, key: await exportKey(keys.privateKey) };
}

/** The process behind {@link CERTIFICATES_ARGUMENT}: reads its request, writes its result. */
export async function runCertificateProcess(): Promise<void> {
  const request = (await Bun.stdin.json()) as CertificateRequest | SelfSignedRequest | SigningRequest;
  await Bun.write(Bun.stdout, JSON.stringify(await make(request)));
}

function make(request: CertificateRequest | SelfSignedRequest | SigningRequest): Promise<object> {
  if ("signingRequest" in request) return makeSigningRequest(request);
  return "selfSigned" in request ? makeSelfSigned(request) : makeCertificates(request);
}
