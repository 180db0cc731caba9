import { hasSlept, TICK_MS, type Wake } from "./reconnect.ts";

/** A tab that is hidden for this time gives its connections back. */
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

/** Messages between the tabs of one browser that show this node. */
const openTabs = () => new BroadcastChannel("kubelet-ts");

/** Asks the hidden tabs of this browser to give their connections back now: a tab that is shown waits for one. */
export function askForConnections(): void {
  const tabs = openTabs();
  tabs.postMessage("connections");
  tabs.close();
}

/**
 * Calls back when the tab has been hidden for {@link HIDDEN_MS}, when it is hidden and another tab needs its connections,
 * and when the browser keeps the page for its "back" button. @param signal ends it
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
  const tabs = openTabs();
  tabs.addEventListener("message", () => document.hidden && callback(), { signal });
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    tabs.close();
  });
}

/**
 * Calls back with `shown` when the tab is shown again or gets the focus, when "back" leads to it, and when the network is
 * back; with `slept` when the clock tells that the machine slept, which no event does. @param signal ends it
 */
export function onWake(callback: (wake: Wake) => void, signal: AbortSignal): void {
  let timer: ReturnType<typeof setInterval> | undefined;
  let lastMs = 0;
  const look = (isShown = false) => {
    const nowMs = Date.now();
    const slept = timer !== undefined && hasSlept(lastMs, nowMs);
    lastMs = nowMs;
    if (slept) callback("slept");
    else if (isShown) callback("shown");
  };
  const onChange = (isShown: boolean) => {
    if (document.hidden) {
      // Its timers would be late by design.
      clearInterval(timer);
      timer = undefined;
      return;
    }
    look(isShown);
    timer ??= setInterval(look, TICK_MS);
  };
  onChange(false);
  const onShown = () => onChange(true);
  document.addEventListener("visibilitychange", onShown, { signal });
  addEventListener("focus", onShown, { signal });
  addEventListener("online", onShown, { signal });
  addEventListener("pageshow", ({ persisted }) => persisted && onShown(), { signal });
  signal.addEventListener("abort", () => clearInterval(timer));
}
