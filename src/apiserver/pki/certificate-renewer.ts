import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { LocalCertificates } from "./local-authority.ts";

interface CertificateRenewerDeps {
  /** Reads the certificates, and makes those that are missing or about to expire. */
  prepare: () => Promise<LocalCertificates>;
  clock: Clock;
  logger: Logger;
}

/** After a failure, e.g. of a full disk, certificates are tried again. Most failures come weeks before anything expires. */
const FIRST_RETRY_MS = 60_000;
const RETRY_MS = 3_600_000;

/** The certificates in use, which are renewed while the process runs. */
export class CertificateRenewer {
  readonly #deps: CertificateRenewerDeps;
  #current: LocalCertificates | undefined;
  #isPreparing = false;
  #retryAtMs = 0;
  #cancelRetry: () => void = () => {};
  #isStopped = false;

  constructor(deps: CertificateRenewerDeps) {
    this.#deps = deps;
  }

  /** Calls `onReady` once, when there are certificates. Never rejects; tries again after a failure. */
  async start(onReady: () => void): Promise<void> {
    const { prepare, clock, logger } = this.#deps;
    try {
      this.#current = await prepare();
    } catch (error) {
      logger.error(`The local API does not serve TLS yet: ${messageOf(error)}`);
      if (!this.#isStopped) {
        this.#cancelRetry = clock.schedule(FIRST_RETRY_MS, () => void this.start(onReady));
      }
      return;
    }
    if (!this.#isStopped) onReady();
  }

  /**
   * The certificates of this moment. When they need a renewal, or the clock was set to a time at which they are not valid,
   * new ones are made in the background; until then the old ones are in use.
   * @throws Error before `onReady` was called
   */
  current(): LocalCertificates {
    const current = this.#current;
    if (!current) throw new Error("there are no certificates yet");
    const nowMs = this.#deps.clock.now().getTime();
    if (nowMs < current.goodFrom || nowMs >= current.goodUntil) void this.#renew();
    return current;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry();
  }

  async #renew(): Promise<void> {
    const { prepare, clock, logger } = this.#deps;
    if (this.#isPreparing || this.#isStopped || clock.monotonicMs() < this.#retryAtMs) return;
    this.#isPreparing = true;
    try {
      this.#current = await prepare();
    } catch (error) {
      this.#retryAtMs = clock.monotonicMs() + RETRY_MS;
      logger.error(`The local API keeps its certificates: ${messageOf(error)}`);
    } finally {
      this.#isPreparing = false;
    }
  }
}
