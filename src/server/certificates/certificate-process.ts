import { ownCommand, runProgram } from "../../base/host/run-program.ts";

/** First argument of the child process that makes certificates and exits: its library takes 20 MB once loaded. */
export const CERTIFICATES_ARGUMENT = "__make-certificates";

/** Standard input of that process, as JSON. Times are milliseconds since 1970. */
export interface CertificateRequest {
  /** Absent: a new authority is made. */
  authority?: KeyPair;
  authorityName: string;
  notBefore: number;
  authorityNotAfter: number;
  /** The authority before this one, while it is valid: it certifies this one for clients that only know the former. */
  formerAuthority?: KeyPair;
  leaves: readonly LeafRequest[];
}

export interface LeafRequest {
  commonName: string;
  /** Organization: the group of a client. */
  organization?: string;
  usage: "server" | "client";
  /** DNS names and IP addresses of a server. */
  names: readonly string[];
  notAfter: number;
}

/** A certificate of a server that signs itself, on the same input. */
export interface SelfSignedRequest {
  selfSigned: Pick<LeafRequest, "commonName" | "names" | "notAfter"> & { notBefore: number };
}

export interface KeyPair {
  cert: string;
  key: string;
}

export interface CertificateResult {
  authority: KeyPair;
  /** PEM of a certificate for the key of `authority`, signed by the previous authority. Source: RFC 4210, 4.4 (NewWithOld). */
  link?: string;
  /** In the order of the request. */
  leaves: KeyPair[];
}

/** A key, and a request for a certificate of it that another authority is to sign (PKCS #10), on the same input. */
export interface SigningRequest {
  signingRequest: Pick<LeafRequest, "commonName" | "organization" | "names">;
}

export interface SigningResult {
  request: string;
  key: string;
}

/** Longer than a slow edge device needs. */
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** This program runs again to make certificates, so that the library is gone from memory afterwards. @throws Error */
export const makeCertificates = (request: CertificateRequest): Promise<CertificateResult> => inChild(request);

export const makeSelfSigned = (selfSigned: SelfSignedRequest["selfSigned"]): Promise<KeyPair> =>
  inChild({ selfSigned });

export const makeSigningRequest = (signingRequest: SigningRequest["signingRequest"]): Promise<SigningResult> =>
  inChild({ signingRequest });

async function inChild<T>(request: CertificateRequest | SelfSignedRequest | SigningRequest): Promise<T> {
  const { exitCode, stdout, stderr } = await runProgram([...ownCommand(), CERTIFICATES_ARGUMENT], {
    input: JSON.stringify(request),
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_OUTPUT_BYTES,
  });
  if (exitCode !== 0)
    throw new Error(`certificates could not be made: ${stderr.trim().slice(-500) || `exit code ${exitCode}`}`);
  return JSON.parse(stdout) as T;
}
