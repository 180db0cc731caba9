import { describe, expect, test } from "bun:test";
import { Field, FieldPath } from "../../src/manifest/field.ts";
import { directoryOf, resolveHostPaths } from "../../src/manifest/object-reading.ts";
import { aPod } from "../support/builders.ts";

function resolveOne(path: string, directory: string | undefined) {
  const pod = aPod();
  pod.spec.volumes = [{ name: "v", hostPath: { path, type: "" } }];
  const notes = resolveHostPaths(new Field(pod, FieldPath.root), directory);
  return { path: pod.spec.volumes[0]?.hostPath?.path, notes };
}

describe("relative host paths", () => {
  test.each([
    ["./data", "/etc/pods/data"],
    ["data/x", "/etc/pods/data/x"],
    ["../data", "/etc/data"],
    [".", "/etc/pods"],
  ])("%s is %s", (written, path) => {
    const found = resolveOne(written, "/etc/pods");
    expect(found.path).toBe(path);
    expect(found.notes).toMatchObject([{ code: "ignored", message: expect.stringContaining(path) }]);
    expect(found.notes[0]?.path.toString()).toBe("spec.volumes[0].hostPath.path");
  });

  test("absolute paths are left alone", () => {
    expect(resolveOne("/data", "/etc/pods")).toEqual({ path: "/data", notes: [] });
  });

  test.each([
    ["$HOME/data", "/etc/pods", "envsubst"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what manifests contain
    ["${DIR}/data", "/etc/pods", "envsubst"],
    ["~/data", "/etc/pods", "~ is not replaced"],
    ["./data", undefined, "must be absolute"],
  ])("%s in %s is refused", (written, directory, says) => {
    const found = resolveOne(written, directory);
    expect(found.path).toBe(written);
    expect(found.notes).toMatchObject([{ code: "unsupported", message: expect.stringContaining(says) }]);
  });
});

test.each([
  ["/a/b.yaml", "file", "/a"],
  ["b.yaml", "file", process.cwd()],
  ["-", "file", undefined],
  ["http://x/b.yaml", "http", undefined],
  ["https://x/b.yaml", "file", undefined],
  ["b.yaml", "api", undefined],
] as const)("the directory of %s from %s", (file, source, directory) => {
  expect(directoryOf({ file, source, nodeName: "n" })).toBe(directory);
});
