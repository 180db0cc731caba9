import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempDirs } from "../support/temp-dir.ts";
import { manifest, WatchedDirectory } from "./source-harness.ts";

// Real files, programs and servers: on a busy machine each may take its time.
setDefaultTimeout(60_000);
const tempDir = tempDirs();
const opened: WatchedDirectory[] = [];
afterEach(async () => {
  for (const directory of opened.splice(0)) await directory.source.stop();
});

/** A watched directory with web.yaml (busybox:1) and other.yaml in it. */
async function running(): Promise<WatchedDirectory> {
  const directory = new WatchedDirectory(tempDir());
  opened.push(directory);
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

/** Each changes web.yaml from busybox:1 to busybox:2 in its own way; none may make any pod go away meanwhile. */
const EDITS: { program: string; way: string; edit: (directory: WatchedDirectory) => Promise<void> }[] = [
  ...["yes", "no", "auto"].map((backupcopy) => ({
    program: "vim",
    way: `:w with backupcopy=${backupcopy} and a backup`,
    edit: (directory: WatchedDirectory) =>
      run(
        directory.path,
        "vim",
        "-u",
        "NONE",
        "-n",
        "-es",
        "-c",
        `set backup backupcopy=${backupcopy}`,
        "-c",
        "%s/busybox:1/busybox:2/",
        "-c",
        "wq",
        "web.yaml",
      ),
  })),
  {
    program: "vim",
    way: "with a swap file and writebackup",
    edit: (directory) =>
      run(
        directory.path,
        "vim",
        "-u",
        "NONE",
        "-es",
        "-c",
        "set writebackup",
        "-c",
        "%s/busybox:1/busybox:2/",
        "-c",
        "w",
        "-c",
        "sleep 50m",
        "-c",
        "q",
        "web.yaml",
      ),
  },
  {
    program: "sed",
    way: "-i",
    edit: (directory) => run(directory.path, "sed", "-i", "s/busybox:1/busybox:2/", "web.yaml"),
  },
  {
    program: "sed",
    way: "-i.bak",
    edit: (directory) => run(directory.path, "sed", "-i.bak", "s/busybox:1/busybox:2/", "web.yaml"),
  },
  { program: "cp", way: "over it", edit: (directory) => run(directory.root, "cp", "new.yaml", "manifests/web.yaml") },
  {
    program: "cp",
    way: "--remove-destination",
    edit: (directory) => run(directory.root, "cp", "--remove-destination", "new.yaml", "manifests/web.yaml"),
  },
  { program: "mv", way: "over it", edit: (directory) => run(directory.root, "mv", "new.yaml", "manifests/web.yaml") },
  {
    program: "install",
    way: "-m 644",
    edit: (directory) => run(directory.root, "install", "-m", "644", "new.yaml", "manifests/web.yaml"),
  },
  {
    program: "ln",
    way: "-sf",
    edit: (directory) => run(directory.root, "ln", "-sf", "../new.yaml", "manifests/web.yaml"),
  },
  {
    program: "dd",
    way: "byte by byte",
    edit: (directory) => run(directory.root, "dd", "bs=1", "if=new.yaml", "of=manifests/web.yaml"),
  },
  {
    program: "sh",
    way: "slowly, with pauses",
    edit: (directory) =>
      run(
        directory.root,
        "sh",
        "-c",
        "while IFS= read -r line; do printf '%s\\n' \"$line\"; sleep 0.03; done < new.yaml > manifests/web.yaml",
      ),
  },
  {
    program: "tee",
    way: "from a pipe",
    edit: (directory) => run(directory.root, "sh", "-c", "cat new.yaml | tee manifests/web.yaml"),
  },
  {
    program: "rsync",
    way: "-a",
    edit: (directory) => run(directory.root, "rsync", "-a", "--ignore-times", "new.yaml", "manifests/web.yaml"),
  },
  {
    program: "rsync",
    way: "-a --inplace --backup",
    edit: (directory) =>
      run(directory.root, "rsync", "-a", "--ignore-times", "--inplace", "--backup", "new.yaml", "manifests/web.yaml"),
  },
]; // prettier-ignore

describe("an edit is one step, and nothing else goes away meanwhile", () => {
  for (const { program, way, edit } of EDITS) {
    test.skipIf(!has(program))(`${program} ${way}`, async () => {
      const directory = await running();
      writeFileSync(join(directory.root, "new.yaml"), manifest("web", "busybox:2"));
      await edit(directory);
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
    opened.push(directory);
    const git = (...words: string[]) =>
      run(
        directory.path,
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "-c",
        "init.defaultBranch=main",
        ...words,
      );
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

test("a hand that rewrites 20 manifests in a shell loop, over and over", async () => {
  const directory = new WatchedDirectory(tempDir());
  opened.push(directory);
  directory.start();
  const script = `for round in 1 2 3 4 5; do for n in $(seq 10 29); do
    printf 'apiVersion: v1\\nkind: Pod\\nmetadata: {name: p%s}\\nspec:\\n  containers:\\n  - {name: c, image: "busybox:%s"}\\n' $n $round > p$n.yaml
  done; done`;
  await run(directory.path, "sh", "-c", script);
  await directory.wants(...Array.from({ length: 20 }, (_, index) => `p${index + 10}=busybox:5`));
});
