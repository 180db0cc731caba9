import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TarEntry, tarArchive } from "../../src/base/files/tar.ts";
import { pauseExecutable } from "../../src/docker/pause-image.ts";
import { RUN_ID, readEngine } from "./test-node.ts";
import { freePorts } from "./test-servers.ts";
import { until } from "./until.ts";

const INSTALLED = "/usr/bin/docker-registry";
/** Where Debian's package is unpacked when it is not installed; installing it would start a service. */
const UNPACKED = join(import.meta.dir, "..", "..", "node_modules", ".cache", "docker-registry");

/** undefined: there is none, and none can be unpacked. */
const program = await findRegistry();

async function findRegistry(): Promise<string | undefined> {
  const unpacked = join(UNPACKED, INSTALLED);
  const found = [INSTALLED, unpacked].find(existsSync);
  if (found !== undefined) return found;
  // A path that the compiler does not follow: the script has no types.
  const apt = await import(join(import.meta.dir, "..", "..", "scripts", "apt.mjs"));
  if (!apt.isAptMachine()) return undefined;
  mkdirSync(UNPACKED, { recursive: true });
  try {
    await apt.unpackPackages(["docker-registry"], UNPACKED);
  } catch (error) {
    console.warn(`docker-registry is not available: ${(error as Error).message}`);
    return undefined;
  }
  return existsSync(unpacked) ? unpacked : undefined;
}

/** Whether tests can have a registry. Where CI is set it is a failure to have none. */
export const hasRegistry = program !== undefined;
if (!hasRegistry && process.env.CI)
  throw new Error("These tests need docker-registry: apt-get install docker-registry");

interface RegistryOptions {
  /** Wants these with every request (HTTP basic). */
  login?: { user: string; password: string };
}

export interface PushedImage {
  /** With the registry's address: what a manifest would name. */
  reference: string;
  digest: string;
  /** Id of the image on the engine: the sha256 of its config; with images in containerd that of the manifest. */
  id: string;
}

/** A real registry as a child process, on a port of its own, with nothing in it. */
export class TestRegistry {
  readonly address: string;
  readonly #directory = mkdtempSync(join(tmpdir(), `kubelet-ts-t-${RUN_ID}-registry-`));
  readonly #options: RegistryOptions;
  readonly #isContainerdStore: boolean;
  #child: Bun.Subprocess | undefined;

  private constructor(options: RegistryOptions, isContainerdStore: boolean) {
    this.#options = options;
    this.#isContainerdStore = isContainerdStore;
    this.address = `127.0.0.1:${freePorts(1)[0]}`;
  }

  static async start(options: RegistryOptions = {}): Promise<TestRegistry> {
    const registry = new TestRegistry(options, (await readEngine("/info")).includes("io.containerd.snapshotter"));
    await registry.#writeConfig();
    await registry.#start();
    return registry;
  }

  async #start(): Promise<void> {
    const child = Bun.spawn([program ?? INSTALLED, "serve", join(this.#directory, "config.yml")], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(join(this.#directory, "log")),
    });
    this.#child = child;
    await until("the registry", async () => {
      if (child.exitCode !== null) throw new Error(`docker-registry ended with ${child.exitCode}`);
      return (await this.#call("GET", "/v2/")).ok;
    });
  }

  async cleanUp(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.exited;
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /**
   * Puts an image of one random file into it, so that no two are the same.
   * @param name with tag, e.g. `oracle/app:1`
   */
  push(name: string): Promise<PushedImage> {
    const config = { Cmd: ["/file"], Env: ["A=b"], User: "1000" };
    return this.#push(name, [{ path: "file", mode: 0o644, data: randomBytes(100) }], config);
  }

  /** Puts an image into it that runs, and ends on TERM; each one is another. */
  pushRunnable(name: string): Promise<PushedImage> {
    const files = [
      { path: "pause", mode: 0o755, data: pauseExecutable(ARCHITECTURE) },
      { path: "salt", mode: 0o644, data: randomBytes(8) },
    ];
    return this.#push(name, files, { Entrypoint: ["/pause"] });
  }

  async #push(name: string, files: readonly TarEntry[], imageConfig: object): Promise<PushedImage> {
    const [repository = "", tag = "latest"] = name.split(":");
    const layerTar = tarArchive(files);
    const layer = Bun.gzipSync(layerTar);
    const config = json({
      architecture: ARCHITECTURE,
      os: "linux",
      config: imageConfig,
      rootfs: { type: "layers", diff_ids: [sha256(layerTar)] },
    });
    for (const blob of [layer, config]) await this.#upload(repository, blob);
    const entry = (mediaType: string, blob: Uint8Array) => ({ mediaType, size: blob.length, digest: sha256(blob) });
    const manifest = json({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: entry("application/vnd.docker.container.image.v1+json", config),
      layers: [entry("application/vnd.docker.image.rootfs.diff.tar.gzip", layer)],
    });
    const path = `/v2/${repository}/manifests/${tag}`;
    const put = await this.#call("PUT", path, manifest, { "Content-Type": MANIFEST_TYPE });
    if (!put.ok) throw new Error(`The registry refused the manifest: ${put.status} ${await put.text()}`);
    const [digest, configDigest] = [sha256(manifest), sha256(config)];
    const id = this.#isContainerdStore ? digest : configDigest;
    return { reference: `${this.address}/${repository}:${tag}`, digest, id };
  }

  async #upload(repository: string, blob: Uint8Array): Promise<void> {
    const begun = await this.#call("POST", `/v2/${repository}/blobs/uploads/`);
    const place = begun.headers.get("location");
    if (begun.status !== 202 || place === null) throw new Error(`The registry refused an upload: ${begun.status}`);
    const url = new URL(place, `http://${this.address}`);
    url.searchParams.set("digest", sha256(blob));
    const type = { "Content-Type": "application/octet-stream" };
    const put = await this.#call("PUT", `${url.pathname}${url.search}`, blob, type);
    if (put.status !== 201) throw new Error(`The registry refused a blob: ${put.status} ${await put.text()}`);
  }

  #call(method: string, path: string, body?: Uint8Array, headers: Record<string, string> = {}): Promise<Response> {
    const { login } = this.#options;
    const authorization = login ? { Authorization: `Basic ${btoa(`${login.user}:${login.password}`)}` } : {};
    return fetch(`http://${this.address}${path}`, {
      method,
      headers: { ...headers, ...authorization },
      ...(body ? { body: body as Uint8Array<ArrayBuffer> } : {}),
    });
  }

  async #writeConfig(): Promise<void> {
    const { login } = this.#options;
    const lines = [
      "version: 0.1",
      "log: {level: warn, accesslog: {disabled: true}}",
      `storage: {filesystem: {rootdirectory: ${join(this.#directory, "data")}}}`,
      "http:",
      `  addr: ${this.address}`,
      "  relativeurls: true",
    ];
    if (login) {
      const file = join(this.#directory, "htpasswd");
      const hash = await Bun.password.hash(login.password, { algorithm: "bcrypt", cost: 4 });
      writeFileSync(file, `${login.user}:${hash}\n`);
      lines.push(`auth: {htpasswd: {realm: test, path: ${file}}}`);
    }
    writeFileSync(join(this.#directory, "config.yml"), `${lines.join("\n")}\n`);
  }
}

const MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json";

const ARCHITECTURE = process.arch === "arm64" ? "arm64" : "amd64";

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

const sha256 = (bytes: Uint8Array) => `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
