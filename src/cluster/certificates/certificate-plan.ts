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
