import { describe, expect, test } from "bun:test";
import type { Strictness } from "../../src/manifest/object-reading.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (text: string, strictness: Strictness = "standard") =>
  readManifest(Buffer.from(text), { file: "f.yaml", nodeName: "n", source: "file", strictness, keepPositions: true });
const errorsOf = (text: string, strictness?: Strictness) =>
  read(text, strictness).findings.filter(({ severity }) => severity === "error");
const saying = (text: string) => ({ severity: "error", message: expect.stringContaining(text) });

const KIND = "apiVersion: v1\nkind: Pod\n";
const POD = `${KIND}metadata: {name: p}\nspec: {containers: [{name: a, image: "b:1"}]}\n`;

describe("objects without effect on one node", () => {
  test.each([
    ["v1", "Namespace", "set metadata.namespace in the pod"],
    ["v1", "ServiceAccount", "mount a Secret"],
    ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "--token-auth-file"],
    ["networking.k8s.io/v1", "NetworkPolicy", "traffic is not filtered"],
    ["gateway.networking.k8s.io/v1", "HTTPRoute", "publish its Service with type LoadBalancer"],
    ["autoscaling/v2", "HorizontalPodAutoscaler", "set replicas"],
    ["policy/v1", "PodDisruptionBudget", "set maxUnavailable"],
    ["policy/v1beta1", "PodSecurityPolicy", "set securityContext"],
    ["v1", "Node", "set --node-labels"],
    ["storage.k8s.io/v1", "StorageClass", "claims are Docker volumes"],
    ["resource.k8s.io/v1", "ResourceClaimTemplate", "give the device as a hostPath volume"],
    ["flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "has limits of its own"],
    ["apiextensions.k8s.io/v1", "CustomResourceDefinition", "write the Deployments or Pods"],
    ["example.com/v1", "Widget", "write the Deployments or Pods"],
  ])("%s %s is a warning next to a pod, and an error with strict", (apiVersion, kind, note) => {
    const text = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x}\n---\n${POD}`;
    const { pods, findings, results } = read(text);
    expect(pods).toHaveLength(1);
    expect(findings).toMatchObject([{ ...saying(note), severity: "warning", field: "kind" }]);
    expect(results.map(({ ok, valid }) => [ok, valid])).toEqual([
      [true, false],
      [true, true],
    ]);
    expect(read(text, "strict").findings).toMatchObject([saying(note)]);
  });

  test.each([
    "apiVersion: apps/v9\nkind: Deployment\n",
    "apiVersion: v1\nkind: Pot\n",
    "apiVersion: batch/v1\nkind: X\n",
  ])("%j stays an error", (text) => expect(read(text).findings).toMatchObject([{ severity: "error" }]));
});

describe("a text of another format is named as what it is, with the next step", () => {
  test.each([
    ["kubelet-ts import compose", "services: {web: {image: nginx}}\nvolumes: {}\nx-a: 1\n"],
    ["import compose", "services: {web: {image: nginx}}\ndeploy: {}\n"],
    ["import compose", "include: [a.yaml]\n"],
    ["helm template", `${KIND}metadata:\n  name: {{ .Values.name }}\n`],
    ["helm template", `${KIND}metadata: {name: "{{ .Values.name }}"}\n`],
    ["helm template", "{{- if .Values.on }}\napiVersion: v1\n{{- end }}\n"],
    ["helm template", "metadata:\n  name: {{ default .Chart.Name .Values.name }}\n"],
    ["Ansible", "spec:\n  image: {{ web_image }}\n"],
    ["Ansible", "{% for x in y %}\na: 1\n{% endfor %}\n"],
    ["helm template", "replicaCount: 1\nimage: {repository: nginx}\nnameOverride: a\n"],
    ["helm template NAME CHART --values FILE", "image: {tag: 1}\nports: []\n"],
    ["helm template", "apiVersion: v2\nname: web\nversion: 1.0.0\n"],
    ["kustomize build", "kind: Kustomization\nresources: [a.yaml]\n"],
    ["kustomize build", "bases: [../base]\npatchesStrategicMerge: [a.yaml]\n"],
    ["kustomize build", "resources: [a.yaml]\nnamePrefix: x-\n"],
    ['under "spec"', "version: v1beta1\ncontainers: [{name: a, image: b}]\n"],
    // Lists.
    ["Ansible playbook", "- hosts: all\n  tasks: []\n"],
    ["Ansible playbook", "- name: x\n  ansible.builtin.copy: {src: a}\n"],
    ["JSON patch of a Kustomization", "- op: replace\n  path: /spec/replicas\n  value: 2\n"],
    ['lines "---"', "- {apiVersion: v1, kind: Pod}\n- {apiVersion: v1, kind: Pod}\n"],
    ["import docker", '[{"Id": "a1", "Config": {"Env": ["A=b"]}}]'],
    ["found a list", "- a\n- b\n"],
    // Texts that are no YAML.
    ["import docker", "docker run -d \\\n  -p 8080:80 nginx:1.22\n"],
    ["import docker", "$ sudo podman run -d nginx\n"],
    ["unit of systemd", "[Unit]\nDescription=x\n\n[Container]\nImage=y\n"],
    ["unit of systemd", "\n; by hand\r\n \n# of the web server\n  [Service]\nExecStart=x\n"],
    ["HTML", "<!DOCTYPE html>\n<html><body>Log in: a</body></html>\n"],
    ["(found name, version, scripts)", '{"name": "web", "version": "1.0.0", "scripts": {}}'],
    ["empty", ""],
    ["empty", "# later\n---\n# more\n"],
    ["a manifest is an object with apiVersion, kind, metadata and spec (found a string)", "nginx\n"],
    // A pattern that can split blank lines in many ways would try them all.
    ["(found a string)", `${"\n".repeat(60)}nginx\n`],
    ["import docker", `${"# comment\n".repeat(100_000)}docker run x\n${"RUN a\n".repeat(100_000)}`],
  ])("%s", (next, text) => {
    const { findings, pods } = read(text);
    expect(pods).toEqual([]);
    expect(findings).toMatchObject([saying(next)]);
  });

  test.each([
    "# Web\n\n# The server\napiVersion: v1\nkind: Pod\nmetadata: {name: a\n",
    "# Web\n{{- if .Values.on }}\nkind: Pod\n{{- end }}\n",
    "- a=b\n- c\n",
  ])("%j is no text of another program", (text) =>
    expect(read(text).findings[0]?.message).not.toMatch(/unit of systemd|command line|HTML/),
  );

  test("no line of it is shown: it may hold passwords", () => {
    const [result] = read("API_KEY=hunter2\n").results;
    expect(result?.positions?.lineText(1)).toBe("");
    expect(JSON.stringify(result?.findings)).not.toContain("hunter2");
  });

  test("braces in a string are not a template", () => {
    expect(read(POD.replace("{name: p}", '{name: p, annotations: {a: "{{ .X }}"}}')).findings).toEqual([]);
  });
});

test.each([
  ["image: b:1", "metadata:\n  name: {{ app }}", "(Ansible"],
  ["image: {{ image }}", "metadata: {name: a}", "(Ansible"],
  ["image: '{{ image }}'", "metadata: {name: a}", "render the template first"],
  ["image: '{{ .Values.image }}'", "metadata: {name: a}", "helm template"],
  ["image: $IMAGE", "metadata: {name: a}", "envsubst"],
  ["image: registry/$" + "{IMAGE}", "metadata: {name: a}", "envsubst"],
  ["image: b:1", "metadata: {name: $APP}", "envsubst"],
  ["image: b:1", "metadata: {name: <your-app>}", "replace the placeholder"],
])("placeholders that nothing replaced: %s, %s", (image, metadata, next) => {
  const text = `${KIND}${metadata}\nspec:\n  containers:\n  - name: c\n    ${image}\n`;
  expect(errorsOf(text).map(({ message }) => message)).toContainEqual(expect.stringContaining(next));
});

describe("GCE container declarations", () => {
  const TEXT = "spec:\n  containers:\n  - name: My_App\n    image: b:1\n    tty: false\n  restartPolicy: Always\n";

  test("are read as a pod in the network of the host", () => {
    const { pods, findings, results } = read(TEXT.replace("My_App", "my-app"));
    expect(pods[0]?.pod).toMatchObject({
      metadata: { name: "my-app-n" },
      spec: { hostNetwork: true, restartPolicy: "Always", containers: [{ name: "my-app", image: "b:1" }] },
    });
    expect(findings.map(({ severity }) => severity)).toEqual(["warning", "warning", "warning"]);
    expect(results[0]).toMatchObject({ ok: true, valid: false });
  });

  test("hostNetwork and metadata can be given, and the container needs no name", () => {
    const { pods } = read(`metadata: {name: x}\n${TEXT.replace("My_App", "a")}  hostNetwork: false\n`);
    expect(pods[0]?.pod.metadata.name).toBe("x-n");
    expect(pods[0]?.pod.spec.hostNetwork).toBeFalsy();
    const [nameless] = read("spec:\n  containers:\n  - image: b:1\n").pods;
    expect(nameless?.pod).toMatchObject({
      metadata: { name: "container-n" },
      spec: { containers: [{ name: "container" }] },
    });
  });

  test("errors have their position in the text; with strict apiVersion and kind are required", () => {
    expect(errorsOf(TEXT.replace("My_App", "-a"))[0]).toMatchObject({ line: 3, field: "spec.containers[0].name" });
    expect(read(TEXT, "strict").findings.map(({ field }) => field)).toEqual(["kind", "apiVersion"]);
  });
});

describe("what podman kube generate writes", () => {
  const NAME = `My_data.${"x".repeat(60)}`;
  const text = `${KIND}metadata:
  name: p
  annotations:
    io.podman.annotations.autoremove/a: "FALSE"
    io.podman.annotations.init/a: "FALSE"
    bind-mount-options: /a:z
spec:
  containers:
  - name: a
    image: b:1
    volumeMounts: [{name: ${NAME}, mountPath: /data}, {name: plain, mountPath: /plain}]
  volumes:
  - {name: ${NAME}, persistentVolumeClaim: {claimName: ${NAME}}}
  - {name: plain, emptyDir: {}}
`;

  test("volume names become DNS labels, with their references; claims keep their names", () => {
    const { pods, findings, results } = read(text);
    const { spec } = pods[0]!.pod;
    const label = spec.volumes![0]!.name;
    expect(label).toMatch(/^my-data-x+-[0-9a-f]{8}$/);
    expect(label.length).toBeLessThanOrEqual(63);
    expect(spec.containers[0]!.volumeMounts!.map(({ name }) => name)).toEqual([label, "plain"]);
    expect(spec.volumes![0]!.persistentVolumeClaim!.claimName).toBe(NAME);
    expect(findings).toMatchObject([
      { severity: "warning", field: "metadata.annotations[io.podman.annotations.autoremove/a]" },
      { severity: "warning", field: "spec.volumes[0].name" },
    ]);
    expect(results[0]).toMatchObject({ ok: true, valid: false });
  });

  const template = text.replace(/^apiVersion.*\nkind.*\n/, "").replace("  name: p\n", "  labels: {a: b}\n");
  const deployment =
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: p}\nspec:\n  selector: {matchLabels: {a: b}}\n";

  test.each([
    ["a pod", text],
    ["a template", `${deployment}  template:\n${template.replace(/^/gm, "    ")}`],
  ])(
    "in %s volumes are renamed, and annotations whose names contain paths left out; with strict both are errors",
    (_, manifest) => {
      const withPath = manifest.replace("bind-mount-options: /a:z", '"bind-mount-options:/a/b": z');
      const { findings, pods, objects } = read(withPath);
      expect(findings.find(({ field }) => field.includes("bind-mount-options"))).toMatchObject({ severity: "warning" });
      expect(findings.filter(({ field }) => field.endsWith("spec.volumes[0].name"))).toMatchObject([
        { severity: "warning" },
      ]);
      expect(errorsOf(withPath)).toEqual([]);
      expect(JSON.stringify([pods, objects])).not.toContain("bind-mount-options");
      const errors = errorsOf(withPath, "strict");
      expect(errors.filter(({ message }) => message.includes("bind-mount-options"))).toHaveLength(1);
      expect(errors.filter(({ field }) => field.endsWith("spec.volumes[0].name"))).not.toEqual([]);
    },
  );

  test.each(["..", "a/b", "-x", "x".repeat(254)])("the name %s stays an error", (name) => {
    const errors = errorsOf(text.replaceAll(NAME, JSON.stringify(name)));
    expect(errors.map(({ field }) => field)).toContain("spec.volumes[0].name");
  });

  test("numbers and booleans in place of strings: the message has the text to write", () => {
    const { findings } = read(POD.replace("{name: p}", "{name: p, labels: {a: 5, b: yes}}"));
    expect(findings.map(({ message }) => message)).toEqual([
      expect.stringContaining('put it in quotes, "5"'),
      expect.stringContaining('put it in quotes, "yes"'),
    ]);
  });
});

describe("a patch of a Kustomization", () => {
  test.each(["spec: {replicas: 3}", "spec: {template: {spec: {containers: [{name: a, env: []}]}}}"])("%s", (spec) => {
    const text = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n${spec}\n`;
    expect(read(text).findings).toMatchObject([saying("kustomize build")]);
    // Kubernetes' verdict names the fields.
    expect(read(text, "strict").findings[0]!.field).toStartWith("spec.");
  });

  test("a Deployment with the spec of a pod is none", () => {
    const text = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {containers: [{name: a, image: b}]}\n`;
    expect(read(text).findings).toMatchObject([saying("write it under spec.template.spec")]);
  });

  test.each([
    ["metadata: {labels: {tier: front}}, ", { tier: "front" }],
    ["", { app: "web" }],
  ])(
    "a workload that only lacks the selector is read with that of its labels, as podman reads it: %s",
    (labels, want) => {
      const template = `{${labels}spec: {containers: [{name: a, image: "b:1"}]}}`;
      const text = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: ${template}}\n`;
      const { objects, findings } = read(text);
      expect(findings).toMatchObject([{ ...saying("has no selector"), severity: "warning" }]);
      expect(objects[0]!.object.spec).toMatchObject({
        selector: { matchLabels: want },
        template: { metadata: { labels: want } },
      });
      expect(read(text, "strict").objects).toEqual([]);
    },
  );
});

test.each(["apiVersion: apps/v1\n", ""])("a Pod with %j for its version is read, as podman reads it", (version) => {
  const text = POD.replace("apiVersion: v1\n", version);
  expect(read(text).pods).toHaveLength(1);
  expect(read(text, "strict").pods).toEqual([]);
});

test("a manifest without a name is refused, and the message shows no value", () => {
  expect(read(POD.replace("name: p", "")).findings).toMatchObject([
    { field: "metadata.name", type: "FieldValueInvalid", message: 'is required: write "name: NAME" under metadata' },
  ]);
});
