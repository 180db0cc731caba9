import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../base/model/clock.ts";

export interface ConnectionLimits {
  connections: number;
  perAddress: number;
}

/** A client that has taken nothing of its response for this long may be closed in favor of a new one. */
const SLOW_READER_MS = 5_000;

/** `idle`: a request, or the rest of its body, is awaited. `working`: a response is made or streamed. `sending`: the client has not taken all of its response yet. */
type ConnectionState = "idle" | "working" | "sending";

interface Connection {
  socket: Duplex;
  /** The socket that is read and written: with TLS, the one on top of the accepted socket. */
  stream: Duplex;
  address: string;
  /** `address:port`. */
  peer: string;
  state: ConnectionState;
  sinceMs: number;
  cancelTimer: () => void;
}

/**
 * The open connections of one port. When there are too many, the one that has been idle for longest is closed, or a slow
 * reader; connections that are being served stay, and only if all are is a new one refused. So a client that opens
 * connections and sends nothing cannot keep others out.
 */
export class ConnectionTable {
  readonly #clock: Clock;
  readonly #limits: ConnectionLimits;
  /** In the order in which they entered their state. */
  readonly #connections = new Set<Connection>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();

  constructor(clock: Clock, limits: ConnectionLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Adds a connection that must send a request within `idleMs`; may close another one for it. @returns false: it was refused and is closed */
  admit(socket: Socket, idleMs: number): boolean {
    const address = socket.remoteAddress ?? "";
    let ofAddress = 0;
    for (const connection of this.#connections) if (connection.address === address) ofAddress++;
    const isAddressFull = ofAddress >= this.#limits.perAddress;
    if (isAddressFull || this.#connections.size >= this.#limits.connections) {
      const victim = this.#victim((connection) => !isAddressFull || connection.address === address);
      if (!victim) {
        socket.destroy();
        return false;
      }
      this.#destroy(victim);
    }
    const connection: Connection = {
      socket,
      stream: socket,
      address,
      peer: peerOf(socket),
      state: "idle",
      sinceMs: 0,
      cancelTimer: () => {},
    };
    this.#bySocket.set(socket, connection);
    this.#enter(connection, "idle", idleMs);
    socket.on("close", () => this.#remove(connection));
    return true;
  }

  /** The TLS handshake of an admitted connection is done; a request must come within `idleMs`. */
  secured(stream: Socket, idleMs: number): void {
    const own = peerOf(stream);
    const connection = this.#connections.values().find(({ peer }) => peer === own);
    if (!connection) return void stream.destroy();
    connection.stream = stream;
    this.#bySocket.set(stream, connection);
    this.#enter(connection, "idle", idleMs);
  }

  /** Notes what a connection is doing. @param withinMs it is closed if it still does that then; undefined: it may take any time */
  mark(stream: Duplex, state: ConnectionState, withinMs?: number): void {
    const connection = this.#bySocket.get(stream);
    if (connection && this.#connections.has(connection)) this.#enter(connection, state, withinMs);
  }

  /** Closes the connections whose clients have not taken their responses for a while. @returns whether there were any */
  dropSlowReaders(): boolean {
    const slow = [...this.#connections].filter((connection) => this.#isSlowReader(connection));
    for (const connection of slow) this.#destroy(connection);
    return slow.length > 0;
  }

  destroyAll(): void {
    for (const connection of [...this.#connections]) this.#destroy(connection);
  }

  #enter(connection: Connection, state: ConnectionState, withinMs: number | undefined): void {
    connection.cancelTimer();
    connection.cancelTimer =
      withinMs === undefined ? () => {} : this.#clock.schedule(withinMs, () => this.#destroy(connection));
    connection.state = state;
    connection.sinceMs = this.#clock.monotonicMs();
    this.#connections.delete(connection);
    this.#connections.add(connection);
  }

  #victim(isCandidate: (connection: Connection) => boolean): Connection | undefined {
    const candidates = () => this.#connections.values().filter(isCandidate);
    return (
      candidates().find(({ state }) => state === "idle") ??
      candidates().find((connection) => this.#isSlowReader(connection))
    );
  }

  #isSlowReader({ state, sinceMs }: Connection): boolean {
    return state === "sending" && this.#clock.monotonicMs() - sinceMs >= SLOW_READER_MS;
  }

  #destroy(connection: Connection): void {
    this.#remove(connection);
    connection.stream.destroy();
    connection.socket.destroy();
  }

  #remove(connection: Connection): void {
    if (this.#connections.delete(connection)) connection.cancelTimer();
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress}:${remotePort}`;
