import { existsSync } from "node:fs";
import { join } from "node:path";
import { startWithApi } from "./local-api.ts";
import type { TestNode } from "./test-node.ts";
import { until } from "./until.ts";

/** Where scripts/test-tools.mjs unpacks Debian's kubectl. */
const UNPACKED = join(import.meta.dir, "..", "..", "node_modules", ".cache", "test-tools", "usr", "bin", "kubectl");

interface KubectlClient {
  version: string;
  program: string;
}

/** Every kubectl of this machine, each version once: that on PATH and Debian's. */
export function kubectlClients(): KubectlClient[] {
  const programs = [Bun.which("kubectl"), UNPACKED].filter((it) => it !== null && existsSync(it)) as string[];
  const found = new Map<string, KubectlClient>();
  for (const program of programs) {
    const { stdout } = Bun.spawnSync([program, "version", "--client", "-o", "json"]);
    const [, version] = /"gitVersion": *"(v1\.[^"]*)"/.exec(stdout.toString()) ?? [];
    if (version && !found.has(version)) found.set(version, { version, program });
  }
  if (found.size === 0)
    console.warn("tests with kubectl are skipped: there is none (scripts/test-tools.mjs unpacks it)");
  return [...found.values()];
}

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** An object as an API server answers it; tests read the fields they need. */
// biome-ignore lint/suspicious/noExplicitAny: the shape depends on the kind.
export type AnyObject = any;

type Wait = <T>(what: string, attempt: () => Promise<T>, limitMs?: number) => Promise<NonNullable<Exclude<T, false>>>;

export class Kubectl {
  readonly program: string;
  readonly environment: Record<string, string>;

  constructor(program: string, kubeconfig: string, home: string) {
    this.program = program;
    this.environment = { PATH: process.env.PATH ?? "", HOME: home, KUBECONFIG: kubeconfig };
  }

  spawn<In extends "ignore" | "pipe" | Blob = "ignore">(
    args: readonly string[],
    stdin = "ignore" as In,
    environment: Record<string, string> = {},
  ) {
    const env = { ...this.environment, ...environment };
    const cwd = this.environment.HOME as string;
    return Bun.spawn<In, "pipe", "pipe">([this.program, ...args], { env, cwd, stdin, stdout: "pipe", stderr: "pipe" });
  }

  /** To its end, whatever its exit code. @param environment in addition to the usual one */
  async run(args: readonly string[], stdin?: string, environment?: Record<string, string>): Promise<Outcome> {
    const child = this.spawn(args, stdin === undefined ? "ignore" : new Blob([stdin]), environment);
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, stdout, stderr };
  }

  async output(args: readonly string[], stdin?: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, stdin);
    if (code !== 0) throw new Error(`${this.program} ${args.join(" ")}: exit code ${code}: ${stderr}${stdout}`);
    return stdout.trim();
  }

  /** As {@link output}, of words with spaces between them. */
  words(line: string): Promise<string> {
    return this.output(line.split(" "));
  }

  async json(line: string): Promise<AnyObject> {
    return JSON.parse(await this.words(`${line} -o json`));
  }

  /** The objects of a kind in namespace default, or those a selector names. */
  async list(kind: string, ...args: string[]): Promise<AnyObject[]> {
    return JSON.parse(await this.output(["get", kind, ...args, "-o", "json"])).items;
  }

  apply(...objects: object[]): Promise<string> {
    return this.output(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  }

  exec(pod: string, ...command: string[]): Promise<string> {
    return this.output(["exec", pod, "--", ...command]);
  }

  until: Wait = (what, attempt, limitMs) => until(what, attempt, { ...(limitMs !== undefined && { limitMs }) });

  /** Waits until there is no such object. @param object e.g. `pod/web` */
  untilGone(object: string): Promise<true> {
    return this.until(`no ${object}`, async () => (await this.run(["get", object])).code !== 0);
  }
}

/** Starts a kubelet with a local API. @returns kubectl with its kubeconfig */
export async function startForKubectl(
  node: TestNode,
  { program, version }: KubectlClient,
  flags: readonly string[] = [],
): Promise<Kubectl> {
  await startWithApi(node, flags);
  const home = join(node.directory, `home-${version}`);
  await Bun.$`mkdir -p ${home}`;
  return new Kubectl(program, join(node.rootDir, "admin.conf"), home);
}
