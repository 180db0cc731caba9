/**
 * Writes what is for users. What cannot be written (a full disk, a reader that went away) is lost and nothing else happens:
 * pods do not depend on it, and it cannot be said anywhere either.
 */
export function writeStderr(text: string): void {
  try {
    process.stderr.write(text);
  } catch {
    // Lost.
  }
}

process.stderr.on("error", () => {});
