import { join } from "node:path";
import { PATIENCE_MS, until } from "../until.ts";
import { isReady } from "./cluster-objects.ts";
import { KUBERNETES } from "./cluster-tools.ts";
import type { ControlPlane } from "./control-plane.ts";

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** An object as the API server answers it; tests read the fields they need. */
// biome-ignore lint/suspicious/noExplicitAny: the shape depends on the kind.
export type AnyObject = any;

/** kubectl 1.20.2 of a control plane's administrator. */
export class ClusterKubectl {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  spawn(args: readonly string[], stdin: "ignore" | Blob = "ignore") {
    return Bun.spawn(this.#command(args), { ...this.#place(), stdin, stdout: "pipe", stderr: "pipe" });
  }

  /** Its standard input stays open for the test. */
  spawnWithInput(args: readonly string[]) {
    return Bun.spawn(this.#command(args), { ...this.#place(), stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  }

  #command = (args: readonly string[]) => [
    join(KUBERNETES, "kubectl"),
    `--kubeconfig=${this.#plane.adminConfig}`,
    ...args,
  ];

  #place = () => ({
    cwd: this.#plane.directory,
    env: { PATH: process.env.PATH ?? "", HOME: this.#plane.directory },
  });

  /** To its end, also when it fails. */
  async run(args: readonly string[], stdin?: string): Promise<Outcome> {
    const child = this.spawn(args, stdin === undefined ? "ignore" : new Blob([stdin]));
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { code, stdout, stderr };
  }

  /** The output of kubectl. @throws Error when it fails */
  async output(args: readonly string[], stdin?: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, stdin);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: exit code ${code}: ${stderr}${stdout}`);
    return stdout.trim();
  }

  async json(args: readonly string[]): Promise<AnyObject> {
    return JSON.parse(await this.output([...args, "-o", "json"]));
  }

  /** The objects of a kind in namespace default, or those a selector names. */
  async list(kind: string, ...args: string[]): Promise<AnyObject[]> {
    return (await this.json(["get", kind, ...args])).items;
  }

  /** Creates or changes objects. */
  async apply(...objects: object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await this.output(["apply", "-f", "-"], JSON.stringify(list));
  }

  /** Waits until a pod of namespace default is Ready. */
  readyPod(name: string): Promise<AnyObject> {
    return this.until(`pod "${name}" to be Ready`, async () => {
      const pod = await this.json(["get", "pod", name]);
      return isReady(pod) && pod;
    });
  }

  /** Waits until an object of namespace default has an event of that reason whose message contains the text. */
  untilEvent(name: string, reason: string, text: string): Promise<true> {
    return this.until(`the event ${reason} of "${name}"`, async () => {
      const events = await this.list("events", `--field-selector=involvedObject.name=${name},reason=${reason}`);
      return events.some(({ message }: AnyObject) => message.includes(text));
    });
  }

  /** Waits until `attempt` sees what it waits for; a failure shows the pods and the control plane's logs. */
  until<T>(
    what: string,
    attempt: () => Promise<T>,
    limitMs = 2 * PATIENCE_MS,
  ): Promise<NonNullable<Exclude<T, false>>> {
    return until(what, attempt, { limitMs, details: () => this.#details() });
  }

  async #details(): Promise<string> {
    const parts = [
      ["get", "nodes,pods", "-A", "-o", "wide"],
      ["get", "events", "-A"],
    ];
    const shown = await Promise.all(
      parts.map(async (args) => {
        const { stdout, stderr } = await this.run(args);
        return `${stdout}${stderr}`.trimEnd().split("\n").slice(-30).join("\n");
      }),
    );
    return [...shown, this.#plane.diagnosis()].join("\n");
  }
}
