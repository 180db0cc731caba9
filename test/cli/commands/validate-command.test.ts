import { describe, expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readInputs } from "../../../src/cli/client/manifest-inputs.ts";
import { findCommand } from "../../../src/cli/command-line.ts";
import { runSubCommand } from "../../../src/cli/sub-command.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { capturedIo } from "../captured-io.ts";

const dir = tempDirs()();
const POD = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: "b:1"}]\n';
const CONFIG = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/** Files that the tests name; those with a dot in front are read only when they are named. */
const FILES: Readonly<Record<string, string>> = {
  "good.yaml": POD,
  "bad.yaml": POD.replace("image", "\n    imag").replace("{name: a, ", "{name: a,\n    "),
  ".hidden.yaml": "not read",
  ".escape.yaml": POD.replace("{name: web}", '{name: web, labels: {"\\e]0;x\\a": 1}}'),
  ".secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 123456}\n",
  ".large.yaml": `${POD}  tolerations:\n  - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 9007199254740993}\n`,
  ".broken.yaml": "kind: Pod\n  metadata: x\n",
  ".broken-secret.yaml": "kind: Secret\n  stringData: hunter2\n",
  ".twice.yaml": `${POD}---\n${POD.replace("containers: [{", "containers: [{envFrom: [{configMapRef: {name: cfg}}], ")}`,
  ".privileged.yaml": POD.replace("{name: a,", "{name: a, securityContext: {privileged: true},"),
  ".k.yaml": `${CONFIG}kubeletTs: {allowPrivileged: true}\n`,
  ".bad-k.yaml": `${CONFIG}maxPodz: 1\n`,
};
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(dir, name), text);
symlinkSync(".loop", join(dir, ".loop"));

/** @param argv in which `@name` is one of the files, `@` alone their directory */
async function run(argv: readonly string[], input = "", isTerminal = false) {
  const io = capturedIo();
  io.isTerminal = isTerminal;
  // In small pieces, so that lines are cut.
  const bytes = Buffer.from(input);
  const size = Math.max(7, Math.ceil(bytes.length / 10_000));
  io.input = async function* () {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  };
  const words = argv.map((word) => word.replace(/(?<=^|=)@(.*)$/, (_, name: string) => join(dir, name)));
  const code = await runSubCommand(findCommand("validate")!, words, io);
  return { code, stdout: io.out, stderr: io.err };
}

/** One object as JSON, which is read from standard input. */
const check = (object: object, ...flags: string[]) => run(["-", ...flags], `${JSON.stringify(object)}\n`);

/** Arguments, each with the exit code and a pattern of what is printed. */
const TEXTS = String.raw`
@good.yaml | 0 | ^1 object: 1 ok, 0 with errors\n$
@ | 2 | bad\.yaml:7:5: spec\.containers\[0\]\.imag: there is no field "imag" here; did you mean "image"\?
@ | 2 | \n2 objects: 1 ok, 1 with errors\n$
@none.yaml | 2 | there is no such file
@.loop | 2 | \.loop:1:1: cannot be read: a symbolic link that leads to itself
/dev/null | 2 | ^/dev/null:1:1: is not a regular file
http://127.0.0.1:1/ | 2 | ^http://127\.0\.0\.1:1/:1:1: cannot be fetched: refuses the connection
HTTP://127.0.0.1:1/ | 2 | ^HTTP://127\.0\.0\.1:1/:1:1: cannot be fetched: refuses the connection
unix:/nothing | 2 | ^unix:/nothing:1:1: cannot be fetched: the socket does not exist
@.twice.yaml | 0 | warning: metadata\.name: Pod default/web is already defined in
@.twice.yaml | 0 | there is no ConfigMap "default/cfg"`;

