import { expect, test } from "bun:test";
import { decodeProtobufObject } from "../../src/apiserver/protobuf-object.ts";

const field = (number: number, value: Buffer | string) => {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
};
const join = (...parts: Buffer[]) => Buffer.concat(parts);
const envelope = (kind: string, raw: Buffer) =>
  join(Buffer.from("k8s\0"), field(1, join(field(1, "v1"), field(2, kind))), field(2, raw));

test("a namespace as kubectl 1.32 sends it", () => {
  const raw = join(field(1, join(field(1, "lab"), field(2, ""), field(3, ""))), field(2, ""), field(3, ""));
  expect(decodeProtobufObject(envelope("Namespace", raw))).toEqual({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "lab" },
  });
});

test("maps of text and of bytes", () => {
  const raw = join(
    field(1, field(1, "c")),
    field(2, join(field(1, "a"), field(2, "1"))),
    field(3, join(field(1, "b"), field(2, Buffer.from([0, 255])))),
  );
  expect(decodeProtobufObject(envelope("ConfigMap", raw))).toMatchObject({
    data: { a: "1" },
    binaryData: { b: "AP8=" },
  });
});

test.each([
  { when: "no envelope", bytes: Buffer.from("{}"), message: "not a protobuf of Kubernetes" },
  {
    when: "a kind that is not known",
    bytes: envelope("Widget", Buffer.alloc(0)),
    message: "Widget is not read in protobuf",
  },
  {
    when: "a field that is not known",
    bytes: envelope("ConfigMap", field(9, "x")),
    message: "field 9 of ConfigMap is not read",
  },
  { when: "a body cut short", bytes: envelope("ConfigMap", Buffer.from([0x0a, 0x7f])), message: "cut short" },
])("$when is refused", ({ bytes, message }) => expect(() => decodeProtobufObject(bytes)).toThrow(message));
