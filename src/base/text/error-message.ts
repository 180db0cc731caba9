/** The message of a thrown value. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Code of a system error, e.g. `ENOENT`; "" for an error without one. */
export const codeOf = (error: unknown): string => (error as { code?: string } | undefined)?.code ?? "";

/** The result of `work`; undefined when it fails. */
export function unlessFailed<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** The result of `work`; undefined when it fails with one of these codes. @throws any other error */
export function unlessCode<T>(codes: readonly string[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (codes.includes(codeOf(error))) return undefined;
    throw error;
  }
}
