/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Spreads work over turns of the event loop, first come first served, so that what comes together makes no long turn. */
export class TurnPace {
  readonly #waiting: (() => void)[] = [];
  #done = 0;
  #isTurnPlanned = false;

  /** @param onTurn gets what was done in a turn at its end */
  constructor(
    readonly mostPerTurn: number,
    readonly onTurn: (done: number) => void = () => {},
  ) {}

  /** Resolves when work of this cost may be done; undefined: now. */
  enter(cost: number): Promise<void> | undefined {
    if (!this.#isTurnPlanned) this.#planTurn();
    const begin = (): undefined => {
      this.#done += cost;
    };
    if (this.#waiting.length === 0 && this.#done < this.mostPerTurn) return begin();
    return new Promise((resolve) => this.#waiting.push(() => resolve(begin())));
  }

  #planTurn(): void {
    this.#isTurnPlanned = true;
    setImmediate(() => {
      this.#isTurnPlanned = false;
      this.onTurn(this.#done);
      this.#done = 0;
      let begun = 0;
      while (begun < this.#waiting.length && this.#done < this.mostPerTurn) this.#waiting[begun++]!();
      this.#waiting.splice(0, begun);
      if (begun > 0) this.#planTurn();
    });
  }
}
