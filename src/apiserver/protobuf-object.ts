import { toApiTime } from "../base/text/api-time.ts";
import { define, jsonIfValid } from "../base/text/json.ts";
import { ProtobufError, protobufFields } from "../base/text/protobuf.ts";
import descriptor from "./kubernetes.proto.txt" with { type: "text" };

interface Field {
  name: string;
  /** Scalar, or name of a message. */
  type: string;
  label: "optional" | "repeated" | "map";
  /** `inline`: members of the message around it. `presence`: counts when empty. `nonzero`: its zero is left out. */
  option: string | undefined;
}

/** Fields of a message by number. */
type Message = ReadonlyMap<number, Field>;

/** Messages by name. */
const MESSAGES = new Map<string, Message>();
for (const [, message = "", body = ""] of descriptor.matchAll(/^message (\w+) \{(.*?)\}$/gms)) {
  const fields = body.matchAll(
    /^ {2}(optional|repeated|map)(?:<string,)? ?(\w+)>? (\w+) = (\d+)(?: \[(\w+) = true\])?;$/gm,
  );
  const entries = Array.from(fields, ([, label, type = "", name = "", number, option]): [number, Field] => [
    Number(number),
    { name, type, label: label as Field["label"], option },
  ]);
  MESSAGES.set(message, new Map(entries));
}

/** The last second of the year 9999, beyond which a time has no form in JSON. */
const MAX_TIME_MS = 253_402_300_799_000;

const MAGIC = Buffer.from("k8s\0");

/**
 * An object of `application/vnd.kubernetes.protobuf` as JSON would have it. A field that is not known is an error, never left
 * out. Source: apimachinery's `runtime.Unknown`.
 * @throws ProtobufError
 */
export function decodeProtobufObject(bytes: Uint8Array): Record<string, unknown> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!buffer.subarray(0, 4).equals(MAGIC)) throw new ProtobufError("the body is not a protobuf of Kubernetes");
  const { typeMeta, raw } = decode(buffer.subarray(4), MESSAGES.get("Unknown")!, "", true) as {
    typeMeta?: { apiVersion?: string; kind?: string };
    raw?: string;
  };
  const { apiVersion = "", kind = "" } = typeMeta ?? {};
  // Two groups have a kind of this name.
  const message = MESSAGES.get(`${apiVersion.replace(/\W/g, "_")}_${kind}`) ?? MESSAGES.get(kind);
  if (!message) throw new ProtobufError(`${kind} is not read in protobuf: send JSON`);
  return { apiVersion, kind, ...decode(Buffer.from(raw ?? "", "base64"), message, kind, false) };
}

function decode(buffer: Buffer, message: Message, path: string, skipsUnknown: boolean): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const { number, value } of protobufFields(buffer)) {
    const field = message.get(number);
    if (!field) {
      // Go writes empty members of structs, too.
      if (skipsUnknown || isZero(value)) continue;
      throw new ProtobufError(`field ${number} of ${path} is not read in protobuf: send JSON`);
    }
    put(result, field, value, path);
  }
  return result;
}

function put(result: Record<string, unknown>, field: Field, value: bigint | Buffer, path: string): void {
  const { name, type, label, option } = field;
  const ownPath = `${path}.${name}`;
  if (label === "map") {
    const entry = decode(requireBytes(value, ownPath), mapEntry(type), ownPath, false);
    const map = (result[name] ?? {}) as Record<string, unknown>;
    define(map, String(entry.key ?? ""), entry.value ?? "");
    result[name] = map;
    return;
  }
  const decoded = toJson(value, type, ownPath);
  const keepsZero = option === "presence" || (option === undefined && (type === "int64" || type === "bool"));
  if (label === "repeated") {
    const list = (result[name] ?? []) as unknown[];
    list.push(decoded);
    result[name] = list;
  } else if (option === "inline") Object.assign(result, decoded);
  else if (!isZero(value) || keepsZero) result[name] = decoded;
}

const mapEntry = (type: string): Message =>
  new Map<number, Field>([
    [1, { name: "key", type: "string", label: "optional", option: undefined }],
    [2, { name: "value", type, label: "optional", option: undefined }],
  ]);

function toJson(value: bigint | Buffer, type: string, path: string): unknown {
  if (type === "int64" || type === "bool") {
    if (typeof value !== "bigint") throw new ProtobufError(`${path} is not a number`);
    return type === "int64" ? Number(BigInt.asIntN(64, value)) : value !== 0n;
  }
  const bytes = requireBytes(value, path);
  const message = MESSAGES.get(type);
  if (!message) return bytes.toString(type === "bytes" ? "base64" : "utf8");
  const isTime = type === "Time" || type === "MicroTime";
  const decoded = decode(bytes, message, path, isTime || type === "Unsupported");
  if (type === "Quantity") return decoded.string ?? "0";
  if (isTime) {
    const ms = Math.min(Math.max(Number(decoded.seconds ?? 0) * 1000, -MAX_TIME_MS), MAX_TIME_MS);
    const micros = String(Math.trunc(Number(decoded.nanos ?? 0) / 1000)).padStart(6, "0");
    return type === "Time" ? toApiTime(new Date(ms)) : toApiTime(new Date(ms)).replace("Z", `.${micros}Z`);
  }
  if (type === "FieldsV1") return jsonIfValid(Buffer.from(String(decoded.raw), "base64").toString());
  return type === "IntOrString" ? (decoded.type ? (decoded.strVal ?? "") : (decoded.intVal ?? 0)) : decoded;
}

function requireBytes(value: bigint | Buffer, path: string): Buffer {
  if (typeof value === "bigint") throw new ProtobufError(`${path} is a number`);
  return value;
}

const isZero = (value: bigint | Buffer) => (typeof value === "bigint" ? value === 0n : value.length === 0);
