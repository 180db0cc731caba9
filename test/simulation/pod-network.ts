import { EventEmitter } from "node:events";
import type { EngineModel, ModelContainer } from "./engine-model.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** First ports of programs: those from 8080 on speak HTTP, those from 9090 on accept connections. */
export const FIRST_PORT = { httpGet: 8080, tcpSocket: 9090 } as const;

/** An address without a machine: the kernel gives up after this time. */
const UNREACHABLE_MS = 3_000;

const isHttp = (port: number) => port < FIRST_PORT.tcpSocket;

class Connection extends EventEmitter {
  /** Whose program has accepted it. */
  container: ModelContainer | undefined;

  destroy(): void {
    this.removeAllListeners();
    // No one hears what happens later.
    this.on("error", () => {});
  }
}

class Request extends Connection {
  constructor(readonly end: () => void) {
    super();
  }
}

/** Connections from the machine to its pods: node:net and node:http, as far as the prober uses them. */
export class PodNetwork {
  readonly #time: VirtualTime;
  readonly #engine: EngineModel;
  readonly #random: SeededRandom;

  constructor(time: VirtualTime, engine: EngineModel, random: SeededRandom) {
    this.#time = time;
    this.#engine = engine;
    this.#random = random;
  }

  readonly net = {
    connect: ({ host, port }: { host: string; port: number }): Connection => {
      const connection = new Connection();
      this.#later(() => {
        const container = this.#engine.listenerAt(host, port);
        if (!this.#engine.holderOf(host))
          this.#time.afterForProcess(UNREACHABLE_MS, () => fail(connection, "EHOSTUNREACH"));
        else if (!container || (!isHttp(port) && this.#isUnhealthy(container))) fail(connection, "ECONNREFUSED");
        else Object.assign(connection, { container }).emit("connect");
      });
      return connection;
    },
  };

  readonly http = {
    request: ({ createConnection }: { createConnection: () => Connection }): Request => {
      const { container } = createConnection();
      const request: Request = new Request(() =>
        this.#later(() => {
          if (container?.status !== "running") return fail(request, "ECONNRESET");
          const statusCode = this.#isUnhealthy(container) ? 500 : 200;
          const response = Object.assign(new EventEmitter(), { statusCode, headers: {} });
          request.emit("response", response);
          response.emit("data", Buffer.from("ok"));
          response.emit("end");
        }),
      );
      return request;
    },
  };

  #isUnhealthy({ unhealthyUntilMs }: ModelContainer): boolean {
    const isUnhealthy = unhealthyUntilMs > this.#time.nowMs;
    if (isUnhealthy) this.#time.stir();
    return isUnhealthy;
  }

  #later(run: () => void): void {
    this.#time.afterForProcess(this.#random.between(0.1, 2), run);
  }
}

const fail = (connection: Connection, code: string) =>
  connection.emit("error", Object.assign(new Error(`simulated ${code}`), { code, syscall: "connect" }));
