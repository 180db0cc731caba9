import { expect, test } from "bun:test";
import {
  DockerConfigError,
  parseDockerConfig,
  parseLegacyDockerConfig,
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

test("helpers", () => {
  expect(parseDockerConfig('{"credsStore":"pass","credHelpers":{"r.io":"ecr-login"}}')).toEqual({
    entries: [],
    credsStore: "pass",
    credHelpers: { "r.io": "ecr-login" },
  });
});

test("the old format has the registries at the top", () => {
  expect(parseLegacyDockerConfig(JSON.stringify({ "r.io": { auth: base64("u:p") } })).entries).toEqual([
    { registry: "r.io", auth: { username: "u", password: "p" } },
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
