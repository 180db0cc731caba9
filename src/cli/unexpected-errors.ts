import type { Logger } from "../model/logger.ts";

let say = (message: string): void => void process.stderr.write(`kubelet-ts: ${message}\n`);

/** An error that nobody expected must not end the supervision of pods: it is said, and the next pass tries again. */
export function surviveUnexpectedErrors(): void {
  for (const event of ["unhandledRejection", "uncaughtException"] as const) {
    process.on(event, (error: unknown) => {
      say(`unexpected ${event}: ${error instanceof Error ? error.stack : String(error)}`);
    });
  }
}

/** From now on they are lines of the log, in its form. */
export function logUnexpectedErrors(logger: Logger): void {
  say = (message) => logger.error(message);
}
