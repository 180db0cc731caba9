import { expect, test } from "bun:test";
import { defaultPullPolicy } from "../../src/manifest/defaults.ts";

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
])("the default pull policy of %s is %s", (image, policy) => expect(defaultPullPolicy(image)).toBe(policy as never));
