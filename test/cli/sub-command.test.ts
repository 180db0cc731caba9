import { describe, expect, test } from "bun:test";
import { mkdirSync, rmdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { Pod } from "../../src/base/api/pod.ts";
import type { ApiObject } from "../../src/cli/client/api-client.ts";
import { podsOfObject } from "../../src/cli/client/choose-pod.ts";
import { findCommand } from "../../src/cli/command-line.ts";
import { runConfig } from "../../src/cli/commands/config-command.ts";
import { parseCopyPath, renaming } from "../../src/cli/commands/cp.ts";
import { graceOf } from "../../src/cli/commands/delete.ts";
import { parsePortPair, resolvePort } from "../../src/cli/commands/port-forward.ts";
import { replaceablePath, runSubCommand } from "../../src/cli/sub-command.ts";
import { resolveOptions } from "../../src/config/resolve-options.ts";
import { aContainer, aPod } from "../support/builders.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { capturedIo } from "./captured-io.ts";

const tempDir = tempDirs();

test("a command replaces files, where links lead, and nothing else", () => {
  const directory = tempDir();
  const [file, link] = [join(directory, "file"), join(directory, "link")];
  expect(replaceablePath(file)).toBe(file);
  writeFileSync(file, "");
  symlinkSync(file, link);
  expect(replaceablePath(link)).toBe(file);
  for (const path of ["/dev/null", directory])
    expect(() => replaceablePath(path)).toThrow(`"${path}" is not a regular file`);
});

describe("kubelet-ts config", () => {
  const FLAGS = [
    "--max-pods=3",
    "--manifest-url=http://me:pw@h/?t=s3cret",
    "--manifest-url-header=Authorization: s3cret",
    "--cluster-dns=10.0.0.1",
  ];

  async function print(...flags: string[]) {
    const at = capturedIo();
    const code = await runConfig(flags, at, "/");
    return { code, out: at.out, err: at.err };
  }

  test("YAML shows the origin of each value and can be read with --config", async () => {
    const { code, out } = await print(...FLAGS);
    expect(code).toBe(0);
    expect(out).toContain("maxPods: 3 # --max-pods\n");
    expect(out).toContain("syncFrequency: 1m0s # default\n");
    const path = join(tempDir(), "again.yaml");
    writeFileSync(path, out);
    const options = { maxPods: 3, clusterDns: ["10.0.0.1"] };
    expect(await resolveOptions(["--config", path], "/")).toMatchObject({ warnings: [], errors: [], options });
  });

  test("JSON has the same values, and their origins", async () => {
    const { code, out } = await print(...FLAGS, "-o", "json");
    expect(code).toBe(0);
    const { config, origins } = JSON.parse(out);
    expect(config).toMatchObject({ kind: "KubeletConfiguration", maxPods: 3, clusterDNS: ["10.0.0.1"] });
    expect(origins).toMatchObject({ maxPods: "--max-pods", syncFrequency: "default" });
    expect(parse((await print(...FLAGS)).out)).toEqual(config);
  });

  test.each(["yaml", "json"])("secrets are not in %s", async (format) => {
    const { out, err } = await print(...FLAGS, "-o", format);
    expect(out + err).not.toMatch(/s3cret|me:pw/);
    expect(out).toContain("<masked>");
  });

  test("errors exit with 2", async () => {
    const err = `kubelet-ts config: warning: --docker-exec-handler has no effect: there are no docker settings beyond --docker-endpoint
kubelet-ts config: --max-podz: no such flag; did you mean --max-pods?
`;
    expect(await print("--max-podz=1", "--docker-exec-handler=x")).toEqual({ code: 2, out: "", err });
  });
});

describe("kubelet-ts version", () => {
  async function print(...argv: string[]) {
    const at = capturedIo();
    const code = await runSubCommand(findCommand("version")!, argv, at);
    return { code, out: at.out, err: at.err };
  }

  test("one line, or an object", async () => {
    expect(await print()).toMatchObject({ code: 0, out: expect.stringMatching(/^kubelet-ts .*\n$/) });
    const { code, out } = await print("-o", "json");
    expect({ code, names: Object.keys(JSON.parse(out)) }).toEqual({
      code: 0,
      names: expect.arrayContaining(["gitCommit"]),
    });
  });

  test("an argument is refused", async () => {
    const err = `kubelet-ts version: takes no arguments (found "1")\nTry 'kubelet-ts version --help'.\n`;
    expect(await print("1")).toEqual({ code: 2, out: "", err });
  });
});

test.each([
  ["8080:80", { local: 8080, remote: "80" }],
  ["80", { local: 80, remote: "80" }],
  [":80", { local: 0, remote: "80" }],
  ["8080:http", { local: 8080, remote: "http" }],
])("port %s", (text, want) => expect(parsePortPair(text)).toEqual(want));

test.each(["", "80:", "a:80", "0", "1:70000", "1:2:3"])("port %p is refused", (text) => {
  expect(() => parsePortPair(text)).toThrow("LOCAL:REMOTE");
});

test.each([
  ["web:/etc/hosts", { pod: "web", path: "/etc/hosts" }],
  ["prod/web:/etc/hosts", { pod: "prod/web", path: "/etc/hosts" }],
  ["/tmp/a:b", { path: "/tmp/a:b" }],
  ["./a:b", { path: "./a:b" }],
  ["hosts", { path: "hosts" }],
])("path %s", (text, want) => expect(parseCopyPath(text)).toEqual(want));

test.each([
  ["plain", "renamed"],
  ["a&b,c.txt", "a&b,c.txt"],
  ["x.*[y]^$", "\\\\n &"],
])("tar renames %p to %p", (from, to) => {
  const directory = tempDir();
  writeFileSync(join(directory, from), "");
  const tar = `tar -cf - -C "$1" --transform "$2" -- "$3" | tar -t --quoting-style=literal`;
  const { stdout } = Bun.spawnSync(["sh", "-c", tar, "sh", directory, renaming(from, to), from]);
  expect(stdout.toString()).toBe(`${to}\n`);
});

test("a pod without a path is refused", () => expect(() => parseCopyPath("web:")).toThrow("names no path"));

describe("ports behind a name", () => {
  const web = aPod({
    containers: [aContainer({ name: "a", ports: [{ containerPort: 8080, name: "http", protocol: "TCP" }] })],
  });
  const service: ApiObject = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web" },
    spec: {
      ports: [
        { name: "www", port: 80, targetPort: "http" },
        { port: 90, targetPort: 9090 },
      ],
    },
  };

  test.each([
    ["80", undefined, 80],
    ["http", undefined, 8080],
    ["80", service, 8080],
    ["www", service, 8080],
    ["90", service, 9090],
  ])("%s", (remote, object, want) => expect(resolvePort(remote, web, object)).toBe(want));

  test("an unknown port is refused with the known ones", () => {
    expect(() => resolvePort("htp", web, undefined)).toThrow('no port named "htp"; it has http');
    expect(() => resolvePort("81", web, service)).toThrow('service "web" has no port 81; it has 80 (www), 90');
  });
});

