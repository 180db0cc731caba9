import { seededRandom } from "../support/seeded-random.ts";

/** Chance that a seed repeats. */
export class SeededRandom {
  /** In [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seededRandom(seed);
  }

  /** In [low, high). */
  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** A whole number in [low, high]. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(values: readonly T[]): T {
    const value = values[Math.floor(this.next() * values.length)];
    if (value === undefined) throw new Error("nothing to pick from");
    return value;
  }

  hex(digits: number): string {
    let text = "";
    while (text.length < digits)
      text += Math.floor(this.next() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, "0");
    return text.slice(0, digits);
  }

  uuid(): `${string}-${string}-${string}-${string}-${string}` {
    const digits = this.hex(32);
    return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-a${digits.slice(17, 20)}-${digits.slice(20)}`;
  }
}
