import { connect, createServer, type Server, type Socket } from "node:net";
import { freePorts } from "../test-node.ts";

/** A TCP proxy before an API server that can stop passing data on, or cut and refuse connections. To be closed. */
export class StallingProxy {
  readonly port: number;
  readonly #target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isStalled = false;
  #refuses = false;
  /** Connections so far, refused ones included. */
  connections = 0;

  constructor(target: number) {
    [this.port] = freePorts(1) as [number];
    this.#target = target;
    this.#server = createServer((socket) => this.#accept(socket)).listen(this.port, "127.0.0.1");
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** Keeps connections open and lets nothing through, as a partition does. */
  stall(): void {
    this.#isStalled = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Lets data through again; what was held back is delivered. */
  resume(): void {
    this.#isStalled = false;
    this.#refuses = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Cuts every connection and accepts no other until `resume`. */
  cut(): void {
    this.#refuses = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(client: Socket): void {
    this.connections++;
    if (this.#refuses) return void client.destroy();
    const server = connect(this.#target, "127.0.0.1");
    const pairs: [Socket, Socket][] = [
      [client, server],
      [server, client],
    ];
    for (const [from, to] of pairs) {
      this.#sockets.add(from);
      from.on("data", (data) => void to.write(data));
      from.on("error", () => {});
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#isStalled) from.pause();
    }
  }
}
