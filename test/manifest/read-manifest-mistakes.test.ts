import { expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

/** A pod around some lines of its spec. */
const pod = (spec: string) => `apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n${spec}`;
/** A pod with one container around some lines of it. */
const container = (lines: string) => pod(`  containers:\n  - name: app\n    image: nginx:1\n${lines}`);

const NAMELESS = "apiVersion: v1\nkind: Pod\nmetadata:\n";
const APP = "  containers: [{name: a, image: b}]\n";
const read = (text: string) => readManifest(Buffer.from(text), { file: "web.yaml", nodeName: "node1", source: "file" });

/** Text, field and message. The sign ⟦ is where the finding must point. */
type Mistake = readonly [text: string, field: string, says: string];

/** Lines of a container, and a field of it. */
const OF_CONTAINER: readonly Mistake[] = [
  ["ports: [{containerPort: ⟦80800}]", "ports[0].containerPort", "must be between 1 and 65535 (found 80800)"],
  ["⟦imagePullPolcy: Always", "imagePullPolcy", 'did you mean "imagePullPolicy"?'],
  ["resources: {⟦Limits: {cpu: 1}}", "resources.Limits", 'did you mean "limits"?'],
  ["command: [sleep, ⟦9999]", "command[1]", "must be a string (found the number 9999): put it in quotes"],
  ['ports: [{containerPort: ⟦"80"}]', "ports[0].containerPort", "remove the quotes"],
  ["command: ⟦sleep 10", "command", "must be a list"],
  ["env:\n      ⟦KEY: value", "env", 'write each as "- name: NAME"'],
  ["resources: {limits: {memory: ⟦64MB}}", "resources.limits[memory]", "must be a quantity such as 500m, 2 or 64Mi"],
  ["resources: {requests: {cpu: ⟦2}, limits: {cpu: 1}}", "resources.requests", "not be more than its limit of 1"],
  ["volumeMounts: [{name: ⟦data, mountPath: /d}]", "volumeMounts[0].name", "must be the name of a valid volume"],
  ["ports: [{containerPort: 1, hostPort: 9}, {containerPort: 2, hostPort: ⟦9}]", "ports[1].hostPort", "occurs twice"],
  ["livenessProbe: {httpGet: {port: 80}, tcpSocket: ⟦{port: 80}}", "livenessProbe.tcpSocket", "httpGet already"],
  ["readinessProbe:\n      ⟦periodSeconds: 5", "readinessProbe", "must have a handler"],
  ['env: [{name: "😀", value: ⟦1}]', "env[0].value", "must be a string (found a number): put it in quotes"],
  ["stdin: true\r\n    tty: ⟦1", "tty", "must be true or false"],
  ['ports: [⟦"8080:80"]', "ports[0]", "write {containerPort: 80, hostPort: 8080}"],
  ["ports: [⟦80]", "ports[0]", "write {containerPort: 80}"],
  ["env: [⟦A=b]", "env[0]", 'write "- name: NAME" with "value: VALUE"'],
  ["volumeMounts: [⟦/srv/d:/d]", "volumeMounts[0]", "write {name: VOLUME, mountPath: PATH}, and the volume under"],
  ["livenessProbe: {httpGet: ⟦/health}", "livenessProbe.httpGet", "write {path: /health, port: PORT}"],
  ["livenessProbe: {⟦httpGet: {path: /}}", "livenessProbe.httpGet.port", "is required: a number"],
  ["resources: {limits: {cpu: ⟦50%}}", "resources.limits[cpu]", "50 % of a CPU is 500m"],
  ["securityContext: {runAsUser: ⟦nginx}", "securityContext.runAsUser", "docker run --rm IMAGE id NAME"],
  ["volumeMounts: [{name: ⟦“data”, mountPath: /d}]", "volumeMounts[0].name", "below spec.volumes"],
  ['resources: {limits: {cpu: ⟦"0,5"}}', "resources.limits[cpu]", '(found the string "0,5"): write 0.5'],
  [
    "livenessProbe: {httpGet: ⟦'https://a.example:8443/x'}",
    "livenessProbe.httpGet",
    "write {path: /x, port: 8443, scheme: HTTPS}",
  ],
  ["livenessProbe: {httpGet: ⟦'http://localhost'}", "livenessProbe.httpGet", "write {path: /, port: 80}"],
  ["livenessProbe: {httpGet: {port: 1}, periodSeconds: ⟦1m30s}", "livenessProbe.periodSeconds", "write 90, the number"],
  ["livenessProbe: {httpGet: {⟦url: x}}", "livenessProbe.httpGet.url", "Kubernetes has path and port"],
  ["livenessProbe: {⟦interval: 5s}", "livenessProbe.interval", "Kubernetes has periodSeconds"],
  ["volumeMounts: [{name: v, ⟦path: /x}]", "volumeMounts[0].path", "Kubernetes has mountPath"],
  ["⟦stop_signal: INT", "stop_signal", "Kubernetes has lifecycle.stopSignal"],
  ["⟦dns: 1.1.1.1", "dns", "Kubernetes has dnsConfig of the pod"],
  ["resources: {⟦storage: 1Gi}", "resources.storage", "Kubernetes has it in requests"],
  ["resources: {⟦cpu: 1}", "resources.cpu", "Kubernetes has it in limits and requests"],
  ["⟦limits: {cpu: 1}", "limits", "Kubernetes has resources.limits"],
  ["⟦memory: 1Gi", "memory", "Kubernetes has resources.limits.memory"],
  ["⟦env_file: .env", "env_file", "Kubernetes has envFrom, with a ConfigMap or Secret"],
  ["readinessProbe: {⟦path: /, periodSeconds: 5}", "readinessProbe.path", "Kubernetes has it in httpGet"],
  ["livenessProbe: {⟦command: [a]}", "livenessProbe.command", "Kubernetes has it in exec"],
  ["env: [{name: A, valueFrom: {fieldRef: ⟦status.podIP}}]", "env[0].valueFrom.fieldRef", "{fieldPath: status.podIP}"],
  ["env: [{name: A, valueFrom: {secretKeyRef: ⟦db}}]", "env[0].valueFrom.secretKeyRef", "write {name: db, key: KEY}"],
  ["envFrom: ⟦conf", "envFrom", "write [{configMapRef: {name: conf}}]"],
  ["livenessProbe: {exec: ⟦test -f /x}", "livenessProbe.exec", 'write {command: [sh, -c, "test -f /x"]}'],
  ["envFrom: [⟦{prefix: A}]", "envFrom", "must have configMapRef or secretRef"],
  ["imagePullPolicy: ⟦if-not-present", "imagePullPolicy", '(found "if-not-present"): write IfNotPresent'],
  ["⟦\u00a0tty: true", "\u00a0tty", "begins with a no-break space (U+00A0): write spaces"],
];

/** Lines of a spec, and a field of it. */
const OF_SPEC: readonly Mistake[] = [
  ["  containers:\n  - ⟦name: app\n    command: [a]\n", "containers[0].image", "is required"],
  ["  containers: [{name: app, image: a}, {name: ⟦app, image: b}]\n", "containers[1].name", "occurs twice"],
  [
    `  restartPolicy: ⟦always\n${APP}`,
    "restartPolicy",
    'must be one of "Always", "OnFailure", "Never" (found "always"): write Always',
  ],
  [`  restartPolicy: ⟦unless-stopped\n${APP}`, "restartPolicy", '(found "unless-stopped"): write Always'],
  [`  restartPolicy: ⟦"no"\n${APP}`, "restartPolicy", '(found "no"): write Never'],
  [`  restartPolicy: ⟦on-failure:3\n${APP}`, "restartPolicy", '(found "on-failure:3"): write OnFailure'],
  [
    `${APP}  volumes: [{name: v, configMap: {name: c, defaultMode: ⟦644}}]\n`,
    "volumes[0].configMap.defaultMode",
    "01204",
  ],
  [
    `${APP}  volumes: [{name: v, emptyDir: {}, ⟦hostPath: {path: /x}}]\n`,
    "volumes[0].hostPath",
    "has emptyDir already",
  ],
  [`${APP}  volumes: [{name: v, csi: ⟦{driver: ebs.csi.aws.com}}]\n`, "volumes[0].csi", "cannot be used here"],
  [`${APP}  initContainers: [{name: ⟦a, image: x}]\n`, "initContainers[0].name", "occurs twice"],
  [`${APP}  volumes: [{name: v, hostPath: ⟦/srv/d}]\n`, "volumes[0].hostPath", "write {path: /srv/d}"],
  [`${APP}  ⟦restart: always\n`, "restart", "Kubernetes has restartPolicy of the pod: Always"],
  [`${APP}  ⟦user: a\n`, "user", 'there is no field "user" here'],
  [`${APP}  ⟦replicas: 2\n`, "replicas", "Kubernetes has it in a Deployment, whose spec.template is the pod"],
  [`${APP}  dnsPolicy: ⟦“Default”\n`, "dnsPolicy", "must be one of"],
  [`${APP}  hostname: ⟦“web”\n`, "hostname", "these are no quotes of YAML"],
];

const TYPE_IN_JSON =
  '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},\n "spec": {"containers": [{"name": ⟦5}]}}';
const SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: ";
const CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: ";
const DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n";

/** Whole texts. */
const OF_TEXT: readonly Mistake[] = [
  [`${NAMELESS.replace("metadata", "⟦metadata")}  labels: {app: web}\nspec:\n${APP}`, "metadata.name", "is required"],
  [`${NAMELESS}  name: w\n  labels: {on: ⟦yes}\nspec:\n${APP}`, "metadata.labels[true]", "which YAML reads as true"],
  [`${NAMELESS}  name: web\n⟦spec:\n  restartPolicy: Never\n`, "spec.containers", "must have at least one container"],
  [`${NAMELESS}  name: ⟦Web\nspec:\n${APP}`, "metadata.name", "lower case"],
  [`${NAMELESS}⟦\tname: web\n`, "", "tab"],
  [container("    workingDir: a⟦: b\n"), "", 'a second ":" is not allowed here'],
  [container('    workingDir: ⟦"/srv\n'), "", "never ends"],
  [pod("  containers:\n  - name: app\n   ⟦image: nginx\n"), "", "check the indentation"],
  ['{"apiVersion": "v1",\n "metadata": {"name": "web",⟦}}\n', "", "a key in double quotes was expected"],
  [TYPE_IN_JSON, "spec.containers[0].name", "must be a string (found the number 5): put it in quotes"],
  ["apiVersion: example.com/v1\nkind: ⟦Widget\n", "kind", "Widget of example.com is a custom resource"],
  ["apiVersion: ⟦v1\nkind: Deployment\n", "apiVersion", "Deployment of v1 is not supported"],
  ["apiVersion: ⟦v1/apps\nkind: Deployment\n", "apiVersion", "write apps/v1"],
  ["apiVersion: apps/v1\nkind: ⟦Deploymnet\n", "kind", "did you mean Deployment?"],
  [`⟦ind: Pod\n${NAMELESS.replace("kind: Pod\n", "")}  name: web\n`, "kind", 'did you mean "kind" by "ind"?'],
  [
    `${DEPLOYMENT}  template: {spec: {containers: [{image: ⟦5}]}}\n`,
    "spec.template.spec.containers[0].image",
    "put it in quotes",
  ],
  [pod("  containers:\n  - name: app\n      image⟦: nginx\n"), "", "continues the one above it: check the indentation"],
  [pod("  containers:\n  - name:app\n    image⟦: nginx\n"), "", 'that a space follows each ":"'],
  [pod("  containers:\n  - name: app\n    ⟦image:\u00a0nginx\n"), "", "a no-break space (U+00A0) is in this line"],
  [`⟦\`\`\`yaml\n${pod(APP)}\`\`\`\n`, "", "remove the lines that begin with"],
  [`${pod(APP)} ⟦---\n${pod(APP)}`, "", "between two objects begins in the first column"],
  [`apiVersion: ⟦v1.0\n${pod(APP).slice(15)}`, "apiVersion", "; write v1"],
  [
    `${SERVICE}[{port: 80}], selector: {matchLabels: ⟦{app: web}}}\n`,
    "spec.selector[matchLabels]",
    "write the labels here, without matchLabels",
  ],
  [`${CONFIG_MAP}{app: ⟦{a: b}}\n`, "data[app]", 'write it as one text, with "|" behind the key'],
  [`${DEPLOYMENT}  strategy: ⟦Recreate\n`, "spec.strategy", "write {type: Recreate}"],
  [`${SERVICE}[⟦80:8080]}\n`, "spec.ports[0]", "write {port: 80, targetPort: 8080}"],
  [`${SERVICE}[{⟦containerPort: 80}]}\n`, "spec.ports[0].containerPort", "Kubernetes has port"],
  [`${SERVICE}[⟦{targetPort: 80}]}\n`, "spec.ports[0].port", "is required: a number from 1 to 65535"],
  [pod("⟦<<<<<<< HEAD\n  containers: []\n"), "", "a mark of a merge conflict: keep one side"],
  [pod("  containers: [{name: a, image: b}]\n⟦=======\n"), "", "a mark of a merge conflict: keep one side"],
  ["apiVersion: v1\nkind: ⟦pod\n", "kind", "did you mean Pod?"],
  [`${container("")}---\n${container("    tty: ⟦maybe\n")}`, "spec.containers[0].tty", "must be true or false"],
];

test.each([
  ...OF_CONTAINER.map(
    ([text, field, says]) => [container(`    ${text}\n`), `spec.containers[0].${field}`, says] as const,
  ),
  ...OF_SPEC.map(([text, field, says]) => [pod(text), `spec.${field}`, says] as const),
  ...OF_TEXT,
])("%j: %s %s", (text, field, says) => {
  const { findings } = read(text.replace("⟦", ""));
  const found = findings.find((finding) => finding.field === field && finding.message.includes(says));
  expect(found ?? findings).toMatchObject({ file: "web.yaml", severity: "error", ...positionOf(text) });
});

/** Line and column of the sign ⟦, as findings count them. */
function positionOf(text: string): { line: number; column: number } {
  const before = text.slice(0, text.indexOf("⟦")).split("\n");
  return { line: before.length, column: [...before.at(-1)!].length + 1 };
}

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
  const { findings, pods } = read(text.replace("⟦", ""));
  expect(findings).toMatchObject([{ code: "ignored", severity: "warning", field, ...positionOf(text) }]);
  expect(pods).toHaveLength(1);
});

