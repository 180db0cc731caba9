import { ApiError } from "../../src/apiserver/api-error.ts";
import { PATCH_TYPES } from "../../src/apiserver/api-request.ts";
import { applyConfiguration } from "../../src/apiserver/managed-fields.ts";
import { patchObject } from "../../src/apiserver/patch-object.ts";
import { negotiateForm } from "../../src/apiserver/presentation.ts";
import { decodeProtobufObject } from "../../src/apiserver/protobuf-object.ts";
import { parseFieldSelector } from "../../src/base/api/meta.ts";
import { parseMediaTypes } from "../../src/base/text/media-types.ts";
import { ProtobufError } from "../../src/base/text/protobuf.ts";
import { readJsonPath, readJsonPathTemplate } from "../../src/cli/print/json-path.ts";
import { parseKubeconfig } from "../../src/cluster/client/credentials.ts";
import { readDocument } from "../../src/manifest/yaml/parse-stream.ts";
import { TextError } from "../../src/manifest/yaml/source-node.ts";
import { isLocalHost } from "../../src/server/request-handler.ts";
import { decodeBody, UrlFetchError } from "../../src/sources/url-fetch.ts";
import { type FuzzTarget, mayThrow } from "./fuzz-target.ts";

const LIVE = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "a", namespace: "default", labels: { app: "a" }, annotations: { note: "x" } },
  spec: {
    containers: [
      { name: "c", image: "d:1", env: [{ name: "A", value: "1" }], ports: [{ containerPort: 80, protocol: "TCP" }] },
      { name: "e", image: "f:1" },
    ],
    volumes: [{ name: "v", emptyDir: {} }],
  },
};

/** Patches of the four kinds. */
const patches: FuzzTarget = {
  name: "patch",
  seeds: [
    '{"spec":{"containers":[{"name":"c","image":"d:2"},{"$patch":"delete","name":"e"}]}}',
    '{"spec":{"$setElementOrder/containers":[{"name":"e"},{"name":"c"}],"containers":[{"name":"c","$deleteFromPrimitiveList/args":["a"]}]}}',
    '{"metadata":{"labels":{"$retainKeys":["app"],"$patch":"replace"}}}',
    '[{"op":"replace","path":"/spec/containers/0/image","value":"x"},{"op":"test","path":"/metadata/name","value":"a"}]',
    '[{"op":"move","from":"/spec","path":"/spec/containers/-"},{"op":"copy","from":"","path":"/metadata/a~1b~0c"}]',
    `[${'{"op":"copy","from":"/spec","path":"/spec/x"},'.repeat(30)}{"op":"remove","path":"/spec/x"}]`,
    `${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}`,
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  ],
  tokens: [
    ...'"$patch" "delete" "replace" "merge" "$setElementOrder/containers" "$retainKeys"'.split(" "),
    ...'"op" "path" "/spec /- /0 ~1 null { } [ ] , "copy" "move" "__proto__"'.split(" "),
  ],
  run(input) {
    let patch: unknown;
    try {
      patch = JSON.parse(input);
    } catch {
      return;
    }
    for (const type of [PATCH_TYPES.json, PATCH_TYPES.merge, PATCH_TYPES.strategic]) {
      mayThrow(ApiError, () => patchObject(LIVE, type, patch));
    }
    if (typeof patch === "object" && patch !== null && !Array.isArray(patch)) {
      const wanted = { ...LIVE, ...patch, metadata: LIVE.metadata };
      const manager = { name: "m", operation: "Apply", apiVersion: "v1" } as const;
      applyConfiguration(LIVE, wanted, manager, { force: true, time: "2026-11-22T05:00:00Z" });
    }
    if ("polluted" in {}) throw new Error("the prototype of objects was changed");
    if (LIVE.spec.containers.length !== 2) throw new Error("the object was changed in place");
  },
};

/** Headers and queries of requests, and the Host header. */
const headers: FuzzTarget = {
  name: "request header",
  seeds: [
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "*/*;q=0.1, application/*",
    "status.phase!=Running,spec.nodeName=node1,metadata.name=a\\,b",
    "[::1]:10255",
    "localhost:4194",
    ",".repeat(16_000),
    ";".repeat(16_000),
    "\\".repeat(16_001),
    `a=${'"'.repeat(16_000)}`,
  ],
  tokens: [...', ; = " q= as=Table v1 g= */* != == [ ] : .'.split(" "), "\\"],
  run(input) {
    parseMediaTypes(input);
    negotiateForm(input);
    const filter = parseFieldSelector(input, { "status.phase": () => "Running" });
    if (typeof filter === "function") filter(LIVE);
    isLocalHost(input, "node1");
  },
};

