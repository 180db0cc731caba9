import type { Pod } from "../base/api/pod.ts";
import type { PodEngine } from "../base/model/container-engine.ts";
import { type PodUID, podFullName } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import type { PodNetworks } from "../base/model/pod-networks.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import { asksForEngineNetwork } from "../plan/pod-network.ts";
import { PodStepError } from "../plan/waiting-reasons.ts";

/** How often the configuration directory of the network is read while it has no configuration. Source: dockershim. */
const NETWORK_RETRY_MS = 5_000;

const netnsOf = (pid: number) => `/proc/${pid}/ns/net`;

interface PodSandboxesDeps {
  logger: Logger;
  pods: PodEngine;
  networks: PodNetworks;
  /** Id of the image of the sandboxes, loaded or pulled when it is not there. */
  ensurePauseImage: (signal: AbortSignal) => Promise<string>;
}

/** Sandboxes on the engine, and their attachment to the networks of CNI plugins. */
export class PodSandboxes {
  readonly #deps: PodSandboxesDeps;

  constructor(deps: PodSandboxesDeps) {
    this.#deps = deps;
  }

  /** Id of the image of the sandboxes. */
  ensureImage(signal: AbortSignal): Promise<string> {
    return this.#deps.ensurePauseImage(signal);
  }

  async stop(id: ContainerId, graceSeconds: number, signal: AbortSignal): Promise<void> {
    await this.#detach(id, signal);
    await this.#deps.pods.stop(id, graceSeconds, undefined, signal);
  }

  async remove(id: ContainerId, signal: AbortSignal): Promise<void> {
    await this.#detach(id, signal);
    await this.#deps.pods.remove(id, signal);
  }

  /**
   * Whether a CNI plugin makes the network of this pod, rather than the engine.
   * @throws PodStepError NetworkNotReady
   */
  async usesPlugin(pod: Pod): Promise<boolean> {
    const { networks } = this.#deps;
    if (!networks.isEnabled || asksForEngineNetwork(pod)) return false;
    const problem = await networks.findProblem();
    if (problem === undefined) return true;
    throw new PodStepError("NetworkNotReady", `network is not ready: ${problem}`, { retryAfterMs: NETWORK_RETRY_MS });
  }

  /** @throws PodStepError FailedCreatePodSandBox after the sandbox was removed */
  async attach({ id, pid }: { id: ContainerId; pid: number }, pod: Pod, signal: AbortSignal): Promise<void> {
    const { networks, logger } = this.#deps;
    try {
      await networks.attach({ id, netns: netnsOf(pid) }, pod, signal);
    } catch (error) {
      signal.throwIfAborted();
      const name = podFullName(pod.metadata);
      await this.remove(id, signal).catch((cause: unknown) => {
        signal.throwIfAborted();
        logger.warn(`Cannot remove the sandbox of pod "${name}", whose network failed: ${messageOf(cause)}`);
      });
      const message = `failed to set up sandbox container "${id}" network for pod "${pod.metadata.name}": ${messageOf(error)}`;
      throw new PodStepError("FailedCreatePodSandBox", message, { cause: error });
    }
  }

  async #detach(id: ContainerId, signal: AbortSignal): Promise<void> {
    const { networks, pods } = this.#deps;
    if (!networks.holds(id)) return;
    const pid = await pods.pidOf(id, signal);
    await networks.detach(id, pid ? netnsOf(pid) : "", signal);
  }

  /** Detaches sandboxes that were removed manually: they still hold an address and host ports. */
  async detachRemoved(uid: PodUID, signal: AbortSignal): Promise<void> {
    const { networks, pods } = this.#deps;
    for (const id of networks.heldBy(uid)) {
      if ((await pods.pidOf(id, signal)) === undefined) await networks.detach(id, "", signal);
    }
  }
}
