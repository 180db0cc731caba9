import { claimSlot } from "./connection-slots.ts";
import { askForConnections } from "./tab-visibility.ts";

/**
 * Runs `use` while it holds one of the few connections that may stay open.
 * @param signal ends the wait for one; `use` ends with it
 * @param onWait called once when none has become free for a second
 */
export async function withConnection(signal: AbortSignal, onWait: () => void, use: () => Promise<void>): Promise<void> {
  // Absent where the document did not come over a secure connection.
  if (!navigator.locks) return use();
  const release = await claimSlot(navigator.locks, signal, onWait, askForConnections);
  if (!release) return;
  try {
    if (!signal.aborted) await use();
  } finally {
    release();
  }
}
