import { beforeAll, describe, expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCommand } from "../../../src/cli/command-table.ts";
import { runSubCommand } from "../../../src/cli/sub-command.ts";
import { readInputs } from "../../../src/cli/validate-inputs.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { capturedIo } from "../captured-io.ts";

const dir = tempDirs()();
const POD = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: "b:1"}]\n';

beforeAll(() => {
  writeFileSync(join(dir, "good.yaml"), POD);
  writeFileSync(join(dir, "bad.yaml"), POD.replace("image", "\n    imag").replace("{name: a, ", "{name: a,\n    "));
  writeFileSync(join(dir, ".hidden.yaml"), "not read");
});

async function run(argv: string[], input = "", isTerminal = false) {
  const io = capturedIo();
  io.isTerminal = isTerminal;
  // In small pieces, so that lines are cut.
  const pieces =
    Buffer.from(input)
      .toString("latin1")
      .match(/.{1,7}/gs) ?? [];
  io.input = async function* () {
    for (const piece of pieces) yield Buffer.from(piece, "latin1");
  };
  const code = await runSubCommand(findCommand("validate")!, argv, io);
  return { code, stdout: io.out, stderr: io.err };
}

describe("text", () => {
  test("nothing to say about a good manifest", async () => {
    expect(await run([join(dir, "good.yaml")])).toEqual({
      code: 0,
      stdout: "1 object: 1 ok, 0 with errors\n",
      stderr: "",
    });
  });
  test("file:line:col: field: message, and exit code 2", async () => {
    const { code, stdout } = await run([dir]);
    expect(code).toBe(2);
    expect(stdout).toContain(
      `${join(dir, "bad.yaml")}:7:5: spec.containers[0].imag: there is no field "imag" here; did you mean "image"?`,
    );
    expect(stdout).toEndWith("2 objects: 1 ok, 1 with errors\n");
  });
  test("on a terminal with the line and a caret", async () => {
    const { stdout } = await run([join(dir, "bad.yaml")], "", true);
    expect(stdout).toContain('        imag: "b:1"}]\n        ^\n');
  });
  test("dependencies between pods that name no pod, or form a cycle, are warnings", async () => {
    const pod = (name: string, dependsOn: string) =>
      POD.replace("{name: web}", `{name: ${name}, annotations: {"kubelet-ts.io/depends-on": "${dependsOn}"}}`);
    const { code, stdout } = await run(
      ["-"],
      `${pod("a", "default/b")}---\n${pod("b", "default/a")}---\n${pod("c", "default/x")}`,
    );
    expect(code).toBe(0);
    expect(stdout).toContain("the dependencies form a cycle: default/a");
    expect(stdout).toContain('there is no pod "default/x"');
  });
  test("a file that is not there", async () => {
    const { code, stdout } = await run([join(dir, "none.yaml")]);
    expect(code).toBe(2);
    expect(stdout).toContain("there is no such file");
  });
  test.each([
    ["a link to itself", ".loop", ".loop:1:1: cannot be read: a symbolic link that leads to itself"],
    ["what is not a file", "/dev/null", "/dev/null:1:1: is not a regular file"],
    [
      "no server behind a URL",
      "http://127.0.0.1:1/",
      "http://127.0.0.1:1/:1:1: cannot be fetched: refuses the connection",
    ],
    ["a URL in capitals", "HTTP://127.0.0.1:1/", "HTTP://127.0.0.1:1/:1:1: cannot be fetched: refuses the connection"],
    ["no socket behind a URL", "unix:/nothing", "unix:/nothing:1:1: cannot be fetched: the socket does not exist"],
  ])("%s", async (_, path, says) => {
    if (path === ".loop") symlinkSync(path, join(dir, path));
    const { code, stdout } = await run([path.startsWith(".") ? join(dir, path) : path]);
    expect(code).toBe(2);
    expect(stdout).toContain(says);
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
    const [read] = await readInputs(["-"], endless);
    expect(read).toEqual({ file: "-", problem: "is 10 MiB or longer" });
    expect(given).toBeLessThan(11);
  });
  test("keys and values cannot move the cursor", async () => {
    const file = join(dir, ".escape.yaml");
    writeFileSync(file, POD.replace("{name: web}", '{name: web, labels: {"\\e]0;x\\a": 1}}'));
    const { stdout } = await run([file]);
    expect(stdout).toContain("metadata.labels[\\x1b]0;x\\x07]");
    expect(stdout).not.toMatch(/[\u001b\u0007]/);
  });
  test("a line of a Secret is never shown", async () => {
    const file = join(dir, ".secret.yaml");
    writeFileSync(file, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 123456}\n");
    const { stdout } = await run([file], "", true);
    expect(stdout).toContain("stringData[a]");
    expect(stdout).not.toContain("123456");
  });
});

