import { expect, test } from "bun:test";
import {
  applyDefaultTag,
  InvalidImageReferenceError,
  parseImageReference,
  repositoryOf,
} from "../../../src/base/text/image-reference.ts";

const HEX = "a".repeat(64);
const DIGEST = `sha256:${HEX}`;

test.each([
  ["busybox", "docker.io/library/busybox", "latest"],
  ["busybox:1.36", "docker.io/library/busybox", "1.36"],
  ["me/app", "docker.io/me/app", "latest"],
  ["docker.io/busybox", "docker.io/library/busybox", "latest"],
  ["index.docker.io/me/app:1", "docker.io/me/app", "1"],
  ["localhost/app", "localhost/app", "latest"],
  ["localhost:5000/app", "localhost:5000/app", "latest"],
  ["127.0.0.1:5000/a/b/c:V_1.2-3", "127.0.0.1:5000/a/b/c", "V_1.2-3"],
  ["[::1]:5000/app:1", "[::1]:5000/app", "1"],
  ["Registry.Example/app", "Registry.Example/app", "latest"],
  ["a__b/c-d--e.f", "docker.io/a__b/c-d--e.f", "latest"],
])("%s", (text, repository, tag) => {
  const reference = parseImageReference(text);
  expect({ repository: repositoryOf(reference), tag: reference.tag }).toEqual({ repository, tag });
  expect(applyDefaultTag(text)).toBe(text.endsWith(`:${tag}`) ? text : `${text}:latest`);
});

test.each([
  [`app@${DIGEST}`, undefined],
  [`r.io/app:2@${DIGEST}`, "2"],
])("a digest needs no tag: %s", (text, tag) => {
  expect(parseImageReference(text)).toMatchObject({ tag, digest: DIGEST });
  expect(applyDefaultTag(text)).toBe(text);
});

const LOWERCASE = "invalid reference format: repository name must be lowercase";
test.each([
  ["UPPER/Case:bad", LOWERCASE],
  ["App", LOWERCASE],
  [HEX, "64-byte hexadecimal"],
  [`app@sha256:${"a".repeat(63)}`, "invalid checksum digest length"],
  [`app@md5:${"a".repeat(32)}`, "unsupported digest algorithm"],
  [`app@sha256:${"A".repeat(64)}`, "invalid checksum digest format"],
  [`r.io/${"a".repeat(260)}`, "must not be more than 255 characters"],
  [`a:${"t".repeat(129)}`, "invalid reference format"],
  [`${"a-".repeat(50_000)}!`, "invalid reference format"],
  ["", "invalid reference format"],
  ...["a b", "a:", "a:b:c", "-a", "a..b", "a___b", "a/", "https://r.io/app", "../../etc"].map(
    (text) => [text, "invalid reference format"] as const,
  ),
] as const)("%s is refused: %s", (text, message) => {
  expect(() => parseImageReference(text)).toThrow(InvalidImageReferenceError);
  expect(() => applyDefaultTag(text)).toThrow(message);
});
