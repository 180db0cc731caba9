import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { Strictness } from "../../src/manifest/object-reading.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (text: string, how: Strictness | "api" = "standard") =>
  readManifest(Buffer.from(text), {
    file: "/d/f.yaml",
    nodeName: "n",
    source: how === "api" ? "api" : "file",
    strictness: how === "api" ? "standard" : how,
  });
const errorsOf = (text: string, how?: Strictness | "api") =>
  read(text, how).findings.filter(({ severity }) => severity === "error");

/** Manifests that `podman kube play` runs and Kubernetes refuses. */
const POD = `apiVersion: v1
kind: Pod
metadata: {name: pod_A, creationTimestamp: "2022-07-26T16:06:52Z"}
spec:
  restartPolicy: onfailure
  containers:
  - name: container_A
    image: b:1
    imagePullPolicy: ifnotpresent
    args: [sleep, 50000]
    ports: [{containerPort: 80, protocol: tcp}]
    env:
    - {name: PUID, value: 1000}
    - {name: DELETE, value: true}
    - {name: CPU, valueFrom: {resourceFieldRef: {containerName: container_A, resource: limits.cpu}}}
  - {name: container-A, image: "b:1"}
  volumes:
  - {name: d, hostPath: {path: ./d}}
`;

describe("what podman kube play accepts", () => {
  test("runs, with a warning for each difference", () => {
    const { pods, results, findings } = read(POD);
    expect(errorsOf(POD)).toEqual([]);
    expect(results[0]).toMatchObject({ ok: true, valid: false });
    const { metadata, spec } = pods[0]!.pod;
    expect(metadata.name).toBe("pod-a-n");
    expect(metadata.creationTimestamp ?? undefined).toBeUndefined();
    expect(spec).toMatchObject({ restartPolicy: "OnFailure", volumes: [{ hostPath: { path: "/d/d" } }] });
    const [first, second] = spec.containers;
    expect(first).toMatchObject({
      name: "container-a",
      imagePullPolicy: "IfNotPresent",
      args: ["sleep", "50000"],
      ports: [{ protocol: "TCP" }],
      env: [
        { value: "1000" },
        { value: "true" },
        { valueFrom: { resourceFieldRef: { containerName: "container-a" } } },
      ],
    });
    expect(second?.name).toMatch(/^container-a-[0-9a-f]{8}$/);
    expect(findings.map(({ line }) => line)).toEqual([3, 5, 7, 9, 10, 11, 13, 14, 16, 18]);
  });

  test("annotations of podman that say what one of kubelet-ts says, and an empty field that is unknown", () => {
    const podman = `annotations: {io.podman.annotations.ulimit: "nofile=1024:2048", io.podman.annotations.init/c: "TRUE"}`;
    const text = `apiVersion: v1
kind: Pod
metadata: {name: p, ${podman}}
spec: {containers: [{name: c, image: b, status: {}}]}
`;
    const { metadata } = read(text).pods[0]!.pod;
    expect(metadata.annotations).toMatchObject({
      "kubelet-ts.io/ulimits": "nofile=1024:2048",
      "kubelet-ts.io/init": "true",
    });
    expect(read(text, "api").pods).toEqual([]);
  });

  test.each(["strict", "warn", "ignore", "api"] as const)("%s: as Kubernetes has it", (how) => {
    expect(read(POD, how).pods).toEqual([]);
    const lines = errorsOf(POD, how).map(({ line }) => line);
    for (const line of [3, 5, 10, 13, 14]) expect(lines).toContain(line);
  });

  test.each(["0777", "1.10", "yes", "1e3", "0x1F"])(
    "a number whose text readers of YAML disagree on stays an error, and the message has the text: %s",
    (written) => {
      const want = { line: 10, message: expect.stringContaining(`"${written}"`) };
      expect(errorsOf(POD.replace("50000", written))).toMatchObject([want]);
    },
  );

  test("the value of a variable does not appear in the message", () => {
    expect(JSON.stringify(read(POD.replace("1000", "4711")).findings)).not.toContain("4711");
  });

  test("objects that are referred to by name keep it; a Service has the name of its pod", () => {
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: my_config}\ndata: {PORT: 80}\n---
apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: my_data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n`;
    const { configMaps, objects } = read(text);
    expect(errorsOf(text)).toEqual([]);
    expect(configMaps[0]).toMatchObject({ metadata: { name: "my_config" }, data: { PORT: "80" } });
    expect(objects[0]?.object.metadata.name).toBe("my_data");
    expect(errorsOf(text, "strict")).toHaveLength(2);
    const service = "apiVersion: v1\nkind: Service\nmetadata: {name: pod_A}\nspec: {ports: [{port: 80}]}\n";
    expect(errorsOf(service)).toEqual([]);
    expect(read(service).objects[0]!.object.metadata.name).toBe("pod-a");
  });

  test.each([
    ["a claim without a spec", "", ["spec.accessModes", "spec.resources[storage]"]],
    ["a claim without a size", "spec: {accessModes: [ReadWriteOnce]}", ["spec.resources[storage]"]],
  ])("%s", (_, spec, fields) => {
    const text = `apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d}\n${spec}\n`;
    const { objects, findings } = read(text);
    expect(objects.map(({ kind }) => kind)).toEqual(["PersistentVolumeClaim"]);
    expect(findings.map(({ field, severity }) => `${severity} ${field}`)).toEqual(fields.map((it) => `warning ${it}`));
    expect(errorsOf(text, "strict").map(({ field }) => field)).toEqual(fields);
    expect(errorsOf(text, "api").map(({ field }) => field)).toEqual(fields);
  });

  test.each(["ports: [{name: http}]", "envFrom: [{secretRef: {name: my secret}}]"])("%s stays an error", (field) => {
    const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: "b:1", ${field}}]}\n`;
    expect(errorsOf(text)).toHaveLength(1);
  });

  test("a size that is none stays an error", () => {
    const spec = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 0}}}";
    expect(errorsOf(`apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d}\n${spec}\n`)).toHaveLength(1);
  });

  test.each([
    ["imagePullPolicy: Missing", { imagePullPolicy: "IfNotPresent" }],
    ["imagePullPolicy: newer", { imagePullPolicy: "IfNotPresent" }],
    ["ports: [{hostPort: 8080}]", { ports: [{ containerPort: 8080, hostPort: 8080 }] }],
    ["ports: [{containerPort: , hostIP: , hostPort: , protocol: TCP}]", { ports: [] }],
    ["envFrom: [{secretRef: {name: my_Secret}}]", { envFrom: [{ secretRef: { name: "my_Secret" } }] }],
    ["env: [{name: A, valueFrom: {configMapKeyRef: {name: my_map, key: a}}}]", { env: [{ name: "A" }] }],
  ])("a container with %s", (field, want) => {
    const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: "b:1", ${field}}]}\n`;
    const { pods, findings } = read(text);
    expect(pods[0]?.pod.spec.containers[0]).toMatchObject(want);
    expect(findings.map(({ severity }) => severity)).toEqual(["warning"]);
    expect(errorsOf(text, "strict")).toHaveLength(1);
    expect(errorsOf(text, "api")).toHaveLength(1);
  });

  test.each(["Never", "OnFailure", "never"])("a Deployment without a selector, with restartPolicy %s", (policy) => {
    const spec = `{restartPolicy: ${policy}, containers: [{name: a, image: "b:1"}]}`;
    const text = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: ${spec}}}\n`;
    expect(errorsOf(text)).toEqual([]);
    expect(read(text).objects[0]?.object.spec).toMatchObject({
      selector: { matchLabels: { app: "web" } },
      template: { spec: { restartPolicy: "Always" } },
    });
    expect(read(text).findings.at(-1)?.message).toContain("is read as Always");
    expect(errorsOf(text, "strict")).not.toEqual([]);
  });

  test("a workload with the apiVersion of another kind", () => {
    const template = POD.replace(/^apiVersion.*\nkind.*\nmetadata.*\n/, "").replace("onfailure", "always");
    const text = `apiVersion: v1\nkind: Deployment\nmetadata: {name: web_A}\nspec:\n  selector: {matchLabels: {a: b}}
  template:\n    metadata: {labels: {a: b}}\n${template.replace(/^/gm, "    ")}`;
    const { objects, findings } = read(text);
    expect(errorsOf(text)).toEqual([]);
    const spec = { template: { spec: { volumes: [{ hostPath: { path: "/d/d" } }] } } };
    expect(objects[0]).toMatchObject({ kind: "Deployment", object: { metadata: { name: "web-a" }, spec } });
    expect(findings[0]).toMatchObject({ field: "apiVersion", message: expect.stringContaining("apps/v1") });
    expect(errorsOf(text, "strict")[0]?.field).toBe("apiVersion");
  });
});

