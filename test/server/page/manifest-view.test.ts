import { expect, test } from "bun:test";
import type { Finding } from "../../../src/base/model/finding.ts";
import { toManifestView } from "../../../src/server/page/manifest-view.ts";

const FILE = "/etc/kubernetes/manifests/web.yaml";
const finding = (line: number, file = FILE) =>
  ({ file, line, column: 3, severity: "error", field: "spec.x", message: "bad" }) as Finding;

const view = (text: string | undefined, line: number, findings: readonly Finding[] = []) =>
  toManifestView({ file: FILE, line, text, findings, rendered: "kind: Pod" });

const TWO = "kind: Pod\nname: a\n---\nkind: Pod\nname: b\n";

test("only the document of the pod is shown, with the numbers of its lines in the file", () => {
  expect(view(TWO, 4)).toMatchObject({ text: "kind: Pod\nname: b", firstLine: 4, isSource: true });
  expect(view(TWO, 1)).toMatchObject({ text: "kind: Pod\nname: a", firstLine: 1 });
  expect(view(TWO, 3)).toMatchObject({ firstLine: 4 });
  expect(view("{}", 99)).toMatchObject({ text: "{}", firstLine: 1 });
});

test("findings are those of the document", () => {
  const findings = [finding(2), finding(5), finding(5, "/other.yaml")];
  const bad = { column: 3, isError: true, message: "spec.x: bad" };
  expect(view(TWO, 4, findings).findings).toEqual([{ line: 5, ...bad }]);
  expect(view(TWO, 1, findings).findings).toEqual([{ line: 2, ...bad }]);
});

test("without the text the pod is shown, with all findings of the file", () => {
  expect(view(undefined, 4, [finding(2), finding(5)])).toMatchObject({
    text: "kind: Pod",
    isSource: false,
    findings: [{ line: 2 }, { line: 5 }],
  });
});

test.each(["kind: Secret\n", '{"kind":"List","items":[]}', "kind: 'SecretList'"])("%s is not shown", (text) => {
  expect(view(text, 1).isSource).toBe(false);
});
