import { seededRandom } from "../support/seeded-random.ts";
/** A parser under test. Inputs and results are text, so that a failure can be reported and added to the seeds. */
export interface FuzzTarget {
  name: string;
  /** Valid inputs, and inputs that once failed. */
  seeds: readonly string[];
  /** Characters and words that mean something to the parser. */
  tokens: readonly string[];
  /** Mutations in a run of the unit tests. Default 150. */
  iterations?: number;
  /** @throws when the parser throws or an invariant does not hold */
  run(input: string): void | Promise<void>;
}

/** Runs a parser that may refuse its input with an error of a class, or with a message. @throws any other error */
export function mayThrow(expected: RegExp | (abstract new (...args: never[]) => Error), run: () => unknown): void {
  try {
    run();
  } catch (error) {
    const isExpected = expected instanceof RegExp ? expected.test((error as Error).message) : error instanceof expected;
    if (!isExpected) throw error;
  }
}

/** An input that broke a rule; `reason` says which one. */
export interface FuzzFailure {
  target: string;
  input: string;
  reason: string;
}

/** Limits of one input: a constant, and a part proportional to its length. */
const CPU_MS = 500;
const CPU_MS_PER_CHARACTER = 0.02;
const MEMORY_BYTES = 256 * 1024 * 1024;
const MEMORY_BYTES_PER_CHARACTER = 512;

/**
 * Runs one input within its budgets.
 * @returns what is wrong, or undefined
 */
async function runWithinBudget(target: FuzzTarget, input: string): Promise<string | undefined> {
  // Compilation and garbage collection count as CPU time: only an input that exceeds the budget twice is slow.
  const first = await runOnce(target, input);
  return first === undefined || !first.startsWith("used") ? first : await runOnce(target, input);
}

async function runOnce(target: FuzzTarget, input: string): Promise<string | undefined> {
  const memoryBefore = process.memoryUsage.rss();
  const cpuBefore = process.cpuUsage();
  try {
    await target.run(input);
  } catch (error) {
    return `failed: ${(error as Error).stack ?? error}`;
  }
  const cpu = process.cpuUsage(cpuBefore);
  const cpuMs = (cpu.user + cpu.system) / 1000;
  const allowedMs = CPU_MS + CPU_MS_PER_CHARACTER * input.length;
  if (cpuMs > allowedMs) return `used ${Math.round(cpuMs)} ms of CPU, ${Math.round(allowedMs)} ms are allowed`;
  const memory = process.memoryUsage.rss() - memoryBefore;
  const allowedMemory = MEMORY_BYTES + MEMORY_BYTES_PER_CHARACTER * input.length;
  if (memory > allowedMemory) return `used ${memory} bytes of memory, ${allowedMemory} are allowed`;
  return undefined;
}

/** Lengths at which a repeated part is tried: superlinear parsers fail at a small one, without a long wait. */
const REPEATED_LENGTHS = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];

/**
 * Runs the seeds and then `iterations` mutations of them.
 * @param maxLength of inputs; unit: characters
 * @param stop ends the run early
 */
export async function fuzz(
  target: FuzzTarget,
  options: { iterations: number; seed: number; maxLength: number; stop?: () => boolean },
): Promise<FuzzFailure[]> {
  const random = seededRandom(options.seed);
  const failures: FuzzFailure[] = [];
  const attempt = async (input: string): Promise<boolean> => {
    const reason = await runWithinBudget(target, input);
    if (reason !== undefined) failures.push({ target: target.name, input, reason });
    return reason === undefined;
  };
  for (const seed of target.seeds) await attempt(seed);
  for (let round = 0; round < options.iterations && failures.length < 5; round++) {
    if (options.stop?.()) break;
    const input = mutate(target, random).slice(0, options.maxLength);
    if (!(await attempt(input)) || random() >= 0.25) continue;
    const [before, part, after] = cut(input, random);
    for (const length of REPEATED_LENGTHS) {
      if (length > options.maxLength || part === "") break;
      if (!(await attempt(before + part.repeat(Math.ceil(length / part.length)) + after))) break;
    }
  }
  return failures;
}

function mutate({ seeds, tokens }: FuzzTarget, random: () => number): string {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  let text = pick(seeds).slice(0, 20_000);
  for (let count = 1 + Math.floor(random() * 4); count > 0; count--) {
    const [before, part, after] = cut(text, random);
    switch (Math.floor(random() * 6)) {
      case 0:
        text = before + after;
        break;
      case 1:
        text = before + part + part + after;
        break;
      case 2:
        text = before + pick(tokens) + part + after;
        break;
      case 3:
        text = before + pick(tokens) + after;
        break;
      case 4:
        text = before + String.fromCodePoint(Math.floor(random() * 0x180)) + after;
        break;
      default:
        text = before + cut(pick(seeds).slice(0, 20_000), random)[1] + after;
    }
  }
  return text;
}

/** Splits at two random places; the middle part is short in most cases. */
function cut(text: string, random: () => number): [string, string, string] {
  const start = Math.floor(random() * (text.length + 1));
  const longest = random() < 0.8 ? 8 : text.length;
  const end = Math.min(text.length, start + 1 + Math.floor(random() * longest));
  return [text.slice(0, start), text.slice(start, end), text.slice(end)];
}
