import type { EngineInfo } from "../base/model/node.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { readEngineInfo } from "./engine-info.ts";

/** The configuration does not fit the engine that answered: a retry does not help. */
export class MisconfigurationError extends Error {
  override readonly name = "MisconfigurationError";
}

interface EngineConnectionOptions {
  client: DockerClient;
  /** `--cgroup-driver`; "" accepts the engine's. */
  cgroupDriver: string;
  /** Whether this process may lower OOM scores below 0. */
  mayLowerOomScores: () => boolean;
}

/** The Docker engine and what is known of it since it was last connected to. */
export class EngineConnection {
  readonly client: DockerClient;
  readonly #options: EngineConnectionOptions;
  #info: EngineInfo | undefined;
  #error: string | undefined = "the Docker engine has not answered yet";

  constructor(options: EngineConnectionOptions) {
    this.client = options.client;
    this.#options = options;
  }

  /** undefined until the engine has answered once. */
  get infoIfKnown(): EngineInfo | undefined {
    return this.#info;
  }

  /** @throws Error before {@link connect} has resolved once */
  readonly info = (): EngineInfo => {
    if (!this.#info) throw new Error("the Docker engine has not answered yet");
    return this.#info;
  };

  /** Why the engine was never reached; undefined once it was. Later errors are those of the event stream. */
  get connectError(): string | undefined {
    return this.#info ? undefined : this.#error;
  }

  /** One attempt to reach the engine. @throws DockerUnreachableError, DockerError, DockerProtocolError, MisconfigurationError */
  async connect(signal: AbortSignal): Promise<void> {
    const { client, cgroupDriver, mayLowerOomScores } = this.#options;
    try {
      await client.connect({ signal });
      this.#info = await readEngineInfo(client, mayLowerOomScores(), signal);
    } catch (error) {
      this.#error = (error as Error).message;
      throw error;
    }
    if (cgroupDriver !== "" && cgroupDriver !== this.#info.cgroupDriver) {
      throw new MisconfigurationError(
        `--cgroup-driver is ${cgroupDriver}, but the Docker engine uses ${this.#info.cgroupDriver}: remove the flag, or change native.cgroupdriver of the engine`,
      );
    }
  }

  /** Reads the facts again after a reconnection: the engine may have another version or cgroup driver. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (this.#info) this.#info = await readEngineInfo(this.client, this.#info.negativeOomScores, signal);
  }
}
