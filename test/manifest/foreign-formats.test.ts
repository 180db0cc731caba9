import { describe, expect, test } from "bun:test";
import type { Strictness } from "../../src/manifest/manifest-result.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (text: string, strictness: Strictness = "standard") =>
  readManifest(Buffer.from(text), { file: "f.yaml", nodeName: "n", source: "file", strictness });
const POD = 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: "b:1"}]}\n';

describe("objects without effect on one node", () => {
  test.each([
    ["v1", "Namespace", "set metadata.namespace in the pod"],
    ["v1", "ServiceAccount", "mount a Secret"],
    ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "--token-auth-file"],
    ["networking.k8s.io/v1", "NetworkPolicy", "traffic is not filtered"],
    ["networking.k8s.io/v1", "Ingress", "publish the pod with hostPort"],
    ["autoscaling/v2", "HorizontalPodAutoscaler", "set replicas"],
    ["policy/v1", "PodDisruptionBudget", "set maxUnavailable"],
    ["policy/v1beta1", "PodSecurityPolicy", "set securityContext"],
    ["v1", "Endpoints", "set hostAliases"],
    ["discovery.k8s.io/v1", "EndpointSlice", "set hostAliases"],
    ["v1", "Node", "set --node-labels"],
    ["storage.k8s.io/v1", "StorageClass", "claims are Docker volumes"],
    ["apiextensions.k8s.io/v1", "CustomResourceDefinition", "write the Deployments or Pods"],
    ["example.com/v1", "Widget", "write the Deployments or Pods"],
  ])("%s %s is a warning next to a pod, and an error with strict", (apiVersion, kind, note) => {
    const text = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x}\n---\n${POD}`;
    const { pods, findings, results } = read(text);
    expect(pods).toHaveLength(1);
    expect(findings).toMatchObject([{ severity: "warning", field: "kind", message: expect.stringContaining(note) }]);
    expect(results.map(({ ok, valid }) => ({ ok, valid }))).toEqual([
      { ok: true, valid: false },
      { ok: true, valid: true },
    ]);
    expect(read(text, "strict").findings).toMatchObject([
      { severity: "error", message: expect.stringContaining(note) },
    ]);
  });

  test.each([
    ["apps/v9", "Deployment"],
    ["v1", "Pot"],
    ["batch/v1", "Nothing"],
  ])("%s %s stays an error", (apiVersion, kind) => {
    expect(read(`apiVersion: ${apiVersion}\nkind: ${kind}\n`).findings).toMatchObject([{ severity: "error" }]);
  });
});

describe("formats of other programs are recognized and answered with the next step", () => {
  test.each([
    ["a Compose file", "services: {web: {image: nginx}}\nvolumes: {}\nx-a: 1\n", "kubelet-ts import compose"],
    ["a Compose file with a key of another version", "services: {web: {image: nginx}}\ndeploy: {}\n", "import compose"],
    ["a Compose file of other files", "include: [a.yaml]\n", "import compose"],
    ["a Helm template", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n", "helm template"],
    [
      "a Helm template in quotes",
      'apiVersion: v1\nkind: Pod\nmetadata: {name: "{{ .Values.name }}"}\n',
      "helm template",
    ],
    ["a template with blocks", "{{- if .Values.on }}\napiVersion: v1\n{{- end }}\n", "helm template"],
    ["a template with a function", "metadata:\n  name: {{ default .Chart.Name .Values.name }}\n", "helm template"],
    ["a template of Ansible", "spec:\n  image: {{ web_image }}\n", "Ansible"],
    ["a template of Jinja", "{% for x in y %}\na: 1\n{% endfor %}\n", "Ansible"],
    ["values of a Helm chart", "replicaCount: 1\nimage: {repository: nginx}\nnameOverride: a\n", "helm template"],
    ["a Helm chart", "apiVersion: v2\nname: web\nversion: 1.0.0\n", "helm template"],
    ["a Kustomization", "kind: Kustomization\nresources: [a.yaml]\n", "kustomize build"],
    ["a Kustomization of patches", "bases: [../base]\npatchesStrategicMerge: [a.yaml]\n", "kustomize build"],
    ["a Kustomization without kind", "resources: [a.yaml]\nnamePrefix: x-\n", "kustomize build"],
  ])("%s", (_, text, next) => {
    const { findings, pods } = read(text);
    expect(pods).toEqual([]);
    expect(findings).toMatchObject([{ severity: "error", message: expect.stringContaining(next) }]);
  });

  test.each([
    ["{{ .Values.image }}", "helm template"],
    ["registry/$" + "{IMAGE}", "envsubst"],
  ])("the image %s", (image, next) => {
    const { findings, results } = read(POD.replace('"b:1"', JSON.stringify(image)));
    expect(findings).toMatchObject([
      { severity: "error", field: "spec.containers[0].image", message: expect.stringContaining(next) },
    ]);
    expect(results).toMatchObject([{ ok: false, valid: true }]);
  });

  test("braces in a string are not a template", () => {
    expect(read(POD.replace("{name: p}", '{name: p, annotations: {a: "{{ .X }}"}}')).findings).toEqual([]);
  });
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

  test("hostNetwork and metadata can be given", () => {
    const { pods } = read(`metadata: {name: x}\n${TEXT.replace("My_App", "a")}  hostNetwork: false\n`);
    expect(pods[0]?.pod.metadata.name).toBe("x-n");
    expect(pods[0]?.pod.spec.hostNetwork).toBeFalsy();
  });

  test("errors have their position in the text", () => {
    expect(read(TEXT.replace("My_App", "-a")).findings.find(({ severity }) => severity === "error")).toMatchObject({
      line: 3,
      field: "spec.containers[0].name",
    });
  });

  test("with strict apiVersion and kind are required", () => {
    expect(read(TEXT, "strict").findings.map(({ field }) => field)).toEqual(["kind", "apiVersion"]);
  });
});

describe("what podman kube generate writes", () => {
  const NAME = `My_data.${"x".repeat(60)}`;
  const text = `apiVersion: v1
kind: Pod
metadata:
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

  describe.each([
    ["a pod", text],
    [
      "a template",
      `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: p}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n${text
        .replace(/^apiVersion.*\nkind.*\n/, "")
        .replace("  name: p\n", "  labels: {a: b}\n")
        .replace(/^/gm, "    ")}`,
    ],
  ])("in %s", (_, manifest) => {
    const withPath = manifest.replace("bind-mount-options: /a:z", '"bind-mount-options:/a/b": z');
    const ofAnnotation = ({ field }: { field: string }) => field.includes("bind-mount-options");

    test("annotations whose names contain paths are left out", () => {
      const { findings, pods, objects } = read(withPath);
      expect(findings.find(ofAnnotation)).toMatchObject({ severity: "warning" });
      expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
      expect(JSON.stringify([pods, objects])).not.toContain("bind-mount-options");
    });

    test("volumes are renamed", () => {
      expect(read(manifest).findings.filter(({ field }) => field.endsWith("spec.volumes[0].name"))).toMatchObject([
        { severity: "warning" },
      ]);
    });

    test("with strict both are errors", () => {
      const errors = read(withPath, "strict").findings.filter(({ severity }) => severity === "error");
      expect(errors.filter(({ message }) => message.includes("bind-mount-options"))).toHaveLength(1);
      expect(errors.filter(({ field }) => field.endsWith("spec.volumes[0].name"))).not.toEqual([]);
    });
  });

  test("with strict they are errors, as in Kubernetes", () => {
    const { findings } = read(text, "strict");
    expect(findings.find(({ field }) => field === "spec.volumes[0].name")).toMatchObject({ severity: "error" });
  });

  test.each(["..", "a/b", "-x", "x".repeat(254)])("the name %s stays an error", (name) => {
    const { findings } = read(text.replaceAll(NAME, JSON.stringify(name)));
    expect(findings.some(({ field, severity }) => field === "spec.volumes[0].name" && severity === "error")).toBe(true);
  });

  test("numbers and booleans in place of strings: the message has the text to write", () => {
    const { findings } = read(POD.replace("{name: p}", "{name: p, labels: {a: 5, b: yes}}"));
    expect(findings.map(({ message }) => message)).toEqual([
      expect.stringContaining('put it in quotes, "5"'),
      expect.stringContaining('put it in quotes, "yes"'),
    ]);
  });
});

