import type { Pod } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { User } from "../base/model/cluster-connection.ts";
import type { ContainerAccess, LogSelection, OutputChunk, StreamSelection } from "../base/model/container-access.ts";
import type { Logger } from "../base/model/logger.ts";
import { findContainer, podFullName } from "../base/model/pod.ts";
import type { DialPod, PodAddress } from "../base/model/pod-dialer.ts";
import { findLogContainer, findRunningContainer } from "../plan/status/log-container.ts";
import { chooseProtocol, listOf, PORT_FORWARD_PROTOCOLS, REMOTE_COMMAND_PROTOCOLS } from "./channel-protocol.ts";
import {
  type ForwardOptions,
  PORT_FORWARD_PROTOCOL,
  PORT_FORWARD_TUNNEL,
  servePortForward,
  serveSpdyPortForward,
} from "./port-forward.ts";
import { type CommandOptions, SPDY_COMMAND_PROTOCOLS, serveRemoteCommand, serveSpdyCommand } from "./remote-command.ts";
import type { ServerRequest, UpgradeResponse, WebSocketResponse } from "./request-handler.ts";
import { acceptSpdy, type ByteChannel, chooseStreamProtocol } from "./spdy.ts";
import type { KubeletView } from "./view.ts";
import type { WebSocketConnection } from "./websocket.ts";

/** The part of a request that decides which streams there are, and how they are carried. */
type StreamRequest = Pick<ServerRequest, "upgrade" | "header" | "query">;

type StreamResponse = WebSocketResponse | UpgradeResponse;

/** A request that is refused. `needsUpgrade`: it asked for neither SPDY nor a WebSocket. */
export interface StreamRefusal {
  status: 400 | 422 | 500;
  problem: string;
  needsUpgrade?: true;
}

interface PodStreamsDeps {
  view: Pick<KubeletView, "podFacts">;
  containers: ContainerAccess;
  dialPod: DialPod;
  clock: Clock;
  logger: Logger;
  /** A session ends after this time without data; 0 = never. */
  idleTimeoutMs: number;
}

/** The bytes of a log, of both streams in the order of their arrival. */
export async function* dataOf(log: AsyncIterable<OutputChunk>): AsyncGenerator<Uint8Array> {
  for await (const { data } of log) yield data;
}

/** Logs, commands and ports of the containers of pods, for the clients of both APIs. */
export class PodStreams {
  readonly #deps: PodStreamsDeps;

  constructor(deps: PodStreamsDeps) {
    this.#deps = deps;
  }

  /** @throws Error of the engine, whose message the client is shown */
  async log(pod: Pod, container: string, query: LogQuery, signal: AbortSignal) {
    const { containers, clock } = this.#deps;
    const { previous, sinceSeconds, sinceTime, ...selection } = query;
    const target = findLogContainer(pod, container, previous);
    if ("problem" in target) return refusal(400, target.problem);
    const since = sinceSeconds === undefined ? sinceTime : new Date(clock.now().getTime() - sinceSeconds * 1000);
    const log = await containers.logs(target.id, { ...selection, ...(since && { since }) }, signal);
    return { chunks: dataOf(log) };
  }

  /** exec or attach, over SPDY or a WebSocket as the client asks. */
  command(
    what: "exec" | "attach",
    pod: Pod,
    container: string,
    request: StreamRequest,
    user: User,
  ): StreamResponse | StreamRefusal {
    const { containers, clock, idleTimeoutMs } = this.#deps;
    const wanted = parseStreamQuery(request.query);
    if (!wanted) return refusal(400, "you must specify at least 1 of stdin, stdout, stderr");
    const target = findRunningContainer(pod, container);
    if (!target) return refusal(500, `container not found (${JSON.stringify(container)})`);
    // A container that runs already has a terminal or none, whatever its client asks for.
    const tty = what === "exec" ? wanted.tty : (findContainer(pod.spec, container)?.tty ?? false);
    const { stdin, stdout, stderr } = wanted;
    const streams = { stdin, stdout: stdout || (what === "attach" && tty && stderr), stderr: stderr && !tty, tty };
    const response = commandResponse(request, {
      streams,
      open: () =>
        what === "exec"
          ? containers.exec(target.id, request.query.getAll("command"), streams)
          : containers.attach(target.id, streams),
      clock,
      idleTimeoutMs,
    });
    if (!("problem" in response)) this.note(what, pod, container, user);
    return response;
  }

