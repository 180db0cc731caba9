import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Secret } from "../../src/base/api/config-objects.ts";
import { LOCAL_TEXT_FILES } from "../../src/base/files/whole-file.ts";
import { parseImageReference } from "../../src/base/text/image-reference.ts";
import { CredentialProviders, ImageCredentials } from "../../src/docker/image-credentials.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const read = (path: string) => Bun.file(join(directory, path)).text();
const auths = (registry: string, user: string) =>
  JSON.stringify({ auths: { [registry]: { auth: base64(`${user}:s3cret`) } } });

const tempDir = tempDirs();
let directory = "";
let logger: RecordingLogger;
const PATH = process.env.PATH ?? "";

beforeEach(() => {
  directory = tempDir();
  logger = new RecordingLogger();
  for (const folder of ["root", "home/.docker", "bin"]) mkdirSync(join(directory, folder), { recursive: true });
  process.env.PATH = `${join(directory, "bin")}:${PATH}`;
});
afterEach(() => {
  process.env.PATH = PATH;
});

const config = (text: string, folder: "root" | "home/.docker" = "root") => write(`${folder}/config.json`, text);
/** One report, without what must stay secret. */
function expectReport(says: string): void {
  expect(logger.lines).toHaveLength(1);
  expect(logger.lines[0]).toContain(says);
  expect(logger.lines[0]).not.toContain("s3cret");
}

const write = (path: string, text: string) => writeFileSync(join(directory, path), text);
function program(path: string, script: string): void {
  write(path, `#!/bin/sh\n${script}\n`);
  chmodSync(join(directory, path), 0o755);
}

async function users(image: string, pullSecrets: Secret[] = [], providers?: CredentialProviders): Promise<unknown[]> {
  const credentials = new ImageCredentials({
    rootDir: join(directory, "root"),
    homeDir: join(directory, "home"),
    logger,
    providers,
    files: LOCAL_TEXT_FILES,
  });
  const found = await credentials.lookUp(parseImageReference(image), pullSecrets, undefined);
  return found.map(({ username, identitytoken }) => username ?? identitytoken);
}

function pullSecret(type: string, key: string, text: string): Secret {
  return { metadata: { name: "regcred", namespace: "default" }, type, data: { [key]: base64(text) } } as Secret;
}

describe("files", () => {
  test.each([
    { file: "root/config.json", text: auths("127.0.0.1:5001", "a") },
    { file: "home/.docker/config.json", text: auths("http://127.0.0.1:5001/v2/", "a") },
    { file: "root/.dockercfg", text: JSON.stringify({ "127.0.0.1:5001": { auth: base64("a:s3cret") } }) },
    { file: "home/.dockercfg", text: JSON.stringify({ "127.0.0.1:5001": { username: "a", password: "s3cret" } }) },
  ])("$file is read", async ({ file, text }) => {
    write(file, text);
    expect(await users("127.0.0.1:5001/private/app:1")).toEqual(["a"]);
    expect(await users("127.0.0.1:5002/private/app:1")).toEqual([]);
  });

  test("the root directory's goes before the home's, and they are not mixed", async () => {
    config(auths("r.io", "root"));
    write("home/.docker/config.json", auths("r.io", "home"));
    expect(await users("r.io/app")).toEqual(["root"]);
  });

  test("a broken file is reported without its text, and the next one is read", async () => {
    config('{"auths": s3cret');
    write("home/.docker/config.json", auths("r.io", "home"));
    expect(await users("r.io/app")).toEqual(["home"]);
    expectReport("root/config.json");
  });

  test("a change counts at once", async () => {
    config(auths("r.io", "before"));
    expect(await users("r.io/app")).toEqual(["before"]);
    config(auths("r.io", "after"));
    expect(await users("r.io/app")).toEqual(["after"]);
  });
});

describe("imagePullSecrets", () => {
  const ofPod = pullSecret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", auths("r.io", "pod"));

  test("go before the machine's, which are still worth a try", async () => {
    config(auths("r.io", "machine"));
    expect(await users("r.io/app", [ofPod])).toEqual(["pod", "machine"]);
  });

  test("the old type too; other Secrets hold none", async () => {
    const legacy = pullSecret("kubernetes.io/dockercfg", ".dockercfg", JSON.stringify({ "r.io": { username: "old" } }));
    const opaque = pullSecret("Opaque", ".dockerconfigjson", auths("r.io", "opaque"));
    expect(await users("r.io/app", [opaque, legacy])).toEqual(["old"]);
  });

  test("the same credentials twice are tried once", async () => {
    config(auths("r.io", "pod"));
    expect(await users("r.io/app", [ofPod])).toEqual(["pod"]);
  });

  test("a malformed one fails the pull, named, without its text", async () => {
    const broken = pullSecret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", "s3cret");
    await expect(users("r.io/app", [broken])).rejects.toThrow('imagePullSecret "default/regcred"');
    await expect(users("r.io/app", [broken])).rejects.not.toThrow("s3cret");
  });
});

