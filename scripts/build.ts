/**
 * `npm run build`: dist/kubelet-ts for this machine.
 * `npm run build:all`: a release: dist/kubelet-ts-linux-* for every target, the bill of materials, SHA256SUMS and, with a
 * key, its signature (docs/release.md).
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { BUN_RUNTIMES, fetchRuntime, type TargetName } from "./release/bun-runtimes.ts";
import { type PackageLock, toSbom } from "./release/sbom.ts";
import { SIGNING_KEY_VARIABLE, signText } from "./release/signature.ts";

interface Target {
  /** Suffix of `kubelet-ts-`, and of `bun-` for the compiler. */
  name: TargetName;
  /** A release fails without it. */
  required: boolean;
}

const TARGETS: readonly Target[] = [
  { name: "linux-x64", required: true },
  { name: "linux-x64-baseline", required: true },
  { name: "linux-arm64", required: true },
  { name: "linux-x64-musl", required: false },
  { name: "linux-arm64-musl", required: false },
];

const ROOT = join(import.meta.dir, "..");
const DIST = join(ROOT, "dist");
/** Archives of Bun runtimes, each checked before it is used. */
const RUNTIMES = join(DIST, ".bun-runtimes");
const SBOM = "kubelet-ts.cdx.json";
const SUMS = "SHA256SUMS";
const SIGNATURE = "SHA256SUMS.sig";

function git(...args: string[]): string | undefined {
  const { exitCode, stdout } = Bun.spawnSync(["git", ...args], { cwd: ROOT, stderr: "ignore" });
  return exitCode === 0 ? stdout.toString().trim() : undefined;
}

function defines(target: TargetName | undefined): string[] {
  const facts: Record<string, string> = { "process.env.NODE_ENV": "production" };
  if (target !== undefined) facts.KUBELET_TS_TARGET = target;
  const commit = git("rev-parse", "HEAD");
  if (commit !== undefined) {
    facts.KUBELET_TS_GIT_COMMIT = commit;
    facts.KUBELET_TS_GIT_TREE_STATE = git("status", "--porcelain") === "" ? "clean" : "dirty";
    const seconds = Number(git("show", "-s", "--format=%ct", "HEAD"));
    facts.KUBELET_TS_BUILD_DATE = new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
  }
  return Object.entries(facts).flatMap(([name, value]) => ["--define", `${name}=${JSON.stringify(value)}`]);
}

/**
 * Compiles to `outfile`. A half-written binary is never seen under that name, and one that runs at this moment is not
 * disturbed. The compiler's output is returned, to be shown when it failed.
 */
async function compile(outfile: string, target?: TargetName): Promise<{ ok: boolean; output: string }> {
  const scratch = join(DIST, `.build-${process.pid}`);
  await mkdir(scratch, { recursive: true });
  // Same base name as the final file: the compiler embeds it, and a build should be repeatable byte for byte.
  const made = join(scratch, basename(outfile));
  try {
    const runtime = target === undefined ? undefined : await fetchRuntime(BUN_RUNTIMES[target], RUNTIMES);
    const child = Bun.spawn({
      cmd: [
        process.execPath,
        "build",
        "--compile",
        "--minify",
        "--bytecode",
        "--format=esm",
        "--sourcemap",
        "--splitting",
        // Without these two a .env or a bunfig.toml in the working directory would change or even extend our program.
        "--no-compile-autoload-dotenv",
        "--no-compile-autoload-bunfig",
        "--compile-exec-argv=--smol",
        // Functions are compiled after 16 times as many calls as usual: in the start of a hundred pods compiling takes more
        // CPU than it saves, and at rest its results take megabytes. Answers that are requested often are as fast.
        "--compile-jit-policy=16",
        ...defines(target),
        // Given by path, so that the compiler downloads none.
        ...(runtime === undefined ? [] : [`--target=bun-${target}`, `--compile-executable-path=${runtime}`]),
        "src/main.ts",
        // The threads of src/daemon/background.
        "src/daemon/background/background-worker.ts",
        `--outfile=${made}`,
      ],
      cwd: ROOT,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (exitCode !== 0) return { ok: false, output: stdout + stderr };
    await chmod(made, 0o755);
    await rename(made, outfile);
    return { ok: true, output: "" };
  } catch (error) {
    return { ok: false, output: (error as Error).message };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}

async function describeFile(file: string): Promise<string> {
  return `${file.slice(ROOT.length + 1)} (${Math.round((await stat(file)).size / 1e6)} MB)`;
}

async function buildForThisMachine(): Promise<void> {
  const outfile = join(DIST, "kubelet-ts");
  const { ok, output } = await compile(outfile);
  if (!ok) {
    console.error(`Cannot build dist/kubelet-ts:\n${output}`);
    process.exit(1);
  }
  console.log(`Built ${await describeFile(outfile)}`);
}

async function buildForAllTargets(): Promise<void> {
  for (const file of await readdir(DIST)) {
    if (file.startsWith("kubelet-ts-linux-") || [SBOM, SUMS, SIGNATURE].includes(file)) await rm(join(DIST, file));
  }
  const sums: string[] = [];
  const missing: Target[] = [];
  for (const target of TARGETS) {
    const outfile = join(DIST, `kubelet-ts-${target.name}`);
    const { ok, output } = await compile(outfile, target.name);
    if (ok) {
      console.log(`Built ${await describeFile(outfile)}`);
      sums.push(`${await sha256(outfile)}  ${basename(outfile)}\n`);
    } else {
      console.error(
        `Cannot build for ${target.name} (${target.required ? "required" : "optional"}):\n${output.trim()}`,
      );
      missing.push(target);
    }
  }
  await writeSbom();
  sums.push(`${await sha256(join(DIST, SBOM))}  ${SBOM}\n`);
  await writeFile(join(DIST, SUMS), sums.join(""));
  await writeSignature(sums.join(""));
  if (missing.length > 0) console.error(`Missing: ${missing.map((target) => target.name).join(", ")}`);
  if (missing.some((target) => target.required)) process.exit(1);
}

async function writeSbom(): Promise<void> {
  const lock = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8")) as PackageLock;
  await writeFile(join(DIST, SBOM), `${JSON.stringify(toSbom(lock, git("rev-parse", "HEAD")), null, 2)}\n`);
  console.log(`Wrote dist/${SBOM}`);
}

async function writeSignature(sums: string): Promise<void> {
  const keyFile = process.env[SIGNING_KEY_VARIABLE] ?? "";
  if (keyFile === "") return console.log(`Not signed: ${SIGNING_KEY_VARIABLE} names no key`);
  await writeFile(join(DIST, SIGNATURE), signText(sums, await readFile(keyFile, "utf8")));
  console.log(`Wrote dist/${SIGNATURE}`);
}

await mkdir(DIST, { recursive: true });
await (process.argv.includes("--all") ? buildForAllTargets() : buildForThisMachine());