describe("text", () => {
  test.each(TEXTS.trim().split("\n"))("%s", async (row) => {
    const [path = "", code, pattern = ""] = row.split(" | ");
    const result = await run([path]);
    expect(result.code).toBe(Number(code));
    expect(result.stdout).toMatch(new RegExp(pattern));
  });

  test.each([
    ["the line and a caret", "@bad.yaml", '        imag: "b:1"}]\n        ^\n'],
    ["a syntax error", "@.broken.yaml", "\n      metadata: x\n"],
  ])("on a terminal: %s", async (_, path, shown) => {
    expect((await run([path], "", true)).stdout).toContain(shown);
  });

  test.each([
    ["a line of a Secret", "@.secret.yaml", "stringData[a]", /123456/],
    ["a line that may be one of a Secret", "@.broken-secret.yaml", "1 with errors", /hunter2/],
    ["what moves the cursor", "@.escape.yaml", "metadata.labels[\\x1b]0;x\\x07]", /[\u001b\u0007]/],
  ])("%s is never shown", async (_, path, shown, hidden) => {
    const { stdout } = await run([path], "", true);
    expect(stdout).toContain(shown);
    expect(stdout).not.toMatch(hidden);
  });

  test("dependencies between pods that name no pod, or form a cycle, are warnings", async () => {
    const pod = (name: string, dependsOn: string) =>
      POD.replace("{name: web}", `{name: ${name}, annotations: {"kubelet-ts.io/depends-on": "${dependsOn}"}}`);
    const input = `${pod("a", "default/b")}---\n${pod("b", "default/a")}---\n${pod("c", "default/x")}`;
    const { code, stdout } = await run(["-"], input);
    expect(code).toBe(0);
    expect(stdout).toContain("the dependencies form a cycle: default/a");
    expect(stdout).toContain('there is no pod "default/x"');
  });

  test("a pipe is read once, as <(generate) of a shell", async () => {
    const pipe = join(dir, ".pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const writer = Bun.spawn(["sh", "-c", 'cat "$1" > "$2"', "sh", join(dir, "good.yaml"), pipe]);
    expect((await run([pipe])).stdout).toBe("1 object: 1 ok, 0 with errors\n");
    await writer.exited;
  });

  test("standard input, once, and not without end", async () => {
    expect((await run(["-", "-"], POD)).stdout).toBe("1 object: 1 ok, 0 with errors\n");
    let given = 0;
    async function* endless() {
      for (; ; given++) yield new Uint8Array(1024 * 1024);
    }
    expect(await readInputs(["-"], endless)).toEqual([{ file: "-", problem: "is 10 MiB or longer" }]);
    expect(given).toBeLessThan(11);
  });

  test("a directory without manifests is an error; skipped files are named", async () => {
    const empty = tempDirs()();
    expect(await run([empty])).toMatchObject({ code: 2, stdout: expect.stringContaining("has no manifest") });
    for (const name of ["notes.txt", "README"]) writeFileSync(join(empty, name), "x");
    const { code, stdout, stderr } = await run([empty]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringContaining("has no manifest") });
    expect(stderr).toContain("notes.txt: skipped: not a .yaml");
    expect(stderr).toContain("README: skipped: it has no apiVersion and kind");
  });
});

describe("json", () => {
  test("one result for each object, the pod as it would stand on /pods", async () => {
    const { code, stdout } = await run(["-o=json", "--node-name", "Box", "@good.yaml"]);
    expect(code).toBe(0);
    const { results } = JSON.parse(stdout);
    const verdict = { kind: "Pod", name: "web", valid: true, ok: true, errors: [], warnings: [] };
    const object = { metadata: { name: "web-box" }, spec: { nodeName: "box" } };
    expect(results).toMatchObject([{ document: 1, ...verdict, object }]);
  });

  test("a whole number beyond 2^53 is rounded", async () => {
    expect((await run(["-o", "json", "@.large.yaml"])).stdout).toContain('"tolerationSeconds":9007199254740992');
  });

  test("errors have code, field, message and position", async () => {
    const { stdout } = await run(["-o", "json", "@bad.yaml"]);
    expect(JSON.parse(stdout).results[0].errors).toMatchObject([
      { code: "unknown", field: "spec.containers[0].imag", line: 7, column: 5 },
    ]);
    const bare = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [{ name: "a" }] } };
    const errors = JSON.parse((await check(bare, "-o", "json")).stdout).results[0].errors;
    const position = { field: "spec.containers[0].image", line: 1, column: 79 };
    expect(errors).toMatchObject([{ code: "invalid", type: "FieldValueRequired", ...position }]);
  });
});

test("batch: a line in, a line out, in order", async () => {
  const lines = [
    { id: 1, manifest: POD },
    { id: "two", manifest_b64: Buffer.from("a: \u00e9\u2028").toString("base64") },
    { id: 3 },
  ];
  const { code, stdout } = await run(["--batch"], `${lines.map((it) => JSON.stringify(it)).join("\n")}\nnonsense\n`);
  expect(code).toBe(2);
  const answers = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(answers.map(({ id, results }) => [id, results[0].ok])).toEqual([
    [1, true],
    ["two", false],
    [3, false],
    [null, false],
  ]);
});

test("batch: a line longer than any manifest is not kept", async () => {
  const { code, stderr } = await run(["--batch"], " ".repeat(65 * 1024 * 1024));
  expect([code, stderr]).toEqual([1, expect.stringContaining("a line is longer than 67108864 characters")]);
});

test.each([
  [[], "name at least one file"],
  [["--nope", "x"], "kubelet-ts validate: --nope: no such flag of validate\nTry 'kubelet-ts validate --help'.\n"],
  [["--ouput=json", "x"], "did you mean --output?"],
  [["--batch=maybe"], "--batch must be true or false"],
  [["-o", "xml", "x"], "--output must be text or json"],
  [["--validate=maybe", "x"], "--validate must be"],
  [["--batch", "x"], "--batch takes"],
  [["@good.yaml", "--config=@.bad-k.yaml"], "maxPodz: no such field"],
])("bad usage: %j", async (argv, says) => {
  expect(await run(argv)).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
});

