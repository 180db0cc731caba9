import { expect, test } from "bun:test";
import { environmentSettings, variableOf } from "../../src/config/environment-flags.ts";
import { resolveOptions } from "../../src/config/resolve-options.ts";

const resolve = (argv: string[], environment: Record<string, string>) =>
  resolveOptions(argv, "/work", "run", environment);

test("every flag is a variable; a flag wins over it", async () => {
  expect(variableOf("max-pods")).toBe("KUBELET_TS_MAX_PODS");
  const { options, origins, errors } = await resolve(["--max-pods=7"], {
    KUBELET_TS_MAX_PODS: "5",
    KUBELET_TS_READ_ONLY_PORT: "0",
    KUBELET_TS_POD_MANIFEST_PATH: "pods",
    KUBELET_TS_NODE_LABELS: "",
  });
  expect(errors).toEqual([]);
  expect([options.maxPods, options.readOnlyPort, options.podManifestPaths]).toEqual([7, 0, ["/work/pods"]]);
  expect([origins.maxPods, origins.readOnlyPort]).toEqual(["--max-pods", "KUBELET_TS_READ_ONLY_PORT"]);
});

test("a bad value and a misspelt name are told by the variable's name", () => {
  const { errors, warnings } = environmentSettings({
    KUBELET_TS_MAX_PODS: "many",
    KUBELET_TS_MAX_POD: "3",
    KUBELET_TS_TEST_RUN: "x",
    PATH: "/bin",
  });
  expect(errors.join()).toContain("KUBELET_TS_MAX_PODS");
  expect(warnings).toEqual(["KUBELET_TS_MAX_POD in the environment names no flag; did you mean KUBELET_TS_MAX_PODS?"]);
});
