import { describe, expect, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import { type Payload, writeAtomically } from "../../../src/kubelet/volumes/atomic-writer.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

const NOW = new Date("2026-01-02T03:04:05.678Z");

const payload = (files: Record<string, string>, mode = 0o644): Payload =>
  new Map(Object.entries(files).map(([path, text]) => [path, { text, encoding: "utf8", mode }]));

/** Visible path to text, as a container sees it. */
function visible(target: string): Record<string, string> {
  const files: Record<string, string> = {};
  const visit = (directory: string, prefix: string) => {
    for (const name of fs.readdirSync(directory)) {
      if (name.startsWith("..")) continue;
      const path = join(directory, name);
      if (fs.statSync(path).isDirectory()) visit(path, `${prefix}${name}/`);
      else files[`${prefix}${name}`] = fs.readFileSync(path, "utf8");
    }
  };
  visit(target, "");
  return files;
}

const dataDirectory = (target: string) => fs.readlinkSync(join(target, "..data"));

test("files appear through ..data, in a directory named after the time", () => {
  const target = tempDir();
  expect(writeAtomically(target, payload({ a: "1", "d/e/b": "2" }), NOW)).toBe(true);
  expect(visible(target)).toEqual({ a: "1", "d/e/b": "2" });
  expect(dataDirectory(target)).toMatch(/^\.\.2026_01_02_03_04_05\.\w+$/);
  expect(fs.readlinkSync(join(target, "a"))).toBe("..data/a");
  expect(fs.readlinkSync(join(target, "d"))).toBe("..data/d");
  expect(fs.statSync(join(target, "..data/")).mode & 0o777).toBe(0o755);
});

test("modes are exact, whatever the umask", () => {
  const target = tempDir();
  const umask = process.umask(0o077);
  writeAtomically(target, payload({ a: "1" }, 0o666), NOW);
  process.umask(umask);
  expect(fs.statSync(join(target, "a")).mode & 0o7777).toBe(0o666);
});

test("the same again changes nothing, not even a time stamp", () => {
  const target = tempDir();
  writeAtomically(target, payload({ a: "1" }), NOW);
  const before = dataDirectory(target);
  const { ctimeMs } = fs.lstatSync(target);
  expect(writeAtomically(target, payload({ a: "1" }), NOW)).toBe(false);
  expect(dataDirectory(target)).toBe(before);
  expect(fs.lstatSync(target).ctimeMs).toBe(ctimeMs);
});

test.each<{ when: string; next: Payload; want: Record<string, string> }>([
  { when: "other contents", next: payload({ a: "2", b: "1" }), want: { a: "2", b: "1" } },
  { when: "a file less", next: payload({ a: "1" }), want: { a: "1" } },
  { when: "a file more", next: payload({ a: "1", b: "1", c: "1" }), want: { a: "1", b: "1", c: "1" } },
  { when: "other names", next: payload({ x: "1" }), want: { x: "1" } },
  { when: "another mode", next: payload({ a: "1", b: "1" }, 0o600), want: { a: "1", b: "1" } },
  { when: "a file becomes a directory", next: payload({ "a/b": "1" }), want: { "a/b": "1" } },
  { when: "nothing", next: payload({}), want: {} },
])("an update: $when", ({ next, want }) => {
  const target = tempDir();
  writeAtomically(target, payload({ a: "1", b: "1" }), NOW);
  const old = dataDirectory(target);
  expect(writeAtomically(target, next, NOW)).toBe(true);
  expect(visible(target)).toEqual(want);
  expect(fs.existsSync(join(target, old))).toBe(false);
  expect(
    fs
      .readdirSync(target)
      .filter((name) => name.startsWith(".."))
      .sort(),
  ).toEqual([dataDirectory(target), "..data"].sort());
});

test("binary contents", () => {
  const target = tempDir();
  const data = Uint8Array.from([0, 255, 10, 13, 128]);
  writeAtomically(target, new Map([["b", { text: data.toBase64(), encoding: "base64", mode: 0o600 }]]), NOW);
  expect(new Uint8Array(fs.readFileSync(join(target, "b")))).toEqual(data);
});

test("paths are tidied: a dot or an empty name means nothing", () => {
  const target = tempDir();
  const odd = payload({ "./a": "1", "b//c": "2", "d/./e/": "3" });
  expect(writeAtomically(target, odd, NOW)).toBe(true);
  expect(visible(target)).toEqual({ a: "1", "b/c": "2", "d/e": "3" });
  expect(writeAtomically(target, odd, NOW)).toBe(false);
});

test.each(["/etc/passwd", "../x", "a/../../x", "..data", "./..data", "..x", "", ".", "./", "a/.."])(
  "the path %p is refused",
  (path) => {
    const target = tempDir();
    expect(() => writeAtomically(target, payload({ [path]: "x" }), NOW)).toThrow("invalid path");
    expect(fs.readdirSync(target)).toEqual([]);
  },
);

describe("after a crash", () => {
  test("between the swap and the links: the links are made, the old files go", () => {
    const target = tempDir();
    writeAtomically(target, payload({ a: "1", b: "2" }), NOW);
    fs.rmSync(join(target, "b"));
    fs.mkdirSync(join(target, "..2025_old"));
    expect(writeAtomically(target, payload({ a: "1", b: "2" }), NOW)).toBe(true);
    expect(visible(target)).toEqual({ a: "1", b: "2" });
    expect(fs.readdirSync(target).sort()).toEqual([dataDirectory(target), "..data", "a", "b"].sort());
  });

  test("before the swap: a half written directory and link do no harm", () => {
    const target = tempDir();
    fs.mkdirSync(join(target, "..2025_half"));
    fs.writeFileSync(join(target, "..2025_half/a"), "half");
    fs.symlinkSync("..2025_half", join(target, "..data_tmp"));
    writeAtomically(target, payload({ a: "1" }), NOW);
    expect(visible(target)).toEqual({ a: "1" });
    expect(fs.readdirSync(target).sort()).toEqual([dataDirectory(target), "..data", "a"].sort());
  });
});

test("ownership is given before the files are visible; a failure there leaves all as it was", () => {
  const target = tempDir();
  writeAtomically(target, payload({ a: "1" }), NOW);
  const before = fs.readdirSync(target).sort();
  const refuse = () => {
    throw new Error("no such group");
  };
  expect(() => writeAtomically(target, payload({ a: "2" }), NOW, { own: refuse })).toThrow("no such group");
  expect(fs.readdirSync(target).sort()).toEqual(before);
  expect(visible(target)).toEqual({ a: "1" });
  const own = (directory: string) => {
    expect(fs.readFileSync(join(directory, "a"), "utf8")).toBe("2");
    expect(visible(target)).toEqual({ a: "1" });
    fs.chmodSync(directory, 0o711);
  };
  writeAtomically(target, payload({ a: "2" }), NOW, { own });
  expect(fs.statSync(join(target, "..data/")).mode & 0o777).toBe(0o711);
});

/** Reads the three files through one opened directory, as an application that takes care does, without end. */
const READER = `
const fs = require("node:fs");
const target = process.argv.at(-1);
let reads = 0;
for (;;) {
  const directory = fs.readlinkSync(target + "/..data");
  let seen;
  try { seen = ["a", "b", "c"].map((name) => fs.readFileSync(target + "/" + directory + "/" + name, "utf8")); }
  catch (error) { if (error.code === "ENOENT") continue; throw error; }
  if (new Set(seen).size !== 1) { console.log("torn: " + seen); process.exit(1); }
  if (++reads % 100 === 0) fs.writeFileSync(target + "/../reads", String(reads));
}`;

test("a reader sees all of the old or all of the new", async () => {
  const base = tempDir();
  const target = join(base, "volume");
  fs.mkdirSync(target);
  fs.writeFileSync(join(base, "reads"), "0");
  const write = (value: string) => writeAtomically(target, payload({ a: value, b: value, c: value }), NOW);
  write("start");
  const reader = Bun.spawn([process.execPath, "-e", READER, target], { stdout: "pipe", stderr: "pipe" });
  try {
    for (let round = 0; round < 300 || Number(fs.readFileSync(join(base, "reads"), "utf8")) < 100; round++) {
      if (reader.exitCode !== null) throw new Error(await new Response(reader.stdout).text());
      write(`round ${round}`);
      await Bun.sleep(0);
    }
    expect(reader.exitCode).toBeNull();
  } finally {
    reader.kill("SIGKILL");
    await reader.exited;
  }
});