const labelled = (name: string, labels: Record<string, string>, owner?: string) => {
  const ownerReferences = owner && [{ apiVersion: "v1", kind: "Job", name: "j", uid: owner }];
  return { ...aPod(), metadata: { name, namespace: "default", labels, ...(ownerReferences && { ownerReferences }) } };
};
const pods = [labelled("a", { app: "web" }), labelled("b", { app: "db" }), labelled("c", {}, "u1")] as Pod[];
const object = (selector: unknown): ApiObject => {
  const metadata = { name: "x", uid: "u1" };
  return { apiVersion: "v1", kind: "X", metadata, spec: { selector } };
};
const names = (it: ApiObject) => podsOfObject(it, pods).map(({ metadata }) => metadata.name);

test.each([
  ["services: {a: {image: b}}\n", ".env"],
  ["services: {a: {image: b, env_file: [{path: x.env, required: false}]}}\n", "x.env"],
  ["include: [sub/c.yaml]\n", "sub/.env"],
])(
  "import: variables that are missing may be; those of a file that is too long are not left out: %j",
  async (text, name) => {
    const dir = tempDirs()();
    mkdirSync(join(dir, "sub"));
    for (const file of ["sub/c.yaml", "compose.yaml"])
      writeFileSync(join(dir, file), file === "compose.yaml" ? text : "services: {a: {image: b}}\n");
    const imported = async () => {
      const io = capturedIo();
      return {
        code: await runSubCommand(findCommand("import")!, ["compose", join(dir, "compose.yaml")], io),
        err: io.err,
      };
    };
    expect(await imported()).toMatchObject({ code: 0 });
    mkdirSync(join(dir, name));
    if (name.endsWith(".env") && name !== "x.env") expect(await imported()).toMatchObject({ code: 0 });
    rmdirSync(join(dir, name));
    writeFileSync(join(dir, name), "A=1\n".repeat(2 ** 18 + 1));
    const err = expect.stringContaining(
      `"${join(dir, name)}" cannot be read: is too large: 1048580 bytes, at most 1048576`,
    );
    expect(await imported()).toMatchObject({ code: 1, err });
  },
);

test.each([
  [{ app: "web" }, ["a"]],
  [{ matchLabels: { app: "db" } }, ["b"]],
  [{ matchExpressions: [{ key: "app", operator: "Exists" }] }, ["a", "b"]],
  [undefined, ["c"]],
])("the pods of an object: %j", (selector, want) => expect(names(object(selector))).toEqual(want));

test.each<[Record<string, string | true>, number | undefined | RegExp]>([
  [{}, undefined],
  [{ "grace-period": "7" }, 7],
  [{ "grace-period": "-1" }, undefined],
  [{ "grace-period": "0" }, 1],
  [{ now: true }, 1],
  [{ force: true }, 0],
  [{ force: true, "grace-period": "0" }, 0],
  [{ "grace-period": "x" }, /grace-period/],
  [{ now: true, "grace-period": "5" }, /grace-period/],
  [{ force: true, "grace-period": "5" }, /grace-period/],
])("%j is a grace period of %p", (flags, want) => {
  const value = (flag: string) => (typeof flags[flag] === "string" ? flags[flag] : undefined);
  const grace = () => graceOf({ value, isOn: (flag) => flags[flag] === true });
  if (want instanceof RegExp) expect(grace).toThrow(want);
  else expect(grace()).toBe(want);
});
