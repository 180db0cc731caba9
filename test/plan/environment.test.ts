import { describe, expect, test } from "bun:test";
import type { Container, EnvFromSource, EnvVar, Pod } from "../../src/base/api/pod.ts";
import type { ObjectIndex } from "../../src/base/model/desired-pod.ts";
import {
  type EnvironmentFacts,
  expand,
  expandCommand,
  expandStrictly,
  isEnvironmentVariableName,
  parseEnvFile,
  resolveEnvironment,
} from "../../src/plan/environment.ts";

const NODE = { name: "node1", ip: "192.0.2.1", cpuCount: 2, memoryBytes: 4096, bootId: "", machineId: "" };

const base64 = (text: string) => Buffer.from(text).toString("base64");

const OBJECTS: ObjectIndex = {
  configMaps: new Map([
    ["default/cfg", { metadata: { name: "cfg" }, data: { k: "from-cfg", "1st": "x", "..up": "y", ok: "fine" } }],
    ["other/only", { metadata: { name: "only" }, data: { k: "elsewhere" } }],
    ["default/binary", { metadata: { name: "binary" }, binaryData: { k: base64("b") } }],
  ]),
  secrets: new Map([
    ["default/sec", { metadata: { name: "sec" }, type: "Opaque", data: { k: base64("pässwörd"), ok: base64("s") } }],
  ]),
};

const FACTS: EnvironmentFacts = { objects: OBJECTS, podIps: ["10.1.2.3", "fd00::3"], hostIp: "192.0.2.1", node: NODE };

function aContainer(fields: Partial<Container> = {}): Container {
  return {
    name: "app",
    image: "busybox:test",
    resources: {},
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    ...fields,
  };
}

function aPod(container: Container, spec: Partial<Pod["spec"]> = {}): Pod {
  return {
    metadata: {
      name: "p-node1",
      namespace: "default",
      uid: "u1",
      labels: { app: "web" },
      annotations: { note: "a\nb" },
    },
    spec: {
      containers: [container],
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      dnsPolicy: "ClusterFirst",
      securityContext: {},
      schedulerName: "default-scheduler",
      enableServiceLinks: true,
      nodeName: "node1",
      ...spec,
    },
  };
}

function resolve(env: EnvVar[], envFrom: EnvFromSource[] = [], facts: Partial<EnvironmentFacts> = {}) {
  const container = aContainer({
    env,
    envFrom,
    resources: { limits: { cpu: "1500m", memory: "64Mi" }, requests: { memory: "32Mi" } },
  });
  const other = aContainer({ name: "other", resources: { limits: { memory: "1Gi" } } });
  const volumes = [{ name: "v", emptyDir: {} }];
  return resolveEnvironment(aPod(container, { containers: [container, other], volumes }), container, {
    ...FACTS,
    ...facts,
  });
}

