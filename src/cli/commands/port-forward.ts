import { createServer, type Server, type Socket } from "node:net";
import type { Pod } from "../../base/api/pod.ts";
import type { Service } from "../../base/api/service.ts";
import { writeTo } from "../../base/files/bounded-stream.ts";
import { containersOf } from "../../base/model/pod.ts";
import type { ApiObject } from "../client/api-client.ts";
import { type ContainerStreams, chooseRunningContainer } from "../client/container-streams.ts";
import { CommandError, type CommandIo, type CommandRequest, UsageError } from "../sub-command.ts";

/** `kubelet-ts port-forward`: forwards local ports until it is interrupted. Returns the exit code. */
export async function runPortForward(request: CommandRequest, io: CommandIo): Promise<number> {
  const [pod, ...ports] = request.positionals;
  if (pod === undefined || ports.length === 0) throw new UsageError("name a pod and ports: port-forward POD 8080:80");
  const pairs = ports.map(parsePortPair);
  const addresses = addressesOf(request.value("address") ?? "127.0.0.1");
  const { streams, pod: chosen, object, note } = await chooseRunningContainer(request, pod);
  if (object && note) io.stderr(`${note.split("\n", 1)[0]}\n`);
  const targets = pairs.map((pair) => ({ ...pair, port: resolvePort(pair.remote, chosen, object) }));
  const servers: Server[] = [];
  try {
    for (const { local, port } of targets) {
      let bound = local;
      for (const address of addresses) {
        const listening = await listen(address, { local: bound, port }, streams, io);
        servers.push(listening.server);
        bound = listening.port;
        io.stdout(`Forwarding from ${address.includes(":") ? `[${address}]` : address}:${bound} -> ${port}\n`);
      }
    }
    await interrupted();
    return 0;
  } finally {
    for (const server of servers) server.close();
  }
}

/** `localhost` is the loopback of both families. */
const addressesOf = (text: string): string[] => [
  ...new Set(
    text
      .split(",")
      .map((address) => address.trim())
      .flatMap((address) => (address === "localhost" ? ["127.0.0.1", "::1"] : address)),
  ),
];

/**
 * `8080:80`, `80` for the same port, `:80` for any local one, which is 0; the remote port may be a name.
 * @throws UsageError
 */
export function parsePortPair(text: string): { local: number; remote: string } {
  const match = /^(\d*):(\d+|[a-z0-9-]*[a-z][a-z0-9-]*)$|^(\d+)$/i.exec(text);
  const remote = match?.[2] ?? match?.[3] ?? "0";
  const local = Number(match?.[3] ?? (match?.[1] || 0));
  const number = /^\d+$/.test(remote) ? Number(remote) : 1;
  if (!match || number < 1 || number > 65535 || local > 65535) {
    throw new UsageError(`ports are 1 to 65535 and written LOCAL:REMOTE, as in 8080:80 (found "${text}")`);
  }
  return { local, remote };
}

/**
 * The port of the pod: through the ports of a Service, and by the names of the pod's.
 * @throws CommandError
 */
export function resolvePort(remote: string, { metadata, spec }: Pod, object: ApiObject | undefined): number {
  let wanted = remote;
  if (object?.kind === "Service") {
    const { ports = [] } = object.spec as Pick<Service["spec"], "ports">;
    const port = ports.find((it) => String(it.port) === remote || it.name === remote);
    if (!port) {
      const known = ports.map(({ name, port: number }) => (name ? `${number} (${name})` : number)).join(", ");
      throw new CommandError(`service "${object.metadata.name}" has no port ${remote}; it has ${known || "none"}`);
    }
    wanted = String(port.targetPort ?? port.port);
  }
  if (/^\d+$/.test(wanted)) return Number(wanted);
  const all = containersOf(spec).flatMap(({ ports = [] }) => ports);
  const found = all.find(({ name }) => name === wanted);
  if (found) return found.containerPort;
  const names = all.flatMap(({ name }) => name ?? []);
  throw new CommandError(
    `pod "${metadata.name}" has no port named "${wanted}"${names.length > 0 ? `; it has ${names.join(", ")}` : ""}`,
  );
}

function listen(
  host: string,
  { local, port: remote }: { local: number; port: number },
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
      await writeTo(socket, chunk as Uint8Array);
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