/** @param fields of the message; less than 128 bytes */
const deleteOptions = (fields: string) =>
  `k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12${String.fromCharCode(fields.length)}${fields}`;

const protobuf: FuzzTarget = {
  name: "protobuf",
  seeds: [
    "k8s\0\n\x10\n\x02v1\x12\x0aDeleteOptions\x12\x02\x08\x05",
    "k8s\0\n\x0d\n\x02v1\x12\x07Binding\x12\x04\n\x02\n\x00",
    "k8s\0\n\x10\n\x02v1\x12\x08Eviction\x12\xff\xff\xff\xff\x0f",
    deleteOptions("\x0a\x01x"),
    deleteOptions("\x10\x05"),
    deleteOptions("\x2a\x00".repeat(60)),
    `k8s\0${"\x80".repeat(10_000)}`,
    `k8s\0${"\x12\x7f".repeat(5_000)}`,
  ],
  tokens: "DeleteOptions Eviction Namespace v1 k8s\0 \n \x12 \x08 \x00 \xff \x80 \x7f".split(" "),
  run(input) {
    mayThrow(ProtobufError, () => decodeProtobufObject(Buffer.from(input, "latin1")));
  },
};

const jsonPath: FuzzTarget = {
  name: "jsonpath",
  seeds: [
    "{.items[*].metadata.name}",
    '{range .spec.containers[*]}{.name}{"\\n"}{end}',
    '.status.conditions[?(@.type=="Ready")].status',
    "{..name}",
    `{${"[0]".repeat(5_000)}}`,
    "{range ".repeat(2_000),
    `{["${"a".repeat(5_000)}`,
    `[?(@.${"a.".repeat(5_000)}==`,
  ],
  tokens: [..."{ } [ ] * .. . ?(@ == != \" ' end -1 )".split(" "), "range ", "\\"],
  run(input) {
    const path = readJsonPath(input);
    if (!("problem" in path)) path.values({});
    const template = readJsonPathTemplate(input);
    if (!("problem" in template)) template.render({});
  },
};

const kubeconfig: FuzzTarget = {
  name: "kubeconfig",
  seeds: [
    'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "https://1.2.3.4:6443", certificate-authority-data: QQ==}}]\nusers: [{name: u, user: {token: secret-token}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n',
    "clusters: []\n",
    "clusters: [{name: c, cluster: {server: '::'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
  ],
  tokens: [..."{ } [ ] server exec users null '' token http:// *a".split(" "), "\n", ": ", "- ", "&a "],
  run(input) {
    let data: unknown;
    try {
      data = readDocument(Buffer.from(input), "config");
    } catch (error) {
      if (!(error instanceof TextError || error instanceof Error)) throw error;
      return;
    }
    try {
      parseKubeconfig(data, "/k/config");
    } catch (error) {
      const { message } = error as Error;
      if (!message.startsWith('Kubeconfig "')) throw error;
      if (message.includes("secret-token")) throw new Error(`the message shows the token: ${message}`);
    }
  },
};

/** Bodies of manifest URLs, packed as the server says. */
const packedBody: FuzzTarget = {
  name: "packed body",
  seeds: [
    Buffer.from(Bun.gzipSync(Buffer.from("a: b\n".repeat(100)))).toString("latin1"),
    Buffer.from(Bun.deflateSync(Buffer.from("a: b\n".repeat(100)))).toString("latin1"),
    // 64 MB of zeros.
    Buffer.from(Bun.gzipSync(Buffer.alloc(64 * 1024 * 1024))).toString("latin1"),
    "\x1f\x8b\x08",
    "",
  ],
  tokens: ["\x1f\x8b\x08", "\x00", "\xff", "\x78\x9c"],
  async run(input) {
    const bytes = Buffer.from(input, "latin1");
    for (const encoding of ["gzip", "deflate", "br", "identity", input.slice(0, 20)]) {
      try {
        const unpacked = await decodeBody(bytes, encoding, 1024 * 1024);
        if (unpacked.length >= Math.max(1024 * 1024, bytes.length + 1)) throw new Error(`${unpacked.length} bytes`);
      } catch (error) {
        if (!(error instanceof UrlFetchError)) throw error;
      }
    }
  },
};

export const API_TARGETS: readonly FuzzTarget[] = [patches, headers, protobuf, jsonPath, kubeconfig, packedBody];
