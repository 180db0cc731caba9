import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { MisconfigurationError } from "../docker/docker-engine.ts";

/** Pause after an attempt that failed. */
const RETRY_MS = 1_000;
/** An attempt without an answer is logged after this time; it continues. */
const SILENCE_MS = 10_000;

/**
 * Connects to the engine, which may start later than the kubelet: each new error is logged once, attempts are made every
 * second. Resolves when it is connected or `stop` aborts.
 * @throws MisconfigurationError: a retry does not help
 */
export async function connectWithRetries(
  connect: (signal: AbortSignal) => Promise<void>,
  clock: Clock,
  logger: Logger,
  stop: AbortSignal,
): Promise<void> {
  let isSilenceLogged = false;
  const noteSilence = () => {
    if (isSilenceLogged) return;
    isSilenceLogged = true;
    const seconds = SILENCE_MS / 1000;
    logger.warn(
      `The Docker engine has not answered for ${seconds} s: no pod starts before it does ("docker info" shows whether it hangs)`,
    );
  };
  for (let lastMessage = ""; !stop.aborted; ) {
    const cancel = clock.schedule(SILENCE_MS, noteSilence);
    try {
      return await connect(stop);
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof MisconfigurationError) throw error;
      const { message } = error as Error;
      if (message !== lastMessage) logger.error(message);
      lastMessage = message;
    } finally {
      cancel();
    }
    await clock.sleep(RETRY_MS, stop).catch(() => {});
  }
}
