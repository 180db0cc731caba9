import { expect, test } from "bun:test";
import { parseRefusedManifests } from "../../../src/cli/client/kubelet-api.ts";

test("refused manifests are read from the health checks", () => {
  const text = `[+]ping ok
[+]source file /pods ok
[+]manifest /pods/bad.yaml refused (/pods/bad.yaml:4:38: spec.containers[0].image: must be a string (found y)) ok
[+]manifest /pods/b.yaml refused (/pods/b.yaml:1:1: no such field) ok
healthz check passed
`;
  expect(parseRefusedManifests(text)).toEqual([
    { file: "/pods/bad.yaml", message: "/pods/bad.yaml:4:38: spec.containers[0].image: must be a string (found y)" },
    { file: "/pods/b.yaml", message: "/pods/b.yaml:1:1: no such field" },
  ]);
  expect(parseRefusedManifests("[+]ping ok\n")).toEqual([]);
});