describe("json", () => {
  test("one result for each object, the pod as it would stand on /pods", async () => {
    const { code, stdout } = await run(["-o", "json", "--node-name", "Box", join(dir, "good.yaml")]);
    expect(code).toBe(0);
    const { results } = JSON.parse(stdout);
    expect(results).toHaveLength(1);
    expect(results[0]).toMatchObject({
      document: 1,
      kind: "Pod",
      name: "web",
      valid: true,
      ok: true,
      errors: [],
      warnings: [],
    });
    expect(results[0].object).toMatchObject({ metadata: { name: "web-box" }, spec: { nodeName: "box" } });
  });
  test("-o=json is taken as by the kubelet's own flags", async () => {
    expect(JSON.parse((await run(["-o=json", join(dir, "good.yaml")])).stdout).results).toHaveLength(1);
  });
  test("a whole number beyond 2^53 is rounded", async () => {
    const file = join(dir, ".large.yaml");
    writeFileSync(
      file,
      `${POD}  tolerations:\n  - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 9007199254740993}\n`,
    );
    const { stdout } = await run(["-o", "json", file]);
    expect(stdout).toContain('"tolerationSeconds":9007199254740992');
  });
  test("errors have code, field, message and place", async () => {
    const { stdout } = await run(["-o", "json", join(dir, "bad.yaml")]);
    const [first, second] = JSON.parse(stdout).results[0].errors;
    expect(first).toEqual({
      code: "invalid",
      type: "FieldValueRequired",
      field: "spec.containers[0].image",
      message: "is required",
      line: 5,
      column: 16,
    });
    expect(second).toMatchObject({ code: "unknown", field: "spec.containers[0].imag", line: 7, column: 5 });
  });
});

describe("what concerns several documents", () => {
  test("the same pod twice, and references to what is not there, are warnings", async () => {
    const file = join(dir, ".twice.yaml");
    const uses = POD.replace("containers: [{", "containers: [{envFrom: [{configMapRef: {name: cfg}}], ");
    writeFileSync(file, `${POD}---\n${uses}`);
    const { code, stdout } = await run([file]);
    expect(code).toBe(0);
    expect(stdout).toContain("warning: metadata.name: Pod default/web is already defined in");
    expect(stdout).toContain('there is no ConfigMap "default/cfg"');
  });
});

