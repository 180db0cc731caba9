import { expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

/** A pod around some lines of its spec. */
const pod = (spec: string) => `apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n${spec}`;
/** A pod with one container around some lines of it. */
const container = (lines: string) => pod(`  containers:\n  - name: app\n    image: nginx:1\n${lines}`);

/** Made by hand, as people make them. The sign ⟦ stands where the finding must point. */
const MISTAKES: { mistake: string; text: string; field: string; says: string }[] = [
  {
    mistake: "a port beyond 65535",
    text: container("    ports:\n    - containerPort: ⟦80800\n"),
    field: "spec.containers[0].ports[0].containerPort",
    says: "must be between 1 and 65535 (found 80800)",
  },
  {
    mistake: "a pod without a name",
    text: "apiVersion: v1\nkind: Pod\n⟦metadata:\n  labels: {app: web}\nspec:\n  containers: [{name: a, image: b}]\n",
    field: "metadata.name",
    says: "is required",
  },
  {
    mistake: "a misspelt field",
    text: container("    ⟦imagePullPolcy: Always\n"),
    field: "spec.containers[0].imagePullPolcy",
    says: 'did you mean "imagePullPolicy"?',
  },
  {
    mistake: "a field of the wrong case",
    text: container("    resources:\n      ⟦Limits: {cpu: 1}\n"),
    field: "spec.containers[0].resources.Limits",
    says: 'did you mean "limits"?',
  },
  {
    mistake: "a number in a command",
    text: container("    command: [sleep, ⟦9999]\n"),
    field: "spec.containers[0].command[1]",
    says: "must be a string (found the number 9999): put it in quotes",
  },
  {
    mistake: "a bare yes as a label",
    text: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels:\n    canary: ⟦yes\nspec:\n  containers: [{name: a, image: b}]\n",
    field: "metadata.labels[canary]",
    says: "must be a string (found yes, which YAML reads as true): put it in quotes",
  },
  {
    mistake: "a quoted port",
    text: container('    ports:\n    - containerPort: ⟦"80"\n'),
    field: "spec.containers[0].ports[0].containerPort",
    says: "remove the quotes",
  },
  {
    mistake: "a command that is not a list",
    text: container("    command: ⟦sleep 10\n"),
    field: "spec.containers[0].command",
    says: "must be a list",
  },
  {
    mistake: "env as a map",
    text: container("    env:\n      ⟦KEY: value\n"),
    field: "spec.containers[0].env",
    says: 'write each as "- name: NAME"',
  },
  {
    mistake: "a memory limit with a wrong suffix",
    text: container("    resources:\n      limits:\n        memory: ⟦64MB\n"),
    field: "spec.containers[0].resources.limits[memory]",
    says: "must be a quantity such as 500m, 2 or 64Mi",
  },
  {
    mistake: "a request above its limit",
    text: container("    resources:\n      requests: {cpu: ⟦2}\n      limits: {cpu: 1}\n"),
    field: "spec.containers[0].resources.requests",
    says: "cpu must not be more than its limit of 1",
  },
  {
    mistake: "no image",
    text: pod("  containers:\n  - ⟦name: app\n    command: [a]\n"),
    field: "spec.containers[0].image",
    says: "is required",
  },
  {
    mistake: "no containers",
    text: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n⟦spec:\n  restartPolicy: Never\n",
    field: "spec.containers",
    says: "must have at least one container",
  },
  {
    mistake: "a mount of a volume that is not there",
    text: container("    volumeMounts:\n    - name: ⟦data\n      mountPath: /data\n"),
    field: "spec.containers[0].volumeMounts[0].name",
    says: "must be the name of a valid volume",
  },
  {
    mistake: "two containers of one name",
    text: pod("  containers:\n  - name: app\n    image: a\n  - name: ⟦app\n    image: b\n"),
    field: "spec.containers[1].name",
    says: "occurs twice",
  },
  {
    mistake: "a host port twice",
    text: container(
      "    ports:\n    - {containerPort: 80, hostPort: 8080}\n    - {containerPort: 81, hostPort: ⟦8080}\n",
    ),
    field: "spec.containers[0].ports[1].hostPort",
    says: "occurs twice",
  },
  {
    mistake: "upper case in the name",
    text: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: ⟦Web\nspec:\n  containers: [{name: a, image: b}]\n",
    field: "metadata.name",
    says: "lower case",
  },
  {
    mistake: "a restart policy that does not exist",
    text: pod("  restartPolicy: ⟦always\n  containers: [{name: a, image: b}]\n"),
    field: "spec.restartPolicy",
    says: 'must be one of "Always", "OnFailure", "Never" (found "always")',
  },
  {
    mistake: "a probe with two handlers",
    text: container("    livenessProbe:\n      httpGet: {port: 80}\n      tcpSocket: ⟦{port: 80}\n"),
    field: "spec.containers[0].livenessProbe.tcpSocket",
    says: "there is httpGet already",
  },
  {
    mistake: "a probe without a handler",
    text: container("    readinessProbe:\n      ⟦periodSeconds: 5\n"),
    field: "spec.containers[0].readinessProbe",
    says: "must have a handler",
  },
  {
    mistake: "a decimal file mode",
    text: pod(
      "  containers: [{name: a, image: b}]\n  volumes:\n  - name: v\n    configMap: {name: c, defaultMode: ⟦644}\n",
    ),
    field: "spec.volumes[0].configMap.defaultMode",
    says: "must be between 0 and 0777 (octal; this is 01204)",
  },
  {
    mistake: "a volume with two sources",
    text: pod(
      "  containers: [{name: a, image: b}]\n  volumes:\n  - name: v\n    emptyDir: {}\n    ⟦hostPath: {path: /x}\n",
    ),
    field: "spec.volumes[0].hostPath",
    says: "the volume has emptyDir already",
  },
  {
    mistake: "a tab as indentation",
    text: "apiVersion: v1\nkind: Pod\nmetadata:\n⟦\tname: web\n",
    field: "",
    says: "tab",
  },
  {
    mistake: "a colon in an unquoted value",
    text: container("    workingDir: a⟦: b\n"),
    field: "",
    says: 'a second ":" is not allowed here',
  },
  {
    mistake: "a quote that never ends",
    text: container('    workingDir: ⟦"/srv\n'),
    field: "",
    says: "never ends",
  },
  {
    mistake: "less indentation than the list",
    text: pod("  containers:\n  - name: app\n   ⟦image: nginx\n"),
    field: "",
    says: "check the indentation",
  },
  {
    mistake: "a trailing comma in JSON",
    text: '{"apiVersion": "v1", "kind": "Pod",\n "metadata": {"name": "web",⟦}}\n',
    field: "",
    says: "a key in double quotes was expected",
  },
  {
    mistake: "a wrong type in JSON",
    text: '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},\n "spec": {"containers": [{"name": "a", "image": ⟦5}]}}\n',
    field: "spec.containers[0].image",
    says: "must be a string (found the number 5): put it in quotes",
  },
  {
    mistake: "a custom resource",
    text: "apiVersion: example.com/v1\nkind: ⟦Widget\nmetadata: {name: web}\n",
    field: "kind",
    says: "Widget of example.com is a custom resource",
  },
  {
    mistake: "a Deployment of a version that does not exist",
    text: "apiVersion: ⟦v1\nkind: Deployment\nmetadata: {name: web}\n",
    field: "apiVersion",
    says: "Deployment of v1 is not supported",
  },
  {
    mistake: "a wrong type in the template of a Deployment",
    text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec: {containers: [{name: a, image: ⟦5}]}\n",
    field: "spec.template.spec.containers[0].image",
    says: "put it in quotes",
  },
  {
    mistake: "a kind of the wrong case",
    text: "apiVersion: v1\nkind: ⟦pod\nmetadata: {name: web}\n",
    field: "kind",
    says: 'did you mean "Pod"?',
  },
  {
    mistake: "a volume that needs a cluster",
    text: pod("  containers: [{name: a, image: b}]\n  volumes:\n  - name: v\n    csi: ⟦{driver: ebs.csi.aws.com}\n"),
    field: "spec.volumes[0].csi",
    says: "cannot be used here",
  },
  {
    mistake: "a mistake in the second document",
    text: `${container("")}---\n${container("    tty: ⟦maybe\n")}`,
    field: "spec.containers[0].tty",
    says: "must be true or false",
  },
  {
    mistake: "Windows line ends before the mistake",
    text: container("    stdin: ⟦1\n").replaceAll("\n", "\r\n"),
    field: "spec.containers[0].stdin",
    says: "must be true or false",
  },
  {
    mistake: "an emoji before the mistake on the same line",
    text: container('    env: [{name: "😀", value: ⟦1}]\n'),
    field: "spec.containers[0].env[0].value",
    says: "must be a string (found a number): put it in quotes",
  },
  {
    mistake: "a name of an init container that a container has",
    text: pod("  initContainers:\n  - {name: ⟦a, image: x}\n  containers:\n  - {name: a, image: b}\n"),
    field: "spec.initContainers[0].name",
    says: "occurs twice",
  },
];

test.each(MISTAKES)("$mistake", ({ text, field, says }) => {
  const before = text.slice(0, text.indexOf("⟦")).split("\n");
  const want = { line: before.length, column: [...before.at(-1)!].length + 1 };
  const { findings } = readManifest(Buffer.from(text.replace("⟦", "")), {
    file: "web.yaml",
    nodeName: "node1",
    source: "file",
  });
  const found = findings.find((finding) => finding.field === field && finding.message.includes(says));
  expect(found ?? findings).toMatchObject({ file: "web.yaml", severity: "error", ...want });
});

test.each([
  ["YAML", container("    tty: true\n    ⟦tty: false\n"), "spec.containers[0].tty"],
  [
    "a map",
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels: {a: b, ⟦a: c}\nspec: {containers: [{name: a, image: b}]}\n",
    "metadata.labels[a]",
  ],
  [
    "JSON",
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web",⟦"name":"web"},"spec":{"containers":[{"name":"a","image":"b"}]}}',
    "metadata.name",
  ],
])("a key that occurs twice is a warning: %s", (_, text, field) => {
  const before = text.slice(0, text.indexOf("⟦")).split("\n");
  const options = { file: "f", nodeName: "n", source: "file" } as const;
  const { findings, pods } = readManifest(Buffer.from(text.replace("⟦", "")), options);
  const place = { line: before.length, column: before.at(-1)!.length + 1 };
  expect(findings).toMatchObject([{ code: "ignored", severity: "warning", field, ...place }]);
  expect(pods).toHaveLength(1);
});

test("a key that overrides a merged one is meant", () => {
  const text = `x-base: &base {image: a}\n${pod("  containers: [{name: a, <<: *base, image: b}]\n")}`;
  const { findings } = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
  expect(findings.map(({ field }) => field)).toEqual(["x-base"]);
});

test("there are at least thirty", () => expect(MISTAKES.length).toBeGreaterThanOrEqual(30));

test.each([
  "env: [DB_PASSWORD=hunter2]",
  "env: DB_PASSWORD=hunter2",
  "env: {DB_PASSWORD: hunter2}",
  'env: [{name: "DB_PASSWORD=hunter2"}]',
  "env: [{name: DB_PASSWORD, value: [hunter2]}]",
  "env: [{name: DB_PASSWORD, value: *hunter2}]",
  "env: [{DB_PASSWORD: hunter2}]",
  "readinessProbe: {httpGet: {port: 80, httpHeaders: [Authorization=hunter2]}}",
  "readinessProbe: {httpGet: {port: 80, httpHeaders: [{name: Authorization, value: [hunter2]}]}}",
])("nothing of a value that may be a password is repeated: %s", (line) => {
  const text = container(`    ${line}\n`);
  const options = { file: "web.yaml", nodeName: "node1", source: "file" } as const;
  const { findings } = readManifest(Buffer.from(text), options);
  expect(findings.length).toBeGreaterThan(0);
  expect(JSON.stringify(findings)).not.toContain("hunter2");
});

test.each([
  ["env: [{name: A, value: 20261122}]", "spec.containers[0].env[0].value"],
  [
    "livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: X-Key, value: 20261122}]}}",
    "spec.containers[0].livenessProbe.httpGet.httpHeaders[0].value",
  ],
])("a number without quotes that may be a password is not repeated: %s", (line, field) => {
  const options = { file: "web.yaml", nodeName: "node1", source: "file" } as const;
  const [finding] = readManifest(Buffer.from(container(`    ${line}\n`)), options).findings;
  expect(finding).toMatchObject({ field, message: "must be a string (found a number): put it in quotes" });
});
