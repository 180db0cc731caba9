import { runProgram } from "../../base/host/run-program.ts";
import {
  CERTIFICATES_ARGUMENT,
  type CertificateRequest,
  type CertificateResult,
  type KeyPair,
  type SelfSignedOrder,
  type SigningDelivery,
  type SigningOrder,
} from "./certificate-request.ts";

/** Longer than a slow edge device needs. */
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/**
 * Runs this binary again to make certificates, so that the library is gone from memory afterwards.
 * @param argv how this program is started, e.g. its own path
 * @throws Error
 */
export const makeInChild = (argv: readonly string[], order: CertificateRequest): Promise<CertificateResult> =>
  deliver<CertificateResult>(argv, order);

/** A new key, and a request for a certificate of it, in the same way. @throws Error */
export const makeSigningRequest = (argv: readonly string[], order: SigningOrder): Promise<SigningDelivery> =>
  deliver<SigningDelivery>(argv, order);

/** A certificate that signs itself, in the same way. @throws Error */
export const makeSelfSigned = (
  argv: readonly string[],
  { notBefore, ...selfSigned }: SelfSignedOrder["selfSigned"] & { notBefore: number },
): Promise<KeyPair> => deliver<KeyPair>(argv, { selfSigned, notBefore });

async function deliver<T>(
  argv: readonly string[],
  order: CertificateRequest | SigningOrder | SelfSignedOrder,
): Promise<T> {
  const { exitCode, stdout, stderr } = await runProgram([...argv, CERTIFICATES_ARGUMENT], {
    input: JSON.stringify(order),
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_OUTPUT_BYTES,
  });
  if (exitCode !== 0)
    throw new Error(`certificates could not be made: ${stderr.trim().slice(-500) || `exit code ${exitCode}`}`);
  return JSON.parse(stdout) as T;
}
