import { X509Certificate } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readTextIfExists } from "../../base/files/bounded-read.ts";
import { type Kubeconfig, readKubeconfig } from "../client/kubeconfig.ts";

const MAX_PEM_BYTES = 1024 * 1024;
const PREFIX: Readonly<Record<CertificateUsage, string>> = { client: "kubelet-client", server: "kubelet-server" };

/** `<cert-dir>/kubelet-client-current.pem`: a link to the newest certificate with its key. Source: the kubelet. */
export const currentPath = (certDir: string, usage: CertificateUsage): string =>
  join(certDir, `${PREFIX[usage]}-current.pem`);

/** Life of the certificate in a PEM text; undefined when it holds none. */
export function readValidity(pem: string | undefined): Validity | undefined {
  if (pem === undefined) return undefined;
  try {
    const { validFrom, validTo } = new X509Certificate(pem);
    return { fromMs: Date.parse(validFrom), toMs: Date.parse(validTo) };
  } catch {
    return undefined;
  }
}

export const readCurrent = (certDir: string, usage: CertificateUsage): string | undefined =>
  readTextIfExists(currentPath(certDir, usage), MAX_PEM_BYTES);

/** Writes certificate and key to a file of their own and lets the link lead there, in one step. @throws Error */
export function storeCertificate(certDir: string, usage: CertificateUsage, pem: string, now: Date): void {
  const timestamp = now.toISOString().slice(0, 19).replaceAll(":", "-");
  const name = `${PREFIX[usage]}-${timestamp}.pem`;
  mkdirSync(certDir, { recursive: true, mode: 0o755 });
  const scratch = join(certDir, `${name}.new`);
  writeFileSync(scratch, pem, { mode: 0o600 });
  chmodSync(scratch, 0o600);
  renameSync(scratch, join(certDir, name));
  const link = `${currentPath(certDir, usage)}.new`;
  rmSync(link, { force: true });
  symlinkSync(name, link);
  renameSync(link, currentPath(certDir, usage));
}

/** The two kinds of certificates a node requests. */
export type CertificateUsage = "client" | "server";

/** Life of a certificate. Wall time in milliseconds. */
export interface Validity {
  fromMs: number;
  toMs: number;
}

/** Signers of Kubernetes, and the usages they demand exactly. Source: certificates.k8s.io, the kubelet's bootstrap. */
export const SIGNERS: Readonly<Record<CertificateUsage, { signerName: string; usages: readonly string[] }>> = {
  client: {
    signerName: "kubernetes.io/kube-apiserver-client-kubelet",
    usages: ["digital signature", "key encipherment", "client auth"],
  },
  server: {
    signerName: "kubernetes.io/kubelet-serving",
    usages: ["digital signature", "key encipherment", "server auth"],
  },
};

/** Identity that the authorizer of nodes knows. Source: `user.NodesGroup`. */
export const nodeIdentity = (nodeName: string) => ({
  commonName: `system:node:${nodeName}`,
  organization: "system:nodes",
});

/**
 * When a certificate is replaced: after 70 to 90 % of its life. Wall time in milliseconds. Pure.
 * Source: client-go's certificate manager.
 * @param random in [0, 1)
 */
export const computeRotation = ({ fromMs, toMs }: Validity, random: number): number =>
  fromMs + (toMs - fromMs) * (0.7 + random * 0.2);

/** Whether a certificate can be used now. */
export const isValidAt = ({ fromMs, toMs }: Validity, nowMs: number): boolean => fromMs <= nowMs && nowMs < toMs;

/** Response of the signer so far. */
type SigningState = { is: "waiting" } | { is: "issued"; certificate: string } | { is: "refused"; why: string };

interface RequestStatus {
  certificate?: string;
  conditions?: readonly { type: string; reason?: string; message?: string }[];
}

/** @param status of a CertificateSigningRequest */
export function readSigningState(status: RequestStatus | undefined): SigningState {
  const refusal = status?.conditions?.find(({ type }) => type === "Denied" || type === "Failed");
  if (refusal) {
    const why = [refusal.reason, refusal.message].filter(Boolean).join(": ");
    return { is: "refused", why: why === "" ? refusal.type : `${refusal.type}: ${why}` };
  }
  return status?.certificate
    ? { is: "issued", certificate: Buffer.from(status.certificate, "base64").toString("utf8") }
    : { is: "waiting" };
}

interface BootstrapOptions {
  kubeconfig: string;
  bootstrapKubeconfig: string;
}

/**
 * Whether the bootstrap credentials are needed: the kubeconfig is missing, or its certificate has expired. One that uses
 * tokens or plugins counts as good.
 */
export function needsBootstrap({ kubeconfig, bootstrapKubeconfig }: BootstrapOptions, now: Date): boolean {
  if (bootstrapKubeconfig === "") return false;
  let config: Kubeconfig;
  try {
    config = readKubeconfig(kubeconfig);
  } catch {
    return true;
  }
  const { user } = config;
  const path = user["client-certificate"];
  const data = user["client-certificate-data"];
  if (!path && !data) return !(user.token || user.tokenFile || user.exec || user["auth-provider"] || user.username);
  const pem = data ? Buffer.from(data, "base64").toString("utf8") : readTextIfExists(path!, MAX_PEM_BYTES);
  const validity = readValidity(pem);
  return !validity || !isValidAt(validity, now.getTime());
}

/** Writes the kubeconfig that uses the certificate of `--cert-dir`, with server and CA of the bootstrap kubeconfig. @throws Error */
export function writeKubeconfig({ kubeconfig, bootstrapKubeconfig }: BootstrapOptions, certDir: string): void {
  const { cluster } = readKubeconfig(bootstrapKubeconfig);
  const pem = currentPath(certDir, "client");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default-cluster", cluster }],
    users: [{ name: "default-auth", user: { "client-certificate": pem, "client-key": pem } }],
    contexts: [
      { name: "default-context", context: { cluster: "default-cluster", namespace: "default", user: "default-auth" } },
    ],
    "current-context": "default-context",
  };
  mkdirSync(dirname(kubeconfig), { recursive: true });
  // JSON is YAML.
  writeFileSync(`${kubeconfig}.new`, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${kubeconfig}.new`, kubeconfig);
}
