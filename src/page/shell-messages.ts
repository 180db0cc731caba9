/** Channels of `v5.channel.k8s.io`: the first byte of each message. */
export const CHANNEL = { stdin: 0, stdout: 1, error: 3, resize: 4 } as const;

export function encodeMessage(channel: number, text: string): Uint8Array<ArrayBuffer> {
  const data = new TextEncoder().encode(text);
  const message = new Uint8Array(data.length + 1);
  message[0] = channel;
  message.set(data, 1);
  return message;
}

/** The server takes messages of at most 1 MiB. Unit: UTF-16 code units. */
const MAX_INPUT = 64 * 1024;

/** Pasted text may be long. A surrogate pair is not split. Pure. */
export function splitInput(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + MAX_INPUT, text.length);
    if (to < text.length && /[\ud800-\udbff]/.test(text.charAt(to - 1))) to--;
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

export interface ShellEnd {
  message: string;
  /** The container has no shell. */
  isMissing: boolean;
}

/** Exit codes of engines that cannot execute the command. */
const CANNOT_EXECUTE: ReadonlySet<string | undefined> = new Set(["126", "127"]);

/** 128 + SIGKILL. */
const KILLED = "137";

/** @param status the last message of the error channel, a `Status` in JSON */
export function describeEnd(status: Uint8Array, hasTyped: boolean): ShellEnd {
  const {
    status: outcome,
    message = "The shell failed.",
    details,
  } = JSON.parse(new TextDecoder().decode(status)) as {
    status?: string;
    message?: string;
    details?: { causes?: { reason?: string; message?: string }[] };
  };
  if (outcome === "Success") return { message: "The shell ended.", isMissing: false };
  const exitCode = details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
  if (!hasTyped && CANNOT_EXECUTE.has(exitCode)) return { message: "This image has no shell.", isMissing: true };
  if (exitCode === undefined) return { message, isMissing: false };
  const why = exitCode === KILLED ? " (killed, as when its container ends)" : "";
  return { message: `The shell ended with exit code ${exitCode}${why}.`, isMissing: false };
}
