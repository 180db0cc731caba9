import type { CallOptions } from "../../docker/engine/docker-request.ts";

const ANSWER_MS = 5000;

/**
 * Whether the engine answers, for those who look: a hung engine is noticed by the kubelet at its next list only, up to
 * three minutes later. Never waits: each call starts a request unless one is under way, and reports the last answer.
 */
export class EngineCheck {
  readonly #ping: (options: CallOptions) => Promise<unknown>;
  #problem = "";
  #isAsking = false;

  constructor(ping: (options: CallOptions) => Promise<unknown>) {
    this.#ping = ping;
  }

  /** Why the last request failed; "" when it was answered. */
  problem(): string {
    if (!this.#isAsking) {
      this.#isAsking = true;
      void this.#ask();
    }
    return this.#problem;
  }

  async #ask(): Promise<void> {
    try {
      await this.#ping({ timeoutMs: ANSWER_MS });
      this.#problem = "";
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
    } finally {
      this.#isAsking = false;
    }
  }
}