  /** port-forward, over SPDY, a WebSocket or a WebSocket that carries SPDY, as the client asks. */
  portForward(pod: Pod, request: StreamRequest, user: User): StreamResponse | StreamRefusal {
    const { dialPod, clock, idleTimeoutMs } = this.#deps;
    const name = podFullName(pod.metadata);
    const address = this.#addressOf(pod);
    const problem = `pod "${name}" has no address: its sandbox does not run`;
    const response = portForwardResponse(request, {
      dial: (port, signal) => (address ? dialPod(address, port, signal) : Promise.reject(new Error(problem))),
      pod: name,
      clock,
      idleTimeoutMs,
    });
    if ("problem" in response) return response;
    if (!address) return refusal(500, problem);
    this.note("portForward", pod, undefined, user);
    return response;
  }

  /** Logs user and container; never the command, which may contain a secret. */
  note(request: string, pod: Pod, container: string | undefined, user: User): void {
    const fields = { request, user: user.name, pod: podFullName(pod.metadata), container };
    this.#deps.logger.info("A client reaches into a pod", fields);
  }

  /** undefined: its sandbox does not run. */
  #addressOf({ metadata, status }: Pod): PodAddress | undefined {
    const facts = this.#deps.view.podFacts().find(({ uid }) => uid === metadata.uid);
    if (!facts || !status?.podIP) return undefined;
    const { hostNetwork, sandbox } = facts;
    return { ip: status.podIP, hostNetwork, sandboxId: sandbox.id, sandboxPid: sandbox.pid };
  }
}

const refusal = (status: StreamRefusal["status"], problem: string): StreamRefusal => ({ status, problem });

function commandResponse(request: StreamRequest, options: CommandOptions): StreamResponse | StreamRefusal {
  if (request.upgrade !== "websocket") {
    return overSpdy(request, SPDY_COMMAND_PROTOCOLS, (channel, protocol) =>
      serveSpdyCommand(channel, { ...options, protocol }),
    );
  }
  const protocol = chooseProtocol(request.header("Sec-WebSocket-Protocol"), REMOTE_COMMAND_PROTOCOLS);
  if (!protocol) return unknownProtocol(REMOTE_COMMAND_PROTOCOLS);
  return { protocol: protocol.name, run: (socket) => serveRemoteCommand(socket, { ...options, protocol }) };
}

function portForwardResponse(request: StreamRequest, options: ForwardOptions): StreamResponse | StreamRefusal {
  const serveSpdy = (channel: ByteChannel) => serveSpdyPortForward(channel, options);
  if (request.upgrade !== "websocket") return overSpdy(request, [PORT_FORWARD_PROTOCOL], serveSpdy);
  const offered = request.header("Sec-WebSocket-Protocol");
  if (listOf(offered).includes(PORT_FORWARD_TUNNEL)) {
    return { protocol: PORT_FORWARD_TUNNEL, run: (socket) => serveSpdy(tunnelOf(socket)) };
  }
  const ports = parsePortQuery(request.query);
  if ("problem" in ports) return ports;
  const protocol = chooseProtocol(offered, PORT_FORWARD_PROTOCOLS);
  if (!protocol) return unknownProtocol(PORT_FORWARD_PROTOCOLS);
  return {
    protocol: protocol.name,
    run: (socket) => servePortForward(socket, { ...options, protocol, ports }),
  };
}

const unknownProtocol = (known: readonly string[]) =>
  refusal(400, `None of the protocols offered is known; there are ${known.join(", ")}`);

