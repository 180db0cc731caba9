import { expect, test } from "bun:test";
import { StdinSource } from "../../src/sources/build-sources.ts";
import { manifest, podsOf, readFile } from "./source-harness.ts";

const signal = new AbortController().signal;
const pieces = (...texts: string[]) =>
  async function* () {
    for (const text of texts) yield new TextEncoder().encode(text);
  };

test("standard input is read to its end, whatever the pieces", async () => {
  const text = manifest("web");
  const source = new StdinSource(readFile, pieces(text.slice(0, 30), text.slice(30)));
  expect(podsOf(await source.readOnce(signal))).toEqual(["web=busybox:1"]);
  expect(source.status()).toMatchObject({ name: "-", pods: 1 });
});

test("no input, and too much of it, are errors", async () => {
  await expect(new StdinSource(readFile, pieces()).readOnce(signal)).rejects.toThrow("empty");
  const much = async function* () {
    for (;;) yield new Uint8Array(1024 * 1024);
  };
  await expect(new StdinSource(readFile, much).readOnce(signal)).rejects.toThrow("too large");
});
