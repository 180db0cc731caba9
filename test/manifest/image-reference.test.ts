import { expect, test } from "bun:test";
import { defaultPullPolicy, parseImageReference } from "../../src/manifest/image-reference.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;

test.each([
  ["nginx", "Always"],
  ["nginx:latest", "Always"],
  ["nginx:1", "IfNotPresent"],
  [`nginx@${DIGEST}`, "IfNotPresent"],
  [`nginx:latest@${DIGEST}`, "Always"],
  ["registry.example.com:5000/a/b", "Always"],
  ["localhost/a:1", "IfNotPresent"],
  ["A/b", "Always"],
  ["UP:latest", "IfNotPresent"],
  ["nginx:", "IfNotPresent"],
  ["a b", "IfNotPresent"],
  ["", "IfNotPresent"],
  ["a".repeat(64), "IfNotPresent"],
  ["nginx@sha256:abc", "IfNotPresent"],
])("%s is pulled %s", (image, policy) => expect(defaultPullPolicy(image)).toBe(policy as never));

test("tag and digest", () => {
  expect(parseImageReference(`a:1@${DIGEST}`)).toEqual({ tag: "1", digest: DIGEST });
  expect(parseImageReference("a/b//c")).toBeUndefined();
});
