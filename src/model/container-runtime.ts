import type { PodUID } from "./identity.ts";
import type { PodRef } from "./pod-ref.ts";
import type { ContainerId, ContainerSnapshot, SandboxSnapshot } from "./pod-snapshot.ts";

/**
 * One container of ours as inspect shows it. `isBeingRemoved`: somebody has begun to remove it, and will be done in a
 * moment unless the engine fails.
 */
export type Observed = { pod: PodRef; isBeingRemoved?: boolean } & (
  | { kind: "sandbox"; sandbox: SandboxSnapshot }
  | { kind: "container"; container: ContainerSnapshot }
);

/** One line of the labelled list: enough to see whether inspect would say something new. */
export interface Listed {
  id: ContainerId;
  podUid: PodUID;
  /** Docker's word: created, running, paused, restarting, removing, exited, dead. */
  state: string;
}

/** Something happened to a container of ours. */
export interface RuntimeEvent {
  id: ContainerId;
  /** `create`, `start`, `die`, `oom`, `destroy`, `pause`, `unpause`, `rename`, `update`, … */
  action: string;
  /** Of a `kill`: the number of the signal. */
  signal?: string;
}

export interface WatchOptions {
  /** Every event from now on will come: the moment to list what is there. Called again after each reconnection. */
  onOpen: () => void;
  onEvent: (event: RuntimeEvent) => void;
  /** The stream was lost, with why; it is tried again by itself. */
  onLost: (error: Error) => void;
  signal: AbortSignal;
}

/** The engine as the loops look at it: only containers that carry our ownership labels exist for it. */
export interface ObservedRuntime {
  /** All containers and sandboxes of this node and root, whatever their state. */
  list(signal?: AbortSignal): Promise<Listed[]>;
  /** undefined when it is gone (or not ours). */
  inspect(id: ContainerId, signal?: AbortSignal): Promise<Observed | undefined>;
  /** Runs until the signal aborts; reconnects with a pause that grows to some seconds. */
  watch(options: WatchOptions): Promise<void>;
}
