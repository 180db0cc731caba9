/** One asynchronous file access at a time, with a deadline: a file system that does not answer occupies one thread at most. */
export interface FileSlot {
  /**
   * Runs `work` when no other access is under way.
   * @returns undefined, without running it, when the slot is not free in time
   * @throws Error when `work` fails or takes longer than `timeoutMs`
   */
  attempt<T>(work: () => Promise<T>, timeoutMs: number): Promise<{ value: T } | undefined>;
}
