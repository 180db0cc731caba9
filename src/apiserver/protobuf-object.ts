import { define } from "./json-patch.ts";
import { type Field, type FieldType, type Message, POD_SPEC } from "./protobuf-pod.ts";

const OWNER: Message = {
  1: ["kind", "string"],
  3: ["name", "string"],
  4: ["uid", "string"],
  5: ["apiVersion", "string"],
  6: ["controller", "bool"],
  7: ["blockOwnerDeletion", "bool"],
};

const METADATA: Message = {
  1: ["name", "string"],
  2: ["generateName", "string"],
  3: ["namespace", "string"],
  5: ["uid", "string"],
  6: ["resourceVersion", "string"],
  11: ["labels", "string", "map"],
  12: ["annotations", "string", "map"],
  13: ["ownerReferences", OWNER, "list"],
  14: ["finalizers", "string", "list"],
};

const metadata: Field = ["metadata", METADATA];

const TEMPLATE: Message = { 1: metadata, 2: ["spec", POD_SPEC] };
const SELECTOR: Message = { 1: ["matchLabels", "string", "map"] };
const JOB_SPEC: Message = {
  1: ["parallelism", "int"],
  2: ["completions", "int"],
  3: ["activeDeadlineSeconds", "int"],
  4: ["selector", SELECTOR],
  6: ["template", TEMPLATE],
  5: ["manualSelector", "bool"],
  7: ["backoffLimit", "int"],
  8: ["ttlSecondsAfterFinished", "int"],
  9: ["completionMode", "string"],
  10: ["suspend", "bool"],
};

/** Kinds that commands of kubectl send in protobuf. */
const KINDS: Readonly<Record<string, Message>> = {
  Namespace: { 1: metadata, 2: ["spec", { 1: ["finalizers", "string", "list"] }], 3: ["status", {}] },
  Pod: { 1: metadata, 2: ["spec", POD_SPEC], 3: ["status", {}] },
  ConfigMap: { 1: metadata, 2: ["data", "string", "map"], 3: ["binaryData", "bytes", "map"], 4: ["immutable", "bool"] },
  Secret: {
    1: metadata,
    2: ["data", "bytes", "map"],
    3: ["type", "string"],
    4: ["stringData", "string", "map"],
    5: ["immutable", "bool"],
  },
  Deployment: {
    1: metadata,
    2: [
      "spec",
      {
        1: ["replicas", "int"],
        2: ["selector", SELECTOR],
        3: ["template", TEMPLATE],
        4: ["strategy", { 1: ["type", "string"] }],
      },
    ],
    3: ["status", {}],
  },
  Job: { 1: metadata, 2: ["spec", JOB_SPEC], 3: ["status", {}] },
  CronJob: {
    1: metadata,
    2: [
      "spec",
      {
        1: ["schedule", "string"],
        3: ["concurrencyPolicy", "string"],
        4: ["suspend", "bool"],
        5: ["jobTemplate", { 1: metadata, 2: ["spec", JOB_SPEC] }],
      },
    ],
    3: ["status", {}],
  },
  Service: {
    1: metadata,
    2: [
      "spec",
      {
        1: [
          "ports",
          {
            1: ["name", "string"],
            2: ["protocol", "string"],
            3: ["port", "int"],
            4: ["targetPort", { 1: ["type", "int"], 2: ["intVal", "int"], 3: ["strVal", "string"] }, "inline"],
            5: ["nodePort", "int"],
          },
          "list",
        ],
        2: ["selector", "string", "map"],
        3: ["clusterIP", "string"],
        4: ["type", "string"],
        7: ["sessionAffinity", "string"],
      },
    ],
    3: ["status", {}],
  },
  Eviction: { 1: metadata, 2: ["deleteOptions", { 1: ["gracePeriodSeconds", "int"] }] },
  SelfSubjectAccessReview: {
    1: metadata,
    2: [
      "spec",
      {
        1: [
          "resourceAttributes",
          {
            1: ["namespace", "string"],
            2: ["verb", "string"],
            3: ["group", "string"],
            4: ["version", "string"],
            5: ["resource", "string"],
            6: ["subresource", "string"],
            7: ["name", "string"],
          },
        ],
        2: ["nonResourceAttributes", { 1: ["path", "string"], 2: ["verb", "string"] }],
      },
    ],
    3: ["status", { 2: ["reason", "string"] }],
  },
  SelfSubjectRulesReview: { 1: metadata, 2: ["spec", { 1: ["namespace", "string"] }], 3: ["status", {}] },
  SelfSubjectReview: { 1: metadata, 2: ["status", {}] },
  DeleteOptions: {
    1: ["gracePeriodSeconds", "int"],
    2: ["preconditions", { 1: ["uid", "string"], 2: ["resourceVersion", "string"] }],
    3: ["orphanDependents", "bool"],
    4: ["propagationPolicy", "string"],
    5: ["dryRun", "string", "list"],
  },
};

