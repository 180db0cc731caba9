import { describe, expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (text: string, nodeName = "node1", source: "file" | "http" = "file") =>
  readManifest(Buffer.from(text), { file: "/etc/pods/web.yaml", nodeName, source }).pods[0]!;

const YAML = `apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {b: "1", a: "2"}
spec:
  containers:
  - name: app
    image: nginx:1
    resources: {limits: {memory: 1Gi}}
`;

const SAME = `# a comment
kind: "Pod"
apiVersion: v1
spec:
    containers:
        - image: nginx:1
          resources:
              limits: {"memory": 1024Mi}
          name: app
    restartPolicy: Always
metadata: {labels: {a: "2", b: '1'}, name: web}
`;

describe("a static pod", () => {
  const { pod, source, origin, revision } = read(YAML);
  test("has the node in its name, and lives in default", () => {
    expect(pod.metadata).toMatchObject({ name: "web-node1", namespace: "default" });
    expect(pod.spec.nodeName).toBe("node1");
    expect(pod.status).toEqual({ phase: "Pending" });
    expect({ source, origin }).toEqual({ source: "file", origin: "/etc/pods/web.yaml" });
  });
  test("has annotations for its revision and source", () => {
    expect(pod.metadata.annotations).toEqual({
      "kubernetes.io/config.hash": revision,
      "kubernetes.io/config.source": "file",
    });
    expect(revision).toMatch(/^[0-9a-f]{32}$/);
    expect(pod.metadata.uid).toMatch(/^[0-9a-f]{32}$/);
  });
  test("tolerates everything when it comes from a file, not from a URL", () => {
    expect(pod.spec.tolerations).toEqual([{ operator: "Exists", effect: "NoExecute" }]);
    expect(read(YAML, "node1", "http").pod.spec.tolerations).toBeUndefined();
  });
});

describe("identity and revision", () => {
  const original = read(YAML);
  test("layout, comments and the order of keys change neither", () => {
    const same = read(SAME);
    expect(same.pod.metadata.uid).toBe(original.pod.metadata.uid!);
    expect(same.revision).toBe(original.revision);
  });
  test("an edit changes the revision, not the uid", () => {
    const edited = read(YAML.replace("nginx:1", "nginx:2"));
    expect(edited.pod.metadata.uid).toBe(original.pod.metadata.uid!);
    expect(edited.revision).not.toBe(original.revision);
  });
  test.each([
    ["another node", read(YAML, "node2")],
    ["another name", read(YAML.replace("name: web", "name: www"))],
    ["another namespace", read(YAML.replace("name: web", "name: web\n  namespace: prod"))],
  ])("%s is another pod", (_, other) => expect(other.pod.metadata.uid).not.toBe(original.pod.metadata.uid!));
  test("a uid in the manifest is kept, and names the hash too; the revision still distinguishes edits", () => {
    const fixed = read(YAML.replace("name: web", "name: web\n  uid: mine"));
    expect(fixed.pod.metadata.uid).toBe("mine");
    expect(fixed.pod.metadata.annotations?.["kubernetes.io/config.hash"]).toBe("mine");
    expect(fixed.revision).not.toBe("mine");
  });
  test("the given toleration is taken in place of one that is the same", () => {
    const text = `${YAML}  tolerations:\n  - {operator: Exists, effect: NoExecute, tolerationSeconds: 5}\n  - {key: a, operator: Exists}\n`;
    expect(read(text).pod.spec.tolerations).toEqual([
      { operator: "Exists", effect: "NoExecute" },
      { key: "a", operator: "Exists" },
    ]);
  });
});

test("several pods of one file say which document they are", () => {
  const text = `${YAML}---\n${YAML.replace("name: web", "name: www")}`;
  const { pods } = readManifest(Buffer.from(text), { file: "a.yaml", nodeName: "n", source: "file" });
  expect(pods.map(({ origin }) => origin)).toEqual(["a.yaml (document 1)", "a.yaml (document 2)"]);
});