describe("what has one meaning only", () => {
  const pod = (spec: string, metadata = "name: p") =>
    `apiVersion: v1\nkind: Pod\nmetadata: {${metadata}}\nspec:\n${spec}`;
  const container = (more: string) => `  containers:\n  - name: a\n    image: b\n${more}`;
  const mount = (fields: string) => pod(container(`    ${fields}\n  volumes: [{name: d, emptyDir: {}}]\n`));

  test.each([
    ["a field with other capitals", mount("volumemounts: [{name: d, mountPath: /d, readonly: true}]")],
    ["a boolean in quotes", mount('volumeMounts: [{name: d, mountPath: /d, readOnly: "true"}]')],
  ])("%s is what it says", (_, text) => {
    expect(errorsOf(text)).toEqual([]);
    const { results, pods } = read(text);
    expect(results[0]!.valid).toBe(false);
    expect(pods[0]!.pod.spec.containers[0]!.volumeMounts).toMatchObject([{ name: "d", readOnly: true }]);
    for (const strictness of ["strict", "warn", "ignore"] as const) {
      expect(JSON.stringify(read(text, strictness).pods[0]?.pod ?? {})).not.toContain('"readOnly":true');
    }
    expect(read(text, "api").pods).toEqual([]);
  });

  test("a field that is written twice, once with other capitals, is reported", () => {
    const message = 'there is no field "Image" here; did you mean "image"?';
    expect(errorsOf(pod(container("    Image: c\n")))).toMatchObject([{ message }]);
  });

  test.each([
    ["a pod", (ports: string) => pod(container(ports))],
    [
      "a template",
      (ports: string) =>
        `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n      containers:\n      - name: c\n        image: b:1\n    ${ports}`,
    ],
  ])("a port of %s that cannot be read is not called one without a number", (_, textOf) => {
    const messages = (ports: string) => read(textOf(ports)).findings.map(({ message }) => message);
    expect(messages("    ports: [{containerPort: 80x}]\n")).toEqual([
      'must be a whole number (found the string "80x")',
    ]);
    expect(messages("    ports: [{protocol: TCP}]\n")).toEqual([expect.stringContaining("has no containerPort")]);
  });

  const publishing = (name: string, port: number) =>
    `{name: ${name}, image: b, ports: [{containerPort: ${port}, hostPort: 90}]}`;
  const published = (second: number) => pod(`  containers: [${publishing("a", 80)}, ${publishing("c", second)}]\n`);
  const quoted = (port: string) => pod(container(`    ports: [{containerPort: "${port}"}]\n`));
  const hostname = (name: string) => pod(`  hostname: ${name}\n${container("")}`);
  const namedPort = "    ports: [{containerPort: 80, name: webPort}]\n    livenessProbe: {httpGet: {port: webPort}}\n";

  test.each<[what: string, text: string, pick: (pod: Pod) => unknown, want: unknown, strictErrors: number]>([
    ["a number in quotes", quoted("80"), ({ spec }) => spec.containers[0]!.ports![0]!.containerPort, 80, 1],
    [
      "the name of a port with capitals is in lower case, and probes follow",
      pod(container(namedPort)),
      ({ spec: { containers } }) => [containers[0]!.ports![0]!.name, containers[0]!.livenessProbe!.httpGet!.port],
      ["webport", "webport"],
      2,
    ],
    ["the host name My-Host", hostname("My-Host"), ({ spec }) => spec.hostname, "my-host", 1],
    ["the host name pod_A", hostname("pod_A"), ({ spec }) => spec.hostname, "pod-a", 1],
    [
      "a port that two containers publish alike is published once",
      published(80),
      ({ spec }) => spec.containers.map((it) => it.ports?.[0]?.hostPort),
      [90, undefined],
      1,
    ],
    [
      "labels that no selector can ask for are left out",
      pod(container(""), "name: p, labels: {app: My App, tier: web}"),
      ({ metadata }) => ({ ...metadata.labels }),
      { tier: "web" },
      1,
    ],
  ])("%s", (_, text, pick, want, strictErrors) => {
    expect(errorsOf(text)).toEqual([]);
    expect(pick(read(text).pods[0]!.pod)).toEqual(want);
    expect(errorsOf(text, "strict")).toHaveLength(strictErrors);
  });

  test("what has no such meaning is an error, and a difference has its line", () => {
    expect(read(quoted("80")).findings[0]).toMatchObject({ severity: "warning", line: 8 });
    expect(read(quoted("$PORT")).pods).toEqual([]);
    expect(errorsOf(published(81))).toHaveLength(1);
  });

  test("a misplaced false is a warning where it is so anyway, and an error where it is not", () => {
    const misplaced = (value: boolean, more = "") =>
      pod(`  securityContext: {privileged: ${value}}\n${container(more)}`);
    expect(errorsOf(misplaced(false))).toEqual([]);
    const [finding] = read(misplaced(false)).findings;
    expect(finding!.message).toContain("it belongs to spec.containers[].securityContext, where it is false");
    expect(errorsOf(misplaced(false, "    securityContext: {privileged: true}\n"))).toHaveLength(1);
    expect(errorsOf(misplaced(true))).toHaveLength(1);
    expect(errorsOf(misplaced(false), "strict")).toHaveLength(1);
  });

  test("annotations of containers that Kubernetes has no names for are left out; others stay errors", () => {
    const annotated = (key: string) => pod(container(""), `name: p, annotations: {${key}: "1"}`);
    for (const key of ["run.oci.keep_original_groups/a", "x.y/z/a"]) {
      const { findings, pods } = read(annotated(key));
      expect(findings).toMatchObject([{ severity: "warning", field: `metadata.annotations[${key}]` }]);
      expect(pods[0]!.pod.metadata.annotations).not.toHaveProperty([key]);
    }
    expect(errorsOf(annotated("x.y/z/other"))).toHaveLength(1);
  });
});
