import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { isNotFound } from "../client/api-error.ts";
import type { ClusterClient } from "../client/cluster-client.ts";
import { BackOff } from "../client/reachability.ts";
import {
  type CertificateUsage,
  computeRotation,
  isValidAt,
  nodeIdentity,
  readCurrent,
  readSigningState,
  readValidity,
  SIGNERS,
  storeCertificate,
  type Validity,
} from "./certificate-files.ts";

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
  usage: CertificateUsage;
  nodeName: string;
  certDir: string;
  /** DNS names and addresses of a serving certificate. @throws Error while they are not known */
  names: () => Promise<readonly string[]>;
  makeSigningRequest: MakeSigningRequest;
  /** A new certificate was stored. */
  onStored: () => void;
}

interface SigningRequest {
  metadata: { name: string };
  status?: { certificate?: string; conditions?: { type: string; reason?: string; message?: string }[] };
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
    const backOff = new BackOff(RETRY);
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
    const { clock, certDir, usage } = this.#deps;
    const validity = readValidity(readCurrent(certDir, usage));
    return validity && isValidAt(validity, clock.now().getTime()) ? validity : undefined;
  }

  /** Requests a certificate until one is issued and stored, or the signal aborts. */
  async obtain(signal: AbortSignal): Promise<void> {
    const { clock, logger, usage } = this.#deps;
    const backOff = new BackOff(RETRY);
    while (!signal.aborted) {
      try {
        await this.#attempt(signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        logger.warn(`Cannot obtain a ${usage} certificate, will try again: ${(error as Error).message}`);
        await clock.sleep(backOff.next(), signal).catch(() => {});
      }
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { client, clock, logger, usage, nodeName, certDir, names, makeSigningRequest, onStored } = this.#deps;
    const { request, key } = await makeSigningRequest({ ...nodeIdentity(nodeName), names: await names() });
    const { signerName, usages } = SIGNERS[usage];
    const made = await client.request<SigningRequest>({
      method: "POST",
      path: PATH,
      body: {
        apiVersion: "certificates.k8s.io/v1",
        kind: "CertificateSigningRequest",
        metadata: { generateName: "csr-" },
        spec: { request: Buffer.from(request).toString("base64"), signerName, usages },
      },
      signal,
    });
    const { name } = made.metadata;
    logger.info(`Certificate request "${name}" for a ${usage} certificate waits to be approved and signed`);
    const certificate = await this.#waitFor(name, signal);
    storeCertificate(certDir, usage, `${certificate.trim()}\n${key}`, clock.now());
    logger.info(`A ${usage} certificate was issued (request "${name}")`);
    onStored();
  }

  /** @throws Error when the request is denied, removed or not signed in time */
  async #waitFor(name: string, signal: AbortSignal): Promise<string> {
    const { client, clock } = this.#deps;
    const poll = new BackOff(POLL);
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
