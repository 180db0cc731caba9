import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensurePageSecret, readPageSecret } from "../../../src/server/page/page-secret.ts";

let rootDir = "";
const file = () => join(rootDir, "page-secret");
beforeEach(() => {
  rootDir = mkdtempSync(join(tmpdir(), "kubelet-ts-secret-"));
});
afterEach(() => rmSync(rootDir, { recursive: true, force: true }));

test("the secret is made once, for its owner only", () => {
  const secret = ensurePageSecret(rootDir);
  expect(ensurePageSecret(rootDir)).toEqual(secret);
  expect(readPageSecret(rootDir)).toEqual(secret);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

test.each([0o644, 0o640, 0o604, 0o620])("a secret that other users may have read is replaced: %o", (mode) => {
  const known = ensurePageSecret(rootDir);
  chmodSync(file(), mode);
  const secret = ensurePageSecret(rootDir);
  expect(secret).not.toEqual(known);
  expect(readFileSync(file()).equals(secret)).toBe(true);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

test("a damaged secret is replaced at the start", () => {
  writeFileSync(file(), "short", { mode: 0o600 });
  expect(() => readPageSecret(rootDir)).toThrow(/is damaged: remove it and restart/);
  expect(ensurePageSecret(rootDir)).toEqual(readPageSecret(rootDir));
});

test("where nothing can be written, the secret lasts until the end of the process", () => {
  const place = join(file(), "below-a-file");
  writeFileSync(file(), "", { mode: 0o600 });
  expect(ensurePageSecret(place)).toHaveLength(32);
  expect(existsSync(place)).toBe(false);
});
