import type { ImageProgress } from "../base/model/container-engine.ts";
import { escapeControl } from "./logging.ts";
import type { RunOnceResult } from "./wait-for-pods.ts";

interface ReportOutput {
  write: (text: string) => void;
  isTerminal: boolean;
  color: boolean;
  columns: () => number;
}

const MARK = { up: "✓", succeeded: "✓", failed: "✗", waiting: "…" } as const;
const PAINT = { up: 32, succeeded: 32, failed: 31, waiting: 33 } as const;

/** `✓ default/web-node1  Running  172.17.0.2`: one line for each pod; below a failed one, the end of its log. */
function formatResult({ name, verdict, pod, log = [] }: RunOnceResult, color: boolean): string {
  const mark = color ? `\u001b[${PAINT[verdict.state]}m${MARK[verdict.state]}\u001b[0m` : MARK[verdict.state];
  const ip = verdict.state === "up" && pod.status?.podIP ? `  ${pod.status.podIP}` : "";
  return [`${mark} ${name}  ${verdict.message}${ip}`, ...log.map((line) => `    ${escapeControl(line)}`)].join("\n");
}

/** Machine-readable result of each pod, with its whole status. The YAML writer is loaded only when needed. */
export async function serializeResults(results: readonly RunOnceResult[], output: "json" | "yaml"): Promise<string> {
  const report = {
    pods: results.map(({ pod, verdict, log }) => ({
      namespace: pod.metadata.namespace,
      name: pod.metadata.name,
      ok: verdict.state !== "failed",
      message: verdict.message,
      ...(log && { log }),
      status: pod.status,
    })),
  };
  if (output === "json") return `${JSON.stringify(report, null, 2)}\n`;
  return (await import("../base/text/write-yaml.ts")).writeYaml(report);
}

/**
 * Shows how far a run-once has come. On a terminal one line is rewritten; elsewhere each pod gets a line when its result is
 * known, and nothing moves.
 */
export class RunOnceReport {
  readonly #out: ReportOutput;
  readonly #reported = new Set<string>();
  readonly #pulls = new Map<string, ImageProgress>();
  #results: readonly RunOnceResult[] = [];
  #hasLine = false;

  constructor(out: ReportOutput) {
    this.#out = out;
  }

  /** Whether {@link progress} has an effect. */
  get showsProgress(): boolean {
    return this.#out.isTerminal;
  }

  progress(results: readonly RunOnceResult[]): void {
    this.#results = results;
    this.#redraw();
  }

  pull(progress: ImageProgress): void {
    if (progress.layers > 0 && progress.layersDone === progress.layers) this.#pulls.delete(progress.image);
    else this.#pulls.set(progress.image, progress);
    this.#redraw();
  }

  /** The lines that stay. */
  finish(results: readonly RunOnceResult[]): void {
    this.#clear();
    for (const result of results) {
      if (this.#reported.has(result.name)) continue;
      this.#reported.add(result.name);
      this.#out.write(`${formatResult(result, this.#out.color)}\n`);
    }
  }

  #redraw(): void {
    if (!this.#out.isTerminal) return;
    const up = this.#results.filter(({ verdict }) => verdict.state !== "waiting").length;
    const [pull] = this.#pulls.values();
    const late = this.#results.find(({ verdict }) => verdict.state === "waiting");
    const what = pull ? describePull(pull) : late ? `${late.name}: ${late.verdict.message}` : "";
    const line = `${up}/${this.#results.length} pods ${what}`.slice(0, Math.max(20, this.#out.columns() - 1));
    this.#clear();
    this.#out.write(line);
    this.#hasLine = true;
  }

  #clear(): void {
    if (this.#hasLine) this.#out.write("\r\u001b[K");
    this.#hasLine = false;
  }
}

function describePull({ image, layers, layersDone, downloadedBytes, totalBytes }: ImageProgress): string {
  const percent = totalBytes > 0 ? ` ${Math.floor((100 * downloadedBytes) / totalBytes)} %` : "";
  return `pulling ${image}: ${layersDone}/${layers} layers${percent}`;
}
