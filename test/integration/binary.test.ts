import { expect, test } from "bun:test";
import { existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { loadBundleImages, openBundle } from "../../src/cli/bundle/bundle-file.ts";
import { DockerHost } from "../../src/docker/docker-host.ts";
import { LABEL } from "../../src/docker/labels.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { BINARY } from "../support/kubelet-process.ts";
import { sleeper } from "../support/manifests.ts";
import { callEngine, engineSocketPath, readEngine } from "../support/test-node.ts";

const POD = sleeper("p", { command: ["true"] }, { restartPolicy: "Never" });

describeWithEngine("the compiled binary", () => {
  test("reports its version and the commit it was built from", async () => {
    const { exitCode, stdout } = await testNode().spawn(["--version"]).finished();
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^kubelet-ts \d+\.\d+\.\d+ \([0-9a-f]{12}(-dirty)?\)\n$/);
    expect(stdout).toStartWith(`kubelet-ts ${packageJson.version} `);
  });

  test("starts with an empty environment", () => {
    const { exitCode, stderr } = Bun.spawnSync({ cmd: [BINARY, "--version"], env: {} });
    expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
  });

  test("works in a directory that was removed", async () => {
    const node = testNode();
    const manifest = node.writeManifest("p.json", POD);
    const prefix = ["sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "sh"];
    const outcomeOf = async (...args: string[]) => {
      const { exitCode, stderr } = await node.spawn(args, { prefix }).finished();
      return { exitCode, stderr };
    };
    expect(await outcomeOf("validate", manifest)).toEqual({ exitCode: 0, stderr: "" });
    expect(await outcomeOf("--runonce", ...node.identityFlags(), manifest)).toMatchObject({ exitCode: 0 });
  });

  // Both are defaults of Bun, and would hand the program to any user who can write to a directory.
  test("takes neither settings nor code from the directory it is started in", async () => {
    const node = testNode();
    const trace = join(node.directory, "preloaded");
    writeFileSync(join(node.directory, ".env"), "DOCKER_HOST=unix:///from-dotenv.sock\n");
    writeFileSync(join(node.directory, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
    writeFileSync(
      join(node.directory, "preload.ts"),
      `require("node:fs").writeFileSync(${JSON.stringify(trace)}, "");\n`,
    );
    const manifest = node.writeManifest("p.json", POD);
    const flags = node.identityFlags().filter((flag) => !flag.startsWith("--docker-endpoint"));
    const env: Record<string, string> = process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {};
    const { exitCode, stderr } = await node.spawn(["--runonce", ...flags, manifest], { env }).finished();
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(existsSync(trace)).toBe(false);
  });

  test("comes from a plain `bun build --compile` as well, which knows no commit", async () => {
    const node = testNode();
    const plain = join(node.directory, "kubelet-ts");
    const build = Bun.spawnSync({
      cmd: [process.execPath, "build", "--compile", "src/main.ts", `--outfile=${plain}`],
      cwd: join(import.meta.dir, "..", ".."),
      stderr: "pipe",
    });
    expect({ exitCode: build.exitCode, stderr: build.stderr.toString() }).toMatchObject({ exitCode: 0 });
    expect(Bun.spawnSync([plain, "--version"]).stdout.toString()).toBe(`kubelet-ts ${packageJson.version}\n`);
  });
});

describeWithEngine("kubelet-ts bundle", () => {
  test("one file sets up another machine, twice; a part of it changes nothing", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    const file = join(node.directory, "site.tar");
    const bundled = await node.spawn(["bundle", "-f", node.manifestDir, "-o", file]).finished();
    expect(bundled).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("1 manifest, 1 image,") });

    const bundle = await openBundle(file, process.arch);
    expect(bundle.index.images).toEqual([sleeper("web").spec.containers[0]?.image as string]);
    expect(await node.docker.loadImage(bundle.read("images.tar"))).toEqual(bundle.index.images);
    const engine = new DockerHost({ endpoint: engineSocketPath(), environment: {} });
    expect(await loadBundleImages(engine, bundle)).toEqual([]);

    const destdir = join(node.directory, "machine");
    const install = () => node.spawn(["install", "--bundle", file, `--destdir=${destdir}`]).finished();
    for (const _ of [1, 2]) {
      expect(await install()).toMatchObject({ exitCode: 0 });
      const manifest = readFileSync(join(destdir, "etc/kubernetes/manifests/web.json"), "utf8");
      expect(manifest).toBe(readFileSync(join(node.manifestDir, "web.json"), "utf8"));
    }
    truncateSync(file, 1_000_000);
    expect(await install()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("is cut off") });
  });
});

describeWithEngine("import docker", () => {
  test("a container becomes a pod that passes validate and runs; the container stays as it is", async () => {
    const node = testNode();
    const name = `${node.name}-web`;
    const { Id: id } = await node.docker.createContainer(name, {
      Image: "busybox:test",
      Cmd: ["sh", "-c", 'cat /t/x; echo "$GREETING $DB_PASSWORD"; exec sleep 3600'],
      Env: ["GREETING=hello", "DB_PASSWORD=hunter2"],
      Labels: { [LABEL.node]: node.bareName },
      HostConfig: { Memory: 33_554_432, Tmpfs: { "/t": "size=1m" }, RestartPolicy: { Name: "always" } },
      // biome-ignore lint/suspicious/noExplicitAny: more than what kubelet-ts itself sends
    } as any);
    await node.docker.startContainer(id);
    const before = await readEngine(`/containers/${id}/json`);

    const imported = await node
      .spawn(["import", "docker", name, `--docker-endpoint=${node.identityFlags()[2]!.split("=")[1]}`])
      .finished();
    expect(imported.stderr).toContain(`docker stop ${name}`);
    expect(imported.stderr).not.toContain("hunter2");
    expect(imported.stdout).toContain("kind: Secret");
    const file = join(node.directory, "web.yaml");
    writeFileSync(file, imported.stdout);
    expect((await node.spawn(["validate", file]).finished()).exitCode).toBe(0);

    expect((await node.runOnce([file])).exitCode).toBe(0);
    const app = await node.runningContainer(name);
    await node.until("its output", async () => (await node.logs(app.Id)).includes("hello hunter2"));
    expect(await readEngine(`/containers/${id}/json`)).toBe(before);
    await callEngine(`/containers/${id}/kill`);
  });
});
