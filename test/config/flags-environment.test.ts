import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { environmentSettings, findConfigPaths, variableOf } from "../../src/config/flags.ts";
import { OPTION_TABLE } from "../../src/config/option-table.ts";
import { resolveOptions } from "../../src/config/resolve-options.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();
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

test.each(OPTION_TABLE.flatMap((row) => (row.is === "option" && row.flag ? [row.flag] : [])))(
  "--%s is read from its variable",
  (flag) => {
    const variable = variableOf(flag);
    const { settings, errors, warnings } = environmentSettings({ [variable]: "true" });
    expect(warnings.filter((warning) => warning.includes("names no flag"))).toEqual([]);
    expect([...settings.map(({ origin }) => origin), ...errors].join()).toContain(variable);
  },
);

test("files of settings are named by variables, too; a flag replaces its variable", async () => {
  const file = join(tempDir(), "config.yaml");
  writeFileSync(file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 3\n");
  const variables = { KUBELET_TS_CONFIG: file, KUBELET_TS_CONFIG_DIR: "/drop-ins" };
  expect((await resolve([], { KUBELET_TS_CONFIG: file })).options.maxPods).toBe(3);
  expect(findConfigPaths([], variables)).toEqual({ configPaths: [file], configDir: "/drop-ins" });
  expect(findConfigPaths(["--config=/other"], variables)).toEqual({ configPaths: ["/other"], configDir: "/drop-ins" });
});

test("a bad value and a misspelt name are reported by the variable's name", () => {
  const { errors, warnings } = environmentSettings({
    KUBELET_TS_MAX_PODS: "many",
    KUBELET_TS_MAX_POD: "3",
    KUBELET_TS_TEST_RUN: "x",
    PATH: "/bin",
  });
  expect(errors.join()).toContain("KUBELET_TS_MAX_PODS");
  expect(warnings).toEqual(["KUBELET_TS_MAX_POD in the environment names no flag; did you mean KUBELET_TS_MAX_PODS?"]);
});
