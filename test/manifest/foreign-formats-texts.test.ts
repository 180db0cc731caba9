import { describe, expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (text: string) =>
  readManifest(Buffer.from(text), {
    file: "f",
    nodeName: "n",
    source: "file",
    strictness: "standard",
    keepPositions: true,
  });

describe("a text of another kind is named as what it is, with the next step", () => {
  test.each([
    ["a command line", "docker run -d \\\n  -p 8080:80 nginx:1.22\n", "import docker"],
    ["a unit of systemd", "[Unit]\nDescription=x\n\n[Container]\nImage=y\n", "unit of systemd"],
    ["a command line of a shell", "$ sudo podman run -d nginx\n", "import docker"],
    ["the output of docker inspect", '[{"Id": "a1", "Config": {"Env": ["A=b"]}}]', "import docker"],
    ["an HTML page", "<!DOCTYPE html>\n<html><body>Log in: a</body></html>\n", "HTML"],
    ["JSON of another kind", '{"name": "web", "version": "1.0.0", "scripts": {}}', "(found name, version, scripts)"],
    ["nothing", "", "empty"],
    ["comments alone", "# later\n---\n# more\n", "empty"],
    ["a word", "nginx\n", "a manifest is an object with apiVersion, kind, metadata and spec (found a string)"],
  ])("%s", (_, text, next) => {
    const { pods, findings } = read(text);
    expect(pods).toEqual([]);
    expect(findings).toMatchObject([{ severity: "error", message: expect.stringContaining(next) }]);
  });

  test.each([
    ["a manifest with a mistake", "# Web\n\n# The server\napiVersion: v1\nkind: Pod\nmetadata: {name: a\n"],
    ["a template", "# Web\n{{- if .Values.on }}\nkind: Pod\n{{- end }}\n"],
    ["a list of words", "- a=b\n- c\n"],
  ])("%s is none of them", (_, text) => {
    expect(read(text).findings[0]?.message).not.toMatch(/unit of systemd|command line|HTML/);
  });

  test("no line of it is shown: it may hold passwords", () => {
    const [result] = read("API_KEY=hunter2\n").results;
    expect(result?.positions?.lineText(1)).toBe("");
    expect(JSON.stringify(result?.findings)).not.toContain("hunter2");
  });

  test("a long text is recognized in time that grows with its length", () => {
    const text = `${"# comment\n".repeat(100_000)}docker run x\n${"RUN a\n".repeat(100_000)}`;
    expect(read(text).findings[0]?.message).toContain("import docker");
  });
});

test("a manifest without a name is refused, and the message shows no value", () => {
  const { findings } = read('apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {containers: [{name: a, image: "b:1"}]}\n');
  expect(findings).toMatchObject([
    { field: "metadata.name", type: "FieldValueInvalid", message: 'is required: write "name: NAME" under metadata' },
  ]);
});
