import { X509Certificate } from "node:crypto";
import { renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { readTextIfExists, replaceFile } from "../../base/files/whole-file.ts";
import { BackOff } from "../../base/model/back-off.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import { isNotFound } from "../client/api-error.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { type Kubeconfig, readKubeconfig } from "../client/credentials.ts";

/** Makes a key and a PKCS #10 request, PEM. @throws Error */
export type MakeSigningRequest = (subject: {
  commonName: string;
  organization: string;
  names: readonly string[];
}) => Promise<{ request: string; key: string }>;

interface CertificateManagerDeps {
  client: Pick<ClusterClient, "request">;
  clock: Clock;
  logger: Logger;
  file: CertificateFile;
  nodeName: string;
  /** For the names of a serving certificate. */
  node: { addresses(): Promise<readonly { address: string }[]> };
  makeSigningRequest: MakeSigningRequest;
  /** A new certificate was stored. */
  onStored: () => void;
}

interface SigningRequest {
  metadata: { name: string };
  status?: RequestStatus;
}

const PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RETRY = { first: 2_000, longest: 300_000 };
/** Time between two reads of a request that is not signed yet. */
const POLL = { first: 1_000, longest: 15_000 };
/** A request that is not signed by then is made again: signers remove old ones. Source: the kubelet. */
const SIGNING_TIMEOUT_MS = 15 * 60_000;
/** A clock that jumps must not let a certificate expire unnoticed. */
const LONGEST_SLEEP_MS = 3_600_000;

/** Keeps one certificate of the node: requests it when there is none that is valid, and a new one before it expires. */
export class CertificateManager {
  readonly #deps: CertificateManagerDeps;
  readonly #random = Math.random();

  constructor(deps: CertificateManagerDeps) {
    this.#deps = deps;
  }

  /** Replaces the certificate in time, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const backOff = new BackOff(RETRY, Math.random);
    let obtainedAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      const validity = this.#validity();
      const nowMs = clock.now().getTime();
      // Signers date certificates back: the time before it was issued is not part of its life.
      const life = validity && { ...validity, fromMs: Math.max(validity.fromMs, obtainedAtMs) };
      const dueMs = life ? computeRotation(life, this.#random) : nowMs;
      if (dueMs <= nowMs) {
        await this.obtain(signal);
        obtainedAtMs = clock.now().getTime();
        // With a wrong clock every new certificate looks bad: that must not make a storm of requests.
        if (this.#validity()) backOff.reset();
        else await clock.sleep(backOff.next(), signal).catch(() => {});
      } else await clock.sleep(Math.min(dueMs - nowMs, LONGEST_SLEEP_MS), signal).catch(() => {});
    }
  }

  /** Life of the certificate; undefined when there is none that is valid now. */
  #validity(): Validity | undefined {
    const { clock, file } = this.#deps;
    const validity = readValidity(file.read());
    return validity && isValidAt(validity, clock.now().getTime()) ? validity : undefined;
  }

  /** Requests a certificate until one is issued and stored, or the signal aborts. */
  async obtain(signal: AbortSignal): Promise<void> {
    const { clock, logger, file } = this.#deps;
    const backOff = new BackOff(RETRY, Math.random);
    while (!signal.aborted) {
      try {
        await this.#attempt(signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        logger.warn(`Cannot obtain a ${file.usage} certificate, will try again: ${(error as Error).message}`);
        await clock.sleep(backOff.next(), signal).catch(() => {});
      }
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { client, clock, logger, file, nodeName, makeSigningRequest, onStored } = this.#deps;
    const { usage } = file;
    // The identity that the authorizer of nodes knows. Source: `user.NodesGroup`.
    const identity = { commonName: `system:node:${nodeName}`, organization: "system:nodes" };
    const { request, key } = await makeSigningRequest({ ...identity, names: await this.#names() });
    // The signers demand exactly these.
    const usages = ["digital signature", "key encipherment", `${usage} auth`];
    const made = await client.request<SigningRequest>({
      method: "POST",
      path: PATH,
      body: {
        apiVersion: "certificates.k8s.io/v1",
        kind: "CertificateSigningRequest",
        metadata: { generateName: "csr-" },
        spec: { request: Buffer.from(request).toString("base64"), signerName: SIGNERS[usage], usages },
      },
      signal,
    });
    const { name } = made.metadata;
    logger.info(`Certificate request "${name}" for a ${usage} certificate waits to be approved and signed`);
    const certificate = await this.#waitFor(name, signal);
    file.store(`${certificate.trim()}\n${key}`, clock.now());
    logger.info(`A ${usage} certificate was issued (request "${name}")`);
    onStored();
  }

  /** DNS names and addresses of a serving certificate. @throws Error while they are not known */
  async #names(): Promise<readonly string[]> {
    const { file, nodeName, node } = this.#deps;
    if (file.usage === "client") return [];
    const addresses = await node.addresses();
    if (addresses.length === 0) throw new Error("the node has no address yet");
    return [...new Set([nodeName, ...addresses.map(({ address }) => address)])];
  }

  /** @throws Error when the request is denied, removed or not signed in time */
  async #waitFor(name: string, signal: AbortSignal): Promise<string> {
    const { client, clock } = this.#deps;
    const poll = new BackOff(POLL, Math.random);
    const endsAtMs = clock.monotonicMs() + SIGNING_TIMEOUT_MS;
    while (clock.monotonicMs() < endsAtMs) {
      await clock.sleep(poll.next(), signal);
      const { status } = await client.request<SigningRequest>({ path: `${PATH}/${name}`, signal }).catch((error) => {
        if (isNotFound(error)) throw new Error(`request "${name}" was removed`);
        throw error;
      });
      const state = readSigningState(status);
      if (state.is === "issued") return state.certificate;
      if (state.is === "refused") throw new Error(`request "${name}" was refused: ${state.why}`);
    }
    throw new Error(`request "${name}" was not signed within 15 minutes`);
  }
}

const MAX_PEM_BYTES = 1024 * 1024;
const PREFIX: Readonly<Record<CertificateUsage, string>> = { client: "kubelet-client", server: "kubelet-server" };

/** Life of the certificate in a PEM text; undefined when it holds none. */
function readValidity(pem: string | undefined): Validity | undefined {
  const certificate = pem === undefined ? undefined : unlessFailed(() => new X509Certificate(pem));
  return certificate && { fromMs: Date.parse(certificate.validFrom), toMs: Date.parse(certificate.validTo) };
}

/** The certificate of one usage with its key, in `--cert-dir`. */
export class CertificateFile {
  readonly usage: CertificateUsage;
  /** `<cert-dir>/kubelet-client-current.pem`: a link to the newest certificate with its key. Source: the kubelet. */
  readonly path: string;
  readonly #certDir: string;

  constructor(certDir: string, usage: CertificateUsage) {
    this.#certDir = certDir;
    this.usage = usage;
    this.path = join(certDir, `${PREFIX[usage]}-current.pem`);
  }

  read(): string | undefined {
    return readTextIfExists(this.path, MAX_PEM_BYTES);
  }

  /** Writes certificate and key to a file of their own and lets the link lead there, in one step. @throws Error */
  store(pem: string, now: Date): void {
    const timestamp = now.toISOString().slice(0, 19).replaceAll(":", "-");
    const name = `${PREFIX[this.usage]}-${timestamp}.pem`;
    replaceFile(join(this.#certDir, name), pem, { durable: false, directoryMode: 0o755 });
    const link = `${this.path}.new`;
    rmSync(link, { force: true });
    symlinkSync(name, link);
    renameSync(link, this.path);
  }
}

/** The two kinds of certificates a node requests. */
export type CertificateUsage = "client" | "server";

/** Life of a certificate. Wall time in milliseconds. */
interface Validity {
  fromMs: number;
  toMs: number;
}

/** Signers of Kubernetes. Source: certificates.k8s.io, the kubelet's bootstrap. */
const SIGNERS: Readonly<Record<CertificateUsage, string>> = {
  client: "kubernetes.io/kube-apiserver-client-kubelet",
  server: "kubernetes.io/kubelet-serving",
};

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
  const { path: pem } = new CertificateFile(certDir, "client");
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
  // JSON is YAML.
  replaceFile(kubeconfig, `${JSON.stringify(config, null, 2)}\n`, { durable: false, directoryMode: 0o755 });
}
