/** A tab that is hidden for this time gives its connections back: a browser opens only six to a server, for all tabs. */
const HIDDEN_MS = 30_000;

/** Resolves when the tab is shown, or the signal aborts. */
export function untilShown(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const shown = new AbortController();
    const end = () => {
      if (document.hidden && !signal.aborted) return;
      shown.abort();
      resolve();
    };
    document.addEventListener("visibilitychange", end, { signal: shown.signal });
    signal.addEventListener("abort", end, { signal: shown.signal });
  });
}

/**
 * Calls back when the tab has been hidden for {@link HIDDEN_MS}, and when the browser keeps the page for its "back"
 * button. @param signal ends it
 */
export function onLongHidden(callback: () => void, signal: AbortSignal): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onChange = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(callback, HIDDEN_MS);
  };
  onChange();
  document.addEventListener("visibilitychange", onChange, { signal });
  addEventListener("pagehide", ({ persisted }) => persisted && callback(), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
}

/** Calls back when the tab is shown again, when "back" leads to it, and when the network is back. @param signal ends it */
export function onShown(callback: () => void, signal: AbortSignal): void {
  const onChange = () => {
    if (!document.hidden) callback();
  };
  document.addEventListener("visibilitychange", onChange, { signal });
  addEventListener("pageshow", ({ persisted }) => persisted && callback(), { signal });
  addEventListener("online", onChange, { signal });
}
