import { rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";

/** Stands before an engine and makes it as slow as a test wants, at any time. To be closed. */
export class SlowProxy {
  readonly socketPath: string;
  /** How late each piece of an answer comes. */
  delayMs = 0;
  /** How many bytes of an answer come in one piece, one piece each 20 ms; 0 = as they come. */
  pieceBytes = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  /** @param socketPath made here, and short: the path of a Unix socket has 108 bytes */
  constructor(enginePath: string, socketPath: string) {
    this.socketPath = socketPath;
    this.#server = createServer((client) => this.#serve(client, connect(enginePath))).listen(socketPath);
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
    rmSync(this.socketPath, { force: true });
  }

  #serve(client: Socket, engine: Socket): void {
    const end = () => {
      for (const socket of [client, engine]) {
        socket.destroy();
        this.#open.delete(socket);
      }
    };
    let last = Promise.resolve();
    const inTurn = (work: () => unknown) => {
      const dueMs = performance.now() + this.delayMs;
      last = last.then(async () => {
        await Bun.sleep(Math.max(0, dueMs - performance.now()));
        await work();
      });
    };
    for (const socket of [client, engine]) {
      this.#open.add(socket);
      socket.on("error", end);
    }
    client.on("data", (bytes) => engine.write(bytes));
    client.on("close", end);
    engine.on("data", (bytes: Buffer) => inTurn(() => this.#hand(client, bytes)));
    engine.on("close", () => inTurn(end));
  }

  async #hand(client: Socket, bytes: Buffer): Promise<void> {
    for (let rest = bytes; rest.length > 0 && !client.destroyed; ) {
      const size = this.pieceBytes || rest.length;
      client.write(rest.subarray(0, size));
      rest = rest.subarray(size);
      if (rest.length > 0) await Bun.sleep(20);
    }
  }
}
