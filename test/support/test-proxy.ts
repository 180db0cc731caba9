import { rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket, type TcpNetConnectOpts } from "node:net";
import { freePorts } from "./test-servers.ts";

/** Path of a Unix socket, or a port of the loopback. */
type Address = string | number;

const optionsOf = (address: Address) =>
  (typeof address === "string" ? { path: address } : { host: "127.0.0.1", port: address }) as TcpNetConnectOpts;

/** Stands before a server: passes nothing on, or cuts and refuses connections. To be closed. */
export class TestProxy {
  /** Connections so far, refused ones included. */
  connections = 0;
  readonly address: Address;
  readonly #target: Address;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isStalled = false;
  #refuses = false;

  /** @param address where it listens; short: the path of a Unix socket has 108 bytes. Default: a free port */
  constructor(target: Address, address: Address = freePorts(1)[0]!) {
    this.address = address;
    this.#target = target;
    this.#server = createServer((client) => this.#serve(client)).listen(optionsOf(address));
  }

  get url(): string {
    return `https://127.0.0.1:${this.address}`;
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
    this.cut();
    if (typeof this.address === "string") rmSync(this.address, { force: true });
  }

  #serve(client: Socket): void {
    this.connections++;
    if (this.#refuses) return void client.destroy();
    const server = connect(optionsOf(this.#target));
    const both = [client, server];
    const end = () => {
      for (const socket of both) {
        socket.destroy();
        this.#sockets.delete(socket);
      }
    };
    for (const socket of both) {
      this.#sockets.add(socket);
      socket.on("error", end);
      if (this.#isStalled) socket.pause();
    }
    client.on("data", (bytes) => void server.write(bytes));
    client.on("close", end);
    server.on("data", (bytes) => void client.write(bytes));
    server.on("close", () => client.end());
  }
}
