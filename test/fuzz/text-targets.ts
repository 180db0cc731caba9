import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseLabelSelector } from "../../src/base/api/meta.ts";
import { compareQuantities, formatQuantity, parseQuantity } from "../../src/base/api/quantity.ts";
import { formatDuration, parseDuration } from "../../src/base/text/duration.ts";
import { parseConfigFile } from "../../src/config/config-file.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { parseJson } from "../../src/manifest/yaml/json-parser.ts";
import { parseStream } from "../../src/manifest/yaml/parse-stream.ts";
import { TextError } from "../../src/manifest/yaml/source-node.ts";
import { readOracleCases } from "../manifest/oracle-cases.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

const LARGEST = { unscaled: 1n, scale: 21, format: "DecimalSI" } as const;

const quantity: FuzzTarget = {
  name: "quantity",
  seeds: [..."100m 1.5Gi 1e3 -5k +1 5. .5 0 12E 1e9999".split(" "), `${"0".repeat(8000)}x`, "9".repeat(900)],
  tokens: "0 9 . - + e E Ki Mi Gi Ti Pi Ei n u m k M G T P".split(" "),
  run(input) {
    const parsed = parseQuantity(input);
    if (!parsed) return;
    // Beyond its largest suffix upstream prints another value, and so does this program.
    const size = parsed.unscaled < 0n ? -parsed.unscaled : parsed.unscaled;
    if (compareQuantities({ ...parsed, unscaled: size }, LARGEST) >= 0) return;
    const text = formatQuantity(parsed);
    const again = parseQuantity(text);
    if (!again || compareQuantities(parsed, again) !== 0) throw new Error(`is printed as ${text}, another value`);
  },
};

const duration: FuzzTarget = {
  name: "duration",
  seeds: ["20s", "1h2m3.5s", "-1.5h", "0", "100ns", ".5ms", "1µs", `${"9".repeat(300)}h`, `${"0".repeat(8000)}x`],
  tokens: "0 9 . - + ns us µs μs ms s m h".split(" "),
  run(input) {
    const ms = parseDuration(input);
    if (ms === undefined) return;
    if (!Number.isFinite(ms)) throw new Error(`is ${ms} ms`);
    if (ms >= 1 && parseDuration(formatDuration(ms)) === undefined) throw new Error("cannot be read after printing");
  },
};

const labelSelector: FuzzTarget = {
  name: "label-selector",
  seeds: ["app=web,tier!=db", "env in (test, live),!legacy", "a.b/c==d", ",".repeat(1000), "a in (b", "x notin ()"],
  tokens: [..."= == != ! , ( ) app a/b - . _".split(" "), " in ", " notin ", " "],
  run(input) {
    const filter = parseLabelSelector(input);
    if (typeof filter === "function") filter({ app: "web" });
  },
};

const YAML_TOKENS = [
  "\n", " ", "  ", "\t", ":", ": ", "- ", "? ", "[", "]", "{", "}", ",", "&a ", "*a", "*a, ", "<<: ", "!", "!!str ",
  "!!binary ", "|\n", ">\n", "'", '"', "#", " #", "---\n", "...\n", "%YAML 1.1\n", "\\", "\\x", "\r\n", "\u2028", "\ufeff",
  "0x", "1e9", "~", "null", "yes", "0", "_", "a: ", "😀", "\u0000",
]; // biome-ignore format: a table

/** 5,000 aliases of a text: once 5 GB of memory. */
const ALIASED_TEXT = `a: &a ${"x".repeat(15_000)}\nb: [${"*a, ".repeat(5000)}]\n`;

const yaml: FuzzTarget = {
  name: "yaml",
  seeds: [
    "a: [1, 'b', \"c\\n\"]\nb: &x {c: d}\ne: *x\n<<: *x\n",
    "- |\n  text\n   more\n- >-\n  folded\n  text\n- ? k\n  : v\n",
    "%YAML 1.1\n---\na: !!binary aGk=\n...\n---\n~\n",
    ALIASED_TEXT,
    `a: ${"0".repeat(8000)}9\nb: 0x${"f".repeat(8000)}\n`,
    `a: ${"[".repeat(9000)}`,
    `a: 1${" ".repeat(8000)}x\n`,
  ],
  tokens: YAML_TOKENS,
  run(input) {
    const { documents, lines } = parseStream(Buffer.from(input));
    for (const document of documents) {
      if (document.kind === "error") lines.locate(document.error.offset);
    }
  },
};

