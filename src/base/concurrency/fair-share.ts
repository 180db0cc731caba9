/** Counts what is under way, by client address. Beyond the limit an address is refused that has more than its share. */
export class FairShare {
  readonly #limit: number;
  readonly #byAddress = new Map<string, number>();
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns what ends it, to be called once or more; undefined: refused */
  enter(address: string): (() => void) | undefined {
    const own = (this.#byAddress.get(address) ?? 0) + 1;
    const addresses = this.#byAddress.size + (own === 1 ? 1 : 0);
    if (this.#total >= this.#limit && own > Math.max(1, Math.floor(this.#limit / addresses))) return undefined;
    this.#total++;
    this.#byAddress.set(address, own);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#total--;
      const left = this.#byAddress.get(address)! - 1;
      if (left > 0) this.#byAddress.set(address, left);
      else this.#byAddress.delete(address);
    };
  }
}
