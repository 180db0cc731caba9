import type { PodUID } from "./identity.ts";
import type { PodRef } from "./pod-ref.ts";
import type { ContainerId, ContainerSnapshot, SandboxSnapshot } from "./pod-snapshot.ts";

/**
 * One of our containers as inspect shows it. `isBeingRemoved`: its removal has begun and will be done in a
 * moment unless the engine fails.
 */
export type Observed = { pod: PodRef; isBeingRemoved?: boolean } & (
  | { kind: "sandbox"; sandbox: SandboxSnapshot }
  | { kind: "container"; container: ContainerSnapshot }
);

/** One line of the labelled list: enough to decide whether inspect would have a new result. */
export interface Listed {
  id: ContainerId;
  podUid: PodUID;
  /** Docker's word: created, running, paused, restarting, removing, exited, dead. */
  state: string;
}

/** An event of one of our containers. */
export interface RuntimeEvent {
  id: ContainerId;
  /** `create`, `start`, `die`, `oom`, `destroy`, `pause`, `unpause`, `rename`, `update`, … */
  action: string;
  /** Number of the signal of a `kill`. */
  signal?: string;
}

export interface WatchOptions {
  /** The subscription is active: list existing containers now. Called again after each reconnection. */
  onOpen: () => void;
  onEvent: (event: RuntimeEvent) => void;
  /** The stream was lost; it reconnects on its own. */
  onLost: (error: Error) => void;
  signal: AbortSignal;
}

/** The engine as the sync loop sees it: only containers that carry our ownership labels. */
export interface ObservedRuntime {
  /** All containers and sandboxes of this node and root, in any state. */
  list(signal?: AbortSignal): Promise<Listed[]>;
  /** undefined when it does not exist (or is not ours). */
  inspect(id: ContainerId, signal?: AbortSignal): Promise<Observed | undefined>;
  /** Runs until the signal aborts; reconnects with a pause that grows to some seconds. */
  watch(options: WatchOptions): Promise<void>;
}
