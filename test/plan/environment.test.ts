import { describe, expect, test } from "bun:test";
import type { EnvFromSource, EnvVar } from "../../src/base/api/pod.ts";
import type { ObjectIndex } from "../../src/base/model/desired-state.ts";
import {
  type EnvironmentFacts,
  expand,
  expandCommand,
  expandStrictly,
  isEnvironmentVariableName,
  parseEnvFile,
  resolveEnvironment,
  withoutExpansion,
} from "../../src/plan/environment.ts";
import type { PodStepError } from "../../src/plan/waiting-reasons.ts";
import { aContainer, aPod } from "../support/builders.ts";

const NODE = { name: "node1", ip: "192.0.2.1", cpuCount: 2, memoryBytes: 4096 };

const base64 = (text: string) => Buffer.from(text).toString("base64");

const OBJECTS: ObjectIndex = {
  configMaps: new Map([
    ["default/cfg", { metadata: { name: "cfg" }, data: { k: "from-cfg", "1st": "x", "..up": "y", ok: "fine" } }],
    ["other/only", { metadata: { name: "only" }, data: { k: "elsewhere" } }],
    ["default/binary", { metadata: { name: "binary" }, binaryData: { k: base64("b") } }],
  ]),
  secrets: new Map([
    [
      "default/filed",
      {
        metadata: { name: "filed", annotations: { "kubelet-ts.io/secret-from": "z=file:/run/z" } },
        type: "Opaque",
        data: {},
      },
    ],
    ["default/sec", { metadata: { name: "sec" }, type: "Opaque", data: { k: base64("pässwörd"), ok: base64("s") } }],
  ]),
};

const FACTS: EnvironmentFacts = { objects: OBJECTS, podIps: ["10.1.2.3", "fd00::3"], hostIp: "192.0.2.1", node: NODE };

const METADATA = { name: "p-node1", uid: "u1", labels: { app: "web" }, annotations: { note: "a\nb" } };

function resolve(env: EnvVar[], envFrom: EnvFromSource[] = [], facts: Partial<EnvironmentFacts> = {}) {
  const container = aContainer({
    env,
    envFrom,
    resources: { limits: { cpu: "1500m", memory: "64Mi" }, requests: { memory: "32Mi" } },
  });
  const other = aContainer({ name: "other", resources: { limits: { memory: "1Gi" } } });
  const volumes = [{ name: "v", emptyDir: {} }];
  return resolveEnvironment(aPod({ containers: [container, other], volumes }, METADATA), container, {
    ...FACTS,
    ...facts,
  });
}

/** `NAME=value` lines, or the message. */
function outcome(env: EnvVar[], envFrom: EnvFromSource[] = [], facts: Partial<EnvironmentFacts> = {}) {
  try {
    return resolve(env, envFrom, facts).env.map(({ name, value }) => `${name}=${value}`);
  } catch (error) {
    const { reason, message } = error as PodStepError;
    return `${reason}: ${message}`;
  }
}

test("the recorded kubelet's expansion", () => {
  const env = [
    { name: "PLAIN", value: "hello" },
    { name: "EMPTY", value: "" },
    { name: "NOVALUE" },
    { name: "REF", value: "$(PLAIN) world" },
    { name: "ESC", value: "$$(PLAIN)" },
    { name: "ESC3", value: "$$$(PLAIN)" },
    { name: "FORWARD", value: "$(LATER)" },
    { name: "LATER", value: "later" },
    { name: "UNDEF", value: "$(NOPE)" },
    { name: "CHAIN", value: "[$(REF)]" },
    { name: "OPEN", value: "$(PLAIN" },
    { name: "DOLLAR", value: "a$b" },
    { name: "MULTI", value: "l1\nl2" },
    { name: "PLAIN", value: "again" },
  ];
  expect(outcome(env)).toEqual([
    "PLAIN=again",
    "EMPTY=",
    "NOVALUE=",
    "REF=hello world",
    "ESC=$(PLAIN)",
    "ESC3=$hello",
    "FORWARD=$(LATER)",
    "LATER=later",
    "UNDEF=$(NOPE)",
    "CHAIN=[hello world]",
    "OPEN=$(PLAIN",
    "DOLLAR=a$b",
    "MULTI=l1\nl2",
  ]);
});

