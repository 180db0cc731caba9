import http2 from "node:http2";
import type net from "node:net";
import { formatDuration } from "../../base/api/duration.ts";
import type { GRPCAction } from "../../base/api/probe.ts";
import type { ProbeOutcome, ProbeTarget } from "../../base/model/prober.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { quoteGo } from "../../base/text/quote-go.ts";
import { DeadlineError, DialError, dial } from "./dial.ts";
import {
  decodeHealthCheckResponse,
  encodeHealthCheckRequest,
  type GrpcCode,
  grpcCodeName,
  grpcCodeOfHttpStatus,
} from "./grpc-health-message.ts";
import { joinHostPort, resolvePort } from "./resolve-port.ts";

/** A call that ended without a response. */
class GrpcStatusError extends Error {
  constructor(
    readonly code: GrpcCode,
    message: string,
  ) {
    super(message);
  }
}

/** A health check response is a dozen bytes; more is not one. */
const RESPONSE_LIMIT_BYTES = 4096;

/**
 * One attempt: grpc.health.v1.Health/Check over HTTP/2 without TLS. Success only when the service answers SERVING.
 * Throws PortError, or rejects with the reason of an abort that is not a deadline. Source: upstream's `grpcProber`.
 */
export async function probeGrpc(
  action: GRPCAction,
  target: ProbeTarget,
  options: { timeoutMs: number; userAgent: string; signal: AbortSignal },
): Promise<ProbeOutcome> {
  const address = joinHostPort(target.podIp, resolvePort(action.port, target.ports));
  const timeout = formatDuration(options.timeoutMs);
  let socket: net.Socket;
  try {
    socket = await dial(target.podIp, action.port, options.signal);
  } catch (error) {
    if (!(error instanceof DialError)) throw error;
    if (error.cause instanceof DeadlineError) {
      const output = `timeout: failed to connect service ${quoteGo(address)} within ${timeout}: ${error.cause.message}`;
      return { result: "failure", output };
    }
    const output = `error: failed to connect service at ${quoteGo(address)}: ${error.message}`;
    return { result: error.isOwnFault ? "unknown" : "failure", output };
  }
  try {
    const status = await check(socket, address, action.service, options);
    if (status === "SERVING") return { result: "success", output: "service healthy" };
    return { result: "failure", output: `service unhealthy (responded with ${quoteGo(status)})` };
  } catch (error) {
    if (options.signal.aborted && !(options.signal.reason instanceof DeadlineError)) throw options.signal.reason;
    return { result: "failure", output: describe(error, timeout) };
  } finally {
    socket.destroy();
  }
}

function describe(error: unknown, timeout: string): string {
  if (error instanceof DeadlineError) return `timeout: health rpc did not complete within ${timeout}`;
  if (error instanceof GrpcStatusError) {
    if (error.code === "DeadlineExceeded") return `timeout: health rpc did not complete within ${timeout}`;
    if (error.code === "Unimplemented") {
      return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${error.message}`;
    }
    return `error: health rpc probe failed: rpc error: code = ${error.code} desc = ${error.message}`;
  }
  const text = messageOf(error);
  return `error: health rpc probe failed: rpc error: code = Unavailable desc = ${text}`;
}

/** The call itself. Rejects with GrpcStatusError, the signal's reason, or what broke the connection. */
function check(
  socket: net.Socket,
  address: string,
  service: string,
  options: { timeoutMs: number; userAgent: string; signal: AbortSignal },
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const { signal } = options;
  const session = http2.connect(`http://${address}`, { createConnection: () => socket });
  const onAbort = (): void => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  session.on("error", reject);
  session.on("goaway", () => reject(new Error("the connection is draining")));
  session.on("close", () => reject(new Error("connection closed before server preface received")));

  const stream = session.request({
    ":method": "POST",
    ":path": "/grpc.health.v1.Health/Check",
    ":scheme": "http",
    ":authority": address,
    "content-type": "application/grpc",
    "user-agent": options.userAgent,
    te: "trailers",
    "grpc-timeout": `${Math.min(options.timeoutMs, 99_999_999)}m`,
  });
  let response = Buffer.alloc(0);
  let httpStatus = 0;
  let fields: Record<string, unknown> = {};
  stream.on("response", (headers) => {
    httpStatus = Number(headers[":status"]);
    fields = { ...headers };
  });
  stream.on("trailers", (trailers) => {
    fields = { ...fields, ...trailers };
  });
  stream.on("data", (bytes: Buffer) => {
    response = Buffer.concat([response, bytes]);
    if (response.length > RESPONSE_LIMIT_BYTES) {
      reject(new GrpcStatusError("ResourceExhausted", "received message larger than max"));
    }
  });
  stream.on("error", reject);
  stream.on("close", () => {
    try {
      resolve(toServingStatus(httpStatus, fields, response));
    } catch (error) {
      reject(error);
    }
  });
  stream.end(encodeHealthCheckRequest(service));
  return promise.finally(() => {
    signal.removeEventListener("abort", onAbort);
    // Later errors have no reader; an unhandled error event would end the process.
    stream.on("error", () => {});
    session.on("error", () => {});
    session.destroy();
  });
}

function toServingStatus(httpStatus: number, fields: Record<string, unknown>, response: Buffer): string {
  if (httpStatus === 0) throw new GrpcStatusError("Unavailable", "error reading from server: EOF");
  if (httpStatus !== 200) {
    const message = `unexpected HTTP status code received from server: ${httpStatus}`;
    throw new GrpcStatusError(grpcCodeOfHttpStatus(httpStatus), message);
  }
  const code = fields["grpc-status"];
  if (code === undefined) throw new GrpcStatusError("Internal", "server closed the stream without sending trailers");
  if (String(code) !== "0") {
    throw new GrpcStatusError(grpcCodeName(Number(code)), decodeMessage(String(fields["grpc-message"] ?? "")));
  }
  const status = decodeHealthCheckResponse(response);
  if (status === undefined) throw new GrpcStatusError("Internal", "grpc: failed to unmarshal the received message");
  return status;
}

/** `grpc-message` is percent-encoded; a broken escape stays as it is. */
function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
