import type { ClientHttp2Session } from "node:http2";
import type net from "node:net";
import type { GRPCAction } from "../../base/api/container.ts";
import { unlessAborted } from "../../base/concurrency/unless-aborted.ts";
import type { ProbeOutcome, ProbeTarget } from "../../base/model/prober.ts";
import { formatDuration } from "../../base/text/duration.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { ProtobufError, protobufFields, protobufText } from "../../base/text/protobuf.ts";
import { quoteGo } from "../../base/text/quote-go.ts";
import { DeadlineError, DialError, dial, joinHostPort, resolvePort } from "./port-requests.ts";

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
  // Few pods have such a probe.
  const { connect } = await import("node:http2");
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
    const session = connect(`http://${address}`, { createConnection: () => socket });
    const status = await check(session, address, action.service, options);
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
  return `error: health rpc probe failed: rpc error: code = Unavailable desc = ${messageOf(error)}`;
}

/** The call itself. Rejects with GrpcStatusError, the signal's reason, or what broke the connection. */
async function check(
  session: ClientHttp2Session,
  address: string,
  service: string,
  options: { timeoutMs: number; userAgent: string; signal: AbortSignal },
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
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
  return unlessAborted(promise, options.signal).finally(() => session.destroy());
}

function toServingStatus(httpStatus: number, fields: Record<string, unknown>, response: Buffer): string {
  if (httpStatus === 0) throw new GrpcStatusError("Unavailable", "error reading from server: EOF");
  if (httpStatus !== 200) {
    const message = `unexpected HTTP status code received from server: ${httpStatus}`;
    throw new GrpcStatusError(CODE_OF_HTTP_STATUS[httpStatus] ?? "Unknown", message);
  }
  const code = fields["grpc-status"];
  if (code === undefined) throw new GrpcStatusError("Internal", "server closed the stream without sending trailers");
  if (String(code) !== "0") {
    throw new GrpcStatusError(
      CODE_NAMES[Number(code)] ?? "Unknown",
      decodeMessage(String(fields["grpc-message"] ?? "")),
    );
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

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
const SERVING_STATUS = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;

/** Names of the gRPC status codes 0-16, as grpc-go prints them. */
const CODE_NAMES = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
] as const;
type GrpcCode = (typeof CODE_NAMES)[number];

/** gRPC status of an HTTP status other than 200, else Unknown. Source: grpc's http-grpc-status-mapping. */
const CODE_OF_HTTP_STATUS: Readonly<Record<number, GrpcCode>> = {
  400: "Internal",
  401: "Unauthenticated",
  403: "PermissionDenied",
  404: "Unimplemented",
  429: "Unavailable",
  502: "Unavailable",
  503: "Unavailable",
  504: "Unavailable",
};

/** `HealthCheckRequest{service}` as one gRPC frame: no compression, length, then protobuf field 1, a string. */
export function encodeHealthCheckRequest(service: string): Buffer {
  const message = service === "" ? Buffer.alloc(0) : protobufText(1, service);
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, 5);
  return frame;
}

/**
 * The serving status in one gRPC frame: `SERVING`, `NOT_SERVING`, …, or the number where it has no name.
 * @returns undefined when the bytes are no such message.
 */
export function decodeHealthCheckResponse(frame: Buffer): string | undefined {
  // No compression was offered.
  if (frame.length < 5 || frame[0] !== 0) return undefined;
  const message = frame.subarray(5, 5 + frame.readUInt32BE(1));
  if (message.length !== frame.readUInt32BE(1)) return undefined;
  try {
    let status = 0;
    for (const { number, value } of protobufFields(message)) {
      if (number === 1 && typeof value === "bigint") status = Number(value);
    }
    return SERVING_STATUS[status] ?? String(status);
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    return undefined;
  }
}
