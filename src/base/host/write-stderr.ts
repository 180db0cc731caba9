/** Writes a text for users. Errors (a full disk, a closed pipe) are ignored: there is no other place to report them. */
export function writeStderr(text: string): void {
  try {
    process.stderr.write(text);
  } catch {
    // Lost.
  }
}

process.stderr.on("error", () => {});
