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
export type GrpcCode = (typeof CODE_NAMES)[number];

export function grpcCodeName(code: number): GrpcCode {
  return CODE_NAMES[code] ?? "Unknown";
}

/** gRPC status of an HTTP status other than 200. Source: grpc's http-grpc-status-mapping. */
export function grpcCodeOfHttpStatus(status: number): GrpcCode {
  switch (status) {
    case 400:
      return "Internal";
    case 401:
      return "Unauthenticated";
    case 403:
      return "PermissionDenied";
    case 404:
      return "Unimplemented";
    case 429:
    case 502:
    case 503:
    case 504:
      return "Unavailable";
    default:
      return "Unknown";
  }
}

/** `HealthCheckRequest{service}` as one gRPC frame: no compression, length, then protobuf field 1, a string. */
export function encodeHealthCheckRequest(service: string): Buffer {
  const name = Buffer.from(service, "utf8");
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, ...varint(name.length)]), name]);
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, 5);
  return frame;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return bytes;
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
  let status = 0;
  let at = 0;
  const readVarint = (): number | undefined => {
    let value = 0;
    for (let shift = 0; shift < 64; shift += 7) {
      const byte = message[at++];
      if (byte === undefined) return undefined;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    return undefined;
  };
  while (at < message.length) {
    const tag = readVarint();
    if (tag === undefined) return undefined;
    const wireType = tag & 7;
    if (wireType === 0) {
      const value = readVarint();
      if (value === undefined) return undefined;
      if (tag >>> 3 === 1) status = value;
    } else if (wireType === 2) {
      const length = readVarint();
      if (length === undefined) return undefined;
      at += length;
    } else if (wireType === 1) at += 8;
    else if (wireType === 5) at += 4;
    else return undefined;
  }
  return at > message.length ? undefined : (SERVING_STATUS[status] ?? String(status));
}