function overSpdy(
  request: StreamRequest,
  known: readonly string[],
  run: (channel: ByteChannel, protocol: string) => Promise<void>,
): UpgradeResponse | StreamRefusal {
  if (!request.upgrade.startsWith("spdy/3.1"))
    return { ...refusal(400, "Upgrade request required"), needsUpgrade: true };
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

interface LogQuery extends Omit<LogSelection, "since"> {
  previous: boolean;
  sinceSeconds?: number;
  sinceTime?: Date;
}

/** Query of `/containerLogs`. Source: core/v1 `PodLogOptions`, `ValidatePodLogOptions` and kubelet's `getContainerLogs`. */
export function parseLogQuery(query: URLSearchParams): LogQuery | StreamRefusal {
  const undecodable = refusal(400, '{"message": "Unable to decode query."}');
  const invalid = refusal(422, '{"message": "Invalid request."}');
  // `tail` is the old name; its value "all" sets no limit.
  const old = query.get("tail");
  const tail = old ? (old === "all" ? null : old) : query.get("tailLines");
  const numbers = [tail, query.get("sinceSeconds"), query.get("limitBytes")].map((text) =>
    text === null || text === "" ? undefined : /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN,
  );
  const [tailLines, sinceSeconds, limitBytes] = numbers;
  const [follow, previous, timestamps] = ["follow", "previous", "timestamps"].map((name) => parseFlag(query.get(name)));
  if (numbers.some(Number.isNaN) || follow === undefined || previous === undefined || timestamps === undefined) {
    return undecodable;
  }
  const sinceText = query.get("sinceTime");
  const sinceTime = sinceText ? new Date(sinceText) : undefined;
  if (sinceTime && (Number.isNaN(sinceTime.getTime()) || !/^\d{4}-\d\d-\d\dT/.test(sinceText ?? "")))
    return undecodable;
  const stream = query.get("stream") || "All";
  if (tailLines !== undefined && tailLines < 0) return invalid;
  if (limitBytes !== undefined && limitBytes < 1) return invalid;
  if (sinceSeconds !== undefined && (sinceSeconds < 1 || sinceTime)) return invalid;
  if (!["All", "Stdout", "Stderr"].includes(stream)) return invalid;
  return {
    follow,
    previous,
    timestamps,
    stdout: stream !== "Stderr",
    stderr: stream !== "Stdout",
    ...(tailLines !== undefined && { tailLines }),
    ...(limitBytes !== undefined && { limitBytes }),
    ...(sinceSeconds !== undefined && { sinceSeconds }),
    ...(sinceTime && { sinceTime }),
  };
}

/** Absent is false, present without a value is true; undefined: neither yes nor no. Source: apimachinery's conversion of queries. */
function parseFlag(text: string | null): boolean | undefined {
  if (text === null || /^(0|f|F|FALSE|false|False)$/.test(text)) return false;
  return text === "" || /^(1|t|T|TRUE|true|True)$/.test(text) ? true : undefined;
}

/**
 * Query of `/exec` and `/attach`: `input`, `output`, `error` and `tty`; the names the API server has for them (`stdin`,
 * `stdout`, `stderr`) are taken too. undefined: it names no stream. Source: kubelet's `remotecommand.NewOptions`.
 */
export function parseStreamQuery(query: URLSearchParams): StreamSelection | undefined {
  // Python's client sends `True`.
  const isOn = (...names: string[]) =>
    names.some((name) => ["1", "true"].includes(query.get(name)?.toLowerCase() ?? ""));
  const tty = isOn("tty");
  const streams = {
    stdin: isOn("input", "stdin"),
    stdout: isOn("output", "stdout"),
    // A terminal has one output.
    stderr: isOn("error", "stderr") && !tty,
    tty,
  };
  return streams.stdin || streams.stdout || streams.stderr ? streams : undefined;
}

/** Each port may take a process of its own. */
const MAX_PORTS = 32;

/** Ports of `/portForward`, repeated or with commas. Source: kubelet's `portforward.NewV4Options`. */
export function parsePortQuery(query: URLSearchParams): readonly number[] | StreamRefusal {
  const texts = [...query.getAll("port"), ...query.getAll("ports")].flatMap((text) => text.split(","));
  if (texts.length === 0) return refusal(400, 'query parameter "port" is required');
  if (texts.length > MAX_PORTS) return refusal(400, `at most ${MAX_PORTS} ports can be forwarded at a time`);
  const ports = texts.map((text) => (/^\d{1,5}$/.test(text) ? Number(text) : Number.NaN));
  const bad = ports.findIndex((port) => !(port >= 1 && port <= 65_535));
  if (bad >= 0) return refusal(400, `port ${JSON.stringify(texts[bad])} must be 1-65535`);
  return ports;
}
