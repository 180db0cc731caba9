/** A tab that is hidden for this time gives its connections back: a browser opens only six to a server, for all tabs. */
export const HIDDEN_MS = 30_000;

/** Resolves when the tab is shown, or the signal aborts. */
export function untilShown(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", end);
      resolve();
    };
    document.addEventListener("visibilitychange", end);
    signal.addEventListener("abort", end);
  });
}

/** Calls back when the tab has been hidden for {@link HIDDEN_MS}. @returns a function that ends it */
export function onLongHidden(callback: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onChange = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(callback, HIDDEN_MS);
  };
  onChange();
  document.addEventListener("visibilitychange", onChange);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onChange);
  };
}