test.each([
  ["--allow-privileged=false", 2],
  ["--allow-privileged", 0],
  ["--config=@.k.yaml", 0],
])("a privileged pod with %s", async (flag, want) => {
  expect((await run([flag, "@.privileged.yaml"])).code).toBe(want);
});

describe("the rules of the node", () => {
  const container = (fields: object) => ({ containers: [{ name: "a", image: "b:1", ...fields }] });
  const podWith = (name: string, spec: object) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { ...container({}), ...spec },
  });
  const workload = (kind: string, template: object, spec: object = {}) => ({
    apiVersion: "apps/v1",
    kind,
    metadata: { name: "d" },
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { ...container({}), ...template } },
      ...spec,
    },
  });
  const privileged = container({ securityContext: { privileged: true } });
  const sysctls = { securityContext: { sysctls: [{ name: "net.core.somaxconn", value: "1" }] } };
  const elsewhere = { nodeSelector: { "kubernetes.io/hostname": "other" } };
  const onSsd = { nodeSelector: { disk: "ssd" } };

  test.each([
    [
      podWith("p", privileged),
      "[0].securityContext.privileged: privileged containers are not",
      "--allow-privileged=true",
    ],
    [podWith("p", sysctls), "sysctls[0].name: forbidden sysctl", "--allowed-unsafe-sysctls=net.core.*"],
    [podWith("p", elsewhere), "nodeSelector: the labels of this node", "--node-labels=kubernetes.io/hostname=other"],
    [workload("Deployment", privileged), "[0].securityContext.privileged", "--allow-privileged"],
    [workload("Deployment", elsewhere), "template.spec.nodeSelector", "--node-labels=kubernetes.io/hostname=other"],
  ])("%j is refused as by the kubelet with the same flags", async (object, field, allows) => {
    expect(await check(object)).toMatchObject({ code: 2, stdout: expect.stringContaining(field) });
    expect(await check(object, allows)).toMatchObject({ code: 0 });
  });

  const named = workload("Deployment", container({ envFrom: [{ configMapRef: { name: "cfg" } }] }));
  const REFUSED = "warning: spec.replicas: 390 of 500 pods are refused: the node takes 110 in all (--max-pods)";
  const IGNORED = `warning: spec.template.spec.nodeSelector: disk=ssd has no effect here: this is the only node, and it was \
given no labels; with --node-labels they count`;
  test.each([
    ["replicas beyond --max-pods", workload("Deployment", {}, { replicas: 500 }), [], REFUSED],
    ["one beyond it", workload("Deployment", {}, { replicas: 4 }), ["--max-pods=3"], "1 of 4 pods"],
    ["labels while the node was given none", workload("Deployment", onSsd), [], IGNORED],
    ["a pod with them", podWith("p", onSsd), [], "warning: spec.nodeSelector: the labels of this node"],
    [
      "a pull Secret that is missing",
      workload("Deployment", { imagePullSecrets: [{ name: "regcred" }] }),
      [],
      'imagePullSecrets[0].name: there is no Secret "default/regcred": images are pulled without its credentials',
    ],
    ["a ConfigMap that is missing", named, [], 'there is no ConfigMap "default/cfg"'],
  ] as const)("%s: a warning", async (_, object, flags, text) => {
    expect(await check(object, ...flags)).toMatchObject({ code: 0, stdout: expect.stringContaining(text) });
  });

  test.each([
    ["as many replicas as --max-pods", workload("Deployment", {}, { replicas: 3 }), "--max-pods=3", 0],
    ["a label that the node has", workload("Deployment", onSsd), "--node-labels=disk=ssd", 0],
    ["a label of a node with others", workload("Deployment", onSsd), "--node-labels=zone=a", 2],
    ["a label, strictly", workload("Deployment", onSsd), "--validate=strict", 2],
    ["a pod's label of a node with others", podWith("p", onSsd), "--node-labels=zone=a", 2],
    ["a pod's label, strictly", podWith("p", onSsd), "--validate=strict", 2],
    ["a DaemonSet makes no pod where the node does not match", workload("DaemonSet", onSsd), "--max-pods=3", 0],
  ])("%s", async (_, object, flag, code) => {
    const result = await check(object, flag);
    expect({ code: result.code, hasWarning: result.stdout.includes("warning") }).toEqual({ code, hasWarning: false });
  });

  test("the second pod with a host port is refused", async () => {
    const ports = container({ ports: [{ containerPort: 80, hostPort: 8080 }] });
    const input = [podWith("one", ports), podWith("two", ports)].map((pod) => JSON.stringify(pod)).join("\n---\n");
    const { code, stdout } = await run(["-"], `# two\n${input}\n`);
    expect(code).toBe(2);
    expect(stdout).toMatch(/^-:4:\d+: spec\.containers\[0\]\.ports\[0\]\.hostPort: host port 8080\/TCP is held by/m);
  });
});
