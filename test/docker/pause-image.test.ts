import { describe, expect, test } from "bun:test";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { buildPauseImage, ensurePauseImage, isAnyPauseImage, PAUSE_IMAGE } from "../../src/docker/pause-image.ts";
import { FakeDaemon, type FakeRoute } from "../support/fake-daemon.ts";

/**
 * Held here so that a change of the image, and so of its program, is a decision: every node then replaces the image of its
 * next sandboxes.
 */
const IDS = {
  amd64: "sha256:12d2f922180c7931c748ca7d0c62ea2319eedf8e0cb9bdac4ee6107485995fff",
  arm64: "sha256:f3e8e19451ec275bae75116398521223f7cc1cc7cee92ae591262f53afa6730a",
} as const;

describe("the image", () => {
  test.each(["amd64", "arm64"] as const)("is the same at every build (%s)", (architecture) => {
    expect(buildPauseImage(architecture).id).toBe(IDS[architecture]);
  });

  const engine = (architecture: string, routes: Record<string, FakeRoute>) =>
    new FakeDaemon({
      routes: {
        "GET /version": () => Response.json({ Version: "20.10.24", ApiVersion: "1.41", Arch: architecture }),
        ...routes,
      },
    });
  const inspectOf = (architecture: "amd64" | "arm64", id = buildPauseImage(architecture).id) => ({
    Id: id,
    Architecture: architecture,
    RootFS: { Layers: [buildPauseImage(architecture).layer] },
    Config: { Entrypoint: ["/pause"], User: "65535:65535", Labels: { "kubelet-ts.io/pause": "1" } },
  });
  const none = () => Response.json({ message: "No such image" }, { status: 404 });
  const clientOf = (daemon: FakeDaemon) => new DockerClient({ kind: "unix", path: daemon.socketPath });
  const loads = (daemon: FakeDaemon) => daemon.requests.filter(({ path }) => path === "/images/load").length;

  test.each(["amd64", "arm64"] as const)("is loaded when it is not there (%s)", async (architecture) => {
    let loaded = false;
    using daemon = engine(architecture, {
      [`GET /images/${PAUSE_IMAGE}/json`]: () => (loaded ? Response.json(inspectOf(architecture)) : none()),
      "POST /images/load": () => {
        loaded = true;
        return new Response('{"stream":"Loaded image: kubelet-ts/pause:1\\n"}\n');
      },
    });
    expect(await ensurePauseImage(clientOf(daemon))).toBe(buildPauseImage(architecture).id);
    expect(loads(daemon)).toBe(1);
  });

  test("is not loaded when it is there, whatever id the image store gave it", async () => {
    using daemon = engine("amd64", {
      [`GET /images/${PAUSE_IMAGE}/json`]: () => Response.json(inspectOf("amd64", "sha256:of-its-manifest")),
    });
    expect(await ensurePauseImage(clientOf(daemon))).toBe("sha256:of-its-manifest");
    expect(loads(daemon)).toBe(0);
  });

  test("is loaded again when its name means something else by now", async () => {
    let loaded = false;
    using daemon = engine("amd64", {
      [`GET /images/${PAUSE_IMAGE}/json`]: () =>
        Response.json(loaded ? inspectOf("amd64") : { ...inspectOf("amd64"), RootFS: { Layers: ["sha256:evil"] } }),
      "POST /images/load": () => {
        loaded = true;
        return new Response("");
      },
    });
    expect(await ensurePauseImage(clientOf(daemon))).toBe(buildPauseImage("amd64").id);
    expect(loads(daemon)).toBe(1);
  });

  test("an engine that loads it as something else is an error", async () => {
    using daemon = engine("amd64", {
      [`GET /images/${PAUSE_IMAGE}/json`]: () => Response.json({ ...inspectOf("amd64"), RootFS: null }),
      "POST /images/load": () => new Response(""),
    });
    await expect(ensurePauseImage(clientOf(daemon))).rejects.toThrow("as something else");
  });

  test("on a machine of another kind the error says what to do", async () => {
    using daemon = engine("riscv64", {});
    await expect(ensurePauseImage(clientOf(daemon))).rejects.toThrow("--pod-infra-container-image");
  });

  test("another image is used as it is, and pulled when it is not there", async () => {
    let pulled = false;
    using daemon = engine("riscv64", {
      "GET /images/r.io/pause:3/json": () => (pulled ? Response.json({ Id: "sha256:other" }) : none()),
      "POST /images/create": () => {
        pulled = true;
        return new Response("");
      },
    });
    const override = "r.io/pause:3";
    expect(await ensurePauseImage(clientOf(daemon), { override })).toBe("sha256:other");
    expect(await ensurePauseImage(clientOf(daemon), { override })).toBe("sha256:other");
    expect(daemon.requests.filter(({ path }) => path === "/images/create")).toHaveLength(1);
    expect(loads(daemon)).toBe(0);
  });

  test("another image that cannot be pulled is named, and who asked for it", async () => {
    using daemon = engine("amd64", {
      "GET /images/r.io/pause:3/json": none,
      "POST /images/create": () => Response.json({ message: "manifest unknown" }, { status: 404 }),
    });
    await expect(ensurePauseImage(clientOf(daemon), { override: "r.io/pause:3" })).rejects.toThrow(
      /^Cannot pull image "r\.io\/pause:3" of the sandboxes, which --pod-infra-container-image names: .*manifest unknown/,
    );
  });

  test("is recognized by its label", () => {
    expect(isAnyPauseImage({ "kubelet-ts.io/pause": "1" })).toBe(true);
    expect(isAnyPauseImage({})).toBe(false);
  });
});