describe("one variable from elsewhere", () => {
  const missing = (message: string) => `CreateContainerConfigError: ${message}`;
  type From = NonNullable<EnvVar["valueFrom"]>;
  const field = (fieldPath: string): From => ({ fieldRef: { apiVersion: "v1", fieldPath } });
  const resource = (resource: string, divisor: string, containerName?: string): From => ({
    resourceFieldRef: { resource, divisor, ...(containerName && { containerName }) },
  });
  const configMap = (name: string, key: string, optional?: true): From => ({
    configMapKeyRef: { name, key, ...(optional && { optional }) },
  });
  const secret = (name: string, key: string, optional?: true): From => ({
    secretKeyRef: { name, key, ...(optional && { optional }) },
  });
  test.each<[From, want: string | undefined]>([
    [field("metadata.name"), "p-node1"],
    [field("metadata.namespace"), "default"],
    [field("metadata.uid"), "u1"],
    [field("metadata.labels['app']"), "web"],
    [field("metadata.labels['none']"), ""],
    [field("metadata.labels['toString']"), ""],
    [field("metadata.annotations['note']"), "a\nb"],
    [field("spec.nodeName"), "node1"],
    [field("spec.serviceAccountName"), ""],
    [field("status.podIP"), "10.1.2.3"],
    [field("status.podIPs"), "10.1.2.3,fd00::3"],
    [field("status.hostIP"), "192.0.2.1"],
    [field("status.hostIPs"), "192.0.2.1"],
    [field("status.phase"), missing("unsupported fieldPath: status.phase")],
    [resource("limits.cpu", "0"), "2"], // 1500m rounds up
    [resource("limits.cpu", "1m"), "1500"],
    [resource("limits.memory", "1Mi"), "64"],
    [resource("limits.memory", "0"), "67108864"],
    [resource("limits.memory", "1G"), "1"], // rounds up
    [resource("requests.memory", "1Mi"), "32"],
    [resource("requests.cpu", "1m"), "0"], // a request is not defaulted
    [resource("limits.memory", "1Mi", "other"), "1024"],
    [resource("limits.cpu", "0", "other"), "2"], // the node's CPUs where there is no limit
    [resource("limits.cpu", "0", "absent"), missing("container absent not found")],
    [configMap("cfg", "k"), "from-cfg"],
    [configMap("cfg", "z"), missing("couldn't find key z in ConfigMap default/cfg")],
    [configMap("cfg", "z", true), undefined],
    [configMap("cfg", "constructor", true), undefined],
    [configMap("no", "k"), missing('configmap "no" not found')],
    [configMap("no", "k", true), undefined],
    [configMap("only", "k"), missing('configmap "only" not found')], // other namespace
    [configMap("binary", "k"), missing("couldn't find key k in ConfigMap default/binary")], // binaryData is never an env source
    [secret("sec", "k"), "pässwörd"],
    [secret("sec", "z"), missing("couldn't find key z in Secret default/sec")],
    [
      secret("filed", "z"),
      missing('couldn\'t find key z in Secret default/filed: kubelet-ts.io/secret-from reads it from file "/run/z"'),
    ],
    [secret("no", "k"), missing('secret "no" not found')],
    [secret("no", "k", true), undefined],
  ])("%j", (from, want) => {
    const got = outcome([{ name: "X", valueFrom: from }]);
    if (want === undefined) expect(got).toEqual([]);
    else if (want.startsWith("CreateContainerConfigError")) expect(got).toBe(want);
    else expect(got).toEqual([`X=${want}`]);
  });

  test("a variable left out by an optional reference cannot be referred to", () => {
    const env = [
      { name: "X", valueFrom: { configMapKeyRef: { name: "no", key: "k", optional: true } } },
      { name: "Y", value: "$(X)" },
    ];
    expect(outcome(env)).toEqual(["Y=$(X)"]);
  });

  test("an optional reference that leads nowhere keeps what envFrom or an earlier entry said", () => {
    const env = [
      { name: "X", value: "first" },
      { name: "X", valueFrom: { secretKeyRef: { name: "no", key: "k", optional: true } } },
    ];
    expect(outcome(env)).toEqual(["X=first"]);
  });
});