const BACKEND = "[{path: /, pathType: Prefix, backend: {⟦serviceName: web}}]";
const INGRESS = `apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspec: {rules: [{http: {paths: ${BACKEND}}}]}\n`;

test.each([
  ["a misspelt list", pod("  ⟦container: [{name: a, image: b}]\n"), 'did you mean "containers"?'],
  ["a field of an older version", INGRESS, "Kubernetes has service: {name: NAME, port: {number: PORT}}"],
  ["no line between two objects", `${pod(APP)}⟦${pod(APP)}`, 'a second object begins here: a line "---" is missing'],
  ["a hook as a list", container("    lifecycle: {preStop: ⟦[{exec: {command: [a]}}]}\n"), 'write it without "- "'],
  ["capabilities as a list", container("    securityContext: {capabilities: ⟦[NET_ADMIN]}\n"), "write {add: [NAME]}"],
  ["mb of a CPU", container("    resources: {limits: {cpu: ⟦500mb}}\n"), "write 500m"],
  ["a reference without a name", container("    envFrom: [{⟦configMapRef: {}}]\n"), "is required"],
  [
    "kubectl's word for an access mode",
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [⟦RWO], resources: {requests: {storage: 1Gi}}}\n",
    "write ReadWriteOnce",
  ],
  [
    "a host with a port",
    container("    startupProbe: {httpGet: {port: 80}}\n  hostAliases: [{ip: ⟦'10.0.0.1:80'}]\n"),
    "without the port",
  ],
  [
    "a misspelt volume",
    container("    volumeMounts: [{name: ⟦data, mountPath: /d}]\n  volumes: [{name: dta}]\n"),
    "such as dta",
  ],
  ["a decimal mode", pod(`${APP}  volumes: [{name: v, secret: {secretName: s, defaultMode: ⟦400}}]\n`), "write 0400"],
])("one mistake has one message: %s", (_, text, says) => {
  const options = { file: "web.yaml", nodeName: "node1", source: "file", strictness: "standard" } as const;
  const { findings } = readManifest(Buffer.from(text.replace("⟦", "")), options);
  expect(findings).toMatchObject([{ message: expect.stringContaining(says), ...positionOf(text) }]);
});

