import { describe, expect, test } from "bun:test";
import type { Strictness } from "../../src/manifest/manifest-result.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (text: string, strictness: Strictness = "standard", source: "file" | "api" = "file") =>
  readManifest(Buffer.from(text), { file: "/d/f.yaml", nodeName: "n", source, strictness });
const errorsOf = (result: ReturnType<typeof read>) => result.findings.filter(({ severity }) => severity === "error");

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
    const result = read(POD);
    expect(errorsOf(result)).toEqual([]);
    expect(result.results[0]).toMatchObject({ ok: true, valid: false });
    const { metadata, spec } = result.pods[0]!.pod;
    expect(metadata.name).toBe("pod-a-n");
    expect(metadata.creationTimestamp ?? undefined).toBeUndefined();
    expect(spec.restartPolicy).toBe("OnFailure");
    expect(spec.volumes?.[0]?.hostPath?.path).toBe("/d/d");
    const [first, second] = spec.containers;
    expect(first).toMatchObject({ name: "container-a", imagePullPolicy: "IfNotPresent", args: ["sleep", "50000"] });
    expect(second?.name).toMatch(/^container-a-[0-9a-f]{8}$/);
    expect(first?.ports?.[0]?.protocol).toBe("TCP");
    expect(first?.env).toMatchObject([
      { value: "1000" },
      { value: "true" },
      { valueFrom: { resourceFieldRef: { containerName: "container-a" } } },
    ]);
    expect(result.findings.map(({ line }) => line)).toEqual([3, 5, 7, 9, 10, 11, 13, 14, 16, 18]);
  });

  test.each(["strict", "warn", "ignore", "api"] as const)("%s: as Kubernetes has it", (how) => {
    const result = how === "api" ? read(POD, "standard", "api") : read(POD, how);
    expect(result.pods).toEqual([]);
    const lines = errorsOf(result).map(({ line }) => line);
    for (const line of [3, 5, 10, 13, 14]) expect(lines).toContain(line);
  });

  test("a number whose text readers of YAML disagree on stays an error, and the message has the text", () => {
    for (const written of ["0777", "1.10", "yes", "1e3", "0x1F"]) {
      const result = read(POD.replace("50000", written));
      expect(errorsOf(result)).toMatchObject([{ line: 10, message: expect.stringContaining(`"${written}"`) }]);
    }
  });

  test("the value of a variable does not appear in the message", () => {
    expect(JSON.stringify(read(POD.replace("1000", "4711")).findings)).not.toContain("4711");
  });

  test("objects that are referred to by name keep it", () => {
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: my_config}\ndata: {PORT: 80}\n---
apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: my_data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n`;
    const result = read(text);
    expect(errorsOf(result)).toEqual([]);
    expect(result.configMaps[0]).toMatchObject({ metadata: { name: "my_config" }, data: { PORT: "80" } });
    expect(result.objects[0]?.object.metadata.name).toBe("my_data");
    expect(errorsOf(read(text, "strict"))).toHaveLength(2);
  });

  test("a workload with the apiVersion of another kind", () => {
    const template = POD.replace(/^apiVersion.*\nkind.*\nmetadata.*\n/, "").replace("onfailure", "always");
    const text = `apiVersion: v1\nkind: Deployment\nmetadata: {name: web_A}\nspec:\n  selector: {matchLabels: {a: b}}
  template:\n    metadata: {labels: {a: b}}\n${template.replace(/^/gm, "    ")}`;
    const result = read(text);
    expect(errorsOf(result)).toEqual([]);
    expect(result.objects[0]).toMatchObject({
      kind: "Deployment",
      object: {
        metadata: { name: "web-a" },
        spec: { template: { spec: { volumes: [{ hostPath: { path: "/d/d" } }] } } },
      },
    });
    expect(result.findings[0]).toMatchObject({ field: "apiVersion", message: expect.stringContaining("apps/v1") });
    expect(errorsOf(read(text, "strict"))[0]?.field).toBe("apiVersion");
  });
});

describe("what has one meaning only", () => {
  const read1 = (spec: string, strictness: Strictness = "standard", source: "file" | "api" = "file") =>
    read(`apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n${spec}`, strictness, source);
  const CONTAINER = (more: string) => `  containers:\n  - name: a\n    image: b\n${more}`;

  test.each([
    [
      "a field with other capitals",
      "    volumemounts: [{name: d, mountPath: /d, readonly: true}]\n  volumes: [{name: d, emptyDir: {}}]\n",
    ],
    [
      "a boolean in quotes",
      '    volumeMounts: [{name: d, mountPath: /d, readOnly: "true"}]\n  volumes: [{name: d, emptyDir: {}}]\n',
    ],
  ])("%s is what it says", (_, text) => {
    const result = read1(CONTAINER(text));
    expect(errorsOf(result)).toEqual([]);
    expect(result.results[0]!.valid).toBe(false);
    expect(result.pods[0]!.pod.spec.containers[0]!.volumeMounts).toMatchObject([{ name: "d", readOnly: true }]);
    for (const strictness of ["strict", "warn", "ignore"] as const) {
      const [pod] = read1(CONTAINER(text), strictness).pods;
      expect(JSON.stringify(pod?.pod ?? {})).not.toContain('"readOnly":true');
    }
    expect(read1(CONTAINER(text), "standard", "api").pods).toEqual([]);
  });

  test("a field that is written twice, once with other capitals, is reported", () => {
    const result = read1(CONTAINER("    Image: c\n"));
    expect(errorsOf(result).map(({ message }) => message)).toEqual([
      'there is no field "Image" here; did you mean "image"?',
    ]);
  });

  test("numbers in quotes", () => {
    const result = read1(CONTAINER('    ports: [{containerPort: "80"}]\n'));
    expect(result.pods[0]!.pod.spec.containers[0]!.ports![0]!.containerPort).toBe(80);
    expect(result.findings[0]).toMatchObject({ severity: "warning", line: 8 });
    expect(read1(CONTAINER('    ports: [{containerPort: "$PORT"}]\n')).pods).toEqual([]);
  });

  test("a misplaced false is a warning where it is so anyway, and an error where it is not", () => {
    const text = "  securityContext: {privileged: false}\n";
    const result = read1(text + CONTAINER(""));
    expect(errorsOf(result)).toEqual([]);
    expect(result.findings[0]!.message).toContain("it belongs to spec.containers[].securityContext, where it is false");
    expect(errorsOf(read1(text + CONTAINER("    securityContext: {privileged: true}\n")))).toHaveLength(1);
    expect(errorsOf(read1(text.replace("false", "true") + CONTAINER("")))).toHaveLength(1);
    expect(errorsOf(read1(text + CONTAINER(""), "strict"))).toHaveLength(1);
  });

  test("names of ports with capitals are in lower case, and probes follow", () => {
    const result = read1(
      CONTAINER("    ports: [{containerPort: 80, name: webPort}]\n    livenessProbe: {httpGet: {port: webPort}}\n"),
    );
    expect(errorsOf(result)).toEqual([]);
    const [container] = result.pods[0]!.pod.spec.containers;
    expect([container!.ports![0]!.name, container!.livenessProbe!.httpGet!.port]).toEqual(["webport", "webport"]);
  });

  test("annotations of containers that Kubernetes has no names for are left out; others stay errors", () => {
    const annotated = (key: string) =>
      read(`apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {${key}: "1"}}\nspec:\n${CONTAINER("")}`);
    for (const key of ["run.oci.keep_original_groups/a", "x.y/z/a"]) {
      const result = annotated(key);
      expect(errorsOf(result)).toEqual([]);
      expect(result.findings).toMatchObject([{ severity: "warning", field: `metadata.annotations[${key}]` }]);
      expect(result.pods[0]!.pod.metadata.annotations).not.toHaveProperty([key]);
    }
    expect(errorsOf(annotated("x.y/z/other"))).toHaveLength(1);
  });

  test.each([
    ["My-Host", "my-host"],
    ["pod_A", "pod-a"],
  ])("the host name %s is %s", (hostname, want) => {
    const text = `  hostname: ${hostname}\n${CONTAINER("")}`;
    const result = read1(text);
    expect(errorsOf(result)).toEqual([]);
    expect(result.pods[0]!.pod.spec.hostname).toBe(want);
    expect(errorsOf(read1(text, "strict"))).toHaveLength(1);
  });

  test("the Service that podman kube generate -s writes has the name of its pod", () => {
    const result = read("apiVersion: v1\nkind: Service\nmetadata: {name: pod_A}\nspec: {ports: [{port: 80}]}\n");
    expect(errorsOf(result)).toEqual([]);
    expect(result.objects[0]!.object.metadata.name).toBe("pod-a");
  });

  test("a port that two containers publish alike is published once; otherwise it is an error", () => {
    const ports = (first: number, second: number) =>
      `  containers:\n  - {name: a, image: b, ports: [{containerPort: ${first}, hostPort: 90}]}\n  - {name: c, image: b, ports: [{containerPort: ${second}, hostPort: 90}]}\n`;
    const result = read1(ports(80, 80));
    expect(errorsOf(result)).toEqual([]);
    expect(result.pods[0]!.pod.spec.containers.map((it) => it.ports?.[0]?.hostPort)).toEqual([90, undefined]);
    expect(errorsOf(read1(ports(80, 81)))).toHaveLength(1);
    expect(errorsOf(read1(ports(80, 80), "strict"))).toHaveLength(1);
  });

  test("labels that no selector can ask for are left out", () => {
    const result = read(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: My App, tier: web}}\nspec: {containers: [{name: a, image: b}]}\n",
    );
    expect(errorsOf(result)).toEqual([]);
    expect({ ...result.pods[0]!.pod.metadata.labels }).toEqual({ tier: "web" });
  });
});
