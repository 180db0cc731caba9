import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS } from "../../src/cli/command-line.ts";
import { runSubCommand } from "../../src/cli/sub-command.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { capturedIo } from "./captured-io.ts";

const tempDir = tempDirs();

/** Arguments with which each command gets as far as the engine or the kubelet; `M` is a manifest, `D` a directory. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  get: "pods",
  describe: "pod web",
  logs: "web",
  top: "pods",
  explain: "pod web",
  events: "",
  apply: "-f M",
  create: "-f M",
  delete: "pod web",
  down: "--all",
  restart: "web",
  updates: "",
  wait: "pod/web --for=condition=Ready --timeout=0s",
  diff: "-f M",
  exec: "web -- ls",
  attach: "web",
  cp: "web:/etc/hosts D/hosts",
  "port-forward": "web 1:80",
  validate: "M",
  config: "",
  page: "",
  doctor: "",
  install: "--dry-run --destdir D",
  bundle: "-f M -o D/site.tar",
  uninstall: "--dry-run --destdir D",
  kubeconfig: "",
  use: "",
  import: "docker web",
  completion: "bash",
  version: "",
};

/** Commands that query the engine even without a kubelet. Their message names the socket. */
const ASKS_ENGINE = ["get", "describe", "logs", "explain", "delete", "diff", "exec", "attach", "cp", "port-forward"];
/** These must have a kubelet. Their message says how one is started. */
const NEEDS_KUBELET = ["events", "top", "apply", "create", "restart", "updates", "wait", "page", "kubeconfig"];

describe("with neither a kubelet nor an engine", () => {
  const before = { ...process.env };
  let socket = "";
  beforeAll(() => {
    const home = tempDir();
    socket = join(home, "no-engine.sock");
    Object.assign(process.env, { HOME: home, XDG_CONFIG_HOME: home, DOCKER_HOST: `unix://${socket}` });
    delete process.env.KUBELET_TS_ROOT_DIR;
  });
  afterAll(() => {
    for (const name of ["HOME", "XDG_CONFIG_HOME", "DOCKER_HOST", "KUBELET_TS_ROOT_DIR"]) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  });

  test("every command is tried", () => {
    expect(Object.keys(ARGUMENTS).sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
  });

  test("delete says how a file is given", async () => {
    const [file, io] = [join(tempDir(), "web.yaml"), capturedIo()];
    writeFileSync(file, "");
    expect(await runSubCommand(COMMANDS.find(({ name }) => name === "delete")!, [file], io)).toBe(2);
    expect(io.err).toContain(`a file is given with -f: -f ${file}`);
  });

  test.each(COMMANDS.map((command) => [command.name, command] as const))(
    "%s ends in a message",
    async (name, command) => {
      const directory = tempDir();
      const manifest = join(directory, "web.yaml");
      writeFileSync(
        manifest,
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: 'busybox:1.35'}]}\n",
      );
      const io = capturedIo();
      const words = ARGUMENTS[name]!.split(" ").filter(Boolean);
      const argv = words.map((word) => word.replace(/^M$/, manifest).replace(/^D(?=\/|$)/, directory));
      const globals = command.takesKubeletFlags || name === "validate" ? [] : [`--root-dir=${join(directory, "root")}`];
      const code = await runSubCommand(command, [...globals, ...argv], io);
      expect({ code, isKnown: [0, 1, 2].includes(code) }).toEqual({ code, isKnown: true });
      expect(io.err).not.toMatch(/\n\s+at .*:\d+:\d+/);
      if (ASKS_ENGINE.includes(name) || name === "bundle") {
        expect({ code, err: io.err }).toEqual({ code: name === "diff" ? 2 : 1, err: expect.stringContaining(socket) });
      }
      if (NEEDS_KUBELET.includes(name)) {
        expect({ code, err: io.err }).toEqual({ code: 1, err: expect.stringContaining("no kubelet runs on") });
      }
      expect(io.err.includes("nothing can be submitted")).toBe(["apply", "create"].includes(name));
    },
  );
});