describe("whole objects", () => {
  test("envFrom comes first and env is laid over it, by prefix, later sources over earlier ones", () => {
    const envFrom = [
      { configMapRef: { name: "cfg" } },
      { prefix: "S_", secretRef: { name: "sec" } },
      { secretRef: { name: "sec" } },
    ];
    expect(outcome([{ name: "ok", value: "own, was $(ok)" }], envFrom)).toEqual([
      "k=pässwörd",
      "1st=x",
      "..up=y",
      "ok=own, was s",
      "S_k=pässwörd",
      "S_ok=s",
    ]);
  });

  test("keys that are not variable names are skipped with one event per source", () => {
    const resolved = resolve([], [{ configMapRef: { name: "cfg" } }, { prefix: "P=", configMapRef: { name: "cfg" } }]);
    expect(resolved.env.map(({ name }) => name)).toEqual(["k", "1st", "..up", "ok"]);
    expect(resolved.warnings).toEqual([
      {
        type: "Warning",
        reason: "InvalidEnvironmentVariableNames",
        message:
          "Keys [P=..up, P=1st, P=k, P=ok] from the EnvFrom configMap default/cfg were skipped since they are considered invalid environment variable names.",
      },
    ]);
  });

  test("a missing object", () => {
    expect(outcome([], [{ configMapRef: { name: "no" } }])).toBe(
      'CreateContainerConfigError: configmap "no" not found',
    );
    expect(outcome([], [{ secretRef: { name: "no" } }])).toBe('CreateContainerConfigError: secret "no" not found');
    expect(outcome([], [{ secretRef: { name: "no", optional: true } }])).toEqual([]);
  });
});

describe("fileKeyRef", () => {
  const fileKey = (fields: { key?: string; optional?: boolean; volumeName?: string } = {}) => [
    { name: "X", valueFrom: { fileKeyRef: { volumeName: "v", path: "env", key: "A", optional: false, ...fields } } },
  ];
  const reading = (text: string | undefined) => ({ readEnvFile: () => text });
  const FILE = 'file "env" of volume "v"';
  test("the key of a file is the value", () => {
    expect(outcome(fileKey(), [], reading("A='1'\nB='2'\n"))).toEqual(["X=1"]);
  });
  test.each([
    ["B='2'\n", `environment variable key "A" not found in ${FILE}`],
    [undefined, `couldn't find ${FILE}`],
    [
      "A=1\n",
      `couldn't parse ${FILE}: invalid environment variable format at line 1: value must be enclosed in single quotes`,
    ],
    [`A='${"x".repeat(65_536)}'`, `couldn't parse ${FILE}: larger than 65536 bytes`],
  ])("%#", (text, message) => {
    expect(outcome(fileKey(), [], reading(text))).toBe(`CreateContainerConfigError: ${message}`);
  });

  test("optional leaves the variable out when file or key are missing, but not when the file is broken", () => {
    expect(outcome(fileKey({ optional: true }), [], reading(undefined))).toEqual([]);
    expect(outcome(fileKey({ optional: true, key: "B" }), [], reading("A='1'"))).toEqual([]);
    expect(outcome(fileKey({ optional: true }), [], reading("A=1"))).toContain("CreateContainerConfigError");
  });

  test("a reader's error is shown", () => {
    const readEnvFile = () => {
      throw new Error("permission denied");
    };
    expect(outcome(fileKey(), [], { readEnvFile })).toBe(
      `CreateContainerConfigError: couldn't read file "env" of volume "v": permission denied`,
    );
  });

  test("an unknown volume", () => {
    expect(outcome(fileKey({ volumeName: "w" }), [], reading("A='1'"))).toBe(
      'CreateContainerConfigError: cannot find the volume "w" referenced by FileKeyRef',
    );
  });
});

test("references that multiply a value end at what the kernel gives to a program", () => {
  const env = Array.from("BCDEFGHIJKLM", (name, index) => ({
    name,
    value: `$(${String.fromCharCode(65 + index)})`.repeat(10),
  }));
  expect(outcome([{ name: "A", value: "0123456789" }, ...env])).toContain("would become longer than 131072 characters");
  const container = aContainer({ args: ["$(A)".repeat(200)] });
  const expanding = () => expandCommand(container, [{ name: "A", value: "x".repeat(1000) }]);
  expect(expanding).toThrow(expect.objectContaining({ reason: "CreateContainerConfigError" }));
  expect(() =>
    expandCommand(aContainer({ args: ["$(A)".repeat(20_000)] }), [{ name: "A", value: "0123456789" }]),
  ).toThrow();
});

