/** `KUBELET_TS_TEST_SLOWNESS`: how many times longer than usual tests wait, on a slow machine. */
export const SLOWNESS = Math.max(1, Number(process.env.KUBELET_TS_TEST_SLOWNESS ?? 1) || 1);

/** How long a real engine on a busy machine may take for anything a test waits for. */
export const PATIENCE_MS = 60_000 * SLOWNESS;

/** Between two attempts: three times as long as one took, so that waiting leaves the machine to what is waited for. */
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [25, 1000];

/**
 * Checks repeatedly until there is a result. No test asserts how long that took.
 * @param what for the message when the deadline passes, e.g. `three running containers`
 * @param attempt gives the awaited value, or undefined, null or false for "not yet"; what it throws counts as "not yet"
 * @param details more for the message, asked only when it failed
 */
export async function until<T>(
  what: string,
  attempt: () => T | Promise<T>,
  options: { limitMs?: number; details?: () => string | Promise<string> } = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const limitMs = options.limitMs ?? PATIENCE_MS;
  const end = performance.now() + limitMs;
  for (;;) {
    const started = performance.now();
    let seen: unknown;
    try {
      const value = await attempt();
      if (value !== undefined && value !== null && value !== false) return value as NonNullable<Exclude<T, false>>;
      seen = undefined;
    } catch (error) {
      seen = error;
    }
    const now = performance.now();
    if (now > end) {
      const details = (await options.details?.()) ?? "";
      throw new Error(`Waited ${limitMs} ms for ${what}.${details === "" ? "" : `\n${details}`}`, { cause: seen });
    }
    await Bun.sleep(Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, 3 * (now - started))));
  }
}
