import { PATIENCE_MS } from "./until.ts";

export interface TerminalSession {
  environment: Record<string, string>;
  /** The input is typed when this was printed. */
  until: string;
  input: string;
}

/** Runs a program in a pseudo-terminal, types into it, and waits for its end. @returns everything it printed */
export async function inTerminal(argv: readonly string[], session: TerminalSession): Promise<string> {
  let text = "";
  let isTyped = false;
  const child = Bun.spawn([...argv], {
    env: { ...session.environment, TERM: "dumb" },
    terminal: {
      cols: 200,
      rows: 24,
      data(terminal, data) {
        text += Buffer.from(data).toString();
        if (isTyped || !text.includes(session.until)) return;
        isTyped = true;
        terminal.write(session.input);
      },
    },
  });
  const timer = setTimeout(() => child.kill(), PATIENCE_MS);
  await child.exited;
  clearTimeout(timer);
  child.terminal?.close();
  return text.replaceAll("\r", "");
}
