import { BROKEN_PIPE_EXIT, BrokenPipeError, writeStderr } from "../base/host/write-all.ts";
import type { Logger } from "../base/model/logger.ts";

let survive: ((message: string) => void) | undefined;

/**
 * Handles uncaught errors: a command exits with 1, so that its partial output is not mistaken for complete.
 * @see {@link logUnexpectedErrors}
 */
export function handleUnexpectedErrors(): void {
  for (const event of ["unhandledRejection", "uncaughtException"] as const) {
    process.on(event, (error: unknown) => onUnexpectedError(event, error));
  }
}

/** From now on supervision continues after an error: the error is logged, and the next sync tries again. */
export function logUnexpectedErrors(logger: Logger): void {
  survive = (message) => logger.error(message);
}

/** @param event what happened, for the message */
function onUnexpectedError(event: string, error: unknown): void {
  const { code, stack, message } = (error ?? {}) as NodeJS.ErrnoException;
  const isWrite = (error as NodeJS.ErrnoException | null)?.syscall === "write";
  if (survive) return survive(`unexpected ${event}: ${stack ?? String(error)}`);
  if (error instanceof BrokenPipeError || (isWrite && code === "EPIPE")) process.exit(BROKEN_PIPE_EXIT);
  writeStderr(
    `kubelet-ts: ${isWrite ? `cannot write: ${message}` : `unexpected ${event}: ${stack ?? String(error)}`}\n`,
  );
  process.exit(1);
}
