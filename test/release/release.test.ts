import { expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUN_RUNTIMES, BUN_VERSION, fetchRuntime, integrityOf } from "../../scripts/release/bun-runtimes.ts";
import { type PackageLock, toSbom } from "../../scripts/release/sbom.ts";
import { signText } from "../../scripts/release/signature.ts";
import { tempDirs } from "../support/temp-dir.ts";

const temp = tempDirs();
const ROOT = join(import.meta.dir, "..", "..");
const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as PackageLock;

test("the pinned runtimes are those of package-lock.json", () => {
  expect(lock.packages["node_modules/bun"]?.version).toBe(BUN_VERSION);
  const known = Object.values(BUN_RUNTIMES).filter(
    ({ package: name, integrity }) => lock.packages[`node_modules/${name}`]?.integrity === integrity,
  );
  // package-lock.json does not list the baseline runtime.
  expect(known).toHaveLength(Object.keys(BUN_RUNTIMES).length - 1);
});

/** An archive as npm makes it. */
async function anArchive(text: string): Promise<string> {
  const directory = temp();
  const archive = join(directory, "fetched.tgz");
  const script = `mkdir -p package/bin && printf %s "${text}" > package/bin/bun && tar -czf fetched.tgz package`;
  expect(await Bun.spawn(["sh", "-c", script], { cwd: directory }).exited).toBe(0);
  return archive;
}

test("a runtime is fetched once, and refused when it is not the pinned one", async () => {
  const archive = await anArchive("bun");
  const runtime = { package: "@oven/bun-x", integrity: await integrityOf(archive) };
  const directory = temp();
  let fetched = 0;
  const pack = async () => {
    fetched++;
    return archive;
  };
  const path = await fetchRuntime(runtime, directory, pack);
  expect(readFileSync(path, "utf8")).toBe("bun");
  expect(await fetchRuntime(runtime, directory, pack)).toBe(path);
  expect(fetched).toBe(1);
  const kept = join(directory, `bun-x-${BUN_VERSION}.tgz`);
  writeFileSync(kept, "something else");
  await expect(fetchRuntime(runtime, directory, pack)).rejects.toThrow("is not the pinned one");
  expect(existsSync(kept)).toBe(false);
});

test("the bill of materials has every package of the executable, with its digest", () => {
  const { components } = toSbom(lock, "abc") as { components: { name: string; purl: string; hashes: unknown[] }[] };
  const names = components.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["valibot", "ws", "preact", "@oven/bun-linux-x64-baseline"]));
  expect(names).not.toContain("typescript");
  expect(components.every(({ purl, hashes }) => purl.startsWith("pkg:npm/") && hashes.length === 1)).toBe(true);
  expect(toSbom(lock, "abc")).toEqual(toSbom(lock, "abc"));
});

test("a signature is verified with the public key; another kind of key is refused", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  const signature = signText("sums", pem);
  expect(
    verify(null, Buffer.from("sums"), createPublicKey(publicKey.export({ type: "spki", format: "pem" })), signature),
  ).toBe(true);
  expect(verify(null, Buffer.from("other"), publicKey, signature)).toBe(false);
  const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  expect(() => signText("sums", other.export({ type: "pkcs8", format: "pem" }) as string)).toThrow("Ed25519");
});
