import { chooseProtocol, PORT_FORWARD_PROTOCOLS, REMOTE_COMMAND_PROTOCOLS } from "./channel-protocol.ts";
import type { ServerRequest, UpgradeResponse, WebSocketResponse } from "./http-response.ts";
import { type ForwardOptions, servePortForward } from "./port-forward.ts";
import { type CommandOptions, serveRemoteCommand } from "./remote-command.ts";
import { COMMAND_PROTOCOLS, serveSpdyCommand } from "./spdy/spdy-command.ts";
import { acceptSpdy, type ByteChannel, chooseStreamProtocol } from "./spdy/spdy-connection.ts";
import { PORT_FORWARD_PROTOCOL, PORT_FORWARD_TUNNEL, serveSpdyPortForward } from "./spdy/spdy-port-forward.ts";
import { parsePortQuery } from "./stream-query.ts";
import type { WebSocketConnection } from "./websocket.ts";

/** The part of a request that decides how its streams are carried. */
type StreamRequest = Pick<ServerRequest, "upgrade" | "header" | "query">;

/** A request that is answered with 400. `needsUpgrade`: it asked for neither SPDY nor a WebSocket. */
export interface StreamRefusal {
  problem: string;
  needsUpgrade: boolean;
}

type StreamResponse = WebSocketResponse | UpgradeResponse;

/** exec or attach, over SPDY or a WebSocket as the client asks. */
export function commandResponse(request: StreamRequest, options: CommandOptions): StreamResponse | StreamRefusal {
  if (request.upgrade === "websocket") {
    const protocol = chooseProtocol(request.header("Sec-WebSocket-Protocol"), REMOTE_COMMAND_PROTOCOLS);
    if (!protocol) return unknownProtocol(REMOTE_COMMAND_PROTOCOLS);
    return { protocol: protocol.name, run: (socket) => serveRemoteCommand(socket, { ...options, protocol }) };
  }
  return overSpdy(request, COMMAND_PROTOCOLS, (channel, protocol) =>
    serveSpdyCommand(channel, { ...options, protocol }),
  );
}

/** port-forward, over SPDY, a WebSocket or a WebSocket that carries SPDY, as the client asks. */
export function portForwardResponse(request: StreamRequest, options: ForwardOptions): StreamResponse | StreamRefusal {
  const serveSpdy = (channel: ByteChannel) => serveSpdyPortForward(channel, options);
  if (request.upgrade !== "websocket") return overSpdy(request, [PORT_FORWARD_PROTOCOL], serveSpdy);
  const offered = request.header("Sec-WebSocket-Protocol") ?? "";
  if (offered.split(",").some((name) => name.trim() === PORT_FORWARD_TUNNEL)) {
    return { protocol: PORT_FORWARD_TUNNEL, run: (socket) => serveSpdy(tunnelOf(socket)) };
  }
  const ports = parsePortQuery(request.query);
  if (!("value" in ports)) return { problem: ports.problem, needsUpgrade: false };
  const protocol = chooseProtocol(offered, PORT_FORWARD_PROTOCOLS);
  if (!protocol) return unknownProtocol(PORT_FORWARD_PROTOCOLS);
  return {
    protocol: protocol.name,
    run: (socket) => servePortForward(socket, { ...options, protocol, ports: ports.value }),
  };
}

const unknownProtocol = (known: readonly string[]): StreamRefusal => ({
  problem: `None of the protocols offered is known; there are ${known.join(", ")}`,
  needsUpgrade: false,
});

function overSpdy(
  request: StreamRequest,
  known: readonly string[],
  run: (channel: ByteChannel, protocol: string) => Promise<void>,
): UpgradeResponse | StreamRefusal {
  if (!request.upgrade.startsWith("spdy/3.1")) return { problem: "Upgrade request required", needsUpgrade: true };
  const protocol = chooseStreamProtocol(request.header("X-Stream-Protocol-Version"), known);
  if (protocol === undefined) return unknownProtocol(known);
  return {
    takeOver: (_message, socket, head) => run(acceptSpdy(socket, head, protocol), protocol),
  };
}

const tunnelOf = (socket: WebSocketConnection): ByteChannel => ({
  chunks: socket.messages(),
  write: (data) => socket.send(data),
  close: () => socket.close(),
});