test("a key that overrides a merged one is meant", () => {
  const { findings } = read(`x-base: &base {image: a}\n${pod("  containers: [{name: a, <<: *base, image: b}]\n")}`);
  expect(findings.map(({ field }) => field)).toEqual(["x-base"]);
});

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
  const { findings } = read(container(`    ${line}\n`));
  expect(findings.length).toBeGreaterThan(0);
  expect(JSON.stringify(findings)).not.toContain("hunter2");
});

test("a number without quotes that may be a password is not repeated", () => {
  const line = "livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: X-Key, value: 20261122}]}}";
  expect(read(container(`    ${line}\n`)).findings[0]).toMatchObject({
    field: "spec.containers[0].livenessProbe.httpGet.httpHeaders[0].value",
    message: "must be a string (found a number): put it in quotes",
  });
});

const misplaced = (field: string) => container(`    ${field}: 1\n`);
test.each([
  [misplaced("hostname"), "; it belongs to spec"],
  [misplaced("privileged"), "; it belongs to spec.containers[].securityContext"],
  [misplaced("containerPort"), "; it belongs to spec.containers[].ports[]"],
  [misplaced("labels"), "; it belongs to metadata"],
  [misplaced("spec"), "; it belongs to the top level"],
  // Nowhere, and in several places.
  [misplaced("nonsense"), ""],
  [misplaced("fsType"), ""],
  // The nearest to the root.
  [`restartPolicy: Always\n${DEPLOYMENT}  selector: {}\n`, "; it belongs to spec.template.spec"],
])("where a misplaced field belongs: %j", (text, home) => {
  const { message = "" } = read(text).findings.find(({ code }) => code === "unknown") ?? {};
  expect(message.replace(/^there is no field "\w+" here/, "")).toBe(home);
});