test("command and args see the container's variables, undefined ones stay", () => {
  const container = aContainer({ command: ["sh", "-c", "echo $(A) $$(A) $A $(B)"], args: ["$(A)"] });
  expect(expandCommand(container, [{ name: "A", value: "1" }])).toEqual({
    command: ["sh", "-c", "echo 1 $(A) $A $(B)"],
    args: ["1"],
  });
  expect(expandCommand(aContainer(), [])).toEqual({ command: [], args: [] });
});

test.each([
  ["_a.b-c", true],
  ["", false],
  ["1a", true],
  ["..a", true],
  ["a b", true],
  ["a=b", false],
  ["é", false],
  ["a\nb", false],
])("variable name %p: %p", (name, want) => expect(isEnvironmentVariableName(name)).toBe(want));

const bad = (line: number, what: string) => ({
  problem: `invalid environment variable format at line ${line}: ${what}`,
});

test.each([
  { text: "", want: {} },
  { text: "A='1'", want: { A: "1" } },
  { text: "A='1'\r\nB='2'\r\n", want: { A: "1", B: "2" } },
  { text: "  A='1'\n\n \t\n# c\n#X\nB=''\n", want: { A: "1", B: "" } },
  { text: `A='$x "y" \\n # no comment'  # comment`, want: { A: `$x "y" \\n # no comment` } },
  { text: "A='l1\nl2\n'\nB='x'", want: { A: "l1\nl2\n", B: "x" } },
  { text: "A= 'x'", want: { A: "" } },
  { text: "A='1'\nA='2'", want: { A: "2" } },
  { text: "A='='", want: { A: "=" } },
])("$text", ({ text, want }) => {
  const parsed = parseEnvFile(text);
  expect("values" in parsed ? Object.fromEntries(parsed.values) : parsed).toEqual(want);
});

test.each([
  { text: "A", want: bad(1, "missing '='") },
  { text: "\n\nA ='1'", want: bad(3, "whitespace before '=' is not allowed") },
  { text: "='1'", want: bad(1, "empty variable name") },
  { text: "A=1", want: bad(1, "value must be enclosed in single quotes") },
  { text: 'A="1"', want: bad(1, "value must be enclosed in single quotes") },
  { text: "A=", want: bad(1, "value must be enclosed in single quotes") },
  { text: "B='x'\nA='1\n2\n", want: bad(2, "unclosed single quote") },
  { text: "A='1'2", want: bad(1, "unexpected content after closing quote") },
])("$text is refused", ({ text, want }) => expect(parseEnvFile(text)).toEqual(want));

const VALUES: Record<string, string> = { A: "a", EMPTY: "", REF: "$(A)", "x y": "odd" };
const lookup = (name: string) => VALUES[name];

test.each([
  ["", ""],
  ["$(A)$(A)", "aa"],
  ["[$(EMPTY)]", "[]"],
  ["$(REF)", "$(A)"],
  ["$(x y)", "odd"],
  ["$()", "$()"],
  ["$$", "$"],
  ["$$$$(A)", "$$(A)"],
  ["$A", "$A"],
  ["a$", "a$"],
  ["$(A$$", "$(A$"],
  ["$($(A))", "$($(A))"],
  ["$é$(A)", "$éa"],
  ["$x$(A)", "$xa"],
])("expand %p gives %p", (text, want) => expect(expand(text, lookup)).toBe(want));

test.each(["$", "$$", "$$$(A)", "$(A)", "a$b", "$a $$ $(", "p$$w$$$d"])("%p survives its expansion", (text) =>
  expect(expand(withoutExpansion(text), lookup)).toBe(text),
);

test("references in values are not expanded", () => {
  expect(expand("$(V)", () => "$& $1 $$ $(V)")).toBe("$& $1 $$ $(V)");
});

test("a path refuses unknown and empty names, each named once, sorted", () => {
  expect(expandStrictly("$(A)/x", lookup)).toEqual({ text: "a/x" });
  expect(expandStrictly("$(Z)/$(EMPTY)/$(Z)", lookup)).toEqual({ missing: ["EMPTY", "Z"] });
});
