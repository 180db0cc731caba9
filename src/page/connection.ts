import { applySnapshot, applyUpdate, EMPTY_STATE, type PageState } from "./store.ts";
import { onLongHidden, onShown } from "./tab-visibility.ts";
import type { ActionResult, Snapshot, Update } from "./wire.ts";

const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 15_000;
/** The server writes at least this often. */
const SILENCE_MS = 25_000;

/**
 * Follows the stream and calls `onState` at most once per animation frame.
 * @param first what is shown already
 * @returns a function that ends it
 */
export function followState(first: PageState, onState: (state: PageState) => void): () => void {
  let state = first;
  let source: EventSource | undefined;
  let retryMs = FIRST_RETRY_MS;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  let frame = 0;
  let isPaused = false;
  let heardAtMs = first.heardAtMs;
  const gone = new AbortController();
  const publish = () => {
    if (frame !== 0) return;
    // A hidden tab gets no frames; it catches up when it is shown.
    frame = requestAnimationFrame(() => {
      frame = 0;
      onState(state);
    });
  };
  const lose = () => {
    source?.close();
    clearTimeout(silence);
    clearTimeout(retry);
    state = { ...state, connection: "lost", heardAtMs };
    publish();
    retry = setTimeout(connect, retryMs);
    retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    void isLocked().then((locked) => {
      if (!locked || state.connection !== "lost") return;
      state = { ...EMPTY_STATE, connection: "locked" };
      publish();
    });
  };
  const heard = () => {
    heardAtMs = Date.now();
    clearTimeout(silence);
    silence = setTimeout(lose, SILENCE_MS);
  };
  const connect = () => {
    isPaused = false;
    source = new EventSource("/page/stream");
    source.addEventListener("snapshot", (event) => {
      retryMs = FIRST_RETRY_MS;
      state = applySnapshot(JSON.parse(event.data) as Snapshot, Date.now(), state);
      heard();
      publish();
    });
    source.addEventListener("update", (event) => {
      state = applyUpdate(state, JSON.parse(event.data) as Update);
      heard();
      publish();
    });
    source.addEventListener("ping", heard);
    // The next stream has what needs no session.
    source.addEventListener("expired", () => {
      disconnect();
      connect();
    });
    source.onerror = lose;
    heard();
  };
  const disconnect = () => {
    source?.close();
    clearTimeout(retry);
    clearTimeout(silence);
  };
  /** Nothing is sent to a hidden tab. */
  const pause = () => {
    isPaused = true;
    disconnect();
  };
  /** A machine that slept ran no timers, and its connection may be dead without an error: it is not waited for. */
  const resume = () => {
    const isDead = state.connection === "lost" || Date.now() - heardAtMs > SILENCE_MS;
    if (!isPaused && !isDead) return;
    disconnect();
    connect();
  };
  connect();
  onLongHidden(pause, gone.signal);
  onShown(resume, gone.signal);
  return () => {
    gone.abort();
    disconnect();
    cancelAnimationFrame(frame);
  };
}

/** The state in the document; the empty one where it shows none. */
export function readFirstState(): PageState {
  const text = document.getElementById("state")?.textContent;
  if (!text) return EMPTY_STATE;
  return { ...applySnapshot(JSON.parse(text) as Snapshot, Date.now()), connection: "connecting", connects: 0 };
}

/** Whether the server answers, but shows nothing without a session. */
const isLocked = (): Promise<boolean> =>
  fetch("/page/api/session").then(
    ({ status }) => status === 401,
    () => false,
  );

/** An answer other than 2xx. */
export class RequestFailed extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** @throws RequestFailed */
export async function fetchJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { ...(signal && { signal }), headers: { Accept: "application/json" } });
  if (!response.ok) throw new RequestFailed(response.status, (await response.text()).slice(0, 500));
  return (await response.json()) as T;
}

/** Never rejects. */
export async function act(path: string, body: unknown = {}): Promise<ActionResult> {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (response.ok) return (await response.json()) as ActionResult;
    return { ok: false, message: (await response.text()).slice(0, 2000) || `HTTP ${response.status}` };
  } catch {
    return { ok: false, message: "The kubelet does not answer." };
  }
}

/** Begins the fragment of a link of `kubelet-ts page`. */
export const TOKEN_HASH = "#token=";

/** Exchanges the one-time token of the address (`#token=…`) for a session, and removes it from the address. */
export async function logInFromAddress(): Promise<string | undefined> {
  if (!location.hash.startsWith(TOKEN_HASH)) return undefined;
  const token = location.hash.slice(TOKEN_HASH.length);
  history.replaceState(null, "", "#/");
  const { ok, message } = await act("/page/login", { token });
  return ok ? undefined : message;
}
