import { X509Certificate } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTextIfExists } from "../../base/files/bounded-read.ts";
import type { CertificateUsage, Validity } from "./certificate-plan.ts";

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
