import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { preloadImages } from "../../src/docker/docker-images.ts";
import { isNotFound } from "../../src/docker/engine/docker-error.ts";
import { buildPauseImage } from "../../src/docker/pause-image.ts";
import { describeWithEngine } from "../support/engine.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { TestDocker } from "../support/test-docker.ts";
import { engineSocketPath, RUN_ID } from "../support/test-node.ts";

const client = new TestDocker({ kind: "unix", path: engineSocketPath() });
const never = new AbortController().signal;
const scratch = mkdtempSync(join(tmpdir(), `kubelet-ts-t-${RUN_ID}-images-`));
/** Names that were loaded here, to be removed again. */
const loaded = new Set<string>();

afterAll(async () => {
  for (const name of loaded) {
    await client.removeImage(name, { force: true }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
  }
  rmSync(scratch, { recursive: true, force: true });
});

describeWithEngine("a directory of images", () => {
  test("is loaded before anything is pulled, once; a broken archive does not stop the others", async () => {
    const directory = mkdtempSync(join(scratch, "images-"));
    const state = join(scratch, "state/preloaded-images.json");
    const name = `kts-pre-${Math.random().toString(36).slice(2, 8)}:1`;
    loaded.add(name);
    writeFileSync(join(directory, "a-broken.tar"), "no archive at all");
    writeFileSync(join(directory, "b.tar.gz"), Bun.gzipSync(archiveNamed(name)));
    writeFileSync(join(directory, "c.txt"), "not read");
    /** Names that were loaded now, not found there. */
    const load = async () => {
      const own = new RecordingLogger();
      expect(await preloadImages(client, directory, state, own, never)).toEqual([name]);
      expect(own.lines.filter((line) => line.startsWith("error")).join()).toMatch(/a-broken.tar": .*POST .images.load/);
      return own.lines.flatMap((line) => /^info Loaded (.*) from/.exec(line)?.[1] ?? []);
    };

    expect(await load()).toEqual([name]);
    expect((await client.inspectImage(name)).RepoTags).toContain(name);
    expect(await load()).toEqual([]);
    await client.removeImage(name, { force: true });
    expect(await load()).toEqual([name]);
    writeFileSync(state, "not what was written");
    expect(await load()).toEqual([name]);
    expect(JSON.parse(readFileSync(state, "utf8"))).toMatchObject({ version: 1 });
  });

  test("zstd is decompressed before the engine; a file that is not an archive is reported", async () => {
    const directory = join(scratch, "zstd");
    mkdirSync(join(directory, "a-directory.tar"), { recursive: true });
    const name = `kts-zst-${Math.random().toString(36).slice(2, 8)}:1`;
    loaded.add(name);
    const packed = Bun.zstdCompressSync(archiveNamed(name));
    writeFileSync(join(directory, "good.tar.zst"), packed);
    writeFileSync(join(directory, "torn.tar.zst"), packed.subarray(0, packed.length - 20));
    const own = new RecordingLogger();
    expect(await preloadImages(client, directory, join(scratch, "zstd-state.json"), own, never)).toEqual([name]);
    const errors = own.lines.filter((line) => line.startsWith("error"));
    expect(errors).toEqual([
      expect.stringContaining('a-directory.tar": it is not a file'),
      expect.stringMatching(/torn.tar.zst": not zstd, or truncated/),
    ]);
  });
});

/** The pause image under another name: the smallest archive there is. */
function archiveNamed(name: string): Uint8Array<ArrayBuffer> {
  const { archive } = buildPauseImage(process.arch === "arm64" ? "arm64" : "amd64");
  // Both names are as long, so that the archive stays one: only its manifest.json says them, and tar sums up no data.
  const text = Buffer.from(archive).toString("latin1");
  const padded = `["${name}"]`.padEnd('["kubelet-ts/pause:1"]'.length, " ");
  return new Uint8Array(Buffer.from(text.replace('["kubelet-ts/pause:1"]', padded), "latin1"));
}
