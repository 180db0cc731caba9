import { parseTarHeader } from "../../src/docker/engine/tar.ts";
import { explain, nextPage, parseChallenge, parseTags, RegistryError } from "../../src/docker/registry-client.ts";
import { type FuzzTarget, mayThrow } from "./fuzz-target.ts";

/** Headers and bodies that a registry answers with. */
const registry: FuzzTarget = {
  name: "registry answer",
  seeds: [
    'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull"',
    '</v2/a/tags/list?n=2&last=b>; rel="next"',
    '<http://[>; rel="next"',
    '<http://registry//other.example/x>; rel="next"',
    '{"tags":["1.0","latest",7]}',
    '{"errors":[{"message":"denied"}]}',
    `Bearer ${"a".repeat(20_000)}`,
    "<".repeat(20_000),
    `Basic ${'a="'.repeat(5_000)}`,
  ],
  tokens: [...'< > ; rel= " = , realm http:// [ ] { } : tags errors'.split(" "), "\\", "Bearer ", "Basic "],
  run(input) {
    parseChallenge(input);
    const next = nextPage(input, "/v2/a/tags/list");
    if (next !== undefined && new URL(next, "https://registry/").origin !== "https://registry") {
      throw new Error(`the next page is ${next}`);
    }
    const answer = { status: 200, headers: new Headers(), bytes: Buffer.from(input) };
    explain(answer);
    mayThrow(RegistryError, () => parseTags(answer, "registry"));
  },
};

/** The headers of a bundle. */
const tarHeaders: FuzzTarget = {
  name: "tar header",
  seeds: ["", "index.json\0", "a".repeat(600), "\xff".repeat(512), "\x80".repeat(512)],
  tokens: [..."7 0 ustar / ..".split(" "), "\0", " ", "\x80", "\xff"],
  run(input) {
    const block = new Uint8Array(512);
    block.set(Buffer.from(input, "latin1").subarray(0, 512));
    // A right sum, so that what lies behind it is reached.
    const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
    block.set(Buffer.from(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
    try {
      const header = parseTarHeader(block);
      if (header && (!Number.isSafeInteger(header.size) || header.size < 0)) throw new Error(`size ${header.size}`);
    } catch (error) {
      if (!/^a header /.test((error as Error).message)) throw error;
    }
  },
};

export const REGISTRY_TARGETS: readonly FuzzTarget[] = [registry, tarHeaders];