const ENVELOPE: Message = {
  1: ["typeMeta", { 1: ["apiVersion", "string"], 2: ["kind", "string"] }],
  2: ["raw", "bytes"],
};
const MAGIC = Buffer.from("k8s\0");

/** A body that cannot be read; the message says what it holds. */
export class ProtobufError extends Error {
  override readonly name = "ProtobufError";
}

/**
 * An object of `application/vnd.kubernetes.protobuf` as JSON would have it. Only what kubectl itself writes is known: a
 * field that is not is an error, never left out. Source: apimachinery's `runtime.Unknown`.
 * @throws ProtobufError
 */
export function decodeProtobufObject(bytes: Uint8Array): Record<string, unknown> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!buffer.subarray(0, 4).equals(MAGIC)) throw new ProtobufError("the body is not a protobuf of Kubernetes");
  const { typeMeta, raw } = decode(buffer.subarray(4), ENVELOPE, "", true) as {
    typeMeta?: { apiVersion?: string; kind?: string };
    raw?: string;
  };
  const { apiVersion = "", kind = "" } = typeMeta ?? {};
  const message = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (!message) throw new ProtobufError(`${kind} is not read in protobuf: send JSON`);
  return { apiVersion, kind, ...decode(Buffer.from(raw ?? "", "base64"), message, kind, false) };
}

function decode(buffer: Buffer, message: Message, path: string, skipsUnknown: boolean): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const reader = new Reader(buffer);
  while (!reader.isAtEnd) {
    const tag = reader.varint();
    const number = Number(tag >> 3n);
    const field = message[number];
    const value = reader.value(Number(tag & 7n));
    if (!field) {
      // Go writes empty members of structs, too.
      if (skipsUnknown || isZero(value)) continue;
      throw new ProtobufError(`field ${number} of ${path} is not read in protobuf: send JSON`);
    }
    put(result, field, value, path);
  }
  return result;
}

function put(result: Record<string, unknown>, [name, type, shape]: Field, value: bigint | Buffer, path: string): void {
  const place = `${path}.${name}`;
  if (shape === "map") {
    const entry = decode(requireBytes(value, place), { 1: ["key", "string"], 2: ["value", type] }, place, false);
    const map = (result[name] ?? {}) as Record<string, unknown>;
    define(map, String(entry.key ?? ""), entry.value ?? "");
    result[name] = map;
    return;
  }
  const decoded = toJson(value, type, place);
  if (shape === "list") {
    const list = (result[name] ?? []) as unknown[];
    list.push(decoded);
    result[name] = list;
  } else if (shape === "inline") {
    const { type: isText, intVal = 0, strVal = "" } = decoded as { type?: number; intVal?: number; strVal?: string };
    result[name] = isText ? strVal : intVal;
  } else if (shape === "embed") Object.assign(result, decoded);
  else if (shape === "present" || !isZero(value) || type === "int" || type === "bool") result[name] = decoded;
}

function toJson(value: bigint | Buffer, type: FieldType, path: string): unknown {
  if (typeof type === "object") return decode(requireBytes(value, path), type, path, false);
  if (type === "int" || type === "bool") {
    if (typeof value !== "bigint") throw new ProtobufError(`${path} is not a number`);
    return type === "int" ? Number(BigInt.asIntN(64, value)) : value !== 0n;
  }
  if (type === "quantity")
    return decode(requireBytes(value, path), { 1: ["string", "string"] }, path, false).string ?? "0";
  return requireBytes(value, path).toString(type === "bytes" ? "base64" : "utf8");
}

function requireBytes(value: bigint | Buffer, path: string): Buffer {
  if (typeof value === "bigint") throw new ProtobufError(`${path} is a number`);
  return value;
}

const isZero = (value: bigint | Buffer) => (typeof value === "bigint" ? value === 0n : value.length === 0);

class Reader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#buffer.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#buffer[this.#at++];
      if (byte === undefined) throw new ProtobufError("the body ends in the middle of a number");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new ProtobufError("a number of the body is too long");
  }

  value(wireType: number): bigint | Buffer {
    if (wireType === 0) return this.varint();
    const length = wireType === 2 ? Number(this.varint()) : wireType === 1 ? 8 : wireType === 5 ? 4 : -1;
    if (length < 0 || this.#at + length > this.#buffer.length) throw new ProtobufError("the body is cut short");
    this.#at += length;
    return this.#buffer.subarray(this.#at - length, this.#at);
  }
}