const json: FuzzTarget = {
  name: "json",
  seeds: [
    '{"a": [1, -2.5e3, true, false, null, "\\u00e9\\n"], "a": {"b": {}}}',
    `{"a": ${"9".repeat(8000)}}`,
    `${'{"a":'.repeat(3000)}1`,
    "[".repeat(9000),
  ],
  tokens: [...'{ } [ ] , : " "a": 1 - . e true null'.split(" "), "\\", "\\u", " ", "\n"],
  run(input) {
    let ours: boolean;
    try {
      parseJson(input);
      ours = true;
    } catch (error) {
      if (!(error instanceof TextError) && !(error instanceof RangeError)) throw error;
      ours = false;
    }
    if (ours) JSON.parse(input);
  },
};

const examples = join(import.meta.dir, "..", "..", "examples");
const manifests = readdirSync(examples)
  .filter((name) => name.endsWith(".yaml"))
  .map((name) => readFileSync(join(examples, name), "utf8"));

const pod = (rest: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: a\n    image: b:1\n${rest}`;

/** Some of the manifests that a kubelet accepted. */
const accepted = readOracleCases("validation-open")
  .flatMap(({ ok, manifest = "" }) => (ok && manifest.length < 4000 ? manifest : []))
  .filter((_, index) => index % 5 === 0);

/** Whatever the text, findings with their positions or pods with their identity come out. */
function checkManifest(bytes: Buffer): void {
  const { results, findings, pods } = readManifest(bytes, { file: "f.yaml", nodeName: "n", source: "file" });
  if (results.length === 0) throw new Error("nothing came out");
  for (const { valid, ok, kind, pod: read, findings: own } of results) {
    if (!valid && own.length === 0) throw new Error("refused without a word");
    if (ok && kind === "Pod" && !read) throw new Error("accepted, but no pod");
  }
  for (const { line, column, message } of findings) {
    if (message.includes("bug in kubelet-ts")) throw new Error(message);
    if (!(line >= 1 && column >= 1) || message === "") throw new Error("a finding without a position");
  }
  if (!pods.every(({ pod: { metadata } }) => metadata.name?.endsWith("-n"))) throw new Error("a pod without identity");
}

const manifest: FuzzTarget = {
  name: "manifest",
  iterations: 800,
  seeds: [
    ...manifests,
    ...accepted,
    pod(`    resources: {limits: {cpu: "${"0".repeat(8000)}x"}}\n`),
    pod(`    resources: {limits: {cpu: "1${" ".repeat(8000)}x"}}\n`),
    pod(`    env:\n    - {name: A, value: &a ${"x".repeat(15_000)}}\n${"    - {name: A, value: *a}\n".repeat(5000)}`),
    Array.from({ length: 12_000 }, () => "apiVersion: v1\nkind: Pod\n").join("---\n"),
  ],
  tokens: [
    ...YAML_TOKENS,
    ..."securityContext: |sysctls: |iqn.2020-01.a|a.b-c_d|name: |resources: |9999999999".split("|"),
    "__proto__: {polluted: yes}\n",
    '"__proto__": {"polluted": true},',
    "constructor: {prototype: {polluted: yes}}\n",
    "\0",
    "\ud800",
  ],
  run(input) {
    // As Latin-1 most characters beyond ASCII are bytes that are not UTF-8.
    for (const encoding of ["utf8", "latin1"] as const) checkManifest(Buffer.from(input, encoding));
    if ("polluted" in {}) throw new Error("the prototype of objects was changed");
  },
};

const configFile: FuzzTarget = {
  name: "config-file",
  seeds: [
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 5\nevictionHard: {memory.available: 5%}\n",
    `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nsyncFrequency: ${"1".repeat(8000)}\n`,
  ],
  tokens: [...YAML_TOKENS, "allowedUnsafeSysctls: ", "a.b-c_d", "nodeLabels: ", "kubeletTs: ", "12:30"],
  run(input) {
    parseConfigFile(input, "k.yaml");
  },
};

/** Parsers of manifests, configuration and queries. */
export const TEXT_TARGETS: readonly FuzzTarget[] = [
  quantity,
  duration,
  labelSelector,
  yaml,
  json,
  manifest,
  configFile,
];
