/** First argument of the child process that makes certificates and exits: its library takes 20 MB once loaded. */
export const CERTIFICATES_ARGUMENT = "__make-certificates";

/** Standard input of that process, as JSON. Times are milliseconds since 1970. */
export interface CertificateRequest {
  /** Absent: a new authority is made. */
  authority?: KeyPair;
  /** Common name of a new authority. */
  authorityName: string;
  notBefore: number;
  authorityNotAfter: number;
  /** The authority before this one, while it is valid: it certifies this one for clients that only know the former. */
  formerAuthority?: KeyPair;
  leaves: readonly LeafOrder[];
}

export interface LeafOrder {
  commonName: string;
  /** Organization: the group of a client. */
  organization?: string;
  usage: "server" | "client";
  /** DNS names and IP addresses of a server. */
  names: readonly string[];
  notAfter: number;
}

/** A certificate and its key, PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** Standard output of that process, as JSON. */
export interface CertificateResult {
  authority: KeyPair;
  /** PEM of a certificate for the key of `authority`, signed by the previous authority. Source: RFC 4210, 4.4 (NewWithOld). */
  link?: string;
  /** In the order of the order. */
  leaves: KeyPair[];
}

/** Order for a key and a request that another authority is to sign (PKCS #10), on the same input. */
export interface SigningOrder {
  signingRequest: Pick<LeafOrder, "commonName" | "organization" | "names">;
}

/** Order for a certificate of a server that signs itself, on the same input; a {@link KeyPair} is delivered. */
export interface SelfSignedOrder {
  selfSigned: Omit<LeafOrder, "usage" | "organization">;
  notBefore: number;
}

/** PEM. */
export interface SigningDelivery {
  request: string;
  key: string;
}
