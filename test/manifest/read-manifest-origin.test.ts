import { describe, expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const SPEC = "containers: [{name: a, image: a}]";
const read = (text: string, source: "file" | "api" = "file") =>
  readManifest(Buffer.from(text), { file: "/m/web.yaml", nodeName: "node1", source });

describe("where an object is written down", () => {
  test("file, document and line of a pod", () => {
    const text = `# first\nkind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {${SPEC}}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: b}\nspec: {${SPEC}}\n`;
    expect(read(text).pods.map(({ location }) => location)).toEqual([
      { file: "/m/web.yaml", document: 1, line: 2 },
      { file: "/m/web.yaml", document: 2, line: 7 },
    ]);
  });

  test("an item of a list, and a workload", () => {
    const pod = `{kind: Pod, apiVersion: v1, metadata: {name: a}, spec: {${SPEC}}}`;
    const list = `kind: List\napiVersion: v1\nitems:\n- ${pod}\n`;
    expect(read(list).pods[0]?.location?.line).toBe(4);
    const workload = `kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {${SPEC}}}\n`;
    expect(read(workload).objects[0]?.location).toEqual({ file: "/m/web.yaml", document: 1, line: 1 });
  });
});

describe("dnsPolicy ClusterFirst", () => {
  const pod = (spec: string) => `kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {${spec}}\n`;

  test("is noted where the manifest says it, not as a default, and never for an API", () => {
    const written = pod(`dnsPolicy: ClusterFirst, ${SPEC}`);
    expect(read(written).pods[0]?.asksForClusterDns).toBe(true);
    expect(read(pod(SPEC)).pods[0]?.asksForClusterDns).toBeUndefined();
    expect(read(pod(`dnsPolicy: Default, ${SPEC}`)).pods[0]?.asksForClusterDns).toBeUndefined();
    expect(read(written, "api").pods[0]?.asksForClusterDns).toBeUndefined();
  });

  test("is noted for the pods of a workload", () => {
    const text = `kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {dnsPolicy: ClusterFirst, ${SPEC}}}\n`;
    expect(read(text).objects[0]?.asksForClusterDns).toBe(true);
  });
});
