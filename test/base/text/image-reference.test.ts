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
  { text: "busybox", repository: "docker.io/library/busybox", tag: "latest", asked: "busybox:latest" },
  { text: "busybox:1.36", repository: "docker.io/library/busybox", tag: "1.36", asked: "busybox:1.36" },
  { text: "me/app", repository: "docker.io/me/app", tag: "latest", asked: "me/app:latest" },
  {
    text: "docker.io/busybox",
    repository: "docker.io/library/busybox",
    tag: "latest",
    asked: "docker.io/busybox:latest",
  },
  { text: "index.docker.io/me/app:1", repository: "docker.io/me/app", tag: "1", asked: "index.docker.io/me/app:1" },
  { text: "localhost/app", repository: "localhost/app", tag: "latest", asked: "localhost/app:latest" },
  { text: "localhost:5000/app", repository: "localhost:5000/app", tag: "latest", asked: "localhost:5000/app:latest" },
  {
    text: "127.0.0.1:5000/a/b/c:V_1.2-3",
    repository: "127.0.0.1:5000/a/b/c",
    tag: "V_1.2-3",
    asked: "127.0.0.1:5000/a/b/c:V_1.2-3",
  },
  { text: "[::1]:5000/app:1", repository: "[::1]:5000/app", tag: "1", asked: "[::1]:5000/app:1" },
  {
    text: "Registry.Example/app",
    repository: "Registry.Example/app",
    tag: "latest",
    asked: "Registry.Example/app:latest",
  },
  { text: "a__b/c-d--e.f", repository: "docker.io/a__b/c-d--e.f", tag: "latest", asked: "a__b/c-d--e.f:latest" },
])("$text", ({ text, repository, tag, asked }) => {
  const reference = parseImageReference(text);
  expect({ repository: repositoryOf(reference), tag: reference.tag }).toEqual({ repository, tag });
  expect(applyDefaultTag(text)).toBe(asked);
});

test.each([
  { text: `app@${DIGEST}`, tag: undefined },
  { text: `r.io/app:2@${DIGEST}`, tag: "2" },
])("a digest needs no tag: $text", ({ text, tag }) => {
  expect(parseImageReference(text)).toMatchObject({ tag, digest: DIGEST });
  expect(applyDefaultTag(text)).toBe(text);
});

test.each<{ text: string; says: string }>([
  { text: "UPPER/Case:bad", says: "invalid reference format: repository name must be lowercase" },
  { text: "App", says: "invalid reference format: repository name must be lowercase" },
  { text: "", says: "invalid reference format" },
  { text: "a b", says: "invalid reference format" },
  { text: "a:", says: "invalid reference format" },
  { text: "a:b:c", says: "invalid reference format" },
  { text: "-a", says: "invalid reference format" },
  { text: "a..b", says: "invalid reference format" },
  { text: "a___b", says: "invalid reference format" },
  { text: "a/", says: "invalid reference format" },
  { text: "https://r.io/app", says: "invalid reference format" },
  { text: "../../etc", says: "invalid reference format" },
  { text: `a:${"t".repeat(129)}`, says: "invalid reference format" },
  { text: HEX, says: "64-byte hexadecimal" },
  { text: `app@sha256:${"a".repeat(63)}`, says: "invalid checksum digest length" },
  { text: `app@md5:${"a".repeat(32)}`, says: "unsupported digest algorithm" },
  { text: `app@sha256:${"A".repeat(64)}`, says: "invalid checksum digest format" },
  { text: `r.io/${"a".repeat(260)}`, says: "must not be more than 255 characters" },
  { text: `${"a-".repeat(50_000)}!`, says: "invalid reference format" },
])("$text is refused: $says", ({ text, says }) => {
  expect(() => parseImageReference(text)).toThrow(InvalidImageReferenceError);
  expect(() => applyDefaultTag(text)).toThrow(says);
});
