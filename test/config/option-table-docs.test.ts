import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SETUP_COMMANDS } from "../../src/cli/declarations.ts";
import { ROW_BY_FLAG } from "../../src/config/option-table.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (name: string) => readFileSync(join(import.meta.dir, "../../docs", name), "utf8");

describe.each(["sources.md", "migrating.md", "shutdown.md"])("docs/%s", (name) => {
  const text = read(name);

  test("every flag of kubelet-ts in it exists", () => {
    const ours = text
      .split("\n")
      .filter((line) => !/podman|docker (compose|run|ps|update)|gcloud|systemd-inhibit/.test(line));
    const flags = [...ours.join("\n").matchAll(/(?<![\w-])--([a-z][a-z-]+)/g)].map(([, flag]) => flag!);
    expect(flags.length).toBeGreaterThan(2);
    const ofCommands = SETUP_COMMANDS.flatMap(({ args }) => Object.keys(args ?? {}));
    expect(flags.filter((flag) => !ROW_BY_FLAG.has(flag) && !ofCommands.includes(flag))).toEqual([]);
  });

  test("every pod in it is valid", () => {
    const blocks = [...text.matchAll(/```yaml\n(.*?)```/gs)]
      .map(([, block]) => block!)
      .filter((block) => /^kind: Pod/m.test(block));
    for (const block of blocks) {
      const { findings, pods } = readManifest(Buffer.from(block), { file: name, nodeName: "node1", source: "file" });
      expect(findings).toEqual([]);
      expect(pods).toHaveLength(1);
    }
  });
});

test("a declaration of konlet is read as a pod", () => {
  const container = "{name: a, image: busybox:test, volumeMounts: [{name: v, mountPath: /data}], stdin: false}";
  const volume = "{name: v, hostPath: {path: /tmp}}";
  const declaration = `# DISCLAIMER:\nspec:\n  containers: [${container}]\n  restartPolicy: Always\n  volumes: [${volume}]\n`;
  const options = { file: "pod.yaml", nodeName: "node1", source: "file", strictness: "standard" } as const;
  const { pods, results } = readManifest(Buffer.from(declaration), options);
  expect(results).toMatchObject([{ ok: true, kind: "Pod" }]);
  expect(pods[0]?.pod.spec).toMatchObject({ hostNetwork: true, restartPolicy: "Always" });
});
