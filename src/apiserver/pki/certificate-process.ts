import { CERTIFICATES_ARGUMENT, type CertificateDelivery, type CertificateOrder } from "./certificate-request.ts";

/** Longer than the slowest edge box takes. */
const PATIENCE_MS = 60_000;

/**
 * Runs this binary again to make certificates, so that the library is gone from memory afterwards.
 * @param argv how this program is started, e.g. its own path
 * @throws Error
 */
export async function makeInChild(argv: readonly string[], order: CertificateOrder): Promise<CertificateDelivery> {
  const child = Bun.spawn([...argv, CERTIFICATES_ARGUMENT], {
    stdin: Buffer.from(JSON.stringify(order)),
    stdout: "pipe",
    stderr: "pipe",
    timeout: PATIENCE_MS,
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0)
    throw new Error(`certificates could not be made: ${errors.trim().slice(-500) || `exit code ${code}`}`);
  return JSON.parse(output) as CertificateDelivery;
}
