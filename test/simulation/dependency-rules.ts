import type { WantedPod } from "./desired.ts";
import type { ModelContainer, Transition } from "./engine-model.ts";

/** Where nothing is wrong, a running kubelet knows other pods as they were this long ago, or later. */
const KNOWN_MS = 10_000;

/** A pod starts only when the one that it depends on has run since the machine booted, and where nothing is wrong: runs. */
export class DependencyRules {
  readonly #nowMs: () => number;
  /** Names of the containers that run, by app. */
  readonly #running = new Map<string, Set<string>>();
  /** When all containers of an app ran last, by app. */
  readonly #upMs = new Map<string, number>();
  #bootMs = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  noteBoot(): void {
    this.#bootMs = this.#nowMs();
  }

  /** @param app of the container, which `wanted` asks for */
  note({ what }: Transition, name: string, app: string, wanted: WantedPod | undefined): void {
    const running = this.#running.get(app) ?? new Set();
    this.#running.set(app, running);
    if (wanted && isWhole(wanted, running)) this.#upMs.set(app, this.#nowMs());
    if (what === "start") running.add(name);
    if (what === "end") running.delete(name);
    if (wanted && isWhole(wanted, running)) this.#upMs.set(app, this.#nowMs());
  }

  /** A sandbox starts. @param isCalm nothing was wrong for a while. @returns what is wrong with it */
  findEarlyStart({ name }: ModelContainer, dependency: WantedPod, isCalm: boolean): string | undefined {
    const { app } = dependency;
    const isUp = isWhole(dependency, this.#running.get(app) ?? new Set());
    const upMs = isUp ? this.#nowMs() : (this.#upMs.get(app) ?? Number.NEGATIVE_INFINITY);
    const sinceMs = isCalm ? this.#nowMs() - KNOWN_MS : this.#bootMs;
    return upMs < sinceMs ? `${name} starts before ${app}, which it depends on` : undefined;
  }
}

const isWhole = ({ containers }: WantedPod, running: ReadonlySet<string>) =>
  containers.every(({ name }) => running.has(name));
