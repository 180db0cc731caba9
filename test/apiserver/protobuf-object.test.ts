import { expect, test } from "bun:test";
import { decodeProtobufObject } from "../../src/apiserver/protobuf-object.ts";

const field = (number: number, value: Buffer | string) => {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
};
const varint = (value: number): Buffer =>
  value < 128 ? Buffer.from([value]) : Buffer.concat([Buffer.from([(value & 127) | 128]), varint(value >> 7)]);
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

test("a SelfSubjectReview as kubectl auth whoami 1.32 sends it: with an empty user", () => {
  const raw = join(field(1, field(1, "")), field(2, field(1, join(field(1, ""), field(2, "")))));
  expect(decodeProtobufObject(envelope("SelfSubjectReview", raw))).toMatchObject({ kind: "SelfSubjectReview" });
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

test("a Service as kubectl create service externalname sends it: with the zeros of Go", () => {
  const int = (number: number, value: number) => join(varint(number << 3), varint(value));
  const port = join(field(1, "80"), field(2, "TCP"), int(3, 80), field(4, join(int(1, 0), int(2, 80))), int(5, 0));
  const zeros = [field(3, ""), field(7, ""), field(8, ""), field(11, ""), int(12, 0), int(13, 0)];
  const spec = join(field(1, port), field(4, "ExternalName"), ...zeros, field(10, "db.example"));
  const raw = join(field(1, field(1, "db")), field(2, spec), field(3, field(1, "")));
  expect(decodeProtobufObject(envelope("Service", raw))).toMatchObject({
    metadata: { name: "db" },
    spec: { type: "ExternalName", externalName: "db.example", ports: [{ port: 80, targetPort: 80 }] },
  });
});

test("a pod as kubectl 1.32 copies it: quantities, ports by name or number, members of embedded structs, empty sources", () => {
  const int = (number: number, value: number) => Buffer.from([number << 3, value]);
  const port = (text: string) => field(2, join(int(1, 1), int(2, 0), field(3, text)));
  const probe = join(field(1, field(2, join(field(1, "/ready"), port("http")))), int(2, 3));
  const limits = field(1, join(field(1, "memory"), field(2, field(1, "64Mi"))));
  const selector = join(field(1, field(1, "settings")), field(2, "key"));
  const env = join(field(1, "A"), field(3, field(3, selector)));
  const container = join(field(1, "app"), field(7, env), field(8, limits), field(11, probe));
  const emptyDir = join(field(1, "tmp"), field(2, field(2, Buffer.alloc(0))));
  const configMap = join(field(1, "c"), field(2, field(19, field(1, field(1, "settings")))));
  const spec = join(field(1, emptyDir), field(1, configMap), field(2, container));
  const raw = join(field(1, field(1, "copy")), field(2, spec), field(3, ""));
  expect(decodeProtobufObject(envelope("Pod", raw))).toEqual({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "copy" },
    spec: {
      volumes: [
        { name: "tmp", emptyDir: {} },
        { name: "c", configMap: { name: "settings" } },
      ],
      containers: [
        {
          name: "app",
          env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "settings", key: "key" } } }],
          resources: { limits: { memory: "64Mi" } },
          readinessProbe: { httpGet: { path: "/ready", port: "http" }, initialDelaySeconds: 3 },
        },
      ],
    },
  });
});

test("a pod as client-go writes it back: with what the server wrote, without zeros that JSON omits", () => {
  const int = (number: number, value: number) => join(varint(number << 3), varint(value));
  const fields = field(7, field(1, '{"f:spec":{}}'));
  const entry = join(field(1, "kubectl"), field(2, "Apply"), field(4, int(1, 86_400)), fields);
  const metadata = join(
    field(1, "p"),
    field(6, "7"),
    int(7, 2),
    field(8, join(int(1, 0), int(2, 5))),
    field(17, entry),
  );
  const state = field(2, field(3, join(int(1, 0), int(2, 0), field(3, "Completed"))));
  const status = join(field(1, "Succeeded"), field(16, field(1, "192.0.2.1")), field(8, join(field(1, "c"), state)));
  const pod = join(field(1, metadata), field(3, status));
  expect(decodeProtobufObject(envelope("Pod", pod))).toEqual({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "p",
      resourceVersion: "7",
      generation: 2,
      creationTimestamp: "1970-01-01T00:00:00Z",
      managedFields: [
        { manager: "kubectl", operation: "Apply", time: "1970-01-02T00:00:00Z", fieldsV1: { "f:spec": {} } },
      ],
    },
    status: {
      phase: "Succeeded",
      hostIPs: [{ ip: "192.0.2.1" }],
      containerStatuses: [{ name: "c", state: { terminated: { exitCode: 0, reason: "Completed" } } }],
    },
  });
  expect(decodeProtobufObject(envelope("Pod", field(1, join(field(1, "p"), int(7, 0)))))).toMatchObject({
    metadata: { name: "p" },
  });
});

