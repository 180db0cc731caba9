import { expect, test } from "bun:test";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

const read = (manifest: object) =>
  readManifest(Buffer.from(JSON.stringify(manifest)), { file: "web.yaml", nodeName: "node1", source: "file" });

const service = { name: "web", port: { number: 80 } };
const toPath = (more: object = {}) => ({ path: "/", pathType: "Prefix", backend: { service }, ...more });
const toPaths = (...paths: object[]) => ({ rules: [{ host: "a.example", http: { paths } }] });
const ingress = (spec: object, annotations: object = {}) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name: "web", annotations },
  spec,
});
const withBackend = (backend: object) => toPaths(toPath({ backend }));
const withHost = (host: string) => ({ rules: [{ host }] });

test.each([
  toPaths(toPath()),
  toPaths(toPath({ path: "/a/b", pathType: "Exact" }), { pathType: "ImplementationSpecific", backend: { service } }),
  { defaultBackend: { service: { name: "web", port: { name: "http" } } }, ingressClassName: "nginx" },
  { ...withHost("*.example.org"), tls: [{ hosts: ["*.example.org"], secretName: "cert" }] },
])("a right Ingress: %j", (spec) => {
  const { objects, findings } = read(ingress(spec));
  expect(findings).toEqual([]);
  expect(objects).toMatchObject([{ kind: "Ingress", object: { metadata: { namespace: "default" }, spec } }]);
});

const AT_PATH = "spec.rules[0].http.paths[0]";
test.each([
  [{}, "spec", "Invalid"],
  [toPaths(), "spec.rules[0].http.paths", "Required"],
  [toPaths(toPath({ pathType: undefined })), `${AT_PATH}.pathType`, "Required"],
  [toPaths(toPath({ pathType: "Regex" })), `${AT_PATH}.pathType`, "NotSupported"],
  [toPaths(toPath({ path: "a" })), `${AT_PATH}.path`, "Invalid"],
  [toPaths(toPath({ path: undefined })), `${AT_PATH}.path`, "Invalid"],
  [toPaths(toPath({ path: "/a//b" })), `${AT_PATH}.path`, "Invalid"],
  [toPaths(toPath({ path: "/a/.." })), `${AT_PATH}.path`, "Invalid"],
  [withBackend({}), `${AT_PATH}.backend`, "Invalid"],
  [withBackend({ service: { name: "", port: { number: 80 } } }), `${AT_PATH}.backend.service.name`, "Required"],
  [withBackend({ service: { name: "Web", port: { number: 80 } } }), `${AT_PATH}.backend.service.name`, "Invalid"],
  [withBackend({ service: { name: "web" } }), `${AT_PATH}.backend`, "Required"],
  [withBackend({ service: { name: "web", port: { number: 80, name: "x" } } }), `${AT_PATH}.backend`, "Invalid"],
  [
    withBackend({ service: { name: "web", port: { number: 70000 } } }),
    `${AT_PATH}.backend.service.port.number`,
    "Invalid",
  ],
  [withHost("1.2.3.4"), "spec.rules[0].host", "Invalid"],
  [withHost("a.*.example"), "spec.rules[0].host", "Invalid"],
  [withHost("a_b"), "spec.rules[0].host", "Invalid"],
  [{ ...withHost("a"), tls: [{ hosts: ["a_b"] }] }, "spec.tls[0].hosts[0]", "Invalid"],
  [{ ...withHost("a"), tls: [{ secretName: "A" }] }, "spec.tls[0].secretName", "Invalid"],
])("mistakes, as kube-apiserver 1.20.2 has them: %j: %s", (spec, field, type) => {
  const { objects, findings } = read(ingress(spec));
  expect(objects).toEqual([]);
  expect(findings).toMatchObject([{ field, type: `FieldValue${type}`, severity: "error", code: "invalid" }]);
});

test("the class is named once", () => {
  const { findings } = read(
    ingress({ ...withHost("a"), ingressClassName: "nginx" }, { "kubernetes.io/ingress.class": "x" }),
  );
  expect(findings).toMatchObject([{ field: "annotations.kubernetes.io/ingress.class", severity: "error" }]);
});

test.each([
  ["upstream-vhost", "x", "has no effect"],
  [
    "proxy-body-size",
    "8 MB",
    "must be a number of bytes, with k, m or g for larger ones (8m): the Ingress is not served",
  ],
  ["server-snippet", "return 200;", "is not supported: remove it: the Ingress is not served"],
])("the annotation %s with %j is a warning", (name, value, message) => {
  const annotation = `nginx.ingress.kubernetes.io/${name}`;
  const { objects, findings } = read(ingress(toPaths(toPath()), { [annotation]: value }));
  expect(objects).toHaveLength(1);
  expect(findings).toMatchObject([{ field: `metadata.annotations[${annotation}]`, severity: "warning", message }]);
});

test("a resource as backend is refused", () => {
  const resource = { kind: "Bucket", name: "files" };
  const { objects, findings } = read(ingress({ defaultBackend: { resource } }));
  expect(objects).toEqual([]);
  expect(findings).toMatchObject([{ field: "spec.defaultBackend.resource", code: "unsupported", severity: "error" }]);
});

test.each(["networking.k8s.io/v1beta1", "extensions/v1beta1"])("%s is read as v1, with a warning", (apiVersion) => {
  const backend = (servicePort: number | string) => ({ serviceName: "web", servicePort });
  const spec = {
    backend: backend("http"),
    rules: [
      {
        http: {
          paths: [
            { path: "/a", backend: backend(80) },
            { pathType: "Exact", path: "/b", backend: backend("81") },
          ],
        },
      },
    ],
  };
  const { objects, findings } = read({ ...ingress(spec), apiVersion });
  expect(findings).toMatchObject([{ field: "apiVersion", severity: "warning" }]);
  const paths = [
    { path: "/a", pathType: "ImplementationSpecific", backend: { service: { name: "web", port: { number: 80 } } } },
    { path: "/b", pathType: "Exact", backend: { service: { name: "web", port: { number: 81 } } } },
  ];
  const defaultBackend = { service: { name: "web", port: { name: "http" } } };
  expect(JSON.parse(JSON.stringify(objects[0]!.object.spec))).toEqual({ defaultBackend, rules: [{ http: { paths } }] });
});

test("a mistake in an old version has its place in the text", () => {
  const path = "  rules:\n    - http:\n        paths:\n          - backend: { serviceName: Web, servicePort: 80 }\n";
  const text = `apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: { name: web }\nspec:\n${path}`;
  const { findings } = readManifest(Buffer.from(text), { file: "a.yaml", nodeName: "node1", source: "file" });
  expect(findings).toMatchObject([{ field: "apiVersion" }, { line: 8, severity: "error" }]);
});

const ingressClass = (spec: object) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: { name: "nginx" },
  spec,
});

test("an IngressClass is in no namespace and has a controller", () => {
  const { objects, findings } = read(ingressClass({ controller: "k8s.io/ingress-nginx" }));
  expect(findings).toEqual([]);
  expect(objects[0]!.object.metadata.namespace).toBeUndefined();
  expect(read(ingressClass({})).findings).toMatchObject([{ field: "spec.controller", type: "FieldValueRequired" }]);
  expect(read(ingressClass({ controller: "nginx" })).findings).toMatchObject([{ field: "spec.controller" }]);
});
