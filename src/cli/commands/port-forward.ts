import { createServer, type Server, type Socket } from "node:net";
import { chooseRunningContainer } from "../client/choose-container.ts";
import type { ContainerStreams } from "../client/container-streams.ts";
import type { CommandIo } from "../command-io.ts";
import { CommandError, type CommandRequest, UsageError } from "../sub-command.ts";

/** A local port and the pod's port behind it. */
export interface PortPair {
  /** 0: any free port. */
  local: number;
  remote: number;
}

/** `kubelet-ts port-forward`: forwards local ports until it is interrupted. Returns the exit code. */
export async function runPortForward(request: CommandRequest, io: CommandIo): Promise<number> {
  const [pod, ...ports] = request.positionals;
  if (pod === undefined || ports.length === 0) throw new UsageError("name a pod and ports: port-forward POD 8080:80");
  const pairs = ports.map(parsePortPair);
  const host = request.value("address") ?? "127.0.0.1";
  const { streams } = await chooseRunningContainer(request, pod);
  const servers: Server[] = [];
  try {
    for (const pair of pairs) {
      const { server, port } = await listen(host, pair, streams, io);
      servers.push(server);
      io.stdout(`Forwarding from ${host}:${port} -> ${pair.remote}\n`);
    }
    await interrupted();
    return 0;
  } finally {
    for (const server of servers) server.close();
  }
}

/** `8080:80`, `80` for the same port, `:80` for any local one. @throws UsageError */
export function parsePortPair(text: string): PortPair {
  const match = /^(\d*):(\d+)$|^(\d+)$/.exec(text);
  const remote = Number(match?.[2] ?? match?.[3] ?? 0);
  const local = match?.[3] !== undefined ? remote : Number(match?.[1] || 0);
  if (!match || remote < 1 || remote > 65535 || local > 65535) {
    throw new UsageError(`ports are written LOCAL:REMOTE, as in 8080:80 (found "${text}")`);
  }
  return { local, remote };
}

function listen(
  host: string,
  { local, remote }: PortPair,
  streams: ContainerStreams,
  io: CommandIo,
): Promise<{ server: Server; port: number }> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {});
      forward(socket, streams, remote).catch((error: Error) => {
        io.stderr(`kubelet-ts port-forward: ${remote}: ${error.message}\n`);
        socket.destroy();
      });
    });
    server.once("error", ({ code, message }: NodeJS.ErrnoException) => {
      const why = code === "EADDRINUSE" ? "the port is in use: choose another one, or :REMOTE for any" : message;
      reject(new CommandError(`cannot listen on ${host}:${local}: ${why}`));
    });
    server.listen(local, host, () => {
      const bound = server.address();
      resolve({ server, port: typeof bound === "object" && bound ? bound.port : local });
    });
  });
}

async function forward(socket: Socket, streams: ContainerStreams, port: number): Promise<void> {
  const signal = new AbortController();
  socket.once("close", () => signal.abort(new Error("the client has gone")));
  const connection = await streams.dial(port, signal.signal);
  const upward = (async () => {
    for await (const chunk of socket) await connection.write(chunk as Uint8Array);
  })();
  upward.catch(() => {});
  try {
    for await (const chunk of connection.chunks()) {
      if (!socket.write(chunk as Uint8Array))
        await new Promise<void>((done) => socket.once("drain", done).once("close", done));
    }
  } finally {
    socket.end();
    connection.close();
  }
}

const interrupted = () =>
  new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