test("a node as client-go writes it back, a volume whose type is refused, and a class that is none", () => {
  const taint = join(field(1, "disk"), field(2, ""), field(3, "NoSchedule"));
  const unschedulable = Buffer.from([4 << 3, 0]);
  const metadata = join(field(1, "n"), field(11, join(field(1, "color"), field(2, "blue"))));
  const node = join(field(1, metadata), field(2, join(field(1, ""), unschedulable, field(5, taint))), field(3, ""));
  expect(decodeProtobufObject(envelope("Node", node))).toMatchObject({
    metadata: { name: "n", labels: { color: "blue" } },
    spec: { taints: [{ key: "disk", effect: "NoSchedule" }] },
  });
  const disk = join(field(1, "d"), field(2, field(22, field(1, "disk"))));
  const git = join(field(1, "g"), field(2, field(5, field(1, "https://x"))));
  const pod = join(field(1, field(1, "p")), field(2, join(field(1, disk), field(1, git))));
  expect(decodeProtobufObject(envelope("Pod", pod))).toMatchObject({
    spec: {
      volumes: [
        { name: "d", azureDisk: {} },
        { name: "g", gitRepo: { repository: "https://x" } },
      ],
    },
  });
  const claim = join(field(1, field(1, "c")), field(2, field(5, "")));
  expect(decodeProtobufObject(envelope("PersistentVolumeClaim", claim))).toMatchObject({
    spec: { storageClassName: "" },
  });
});

test.each([
  { when: "no envelope", bytes: Buffer.from("{}"), message: "not a protobuf of Kubernetes" },
  { when: "unknown kind", bytes: envelope("Widget", Buffer.alloc(0)), message: "Widget is not read in protobuf" },
  { when: "unknown field", bytes: envelope("ConfigMap", field(9, "x")), message: "field 9 of ConfigMap is not read" },
  { when: "a body cut short", bytes: envelope("ConfigMap", Buffer.from([0x0a, 0x7f])), message: "cut short" },
])("$when is refused", ({ bytes, message }) => expect(() => decodeProtobufObject(bytes)).toThrow(message));

test("an Ingress as kubectl 1.32 creates it: rules without a name of their own in JSON", () => {
  const port = join(field(1, ""), Buffer.from([2 << 3, 80]));
  const path = join(field(1, "/"), field(2, field(4, join(field(1, "web"), field(2, port)))), field(3, "Prefix"));
  const rule = join(field(1, "a.example"), field(2, field(1, field(1, path))));
  const tls = join(field(1, "a.example"), field(2, "cert"));
  const raw = join(field(1, field(1, "web")), field(2, join(field(2, tls), field(3, rule), field(4, "nginx"))));
  expect(decodeProtobufObject(envelope("Ingress", raw))).toMatchObject({
    spec: {
      ingressClassName: "nginx",
      tls: [{ hosts: ["a.example"], secretName: "cert" }],
      rules: [
        {
          host: "a.example",
          http: {
            paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "web", port: { number: 80 } } } }],
          },
        },
      ],
    },
  });
});

test("a Lease as client-go writes it: times with microseconds", () => {
  const nanos = Buffer.concat([varint(2 << 3), varint(123_456_789)]);
  const time = join(varint(1 << 3), varint(1), nanos);
  const raw = join(field(1, field(1, "leader")), field(2, join(field(1, "a"), field(4, time))));
  expect(decodeProtobufObject(envelope("Lease", raw))).toMatchObject({
    spec: { holderIdentity: "a", renewTime: "1970-01-01T00:00:01.123456Z" },
  });
});
