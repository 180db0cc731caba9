import { join } from "node:path";
import { SYSTEM_FILE_BYTES } from "../../base/files/bounded-read.ts";
import type { TextFiles } from "../../base/files/text-files.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { CertificateRequest, CertificateResult } from "./certificate-request.ts";
import { type LocalCertificates, prepareCertificates, toKubeconfig } from "./local-authority.ts";

interface AdminConfigDeps {
  rootDir: string;
  nodeName: string;
  nodeIp: string;
  /** Where the API listens. */
  address: string;
  port: number;
  /** The certificate is valid for these too. */
  otherAddresses: readonly string[];
  makeCertificates: (order: CertificateRequest) => Promise<CertificateResult>;
  clock: Clock;
  files: TextFiles;
}

/**
 * Brings the certificates of the local API up to date, and `<root-dir>/admin.conf` (mode 0600) that names them.
 * @throws what writing a file throws
 */
export async function prepareAdminConfig(deps: AdminConfigDeps): Promise<LocalCertificates> {
  const { rootDir, nodeName, nodeIp, address, otherAddresses, port, makeCertificates, clock, files } = deps;
  const certificates = await prepareCertificates({
    rootDir,
    nodeName,
    addresses: [nodeIp, address, ...otherAddresses],
    make: makeCertificates,
    files,
    now: () => clock.now(),
  });
  const path = join(rootDir, "admin.conf");
  const text = toKubeconfig(`https://${toClientHost(address)}:${port}`, nodeName, certificates);
  const present = await files.readText(path, SYSTEM_FILE_BYTES).catch(() => undefined);
  if (present !== text) await files.replaceFile(path, text, { durable: true, directoryMode: 0o700 });
  return certificates;
}

/** The host by which a client of this machine reaches a listener on `address`. */
function toClientHost(address: string): string {
  if (address === "0.0.0.0") return "127.0.0.1";
  if (address === "::") return "[::1]";
  return address.includes(":") ? `[${address}]` : address;
}
