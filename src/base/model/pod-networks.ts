import type { Pod } from "../api/pod.ts";
import type { PodUID } from "./pod.ts";
import type { ContainerId } from "./pod-snapshot.ts";

/** A sandbox with its network namespace. */
export interface SandboxNetwork {
  id: ContainerId;
  /** Path of the namespace, e.g. `/proc/812/ns/net`. */
  netns: string;
}

/** The networks of pods where the engine does not make them. Each call may be repeated. */
export interface PodNetworks {
  /** New sandboxes are attached. */
  readonly isEnabled: boolean;
  /** Why no sandbox could be attached when the configuration was last read; undefined when one could. */
  problem(): string | undefined;
  /** As {@link problem}, with the configuration as it is now. @throws Error when its disk does not respond */
  findProblem(): Promise<string | undefined>;
  /** Something was done for a sandbox that `detach` must undo. */
  holds(id: ContainerId): boolean;
  /** Sandboxes of a pod that {@link holds} is true of. */
  heldBy(uid: PodUID): ContainerId[];
  /** Addresses of a sandbox, IPv4 first; undefined for one that is not attached. */
  ipsOf(id: ContainerId): string[] | undefined;
  /** @throws Error when it fails; `detach` then undoes what was done */
  attach(sandbox: SandboxNetwork, pod: Pod, signal: AbortSignal): Promise<void>;
  /**
   * Undoes what `attach` did; a failure is logged and tried again later. Rejects only when the signal aborts.
   * @param netns "" when the namespace is gone
   */
  detach(id: ContainerId, netns: string, signal: AbortSignal): Promise<void>;
  /** Why the network of a sandbox is not as it was made; undefined when it is, or cannot be checked. */
  check(sandbox: SandboxNetwork, signal: AbortSignal): Promise<string | undefined>;
  /** Undoes what was done for sandboxes that the engine no longer has. */
  detachMissing(existing: ReadonlySet<ContainerId>, signal: AbortSignal): Promise<void>;
}
