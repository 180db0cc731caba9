import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bundlePage, type PageBundle } from "../../../src/server/page/bundle-page.ts";

const bundle = JSON.parse(bundlePage()) as PageBundle;
const MAX_BYTES = 150_000;

const textOf = (name: string) =>
  Buffer.from(Bun.gunzipSync(Uint8Array.fromBase64(bundle.files[name]!.gzipped))).toString();
const bytesOf = (name: string) => Uint8Array.fromBase64(bundle.files[name]!.gzipped).length;

/** A script and the scripts that it imports, without those that it loads on demand. */
function withImports(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  for (const [, chunk] of textOf(name).matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g)) withImports(chunk!, found);
  return found;
}

test("before the terminal the page is at most 150 kB, compressed; the terminal and the charts are loaded on demand", () => {
  const scripts = Object.keys(bundle.files).filter((name) => name.endsWith(".js"));
  const first = withImports(bundle.entry);
  const isTerminal = (name: string) => textOf(name).includes("xterm-screen");
  expect(scripts.some(isTerminal)).toBe(true);
  expect([...first].some(isTerminal)).toBe(false);
  const beforeTerminal = scripts.filter((name) => !isTerminal(name));
  const bytes = beforeTerminal.reduce((sum, name) => sum + bytesOf(name), 0) + Bun.gzipSync(bundle.style).length;
  expect(bytes).toBeLessThan(MAX_BYTES);
  expect([...first].reduce((sum, name) => sum + bytesOf(name), 0)).toBeLessThan(bytes);
});

test("nothing in the page is made of markup: what a pod writes stays text", () => {
  const directory = join(import.meta.dir, "..", "..", "..", "src", "page");
  const found = readdirSync(directory).filter((file) =>
    /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/.test(
      readFileSync(join(directory, file), "utf8"),
    ),
  );
  expect(found).toEqual([]);
});
