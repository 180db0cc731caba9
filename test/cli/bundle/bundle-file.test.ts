import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BLOCK_BYTES, parseTarHeader, tarHeader } from "../../../src/base/files/tar.ts";
import {
  BundleError,
  checkBundle,
  IMAGES,
  loadBundleImages,
  openBundle,
  writeBundle,
} from "../../../src/cli/bundle/bundle-file.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
const text = (value: string) => new TextEncoder().encode(value);
const FACTS = { version: 1 as const, architecture: "x64", kubeletVersion: "1.2.3", images: ["web:1"] };

async function* pieces(...parts: string[]) {
  for (const part of parts) yield text(part);
}

async function write(directory = tempDir()): Promise<string> {
  const file = join(directory, "site.tar");
  await writeBundle(
    file,
    [
      { path: "kubelet-ts", mode: 0o755, chunks: [text("binary")] },
      { path: "manifests/web.yaml", mode: 0o644, chunks: [text("kind: Pod\n")] },
      { path: "images.tar", mode: 0o644, chunks: pieces("a".repeat(700), "b".repeat(512)) },
    ],
    FACTS,
  );
  return file;
}

const problemOf = async (file: string, architecture = "x64") =>
  openBundle(file, architecture).then(
    () => "none",
    (error: Error) => (error instanceof BundleError ? error.message : `other: ${error.message}`),
  );

describe("a bundle", () => {
  test("is read back with every file, also by tar", async () => {
    const file = await write();
    const bundle = await openBundle(file, "x64");
    expect(bundle.index.images).toEqual(["web:1"]);
    expect(await bundle.read("manifests/web.yaml").text()).toBe("kind: Pod\n");
    expect(await bundle.read("images.tar").text()).toBe("a".repeat(700) + "b".repeat(512));
    const { exitCode, stdout } = Bun.spawnSync(["tar", "-tvf", file]);
    expect({ exitCode, names: stdout.toString().match(/\S+$/gm) }).toEqual({
      exitCode: 0,
      names: ["kubelet-ts", "manifests/web.yaml", "images.tar", "bundle.json"],
    });
  });

  test("that is damaged anywhere is refused", async () => {
    const file = await write();
    const good = readFileSync(file);
    for (const at of [0, 130, BLOCK_BYTES, 2 * BLOCK_BYTES + 10, 3 * BLOCK_BYTES, 5 * BLOCK_BYTES + 3]) {
      const bad = Buffer.from(good);
      bad[at] = bad[at]! ^ 0x41;
      writeFileSync(file, bad);
      expect({ at, problem: await problemOf(file) }).toEqual({ at, problem: expect.stringContaining(file) });
    }
  });

  test("that is cut off anywhere is refused", async () => {
    const file = await write();
    const { size } = Bun.file(file);
    // The two blocks of zeros at the end hold nothing.
    for (let length = size - 2 * BLOCK_BYTES - 520; length > 0; length -= 397) {
      truncateSync(file, length);
      expect({ length, problem: await problemOf(file) }).not.toEqual({ length, problem: "none" });
    }
    truncateSync(file, 0);
    expect(await problemOf(file)).toContain("is not complete");
    expect(await problemOf(`${file}.absent`)).toContain("there is no bundle");
    Bun.spawnSync(["mkfifo", `${file}.pipe`]);
    expect(await problemOf(`${file}.pipe`)).toContain("is no file");
  });

  test("for another architecture is refused", async () => {
    expect(await problemOf(await write(), "arm64")).toContain("it is for x64, and this machine is arm64");
  });

  test("is absent when its content fails", async () => {
    const directory = tempDir();
    const failing = (async function* () {
      yield text("half");
      throw new Error("the engine is gone");
    })();
    const contents = [{ path: "images.tar", mode: 0o644, chunks: failing }];
    expect(await writeBundle(join(directory, "site.tar"), contents, FACTS).catch((error: Error) => error.message)).toBe(
      "the engine is gone",
    );
    expect(readdirSync(directory)).toEqual([]);
  });
});

test.each(["../../etc/x", "..", ".", ""])("a manifest named %p and a file that the index lacks are refused", (name) => {
  const file = { path: `manifests/${name}`, size: 1, sha256: "a" };
  const found = { ...file, offset: 0 };
  expect(checkBundle({ ...FACTS, files: [file] }, [found], "x64")).toContain("is not a name of a manifest");
  expect(checkBundle({ ...FACTS, files: [] }, [found], "x64")).toContain("is not in its index");
});

test.each([0, 511, 8 ** 11 - 1, 8 ** 11, 20 * 1024 ** 3])("a header of %p bytes", (size) => {
  const header = tarHeader({ path: "images.tar", mode: 0o644, size });
  expect(parseTarHeader(header)).toEqual({ path: "images.tar", size });
});

describe("images", () => {
  const bundle = { index: { images: ["web:1"] }, read: (path: string) => new Blob([path]) };

  test("are loaded once", async () => {
    const there = new Set<string>();
    const loads: string[] = [];
    const engine = {
      missingImages: async (names: readonly string[]) => names.filter((name) => !there.has(name)),
      loadImages: async (archive: Blob) => {
        loads.push(await archive.text());
        there.add("web:1");
      },
    };
    expect(await loadBundleImages(engine, bundle)).toEqual(["web:1"]);
    expect(await loadBundleImages(engine, bundle)).toEqual([]);
    expect(loads).toEqual([IMAGES]);
  });

  test("an engine without disk space is reported", async () => {
    const engine = {
      missingImages: async (names: readonly string[]) => [...names],
      loadImages: () => Promise.reject(new Error("no space left on device")),
    };
    expect(await loadBundleImages(engine, bundle).catch((error: Error) => error.message)).toContain(
      "no space left on device; check its disk",
    );
  });
});