/** `NAME=value` lines, or the message. */
function outcome(env: EnvVar[], envFrom: EnvFromSource[] = [], facts: Partial<EnvironmentFacts> = {}) {
  const resolved = resolve(env, envFrom, facts);
  return resolved.missing
    ? `${resolved.missing.reason}: ${resolved.missing.message}`
    : resolved.env.map(({ name, value }) => `${name}=${value}`);
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
  test.each<{ from: NonNullable<EnvVar["valueFrom"]>; want: string | undefined; why?: string }>([
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } }, want: "p-node1" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }, want: "default" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.uid" } }, want: "u1" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['app']" } }, want: "web" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['none']" } }, want: "" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['toString']" } }, want: "" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['note']" } }, want: "a\nb" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "spec.nodeName" } }, want: "node1" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "spec.serviceAccountName" } }, want: "" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "status.podIP" } }, want: "10.1.2.3" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "status.podIPs" } }, want: "10.1.2.3,fd00::3" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "status.hostIP" } }, want: "192.0.2.1" },
    { from: { fieldRef: { apiVersion: "v1", fieldPath: "status.hostIPs" } }, want: "192.0.2.1" },
    {
      from: { fieldRef: { apiVersion: "v1", fieldPath: "status.phase" } },
      want: missing("unsupported fieldPath: status.phase"),
    },
    { from: { resourceFieldRef: { resource: "limits.cpu", divisor: "0" } }, want: "2", why: "1500m rounds up" },
    { from: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } }, want: "1500" },
    { from: { resourceFieldRef: { resource: "limits.memory", divisor: "1Mi" } }, want: "64" },
    { from: { resourceFieldRef: { resource: "limits.memory", divisor: "0" } }, want: "67108864" },
    { from: { resourceFieldRef: { resource: "limits.memory", divisor: "1G" } }, want: "1", why: "rounds up" },
    { from: { resourceFieldRef: { resource: "requests.memory", divisor: "1Mi" } }, want: "32" },
    {
      from: { resourceFieldRef: { resource: "requests.cpu", divisor: "1m" } },
      want: "0",
      why: "a request is not defaulted",
    },
    {
      from: { resourceFieldRef: { resource: "limits.memory", divisor: "1Mi", containerName: "other" } },
      want: "1024",
    },
    {
      from: { resourceFieldRef: { resource: "limits.cpu", divisor: "0", containerName: "other" } },
      want: "2",
      why: "the node's CPUs where there is no limit",
    },
    {
      from: { resourceFieldRef: { resource: "limits.cpu", divisor: "0", containerName: "absent" } },
      want: missing("container absent not found"),
    },
    { from: { configMapKeyRef: { name: "cfg", key: "k" } }, want: "from-cfg" },
    {
      from: { configMapKeyRef: { name: "cfg", key: "z" } },
      want: missing("couldn't find key z in ConfigMap default/cfg"),
    },
    { from: { configMapKeyRef: { name: "cfg", key: "z", optional: true } }, want: undefined },
    { from: { configMapKeyRef: { name: "cfg", key: "constructor", optional: true } }, want: undefined },
    { from: { configMapKeyRef: { name: "no", key: "k" } }, want: missing('configmap "no" not found') },
    { from: { configMapKeyRef: { name: "no", key: "k", optional: true } }, want: undefined },
    {
      from: { configMapKeyRef: { name: "only", key: "k" } },
      want: missing('configmap "only" not found'),
      why: "other namespace",
    },
    {
      from: { configMapKeyRef: { name: "binary", key: "k" } },
      want: missing("couldn't find key k in ConfigMap default/binary"),
      why: "binaryData is never an env source",
    },
    { from: { secretKeyRef: { name: "sec", key: "k" } }, want: "pässwörd" },
    { from: { secretKeyRef: { name: "sec", key: "z" } }, want: missing("couldn't find key z in Secret default/sec") },
    { from: { secretKeyRef: { name: "no", key: "k" } }, want: missing('secret "no" not found') },
    { from: { secretKeyRef: { name: "no", key: "k", optional: true } }, want: undefined },
  ])("%j", ({ from, want }) => {
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
    expect(resolved.missing).toBeUndefined();
    if (resolved.missing) return;
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
  test.each<{ text: string | undefined; want: string | string[] }>([
    { text: "A='1'\n", want: ["X=1"] },
    { text: "A='1'\nB='2'\nA='3'\n", want: ["X=3"] },
    {
      text: "B='2'\n",
      want: 'CreateContainerConfigError: environment variable key "A" not found in file "env" of volume "v"',
    },
    { text: undefined, want: `CreateContainerConfigError: couldn't find file "env" of volume "v"` },
    {
      text: "A=1\n",
      want: `CreateContainerConfigError: couldn't parse file "env" of volume "v": invalid environment variable format at line 1: value must be enclosed in single quotes`,
    },
    {
      text: `A='${"x".repeat(65_536)}'`,
      want: `CreateContainerConfigError: couldn't parse file "env" of volume "v": larger than 65536 bytes`,
    },
  ])("%#", ({ text, want }) => {
    expect<string | string[]>(outcome(fileKey(), [], reading(text))).toEqual(want);
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
  ["A", true],
  ["_a.b-c", true],
  ["-", true],
  [".x", true],
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
  ["plain", "plain"],
  ["$(A)", "a"],
  ["$(A)$(A)", "aa"],
  ["[$(EMPTY)]", "[]"],
  ["$(REF)", "$(A)"],
  ["$(x y)", "odd"],
  ["$(B)", "$(B)"],
  ["$()", "$()"],
  ["$$", "$"],
  ["$$(A)", "$(A)"],
  ["$$$(A)", "$a"],
  ["$$$$(A)", "$$(A)"],
  ["$", "$"],
  ["$A", "$A"],
  ["a$", "a$"],
  ["$(A", "$(A"],
  ["$(A$$", "$(A$"],
  ["$($(A))", "$($(A))"],
  ["$é$(A)", "$éa"],
  ["$x$(A)", "$xa"],
])("expand %p gives %p", (text, want) => expect(expand(text, lookup)).toBe(want));

test("references in values are not expanded", () => {
  expect(expand("$(V)", () => "$& $1 $$ $(V)")).toBe("$& $1 $$ $(V)");
});

test("a path refuses unknown and empty names, each named once, sorted", () => {
  expect(expandStrictly("$(A)/x", lookup)).toEqual({ text: "a/x" });
  expect(expandStrictly("$(Z)/$(EMPTY)/$(Z)", lookup)).toEqual({ missing: ["EMPTY", "Z"] });
});
