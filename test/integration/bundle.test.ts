import { expect, test } from "bun:test";
import { readFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { loadBundleImages, openBundle } from "../../src/cli/bundle/bundle-file.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";

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
    expect(await loadBundleImages(node.docker, bundle)).toEqual([]);

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
