import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LABEL } from "../../src/docker/labels.ts";
import type { TestNode } from "./test-node.ts";

const LIFECYCLE = join(import.meta.dir, "..", "fixtures", "oracle", "lifecycle");

/** A manifest of the recorded cases of category C, as `<case>/<file>`. */
export const recordedManifest = (path: string) => readFileSync(join(LIFECYCLE, path), "utf8");

interface Happening {
  /** `start`, `kill 15`, `die 0`, `destroy`, … */
  what: string;
  /** `a#0`; the sandbox is `POD#0`. */
  container: string;
  /** Without the node's suffix. */
  pod: string;
  atMs: number;
}

const KEPT = new Set(["create", "start", "kill", "die", "destroy"]);

/** Actions of the engine on the containers of one node, in its order: the recorded timelines' `docker` lines. */
export class EngineTimeline {
  readonly happenings: Happening[] = [];
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  /** Resolves once everything that happens from now on will be seen. */
  static async of(node: TestNode): Promise<EngineTimeline> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timeline = new EngineTimeline(node, resolve);
    await promise;
    return timeline;
  }

  private constructor(node: TestNode, onOpen: () => void) {
    this.#ended = this.#read(node, onOpen).catch(() => {});
  }

  stop(): Promise<void> {
    this.#stop.abort();
    return this.#ended;
  }

  /** `kill 15 a#0`, in order; of one pod, only these actions. */
  of(pod: string, actions: readonly string[] = ["kill", "die"]): string[] {
    return this.happenings
      .filter((it) => it.pod === pod && actions.includes(it.what.split(" ")[0]!))
      .map(({ what, container }) => `${what} ${container}`);
  }

  /** Position of the first such happening of a pod, -1 while there is none. */
  indexOf(pod: string, what: string): number {
    return this.happenings.findIndex((it) => it.pod === pod && `${it.what} ${it.container}` === what);
  }

  has(pod: string, what: string): boolean {
    return this.indexOf(pod, what) >= 0;
  }

  timeOf(pod: string, what: string): number {
    const found = this.happenings[this.indexOf(pod, what)];
    if (!found) throw new Error(`"${what}" did not happen to ${pod}; it had: ${this.of(pod, [...KEPT]).join(", ")}`);
    return found.atMs;
  }

  async #read(node: TestNode, onOpen: () => void): Promise<void> {
    const filters = { type: ["container"], label: [`${LABEL.node}=${node.name}`] };
    for await (const { action, attributes, cursor } of node.docker.events({
      filters,
      onOpen,
      signal: this.#stop.signal,
    })) {
      if (!KEPT.has(action)) continue;
      const isSandbox = attributes[LABEL.type] === "podsandbox";
      const attempt = attributes[isSandbox ? LABEL.sandboxAttempt : LABEL.restartCount] ?? "";
      const detail = { kill: attributes.signal, die: attributes.exitCode }[action];
      this.happenings.push({
        what: detail === undefined ? action : `${action} ${detail}`,
        container: `${isSandbox ? "POD" : attributes[LABEL.containerName]}#${attempt}`,
        pod: (attributes[LABEL.podName] ?? "").replace(`-${node.name}`, ""),
        atMs: Math.trunc(Number(cursor) * 1000),
      });
    }
  }
}