test("the container of a GCE container declaration needs no name", () => {
  const { pods } = read("spec:\n  containers:\n  - image: b:1\n");
  expect(pods[0]!.pod.metadata.name).toBe("container-n");
  expect(pods[0]!.pod.spec.containers).toMatchObject([{ name: "container" }]);
});

describe("a list in place of a manifest is named as what it is", () => {
  test.each([
    ["a playbook", "- hosts: all\n  tasks: []\n", "Ansible playbook"],
    ["its tasks", "- name: x\n  ansible.builtin.copy: {src: a}\n", "Ansible playbook"],
    ["a JSON patch", "- op: replace\n  path: /spec/replicas\n  value: 2\n", "JSON patch of a Kustomization"],
    ["objects", "- {apiVersion: v1, kind: Pod}\n- {apiVersion: v1, kind: Pod}\n", 'lines "---"'],
    ["anything else", "- a\n- b\n", "found a list"],
  ])("%s", (_, text, next) => {
    expect(read(text).findings).toMatchObject([{ severity: "error", message: expect.stringContaining(next) }]);
  });
});

describe("a patch of a Kustomization", () => {
  test.each(["spec: {replicas: 3}", "spec: {template: {spec: {containers: [{name: a, env: []}]}}}"])("%s", (spec) => {
    const text = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n${spec}\n`;
    expect(read(text).findings).toMatchObject([
      { severity: "error", message: expect.stringContaining("kustomize build") },
    ]);
    // Kubernetes' verdict names the fields.
    expect(read(text, "strict").findings[0]!.field).toStartWith("spec.");
  });

  test("a workload that only lacks the selector is read with that of its labels, as podman reads it", () => {
    const workload = (labels: string) =>
      `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {${labels}spec: {containers: [{name: a, image: "b:1"}]}}}\n`;
    for (const [labels, want] of [
      ["metadata: {labels: {tier: front}}, ", { tier: "front" }],
      ["", { app: "web" }],
    ] as const) {
      const { objects, findings } = read(workload(labels));
      expect(findings).toMatchObject([{ severity: "warning", message: expect.stringContaining("has no selector") }]);
      const spec = objects[0]!.object.spec as { selector: object; template: { metadata: object } };
      expect(spec).toMatchObject({ selector: { matchLabels: want }, template: { metadata: { labels: want } } });
    }
    expect(read(workload(""), "strict").objects).toEqual([]);
  });
});

describe("placeholders that nothing replaced", () => {
  test.each([
    ["image: b:1", "metadata:\n  name: {{ app }}", "(Ansible"],
    ["image: {{ image }}", "metadata: {name: a}", "(Ansible"],
    ["image: '{{ image }}'", "metadata: {name: a}", "render the template first"],
    ["image: $IMAGE", "metadata: {name: a}", "envsubst"],
    ["image: b:1", "metadata: {name: $APP}", "envsubst"],
    ["image: b:1", "metadata: {name: <your-app>}", "replace the placeholder"],
  ])("%s, %s", (image, metadata, next) => {
    const text = `apiVersion: v1\nkind: Pod\n${metadata}\nspec:\n  containers:\n  - name: c\n    ${image}\n`;
    expect(
      read(text)
        .findings.map(({ message }) => message)
        .join("\n"),
    ).toContain(next);
  });
});

test.each([
  ["values of a Helm chart", "image: {tag: 1}\nports: []\n", "helm template NAME CHART --values FILE"],
  ["containers without a pod", "version: v1beta1\ncontainers: [{name: a, image: b}]\n", 'under "spec"'],
])("%s is no manifest", (_, text, next) => {
  expect(read(text).findings[0]).toMatchObject({ severity: "error", message: expect.stringContaining(next) });
});

test.each(["apiVersion: apps/v1\n", ""])("a Pod with %j for its version is read, as podman reads it", (version) => {
  const text = POD.replace("apiVersion: v1\n", version);
  expect(read(text).pods).toHaveLength(1);
  expect(read(text, "strict").pods).toEqual([]);
});
