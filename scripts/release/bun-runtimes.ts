import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/** Version of the Bun runtime in the executables; the same as the package `bun` of package.json. */
export const BUN_VERSION = "1.4.5";

export interface BunRuntime {
  /** Name of the npm package that has `bin/bun`. */
  package: string;
  /** Digest of its archive, as in package-lock.json, which does not list all of them. */
  integrity: string;
}

/** Runtimes by the name of the compiler's target, without `bun-`. */
export const BUN_RUNTIMES = {
  "linux-x64": {
    package: "@oven/bun-linux-x64",
    integrity: "sha512-IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==",
  },
  "linux-x64-baseline": {
    package: "@oven/bun-linux-x64-baseline",
    integrity: "sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==",
  },
  "linux-arm64": {
    package: "@oven/bun-linux-aarch64",
    integrity: "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
  },
  "linux-x64-musl": {
    package: "@oven/bun-linux-x64-musl",
    integrity: "sha512-10QoW/YfTgnURaGEaHpJCiXjLI2e5iTtfVDaA5JKcyUzaa1cq6cVUY9/Uq5XkYzvtRjHLRe9Oj/lTDIQcxy8HQ==",
  },
  "linux-arm64-musl": {
    package: "@oven/bun-linux-aarch64-musl",
    integrity: "sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==",
  },
} as const satisfies Record<string, BunRuntime>;

export type TargetName = keyof typeof BUN_RUNTIMES;

/** The digest of a file in the form of package-lock.json, e.g. `sha512-…`. */
export async function integrityOf(file: string): Promise<string> {
  const hash = createHash("sha512");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return `sha512-${hash.digest("base64")}`;
}

/**
 * Fetches a runtime with npm, unless `directory` has its archive already, and unpacks it. The archive is compared with its
 * pinned digest every time.
 * @returns path of the executable
 * @throws Error when it cannot be fetched, or is not the pinned one
 */
export async function fetchRuntime(
  { package: name, integrity }: BunRuntime,
  directory: string,
  pack: (spec: string, directory: string) => Promise<string> = npmPack,
): Promise<string> {
  await mkdir(directory, { recursive: true });
  const stem = `${name.slice(name.lastIndexOf("/") + 1)}-${BUN_VERSION}`;
  const archive = join(directory, `${stem}.tgz`);
  if (!(await Bun.file(archive).exists())) await rename(await pack(`${name}@${BUN_VERSION}`, directory), archive);
  const found = await integrityOf(archive);
  if (found !== integrity) {
    await rm(archive);
    throw new Error(`${name}@${BUN_VERSION} is not the pinned one: its digest is ${found}, not ${integrity}`);
  }
  const unpacked = join(directory, stem);
  await mkdir(unpacked, { recursive: true });
  await run(["tar", "-xzf", archive, "-C", unpacked, "--strip-components=1", "package/bin/bun"]);
  return join(unpacked, "bin", "bun");
}

/** Lets npm fetch the archive of a package. @returns its path */
async function npmPack(spec: string, directory: string): Promise<string> {
  const name = await run(["npm", "pack", "--silent", "--pack-destination", directory, spec]);
  return join(directory, name.trim().split("\n").at(-1) ?? "");
}

async function run(argv: string[]): Promise<string> {
  const child = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (exitCode !== 0) throw new Error(`${argv.slice(0, 2).join(" ")}: ${stderr.trim() || `exit code ${exitCode}`}`);
  return stdout;
}
