import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Pod } from "../../src/base/api/pod.ts";
import { mergeSources } from "../../src/sources/desired-state-feed.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { WatchedDirectory } from "./source-harness.ts";

const tempDir = tempDirs();

interface DirectoryCase {
  id: string;
  group: string;
  files: {
    name: string;
    manifest?: string;
    manifest_b64?: string;
    kind?: "dir" | "symlink" | "symlink-dir" | "symlink-broken";
  }[];
  pods?: Pod[];
}

const FIXTURE = join(import.meta.dir, "../fixtures/oracle/sources-open.jsonl.gz");
const cases = gunzipSync(readFileSync(FIXTURE))
  .toString()
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line) as DirectoryCase)
  .filter(({ group }) => group === "dir");

/** Where we differ from kubelet 1.20.2 on purpose, with what we do instead: names of pods, or which file wins. */
const DIFFERENT: Readonly<Record<string, { pods?: string[]; winner?: string }>> = {
  // The first of two texts for one pod wins, and a file that an editor left is not a manifest.
  "dir/dup-name-three": { winner: "a.yaml" },
  "dir/same-name-default-ns-explicit": { winner: "a.yaml" },
  "dir/uppercase-order": { winner: "B.yaml" },
  "dir/numeric-order": { winner: "10.yaml" },
  "dir/backup-tilde": { winner: "a.yaml" },
  "dir/emacs-hash": { winner: "a.yaml" },
  // Every document and every item of a list counts.
  "dir/multidoc-only-first": { pods: ["a-node1", "b-node1"] },
  "dir/podlist-ignored": { pods: ["b-node1", "minimal-node1"] },
};

test.each(cases)("$id", async ({ id, files, pods = [] }) => {
  const directory = new WatchedDirectory(tempDir());
  const textOf = (file: DirectoryCase["files"][number]) =>
    file.manifest_b64 ? Buffer.from(file.manifest_b64, "base64") : Buffer.from(file.manifest ?? "");
  for (const file of files) {
    const path = directory.file(file.name);
    const target = join(directory.root, `target-${file.name}`);
    switch (file.kind) {
      case undefined:
        writeFileSync(path, textOf(file));
        break;
      case "dir":
        mkdirSync(path);
        writeFileSync(join(path, "inner.yaml"), textOf(file));
        break;
      case "symlink":
        writeFileSync(target, textOf(file));
        symlinkSync(target, path);
        break;
      case "symlink-dir":
        mkdirSync(target);
        writeFileSync(join(target, "inner.yaml"), textOf(file));
        symlinkSync(target, path);
        break;
      default:
        symlinkSync(target, path);
    }
  }
  const set = await directory.once();
  await directory.source.stop();
  const { state } = mergeSources([set]);
  const difference = DIFFERENT[id];
  expect(state.pods.map(({ pod }) => pod.metadata.name!)).toEqual(
    difference?.pods ?? pods.map(({ metadata }) => metadata.name!),
  );
  if (difference?.winner) expect(state.pods[0]?.origin).toBe(directory.file(difference.winner));
  if (!difference) expect(state.pods.map(({ pod }) => pod.spec)).toEqual(pods.map(({ spec }) => spec));
});
