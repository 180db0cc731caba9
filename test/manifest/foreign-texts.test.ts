import { describe, expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";

const read = (text: string) =>
  readManifest(Buffer.from(text), {
    file: "f",
    nodeName: "n",
    source: "file",
    strictness: "standard",
    keepPlaces: true,
  });

const FENCED = "# Web\n\nA server. Start it:\n\n```yaml\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n```\n";

describe("a text of another kind is named as what it is, with the next step", () => {
  test.each([
    ["a Dockerfile", "# base\nFROM nginx:1.22\nCOPY . /srv\n", "docker build"],
    ["a Dockerfile with arguments", "ARG TAG=1\nFROM nginx:$TAG\nRUN echo: a\n", "docker build"],
    ["a Dockerfile that is an object of YAML", "FROM scratch\nLABEL a: b\n", "docker build"],
    ["a README", "# Web\n\nThis is a server for pages.\n\n* one\n* two\n", "Markdown"],
    ["a README with a manifest", FENCED, "Markdown"],
    ["a README with badges", "[![CI](https://a/b.svg)](https://a)\n\nThe server of the shop.\n", "Markdown"],
    ["a shell script", "#!/bin/sh\nset -e\nkubectl apply -f web.yaml\n", "script"],
    ["a script that is an object of YAML", "#!/usr/bin/env bash\necho a: b\n", "script"],
    ["a script with a manifest", "#!/bin/sh\ncat <<E\napiVersion: v1\nkind: Pod\nE\n", "script"],
    ["variables", "# of the shop\nDB_HOST=db\n\nexport PORT=80\n", "environment variables"],
    ["variables with a colon", 'URL="x: y"\nB=1\n', "environment variables"],
    ["variables with CRLF", "A=1\r\nB=2\r\n", "environment variables"],
    ["a command line", "docker run -d \\\n  -p 8080:80 nginx:1.22\n", "import docker"],
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
    ["a gzip file", Bun.gzipSync(Buffer.from("a: 1")), "compressed"],
    ["a program", Buffer.from("\x7fELF\x02"), "program"],
  ])("%s", (_, bytes, next) => {
    const { findings } = readManifest(bytes, { file: "f", nodeName: "n", source: "file" });
    expect(findings).toMatchObject([{ severity: "error", message: expect.stringContaining(next) }]);
  });

  test.each([
    ["a manifest with a mistake", "# Web\n\n# The server\napiVersion: v1\nkind: Pod\nmetadata: {name: a\n"],
    ["a template", "# Web\n{{- if .Values.on }}\nkind: Pod\n{{- end }}\n"],
    ["an object of a workload", "FROM: a\nkind: Pod\n"],
    ["a list of words", "- a=b\n- c\n"],
  ])("%s is none of them", (_, text) => {
    expect(read(text).findings[0]?.message).not.toMatch(/Markdown|Dockerfile|script|environment variables|HTML/);
  });

  test("no line of it is shown: it may hold passwords", () => {
    const [result] = read("API_KEY=hunter2\n").results;
    expect(result?.places?.lineText(1)).toBe("");
    expect(JSON.stringify(result?.findings)).not.toContain("hunter2");
  });

  test("a long text is recognized in time that grows with its length", () => {
    const text = `${"# comment\n".repeat(100_000)}FROM x\n${"RUN a\n".repeat(100_000)}`;
    expect(read(text).findings[0]?.message).toContain("docker build");
  });
});

test("a manifest without a name is refused, and the message shows no value", () => {
  const { findings } = read('apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {containers: [{name: a, image: "b:1"}]}\n');
  expect(findings).toMatchObject([
    { field: "metadata.name", type: "FieldValueInvalid", message: 'is required: write "name: NAME" under metadata' },
  ]);
});
