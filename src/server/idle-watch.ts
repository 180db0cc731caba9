import type { Clock } from "../base/model/clock.ts";

/**
 * Calls `onIdle` once nothing has been `touched` for `idleMs`; 0 = never. One timer, however often it is touched.
 * @returns `touch`, and `end`, after which nothing happens any more
 */
export function watchIdle(clock: Clock, idleMs: number, onIdle: () => void): { touch: () => void; end: () => void } {
  if (idleMs === 0) return { touch: () => {}, end: () => {} };
  let touchedAtMs = clock.monotonicMs();
  const check = () => {
    const leftMs = touchedAtMs + idleMs - clock.monotonicMs();
    if (leftMs <= 0) onIdle();
    else cancel = clock.schedule(leftMs, check);
  };
  let cancel = clock.schedule(idleMs, check);
  return {
    touch: () => {
      touchedAtMs = clock.monotonicMs();
    },
    end: () => cancel(),
  };
}
