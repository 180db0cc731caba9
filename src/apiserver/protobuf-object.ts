import { define } from "../base/text/json.ts";
import { ProtobufError, protobufFields } from "../base/text/protobuf.ts";
import descriptor from "./kubernetes.proto.txt" with { type: "text" };

interface Field {
  name: string;
  /** Scalar, or name of a message. */
  type: string;
  label: "optional" | "repeated" | "map";
  /** `inline`: its fields are members of the message around it. `presence`: it counts even when it is empty. */
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

const MAGIC = Buffer.from("k8s\0");

/**
 * An object of `application/vnd.kubernetes.protobuf` as JSON would have it. Only what kubectl itself writes is known: a
 * field that is not is an error, never left out. Source: apimachinery's `runtime.Unknown`.
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
  const message = MESSAGES.get(kind);
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
  if (label === "repeated") {
    const list = (result[name] ?? []) as unknown[];
    list.push(decoded);
    result[name] = list;
  } else if (option === "inline") Object.assign(result, decoded);
  else if (option === "presence" || !isZero(value) || type === "int64" || type === "bool") result[name] = decoded;
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
  const decoded = decode(bytes, message, path, false);
  if (type === "Quantity") return decoded.string ?? "0";
  return type === "IntOrString" ? (decoded.type ? (decoded.strVal ?? "") : (decoded.intVal ?? 0)) : decoded;
}

function requireBytes(value: bigint | Buffer, path: string): Buffer {
  if (typeof value === "bigint") throw new ProtobufError(`${path} is a number`);
  return value;
}

const isZero = (value: bigint | Buffer) => (typeof value === "bigint" ? value === 0n : value.length === 0);
