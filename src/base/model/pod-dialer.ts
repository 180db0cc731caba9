import type { ContainerId } from "./pod-snapshot.ts";

/** Address of a pod. */
export interface PodAddress {
  /** Its first; with the host's network that of the node. */
  ip: string;
  hostNetwork: boolean;
  sandboxId: ContainerId;
  /** Host pid of the sandbox's process, 0 when unknown. */
  sandboxPid: number;
}

/** A TCP connection to something in a pod. */
export interface PodConnection {
  /** Received data, until the peer closes. May be read once. @throws Error when the connection broke or was never made */
  chunks(): AsyncIterable<Uint8Array>;
  /** Resolves when more may follow. */
  write(data: Uint8Array): Promise<void>;
  /** Nothing more will be written; the peer may answer still. Absent: this transport ends both sides alone. */
  end?(): void;
  close(): void;
}

/** @throws Error when nothing listens there */
export type DialPod = (address: PodAddress, port: number, signal: AbortSignal) => Promise<PodConnection>;

/** First argument that makes our own program a relay to a port of the loopback, for use in a pod's network. */
export const RELAY_ARGUMENT = "__relay-loopback";
