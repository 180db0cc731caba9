import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestNode } from "./test-node.ts";

/** Where scripts/test-tools.mjs unpacks Debian's kubectl. */
const UNPACKED = join(import.meta.dir, "..", "..", "node_modules", ".cache", "test-tools", "usr", "bin", "kubectl");

export interface KubectlClient {
  /** e.g. `v1.20.2`. */
  version: string;
  program: string;
  /** Talks WebSocket rather than SPDY to containers. */
  isModern: boolean;
}

/** Every kubectl of this machine, each version once: that on PATH and Debian's. */
export function kubectlClients(): KubectlClient[] {
  const programs = [Bun.which("kubectl"), UNPACKED].filter((it) => it !== null && existsSync(it)) as string[];
  const found = new Map<string, KubectlClient>();
  for (const program of programs) {
    const { stdout } = Bun.spawnSync([program, "version", "--client", "-o", "json"]);
    const [, version = "", minor = "0"] = /"gitVersion": *"(v1\.(\d+)[^"]*)"/.exec(stdout.toString()) ?? [];
    if (version !== "" && !found.has(version)) found.set(version, { version, program, isModern: Number(minor) >= 31 });
  }
  return [...found.values()];
}

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs kubectl against the local API of a node, with its admin.conf. */
export class Kubectl {
  readonly client: KubectlClient;
  readonly #node: TestNode;

  constructor(client: KubectlClient, node: TestNode) {
    this.client = client;
    this.#node = node;
  }

  get environment(): Record<string, string> {
    return {
      PATH: process.env.PATH ?? "",
      HOME: join(this.#node.directory, `home-${this.client.version}`),
      KUBECONFIG: join(this.#node.rootDir, "admin.conf"),
    };
  }

  spawn(args: readonly string[], options: { stdin?: string | "pipe"; environment?: Record<string, string> } = {}) {
    const { stdin, environment = {} } = options;
    return Bun.spawn([this.client.program, ...args], {
      env: { ...this.environment, ...environment },
      stdin: stdin === undefined ? "ignore" : stdin === "pipe" ? "pipe" : Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  /** To its end, whatever its exit code. @param environment in addition to the usual one */
  async run(args: readonly string[], stdin?: string, environment: Record<string, string> = {}): Promise<Outcome> {
    const child = this.spawn(args, { ...(stdin !== undefined && { stdin }), environment });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout as ReadableStream).text(),
      new Response(child.stderr as ReadableStream).text(),
      child.exited,
    ]);
    return { code, stdout, stderr };
  }

  /** The output of kubectl. @throws Error when it fails */
  async output(args: readonly string[], stdin?: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, stdin);
    if (code !== 0)
      throw new Error(`kubectl ${this.client.version} ${args.join(" ")}: exit code ${code}: ${stderr}${stdout}`);
    return stdout.trim();
  }
}