describe("credential helpers", () => {
  const answer = (user: string) => `cat > "$0.in"; echo '{"ServerURL":"x","Username":"${user}","Secret":"s3cret"}'`;

  test("the helper of a registry is asked for that registry", async () => {
    program("bin/docker-credential-one", answer("helped"));
    config('{"credHelpers":{"r.io":"one"}}');
    expect(await users("r.io/app")).toEqual(["helped"]);
    expect(await read("bin/docker-credential-one.in")).toBe("r.io");
    expect(await users("other.io/app")).toEqual([]);
  });

  test("credsStore is asked for all others; Docker Hub by its old URL; <token> is a token", async () => {
    program("bin/docker-credential-store", answer("<token>"));
    config('{"credsStore":"store"}');
    expect(await users("busybox")).toEqual(["s3cret"]);
    expect(await read("bin/docker-credential-store.in")).toBe("https://index.docker.io/v1/");
  });

  test("a helper that knows nothing is not a problem", async () => {
    program("bin/docker-credential-store", "echo 'credentials not found in native keychain'; exit 1");
    config('{"credsStore":"store"}');
    expect(await users("r.io/app")).toEqual([]);
    expect(logger.lines).toEqual([]);
  });

  test.each([
    { what: "fails", script: "echo s3cret; exit 3", says: "ended with 3" },
    { what: "talks nonsense", script: "echo s3cret", says: "something else" },
  ])("a helper that $what is reported without its words", async ({ script, says }) => {
    program("bin/docker-credential-store", script);
    config('{"credsStore":"store"}');
    expect(await users("r.io/app")).toEqual([]);
    expectReport(says);
  });

  test("a helper that is not installed is reported", async () => {
    config('{"credsStore":"absent"}');
    expect(await users("r.io/app")).toEqual([]);
    expect(logger.lines[0]).toContain("docker-credential-absent");
  });
});

describe("credential provider plugins", () => {
  const clock = new FakeClock();
  const response = (cacheKeyType: string, extra = "") =>
    `cat > "$0.in"; echo "$REGION $*" >> "$0.runs"; echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"${cacheKeyType}",${extra}"auth":{"*.r.io":{"username":"plug","password":"s3cret"}}}'`;

  function providers(yaml = ""): CredentialProviders {
    write(
      "providers.yaml",
      `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: plug
  matchImages: ["*.r.io"]
  defaultCacheDuration: 10m
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get, it]
  env: [{name: REGION, value: eu}]
${yaml}`,
    );
    return CredentialProviders.fromFile(join(directory, "providers.yaml"), join(directory, "bin"), clock, logger);
  }
  const runs = async () => (await read("bin/plug.runs")).trimEnd().split("\n");

  test("is asked about images that match, with its arguments and environment", async () => {
    program("bin/plug", response("Registry"));
    expect(await users("a.r.io/app:1", [], providers())).toEqual(["plug"]);
    expect(await users("elsewhere.io/app:1", [], providers())).toEqual([]);
    expect(await runs()).toEqual(["eu get it"]);
    expect(await Bun.file(join(directory, "bin/plug.in")).json()).toEqual({
      apiVersion: "credentialprovider.kubelet.k8s.io/v1",
      kind: "CredentialProviderRequest",
      image: "a.r.io/app:1",
    });
  });

  test.each([
    { cacheKeyType: "Global", asked: 1 },
    { cacheKeyType: "Registry", asked: 2 },
    { cacheKeyType: "Image", asked: 3 },
  ])("an answer per $cacheKeyType is remembered", async ({ cacheKeyType, asked }) => {
    program("bin/plug", response(cacheKeyType));
    const one = providers();
    for (const image of ["a.r.io/app:1", "a.r.io/app:2", "b.r.io/app:1", "a.r.io/app:1"]) {
      expect(await users(image, [], one)).toEqual(["plug"]);
    }
    expect(await runs()).toHaveLength(asked);
  });

  test("and forgotten when its time has elapsed", async () => {
    program("bin/plug", response("Global", '"cacheDuration":"1m0s",'));
    const one = providers();
    await users("a.r.io/app:1", [], one);
    await clock.advance(59_000);
    await users("a.r.io/app:1", [], one);
    expect(await runs()).toHaveLength(1);
    await clock.advance(2_000);
    await users("a.r.io/app:1", [], one);
    expect(await runs()).toHaveLength(2);
  });

  test("its configuration is read as go-yaml v2 reads it, and a mistake has its place", () => {
    expect(() => providers("\t- x\n")).toThrow(/providers\.yaml:10:\d+: /);
    // go-yaml v2: an unquoted `on` is a boolean, not a string.
    expect(() => providers("- {name: on}\n")).toThrow(/providers\.1\.name/);
  });

  test.each([
    { what: "fails", script: "echo why >&2; exit 4", says: "ended with 4: why" },
    { what: "answers nonsense", script: "echo s3cret", says: "not JSON" },
    {
      what: "answers something else",
      script: `echo '{"kind":"CredentialProviderResponse","apiVersion":"x","cacheKeyType":"s3cret"}'`,
      says: "cacheKeyType",
    },
  ])("a plugin that $what is reported, and the pull continues without", async ({ script, says }) => {
    program("bin/plug", script);
    expect(await users("a.r.io/app:1", [], providers())).toEqual([]);
    expect(logger.lines[0]).toContain('"plug"');
    expect(logger.lines[0]).toContain(says);
    expect(logger.lines[0]).not.toContain("s3cret");
  });

  const version = "apiVersion: credentialprovider.kubelet.k8s.io/v1";
  test.each([
    ["a path for a name", "name: ../plug, defaultCacheDuration: 1s", "providers.1.name"],
    ["a strange duration", "name: b, defaultCacheDuration: soon", "providers.1.defaultCacheDuration"],
    ["a name twice", "name: plug, defaultCacheDuration: 1s", "twice"],
    ["tokens of service accounts", "name: b, defaultCacheDuration: 1s, tokenAttributes: {}", "without a cluster"],
  ])("a configuration with %s is refused", (_what, fields, says) => {
    const yaml = `- {${fields}, matchImages: [a], ${version}}`;
    expect(() => providers(yaml)).toThrow(says);
    expect(() => providers(yaml)).toThrow("providers.yaml");
  });
});
