import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readKeptPods } from "../../../src/cli/client/kept-pods.ts";

test("the newest checkpoint comes first, whatever its name; a broken one is left out", () => {
  const rootDir = mkdtempSync(join(tmpdir(), "kept-pods-"));
  try {
    const write = (name: string, source: string, modifiedAtSeconds: number) => {
      const path = join(rootDir, "checkpoints", `source-${name}.json`);
      const texts = { "": { pods: [{ pod: { metadata: { name: "web", uid: "1" } }, origin: source }] } };
      writeFileSync(path, JSON.stringify({ body: { source, texts } }));
      utimesSync(path, modifiedAtSeconds, modifiedAtSeconds);
    };
    mkdirSync(join(rootDir, "checkpoints"));
    write("a", "/old", 1_000);
    write("b", "/new", 3_000);
    write("c", "/middle", 2_000);
    writeFileSync(join(rootDir, "checkpoints", "source-d.json"), "{");
    expect(readKeptPods(rootDir).map(({ origin, sourceId }) => [origin, sourceId as string])).toEqual([
      ["/new", "/new"],
      ["/middle", "/middle"],
      ["/old", "/old"],
    ]);
  } finally {
    rmSync(rootDir, { recursive: true });
  }
});
