import { useReducer, useRef } from "preact/hooks";

/** Components rendered in one task: a task of them is far below the time of a frame. */
const RENDERS_PER_TASK = 12;
/** Components that show an older value, in the order in which they were given a newer one. */
const waiting = new Set<() => void>();
let isScheduled = false;

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    const [...next] = waiting.values().take(RENDERS_PER_TASK);
    for (const render of next) {
      waiting.delete(render);
      render();
    }
    if (waiting.size > 0) schedule();
  });
}

/**
 * A value for a component that need not be rendered at once: it is a few tasks behind, so that a change of all components
 * blocks nothing. @param isUrgent the component shows the newest value at once
 */
export function useDeferred<T>(value: T, isUrgent: boolean): T {
  const [, render] = useReducer((count: number) => count + 1, 0);
  const shown = useRef(value);
  const isDue = useRef(false);
  const take = useRef(() => {
    isDue.current = true;
    render(undefined as never);
  });
  if (isUrgent || isDue.current) {
    shown.current = value;
    waiting.delete(take.current);
  } else if (shown.current !== value) {
    waiting.add(take.current);
    schedule();
  }
  isDue.current = false;
  return shown.current;
}
