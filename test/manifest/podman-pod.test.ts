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
