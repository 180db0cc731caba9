import type { CommandIo } from "../../src/cli/sub-command.ts";

/** The streams of a command, kept in `out` and `err`. */
export function capturedIo(now: () => Date = () => new Date()): CommandIo & { out: string; err: string } {
  const io = {
    out: "",
    err: "",
    stdout: (data: string | Uint8Array) => {
      io.out += typeof data === "string" ? data : new TextDecoder().decode(data);
    },
    stderr: (text: string) => {
      io.err += text;
    },
    input: async function* () {},
    isTerminal: false,
    now,
    offsetMinutes: () => 0,
  };
  return io;
}
