import { expect, test } from "bun:test";
import {
  DockerConfigError,
  lookUpCredentials,
  parseDockerConfig,
  registryKey,
  registryMatches,
} from "../../../src/docker/engine/docker-config.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

test("auths in all their forms", () => {
  const { entries } = parseDockerConfig(
    JSON.stringify({
      auths: {
        "a.io": { auth: base64("user:pass:with:colons") },
        "b.io": { username: "user", password: "pass", email: "x@y" },
        "c.io": { auth: base64("user:"), identitytoken: "token" },
        "d.io": { registrytoken: "bearer" },
        "e.io": {},
        "f.io": { auth: base64("user:pass\0\0") },
      },
      HttpHeaders: { "User-Agent": "x" },
    }),
  );
  expect(entries).toEqual([
    { registry: "a.io", auth: { username: "user", password: "pass:with:colons" } },
    { registry: "b.io", auth: { username: "user", password: "pass" } },
    { registry: "c.io", auth: { username: "user", identitytoken: "token" } },
    { registry: "d.io", auth: { registrytoken: "bearer" } },
    // e.io says nothing: a helper has it.
    { registry: "f.io", auth: { username: "user", password: "pass" } },
  ]);
});

test.each([
  { what: "no JSON", text: 'hush "secret', says: "not JSON" },
  { what: "a wrong shape", text: '{"auths":{"r.io":"secret"}}', says: "auths.r.io" },
  { what: "an auth without colon", text: `{"auths":{"r.io":{"auth":"${base64("secret")}"}}}`, says: "r.io" },
])("$what is an error that gives nothing away", ({ text, says }) => {
  const attempt = () => parseDockerConfig(text);
  expect(attempt).toThrow(DockerConfigError);
  expect(attempt).toThrow(says);
  expect(attempt).not.toThrow("secret");
  expect(attempt).not.toThrow(base64("secret"));
});

test.each([
  { registry: "127.0.0.1:5001", key: "127.0.0.1:5001" },
  { registry: "http://127.0.0.1:5001/v2/", key: "127.0.0.1:5001" },
  { registry: "https://index.docker.io/v1/", key: "index.docker.io" },
  { registry: "https://r.io/team/a", key: "r.io/team/a" },
  { registry: "r.io/", key: "r.io" },
])("$registry is kept as $key", ({ registry, key }) => {
  expect(registryKey(registry)).toBe(key);
});

test.each([
  { key: "r.io", image: "r.io/app", want: true },
  { key: "r.io", image: "r.io:5000/app", want: false },
  { key: "r.io:5000", image: "r.io:5000/app", want: true },
  { key: "r.io/team", image: "r.io/team/app", want: true },
  { key: "r.io/team", image: "r.io/other/app", want: false },
  { key: "*.r.io", image: "a.r.io/app", want: true },
  { key: "*.r.io", image: "a.b.r.io/app", want: false },
  { key: "*.r.io", image: "r.io/app", want: false },
  { key: "123.dkr.ecr.*.amazonaws.com", image: "123.dkr.ecr.eu-1.amazonaws.com/a", want: true },
  { key: "r.io", image: "evil-r.io/app", want: false },
  { key: "*", image: "localhost/app", want: true },
])("$key covers $image: $want", ({ key, image, want }) => {
  expect(registryMatches(key, image)).toBe(want);
});

const entries = (...registries: string[]) => registries.map((registry) => ({ registry, auth: { username: registry } }));
const users = (found: { username?: string }[]) => found.map(({ username }) => username);

test("the most specific comes first, and every match is worth a try", () => {
  const found = lookUpCredentials(entries("r.io", "r.io/team/app", "other.io", "r.io/team"), "r.io/team/app");
  expect(users(found)).toEqual(["r.io/team/app", "r.io/team", "r.io"]);
});

test.each([
  { registry: "https://index.docker.io/v1/", repository: "docker.io/library/busybox", want: 1 },
  { registry: "docker.io", repository: "docker.io/me/app", want: 1 },
  { registry: "https://index.docker.io/v1/", repository: "r.io/app", want: 0 },
])("Docker Hub's credentials under $registry for $repository: $want", ({ registry, repository, want }) => {
  expect(lookUpCredentials(entries(registry), repository)).toHaveLength(want);
});