describe("batch", () => {
  test("a line in, a line out, in order", async () => {
    const lines = [
      { id: 1, manifest: POD },
      { id: "two", manifest_b64: Buffer.from("a: \u00e9\u2028").toString("base64") },
      { id: 3 },
    ];
    const { code, stdout } = await run(
      ["--batch"],
      `${lines.map((line) => JSON.stringify(line)).join("\n")}\nnonsense\n`,
    );
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
});

test.each([
  [[], "name at least one file"],
  [["--nope", "x"], "kubelet-ts validate: --nope: no such flag of validate\nTry 'kubelet-ts validate --help'.\n"],
  [["--ouput=json", "x"], "did you mean --output?"],
  [["--batch=maybe"], "--batch must be true or false"],
  [["-o", "xml", "x"], "--output must be text or json"],
  [["--validate=maybe", "x"], "--validate must be"],
  [["--batch", "x"], "--batch takes"],
])("bad usage: %j", async (argv, says) => {
  const { code, stderr } = await run(argv);
  expect(code).toBe(2);
  expect(stderr).toContain(says);
});

test.each([
  ["--allow-privileged=false", 2],
  ["--allow-privileged", 0],
])("%s", async (flag, want) => {
  const file = join(dir, ".privileged.yaml");
  writeFileSync(file, POD.replace("{name: a,", "{name: a, securityContext: {privileged: true},"));
  expect((await run([flag, file])).code).toBe(want);
});

describe("the rules of the node", () => {
  const podWith = (name: string, spec: object) =>
    `${JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers: [{ name: "a", image: "b:1" }], ...spec } })}\n`;
  const container = (fields: object) => ({ containers: [{ name: "a", image: "b:1", ...fields }] });

  test.each([
    {
      what: "a privileged container",
      spec: container({ securityContext: { privileged: true } }),
      field: "spec.containers[0].securityContext.privileged: privileged containers are not allowed on this node",
      allows: ["--allow-privileged=true"],
    },
    {
      what: "an unsafe sysctl",
      spec: { securityContext: { sysctls: [{ name: "net.core.somaxconn", value: "1" }] } },
      field: "spec.securityContext.sysctls[0].name: forbidden sysctl",
      allows: ["--allowed-unsafe-sysctls=net.core.*"],
    },
    {
      what: "a node selector",
      spec: { nodeSelector: { disk: "ssd" } },
      field: "spec.nodeSelector: the labels of this node",
      allows: ["--node-labels=disk=ssd"],
    },
  ])("$what is refused as by the kubelet with the same flags", async ({ spec, field, allows }) => {
    writeFileSync(join(dir, ".node.json"), podWith("p", spec));
    const refused = await run([join(dir, ".node.json")]);
    expect(refused).toMatchObject({ code: 2, stdout: expect.stringContaining(field) });
    expect(await run([join(dir, ".node.json"), ...allows])).toMatchObject({ code: 0 });
  });

  describe("for the pods of workloads", () => {
    const deployment = (spec: object, template: object = {}) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "d" },
      spec: {
        selector: { matchLabels: { a: "b" } },
        template: { metadata: { labels: { a: "b" } }, spec: { ...container({}), ...template } },
        ...spec,
      },
    });
    const check = (object: object, ...flags: string[]) => {
      writeFileSync(join(dir, ".workload.json"), `${JSON.stringify(object)}\n`);
      return run([join(dir, ".workload.json"), ...flags]);
    };

    test.each([
      [container({ securityContext: { privileged: true } }), "securityContext.privileged", "--allow-privileged"],
      [
        { nodeSelector: { "kubernetes.io/hostname": "other" } },
        "spec.template.spec.nodeSelector",
        "--node-labels=kubernetes.io/hostname=other",
      ],
    ])("%j", async (template, field, flag) => {
      const object = deployment({}, template);
      expect(await check(object)).toMatchObject({ code: 2, stdout: expect.stringContaining(field) });
      expect(await check(object, flag)).toMatchObject({ code: 0 });
    });

    test("replicas beyond --max-pods are a warning", async () => {
      const { code, stdout } = await check(deployment({ replicas: 500 }));
      expect(code).toBe(0);
      expect(stdout).toContain(
        "warning: spec.replicas: 390 of 500 pods are refused: the node takes 110 in all (--max-pods)",
      );
      expect((await check(deployment({ replicas: 4 }), "--max-pods=3")).stdout).toContain("1 of 4 pods");
      expect((await check(deployment({ replicas: 3 }), "--max-pods=3")).stdout).not.toContain("refused");
    });

    test("labels that are given to nodes count when this one was given some", async () => {
      const object = deployment({}, { nodeSelector: { disk: "ssd" } });
      const { code, stdout } = await check(object);
      expect(code).toBe(0);
      expect(stdout).toContain(
        "warning: spec.template.spec.nodeSelector: disk=ssd has no effect here: this is the only node, and it was given no labels; with --node-labels they count",
      );
      expect((await check(object, "--node-labels=disk=ssd")).stdout).not.toContain("warning");
      expect(await check(object, "--node-labels=zone=a")).toMatchObject({ code: 2 });
      expect(await check(object, "--validate=strict")).toMatchObject({ code: 2 });
    });

    test("a DaemonSet makes no pod where the node does not match", async () => {
      const { spec } = deployment({}, { nodeSelector: { disk: "ssd" } });
      expect(await check({ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "d" }, spec })).toMatchObject({
        code: 0,
      });
    });

    test("a ConfigMap that is missing is a warning", async () => {
      const template = container({ envFrom: [{ configMapRef: { name: "cfg" } }] });
      expect((await check(deployment({}, template))).stdout).toContain('there is no ConfigMap "default/cfg"');
    });
  });

  test("the second pod with a host port is refused", async () => {
    const ports = container({ ports: [{ containerPort: 80, hostPort: 8080 }] });
    writeFileSync(join(dir, ".one.json"), podWith("one", ports));
    writeFileSync(join(dir, ".two.json"), podWith("two", ports));
    const { code, stdout } = await run([join(dir, ".one.json"), join(dir, ".two.json")]);
    expect(code).toBe(2);
    expect(stdout).toMatch(
      /\.two\.json:1:\d+: spec\.containers\[0\]\.ports\[0\]\.hostPort: host port 8080\/TCP is held by/,
    );
  });

  test("--config gives the rules; its mistakes are errors", async () => {
    const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    writeFileSync(join(dir, ".k.yaml"), `${head}kubeletTs: {allowPrivileged: true}\n`);
    writeFileSync(join(dir, ".node.json"), podWith("p", container({ securityContext: { privileged: true } })));
    expect(await run([join(dir, ".node.json"), `--config=${join(dir, ".k.yaml")}`])).toMatchObject({ code: 0 });
    writeFileSync(join(dir, ".k.yaml"), `${head}maxPodz: 1\n`);
    const { code, stderr } = await run([join(dir, ".node.json"), `--config=${join(dir, ".k.yaml")}`]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("maxPodz: no such field") });
  });
});

describe("directories", () => {
  test("one without manifests is an error; skipped files are named", async () => {
    const empty = tempDirs()();
    expect(await run([empty])).toMatchObject({ code: 2, stdout: expect.stringContaining("has no manifest") });
    writeFileSync(join(empty, "notes.txt"), "x");
    writeFileSync(join(empty, "README"), "x");
    const { code, stdout, stderr } = await run([empty]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringContaining("has no manifest") });
    expect(stderr).toContain("notes.txt: skipped: not a .yaml");
    expect(stderr).toContain("README: skipped: it has no apiVersion and kind");
  });
});

describe("syntax errors on a terminal", () => {
  test("the line and a caret are shown", async () => {
    writeFileSync(join(dir, ".broken.yaml"), "kind: Pod\n  metadata: x\n");
    expect((await run([join(dir, ".broken.yaml")], "", true)).stdout).toMatch(/\n {6}metadata: x\n +\^\n/);
  });

  test("not when the text may be a Secret", async () => {
    writeFileSync(join(dir, ".broken.yaml"), "kind: Secret\n  stringData: hunter2\n");
    expect((await run([join(dir, ".broken.yaml")], "", true)).stdout).not.toContain("hunter2");
  });
});
