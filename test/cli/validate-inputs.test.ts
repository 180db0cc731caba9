import { describe, expect, test } from "bun:test";
import { checkInputs } from "../../src/cli/validate-inputs.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";

const RULES = { ...DEFAULT_KUBELET_OPTIONS, nodeName: "node1", comparesAllLabels: false };
const OPTIONS = { strictness: "warn", nodeName: "node1", allowPrivileged: true, source: "file" } as const;
const check = (manifest: object) =>
  checkInputs([{ file: "a.yaml", bytes: Buffer.from(JSON.stringify(manifest)) }], OPTIONS, RULES);
const aPod = (spec: object) => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec });
const errorsOf = (manifest: object) =>
  check(manifest).flatMap(({ ok, findings }) =>
    findings.filter(({ severity }) => severity === "error").map(({ field, message }) => [ok, field, message]),
  );

describe("an image name that no engine can read", () => {
  test.each([
    ["nginx :1.22", "invalid reference format"],
    ["http://example.com/nginx", "invalid reference format"],
    ["Nginx", "invalid reference format: repository name must be lowercase"],
  ])("%s", (image, why) => {
    const message = `is no image name (found "${image}"): ${why}; its container would wait with InvalidImageName`;
    const containers = [{ name: "a", image }];
    expect(errorsOf(aPod({ containers }))).toEqual([[false, "spec.containers[0].image", message]]);
    expect(errorsOf(aPod({ containers: [{ name: "b", image: "b:1" }], initContainers: containers }))).toEqual([
      [false, "spec.initContainers[0].image", message],
    ]);
    const labels = { app: "web" };
    const template = { metadata: { labels }, spec: { containers } };
    const spec = { selector: { matchLabels: labels }, template };
    const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec };
    expect(errorsOf(deployment)).toEqual([[false, "spec.template.spec.containers[0].image", message]]);
  });

  test.each(["nginx", "localhost:5000/a/b:1", `a@sha256:${"0".repeat(64)}`])("%s is one", (image) => {
    expect(errorsOf(aPod({ containers: [{ name: "a", image }] }))).toEqual([]);
  });
});
