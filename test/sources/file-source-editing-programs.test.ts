import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUps } from "../support/clean-ups.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { manifest, WatchedDirectory } from "./source-harness.ts";

// Real files, programs and servers: on a busy machine each may take its time.
setDefaultTimeout(60_000);
const tempDir = tempDirs();
const atTestEnd = cleanUps();

/** A watched directory with web.yaml (busybox:1) and other.yaml in it. */
async function running(): Promise<WatchedDirectory> {
  const directory = new WatchedDirectory(tempDir());
  atTestEnd(() => directory.source.stop());
  directory.write("web.yaml", manifest("web"));
  directory.write("other.yaml", manifest("other"));
  directory.start();
  await directory.wants("other=busybox:1", "web=busybox:1");
  return directory;
}

const BEFORE = "other=busybox:1 web=busybox:1";
const AFTER = "other=busybox:1 web=busybox:2";

async function run(cwd: string, ...command: string[]): Promise<void> {
  const env = { ...process.env, HOME: cwd, GIT_CONFIG_NOSYSTEM: "1", TERM: "dumb" };
  const child = Bun.spawn(command, { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [code, errors] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${errors}`);
}

const has = (program: string): boolean => {
  const found = Bun.which(program) !== null;
  if (!found) console.warn(`tests with ${program} are skipped: it is not installed`);
  return found;
};

const VIM = "cd manifests; vim -u NONE";
const SUBSTITUTE = "-c %s/busybox:1/busybox:2/";

/** Program, way, command: each changes manifests/web.yaml to the text of new.yaml in its own way. */
const EDITS: [program: string, way: string, command: string][] = [
  ...["yes", "no", "auto"].map((how): [string, string, string] => [
    "vim",
    `:w with backupcopy=${how} and a backup`,
    `${VIM} -n -es -c 'set backup backupcopy=${how}' ${SUBSTITUTE} -c wq web.yaml`,
  ]),
  [
    "vim",
    "with a swap file and writebackup",
    `${VIM} -es -c 'set writebackup' ${SUBSTITUTE} -c w -c 'sleep 50m' -c q web.yaml`,
  ],
  ["sed", "-i", "sed -i s/busybox:1/busybox:2/ manifests/web.yaml"],
  ["sed", "-i.bak", "sed -i.bak s/busybox:1/busybox:2/ manifests/web.yaml"],
  ["cp", "over it", "cp new.yaml manifests/web.yaml"],
  ["cp", "--remove-destination", "cp --remove-destination new.yaml manifests/web.yaml"],
  ["mv", "over it", "mv new.yaml manifests/web.yaml"],
  ["install", "-m 644", "install -m 644 new.yaml manifests/web.yaml"],
  ["ln", "-sf", "ln -sf ../new.yaml manifests/web.yaml"],
  ["dd", "byte by byte", "dd bs=1 if=new.yaml of=manifests/web.yaml"],
  [
    "sh",
    "slowly, with pauses",
    `while IFS= read -r line; do printf '%s\n' "$line"; sleep 0.03; done < new.yaml > manifests/web.yaml`,
  ],
  ["sh", "removed, then written", "rm manifests/web.yaml; sleep 0.4; cp new.yaml manifests/web.yaml"],
  ["tee", "from a pipe", "cat new.yaml | tee manifests/web.yaml"],
  ["rsync", "-a", "rsync -a --ignore-times new.yaml manifests/web.yaml"],
  ["rsync", "-a --inplace --backup", "rsync -a --ignore-times --inplace --backup new.yaml manifests/web.yaml"],
];

describe("an edit is one step, and nothing else goes away meanwhile", () => {
  for (const [program, way, command] of EDITS) {
    test.skipIf(!has(program))(`${program} ${way}`, async () => {
      const directory = await running();
      writeFileSync(join(directory.root, "new.yaml"), manifest("web", "busybox:2"));
      await run(directory.root, "sh", "-c", command);
      await directory.wants("other=busybox:1", "web=busybox:2");
      expect(directory.history).toEqual([BEFORE, AFTER]);
    });
  }
});

test.skipIf(!has("rsync"))("rsync -a --delete from another directory", async () => {
  const directory = await running();
  const next = join(directory.root, "next");
  mkdirSync(next);
  writeFileSync(join(next, "web.yaml"), manifest("web", "busybox:2"));
  writeFileSync(join(next, "third.yaml"), manifest("third"));
  await run(directory.root, "rsync", "-a", "--checksum", "--delete", "next/", "manifests/");
  await directory.wants("third=busybox:1", "web=busybox:2");
  expect(directory.history.filter((line) => !line.includes("web="))).toEqual([]);
});

describe.skipIf(!has("git"))("git", () => {
  async function repository(): Promise<WatchedDirectory> {
    const directory = new WatchedDirectory(tempDir());
    atTestEnd(() => directory.source.stop());
    const who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
    const git = (...words: string[]) => run(directory.path, "git", ...who, ...words);
    await git("init", "-q");
    for (const name of ["web", "other"]) writeFileSync(directory.file(`${name}.yaml`), manifest(name));
    await git("add", ".");
    await git("commit", "-qm", "one");
    await git("checkout", "-qb", "next");
    writeFileSync(directory.file("web.yaml"), manifest("web", "busybox:2"));
    renameSync(directory.file("other.yaml"), directory.file("moved.yaml"));
    writeFileSync(directory.file("third.yaml"), manifest("third"));
    await git("add", "-A");
    await git("commit", "-qm", "two");
    await git("checkout", "-q", "main");
    directory.start();
    await directory.wants("other=busybox:1", "web=busybox:1");
    return directory;
  }

  test("checkout of another branch and back", async () => {
    const directory = await repository();
    await run(directory.path, "git", "checkout", "-q", "next");
    await directory.wants("other=busybox:1", "third=busybox:1", "web=busybox:2");
    await run(directory.path, "git", "checkout", "-q", "main");
    await directory.wants("other=busybox:1", "web=busybox:1");
    // Nothing but steps between the two states: a pod of both never goes away.
    expect(directory.history.filter((line) => !line.includes("other=") || !line.includes("web="))).toEqual([]);
  });

  test("reset --hard repairs a broken file", async () => {
    const directory = await repository();
    directory.write("web.yaml", "kind: [");
    await run(directory.path, "git", "reset", "-q", "--hard", "next");
    await directory.wants("other=busybox:1", "third=busybox:1", "web=busybox:2");
    expect(directory.history.filter((line) => !line.includes("web="))).toEqual([]);
  });
});

test("20 manifests that a shell loop rewrites five times", async () => {
  const directory = new WatchedDirectory(tempDir());
  atTestEnd(() => directory.source.stop());
  directory.start();
  const script = `for round in 1 2 3 4 5; do for n in $(seq 10 29); do
    printf 'apiVersion: v1\\nkind: Pod\\nmetadata: {name: p%s}\\nspec:\\n  containers:\\n  - {name: c, image: "busybox:%s"}\\n' $n $round > p$n.yaml
  done; done`;
  await run(directory.path, "sh", "-c", script);
  await directory.wants(...Array.from({ length: 20 }, (_, index) => `p${index + 10}=busybox:5`));
});
