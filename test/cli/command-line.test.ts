import { describe, expect, test } from "bun:test";
import { findCommand, readCommandLine } from "../../src/cli/command-line.ts";

const read = (line: string) =>
  readCommandLine(line.split(" ").filter(Boolean), (path) => ["pods", "web.yaml"].includes(path));

test.each([
  ["get pods", "get", "pods"],
  ["--root-dir R get pods", "get", "--root-dir R pods"],
  ["--root-dir=R get pods", "get", "--root-dir=R pods"],
  ["--docker-endpoint=unix:///x logs web", "logs", "--docker-endpoint=unix:///x web"],
  ["-n prod get pods", "get", "-n prod pods"],
  ["--watch get pods", "get", "--watch pods"],
  ["--namespce prod get pods", "get", "--namespce prod pods"],
  ["--root-dir R validate x.yaml", "validate", "--root-dir R x.yaml"],
  ["help get", "get", "--help"],
  ["--root-dir R help get", "get", "--help"],
])("a command is found behind flags: %s", (line, name, argv) => {
  expect(read(line)).toEqual({ kind: "command", command: findCommand(name)!, argv: argv.split(" ") });
});

describe("a kubelet is started only by flags and manifests", () => {
  test.each([
    "",
    "pods",
    "./later",
    "later/",
    "/srv/pods",
    "web.yaml",
    "-",
    "--runonce web.yaml",
    "--root-dir get web.yaml",
    "https://host/pods",
    "unix:/run/x",
    "-- pods",
    "--hostname-overide demo",
    "--hostname-overide=demo",
    "--runonc web.yaml",
  ])("%p", (line) => {
    expect(read(line)).toMatchObject({ kind: "kubelet", argv: line.split(" ").filter(Boolean) });
  });

  test("help", () => expect(read("help")).toEqual({ kind: "kubelet", argv: ["--help"] }));
});

test.each([
  ["validte x.yaml", "did you mean validate?"],
  ["--root-dir R gte pods", "did you mean get?"],
  ["frobnicate", "commands are get, describe, logs"],
  ["constructor", "commands are get, describe, logs"],
  ["help gte", "did you mean get?"],
  ["ps", "kubelet-ts get pods"],
  ["--root-dir R ps", "kubelet-ts get pods"],
  ["auth can-i get pods", "use kubectl auth after: kubelet-ts kubeconfig --merge"],
  ["scale deploy/web", "kubelet-ts apply -f <manifest>"],
  ["web.yaml get pods", 'no command "get"'],
  [
    "nginx:1.22",
    '"metadata":{"name":"nginx"},"spec":{"containers":[{"name":"nginx","image":"nginx:1.22"}]}}\' | kubelet-ts',
  ],
  ["registry.example:5000/team/app@sha256:0a", '"containers":[{"name":"app"'],
  ["docker.io/library/redis:7", "is an image, and no file"],
  ["missing.yaml", 'manifest "missing.yaml" does not exist'],
  ["/etc/missing.json", 'manifest "/etc/missing.json" does not exist'],
  ["config view", 'manifest "view" does not exist'],
  ["reload", "write: systemctl reload kubelet-ts"],
  ["kill web", "kubelet-ts delete pod"],
  ["-- missing.yml", 'manifest "missing.yml" does not exist'],
  ["--runonce missing.yaml", "does not exist"],
  [
    "--root-dri=R missing.yaml",
    '--root-dri: no such flag; did you mean --root-dir?\nkubelet-ts: manifest "missing.yaml" does not exist',
  ],
  ["missing.yaml --root-dri=R", "--root-dri: no such flag"],
  ["--root-dri R ps", "--root-dri: no such flag"],
  ["-f web.yaml", "kubelet-ts --runonce <manifest>"],
  ["kube play web.yaml", "write: kubelet-ts --runonce <manifest>"],
  ["compose up -d", "write: kubelet-ts import compose > <manifest>"],
  ["pull nginx", "images are those of the engine: docker pull"],
  ["kubectl get pods", "write without kubectl, e.g.: kubelet-ts get pods"],
  ["--filename=web.yaml", "kubelet-ts --runonce <manifest>"],
])("anything else is refused with a hint: %s: %s", (line, text) => {
  expect(read(line)).toMatchObject({ kind: "refused", message: expect.stringContaining(text) });
});

test("the text of a variable that is not set is no manifest", () => {
  const message = expect.stringContaining("the name of a manifest is empty: is a variable not set?");
  expect(readCommandLine(["--runonce", ""], () => true)).toMatchObject({ kind: "refused", message });
});
