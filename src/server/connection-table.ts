import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../base/model/clock.ts";

export interface ConnectionLimits {
  /** All clients together. */
  connections: number;
  /** Clients of one remote address. */
  perAddress: number;
}

/** A client that has taken nothing of its response for this long may be closed in favor of a new one. */
const SLOW_READER_MS = 5_000;

interface Connection {
  /** The socket that was accepted. */
  socket: Duplex;
  /** The socket that is read and written: with TLS, the one on top of the accepted socket. */
  stream: Duplex;
  /** `address:port`. */
  peer: string;
  address: string;
  /** `idle`: a request, or the rest of its body, is awaited. `working`: a response is made or streamed. `sending`: the client has not taken all of its response yet. */
  state: "idle" | "working" | "sending";
  sinceMs: number;
  cancelTimer: () => void;
}

/**
 * The open connections of one port. When there are too many, the one that has been idle for longest is closed, or a slow
 * reader; connections that are being served stay, and only if all are is a new one refused. So a client that opens
 * connections and says nothing keeps no one out.
 */
export class ConnectionTable {
  readonly #clock: Clock;
  readonly #limits: ConnectionLimits;
  /** In the order in which they entered their state. */
  readonly #connections = new Map<Duplex, Connection>();
  readonly #byPeer = new Map<string, Connection>();
  readonly #byStream = new WeakMap<Duplex, Connection>();
  readonly #perAddress = new Map<string, number>();

  constructor(clock: Clock, limits: ConnectionLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get size(): number {
    return this.#connections.size;
  }

  /**
   * Adds a connection that must send a request within `idleMs`; closes another one for it if necessary.
   * @returns false: it was refused and is closed
   */
  admit(socket: Socket, idleMs: number): boolean {
    const address = socket.remoteAddress ?? "";
    const ofAddress = this.#perAddress.get(address) ?? 0;
    const isAddressFull = ofAddress >= this.#limits.perAddress;
    if (isAddressFull || this.#connections.size >= this.#limits.connections) {
      const victim = this.#victim(isAddressFull ? address : undefined);
      if (!victim) {
        socket.destroy();
        return false;
      }
      this.#destroy(victim);
    }
    const connection: Connection = {
      socket,
      stream: socket,
      peer: peerOf(socket),
      address,
      state: "idle",
      sinceMs: 0,
      cancelTimer: () => {},
    };
    this.#connections.set(socket, connection);
    this.#byStream.set(socket, connection);
    this.#byPeer.set(connection.peer, connection);
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    this.#enter(connection, "idle", idleMs);
    socket.on("close", () => this.#remove(connection));
    return true;
  }

  /** The TLS handshake of an admitted connection is done; a request must come within `idleMs`. */
  secured(socket: Socket, idleMs: number): void {
    const connection = this.#byPeer.get(peerOf(socket));
    if (!connection) return void socket.destroy();
    connection.stream = socket;
    this.#byStream.set(socket, connection);
    this.#enter(connection, "idle", idleMs);
  }

  /**
   * Notes what a connection is doing.
   * @param withinMs it is closed if it is still doing that after this time; undefined: it may take any time
   */
  mark(stream: Duplex, state: Connection["state"], withinMs?: number): void {
    const connection = this.#byStream.get(stream);
    if (connection && this.#connections.has(connection.socket)) this.#enter(connection, state, withinMs);
  }

  /** Closes the connections whose clients have not taken their responses for a while. @returns whether there were any */
  dropSlowReaders(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const slow = [...this.#connections.values()].filter((connection) => isSlowReader(connection, nowMs));
    for (const connection of slow) this.#destroy(connection);
    return slow.length > 0;
  }

  destroyAll(): void {
    for (const connection of [...this.#connections.values()]) this.#destroy(connection);
  }

  #enter(connection: Connection, state: Connection["state"], withinMs: number | undefined): void {
    connection.cancelTimer();
    connection.cancelTimer =
      withinMs === undefined ? () => {} : this.#clock.schedule(withinMs, () => this.#destroy(connection));
    connection.state = state;
    connection.sinceMs = this.#clock.monotonicMs();
    this.#connections.delete(connection.socket);
    this.#connections.set(connection.socket, connection);
  }

  #victim(address: string | undefined): Connection | undefined {
    const nowMs = this.#clock.monotonicMs();
    let slowReader: Connection | undefined;
    for (const connection of this.#connections.values()) {
      if (address !== undefined && connection.address !== address) continue;
      if (connection.state === "idle") return connection;
      if (isSlowReader(connection, nowMs)) slowReader ??= connection;
    }
    return slowReader;
  }

  #destroy(connection: Connection): void {
    this.#remove(connection);
    connection.stream.destroy();
    connection.socket.destroy();
  }

  #remove(connection: Connection): void {
    if (this.#connections.get(connection.socket) !== connection) return;
    connection.cancelTimer();
    this.#connections.delete(connection.socket);
    if (this.#byPeer.get(connection.peer) === connection) this.#byPeer.delete(connection.peer);
    const left = (this.#perAddress.get(connection.address) ?? 1) - 1;
    if (left > 0) this.#perAddress.set(connection.address, left);
    else this.#perAddress.delete(connection.address);
  }
}

const isSlowReader = ({ state, sinceMs }: Connection, nowMs: number) =>
  state === "sending" && nowMs - sinceMs >= SLOW_READER_MS;

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress}:${remotePort}`;
