/** One figure of a case. */
export interface Measurement {
  /** e.g. `50 pods from nothing to running`. */
  what: string;
  unit: "ms" | "MB" | "µs" | "%" | "per s" | "number";
  /** The median where there were several runs. */
  value: number;
  /** Every run, in order; absent where there was one. */
  runs?: readonly number[];
  /** Cost of the same work without kubelet-ts, measured in the same run; same unit. */
  floor?: number;
  /** The floor, e.g. `same calls, 8 at a time`. */
  floorText?: string;
  /** Largest acceptable value, or largest ratio of value to floor. */
  goal?: { atMost: number } | { ratioAtMost: number };
}

export interface BenchCase {
  /** As named on the command line. */
  name: string;
  /** The subject, in one line. */
  about: string;
  /** Cleans up after itself, also when it fails. */
  run(): Promise<Measurement[]>;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  if (upper === undefined) throw new Error("no values to take the median of");
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

/** The smallest value that is not less than `share` of all: with 100 of them and 0.99, the second largest. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.min(sorted.length, Math.max(1, Math.ceil(share * sorted.length))) - 1];
  if (value === undefined) throw new Error("no values to take a percentile of");
  return value;
}

export const ratioOf = ({ value, floor }: Measurement) => (floor === undefined ? undefined : value / floor);

/** undefined: it has no goal. */
export function meetsGoal(measurement: Measurement): boolean | undefined {
  const { goal, value } = measurement;
  if (goal === undefined) return undefined;
  if ("atMost" in goal) return value <= goal.atMost;
  const ratio = ratioOf(measurement);
  return ratio === undefined ? undefined : ratio <= goal.ratioAtMost;
}
